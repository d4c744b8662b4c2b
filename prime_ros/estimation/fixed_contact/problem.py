# SPDX-License-Identifier: Apache-2.0
"""The cost of the full-information estimator on rigid contact, as a shooting problem of Crocoddyl."""

from __future__ import annotations

from dataclasses import dataclass

import crocoddyl
import numpy as np
from numpy.typing import NDArray

from prime_ros import _core
from prime_ros.config import EstimatorConfig
from prime_ros.estimation.fixed_contact.feet import Foot, feet_of, lowered
from prime_ros.estimation.fixed_contact.schedule import Mask, standing_feet
from prime_ros.estimation.problem import BASE_NV, Problem, build_problem
from prime_ros.measurements.knots import KnotMeasurements
from prime_ros.robot import Robot

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RigidProblem:
    """A maximum a posteriori problem over K steps with a contact sequence that is given."""

    smooth: Problem
    """The problem with the same measurements, weights and priors whose contact is smooth."""
    feet: tuple[Foot, ...]
    standing: Mask
    """Shape (K + 1, F)."""
    ground_height: float
    """That the contact sequence was taken from [m]."""
    state: _core.StateInertial
    contact: _core.RigidContact
    prior: Array
    """Mean of (q, v, theta) at the first knot; theta without the ground."""
    prior_information: Array

    @property
    def steps(self) -> int:
        """Number of steps K."""
        return self.smooth.steps


def build_rigid_problem(m: KnotMeasurements, robot: Robot, config: EstimatorConfig) -> RigidProblem:
    """Assemble the problem.

    Raises:
        RobotError: If a link of `config.links` does not exist, or the feet cannot be rigid.
    """
    smooth = build_problem(m, robot, config)
    q, feet = smooth.states[: robot.model.nq].T, feet_of(robot)
    standing, ground = standing_feet(q, feet, robot, config)
    feet = lowered(feet, q, standing, robot)
    settings = _core.RigidSettings()
    settings.dt = config.dt
    settings.settle_rate = 1.0 / max(config.fixed_contact.settle, config.dt)
    settings.cone_weight = config.fixed_contact.cone**-2.0
    bodies = [robot.joint_of_link(link) for link in config.links]
    contact = _core.RigidContact(robot.model, [foot.for_core() for foot in feet], bodies, settings)
    return RigidProblem(
        smooth=smooth,
        feet=feet,
        standing=standing,
        ground_height=ground,
        state=_core.StateInertial(robot.model, contact.ntheta),
        contact=contact,
        prior=smooth.prior[:-1],
        prior_information=smooth.prior_information[:-1, :-1],
    )


def shooting_problem(problem: RigidProblem, passive: Array) -> crocoddyl.ShootingProblem:
    """The problem for Crocoddyl: an arrival action with the prior, K running actions, a terminal one.

    Args:
        problem: The problem.
        passive: Torque by which damping and friction brake the joints in each step, shape (K + 1, n) [Nm].
    """
    given = problem.smooth.knots
    knots = _core.KnotSeries()
    for field in ("configuration", "configuration_weight", "base_time_offset", "velocity", "velocity_weight"):
        setattr(knots, field, getattr(given, field))
    knots.torque = given.torque - passive.T
    knots.control_weight = given.control_weight[: problem.contact.nv]
    bits = problem.standing @ (1 << np.arange(len(problem.feet)))
    actions = [
        _core.ActionRigidContact(problem.state, problem.contact, int(bits[k]), knots[k])
        for k in range(problem.steps + 1)
    ]
    arrival = _core.ActionArrival(problem.state, problem.prior_information)
    shooting = crocoddyl.ShootingProblem(problem.prior, [arrival, *actions[:-1]], actions[-1])
    shooting.nthreads = 1
    return shooting


def passive_torque(joint_velocity: Array, robot: Robot) -> Array:
    """Torque by which damping and Coulomb friction brake the joints, shape (K + 1, n) [Nm].

    Of the mean of the rates before and after a knot, as the torque of a step is the mean over both.

    Args:
        joint_velocity: Shape (K + 1, n) [rad/s].
        robot: Its damping and friction.
    """
    after = np.vstack([joint_velocity[1:], joint_velocity[-1:]])
    rate = 0.5 * (joint_velocity + after)
    sign = rate / np.hypot(rate, robot.friction_velocity)
    return robot.joint_damping * rate + robot.joint_friction * sign


def joint_rates(xs: list[Array], robot: Robot) -> Array:
    """Rates of the joints at all knots of a trajectory that begins with the prior, shape (K + 1, n)."""
    rates = slice(robot.model.nq + BASE_NV, robot.model.nq + robot.model.nv)
    return np.array([x[rates] for x in xs[1:]])
