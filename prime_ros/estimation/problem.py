# SPDX-License-Identifier: Apache-2.0
"""From measurements at knots to the optimisation problem of the C++ core: weights, prior and start."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from prime_ros import _core
from prime_ros.config import EstimatorConfig
from prime_ros.estimation.fusion import Information
from prime_ros.measurements.knots import KnotMeasurements
from prime_ros.robot import Contact, Robot

Array = NDArray[np.float64]

VELOCITY_WINDOW = 3  # knots on either side over which mocap is differenced for the start
BASE_NV = 6


@dataclass(frozen=True)
class Problem:
    """A maximum a posteriori problem over K steps, and a trajectory to start from."""

    model: pin.Model
    """Rigid-body model with nominal inertias."""
    step: _core.ContactStep
    """Contact dynamics of the robot with the parameters that are estimated."""
    knots: _core.KnotSeries
    """Measurements of K + 1 knots and their weights."""
    prior: Array
    """Mean of (q, v, theta) at the first knot."""
    prior_information: Array
    """Inverse covariance of the prior in the tangent (q, v, theta)."""
    states: Array
    """Start, shape (nx, K + 1)."""
    controls: Array
    """Start, shape (nv + 3 C, K): disturbance and contact slack."""
    links: tuple[str, ...]
    """Identified links, in the order of theta."""

    @property
    def steps(self) -> int:
        """Number of steps K."""
        return len(self.knots) - 1


def build_problem(measurements: KnotMeasurements, robot: Robot, config: EstimatorConfig) -> Problem:
    """Assemble the maximum a posteriori problem (docs/concept.md).

    Args:
        measurements: K + 1 knots in the joint order of `robot`.
        robot: Model, contacts and drives.
        config: Weights, prior and identified links.

    Returns:
        The problem and its start: the measurements themselves, which need not obey the dynamics.

    Raises:
        RobotError: If a link of `config.links` does not exist.
    """
    step = contact_step(robot, config)
    q, v = measured_trajectory(measurements)
    height = start_height(q, robot)
    theta = np.asarray(step.nominal_theta(height))
    states = np.vstack([q.T, v.T, np.repeat(theta[:, None], len(q), axis=1)])
    prior = np.concatenate([q[0], v[0], theta])
    prior[-1] = config.ground_height.initial
    return Problem(
        model=robot.model,
        step=step,
        knots=knot_measurements(measurements, q, v, robot, config),
        prior=prior,
        prior_information=np.diag(prior_std(robot, config) ** -2.0),
        states=states,
        controls=np.zeros((step.nv + 3 * step.ncontacts, len(q) - 1)),
        links=tuple(config.links),
    )


def with_belief(problem: Problem, belief: Information) -> Problem:
    """The problem with another prior of the parameters of the links; that of the ground height stays."""
    count = len(belief.vector)
    mean, information = problem.prior.copy(), problem.prior_information.copy()
    first = len(mean) - problem.step.ntheta
    mean[first : first + count] = belief.mean
    block = slice(first - 1, first - 1 + count)  # the tangent of (q, v) has one number less
    information[block, block] = belief.matrix
    return replace(problem, prior=mean, prior_information=information)


def contact_step(robot: Robot, config: EstimatorConfig) -> _core.ContactStep:
    """The contact dynamics of a robot, at the first stage of the smoothing.

    Raises:
        RobotError: If a link of `config.links` does not exist.
    """
    settings = _core.StepSettings()
    settings.dt = config.dt
    settings.kappa = config.contact.kappa_stages[0]
    settings.damping = np.concatenate([np.zeros(BASE_NV), robot.joint_damping])
    settings.friction = np.concatenate([np.zeros(BASE_NV), robot.joint_friction])
    settings.friction_velocity = robot.friction_velocity
    bodies = [robot.joint_of_link(link) for link in config.links]
    return _core.ContactStep(
        robot.model, [_contact_point(contact) for contact in robot.contacts], bodies, settings
    )


def _contact_point(contact: Contact) -> _core.ContactPoint:
    point = _core.ContactPoint()
    point.joint, point.radius = contact.joint_id, contact.radius
    point.offset, point.friction = np.asarray(contact.offset, float), np.asarray(contact.friction, float)
    return point


def measured_trajectory(m: KnotMeasurements) -> tuple[Array, Array]:
    """Configurations (K + 1, nq) and velocities (K + 1, nv) as measured.

    The base is moved to the time of the knots. Its linear velocity is the difference of mocap over a few
    knots, turned into the base frame.
    """
    stamp = np.arange(len(m.stamp_ns)) * m.dt + m.base_time_offset
    k = np.arange(len(stamp))
    before, after = np.maximum(k - VELOCITY_WINDOW, 0), np.minimum(k + VELOCITY_WINDOW, len(k) - 1)
    span = np.maximum(stamp[after] - stamp[before], m.dt)
    velocity_W = (m.base_position_W[after] - m.base_position_W[before]) / span[:, None]
    linear_B = Rotation.from_quat(m.base_quat_xyzw).inv().apply(velocity_W)
    position = m.base_position_W - m.base_time_offset[:, None] * velocity_W
    q = np.hstack([position, m.base_quat_xyzw, m.joint_position])
    return q, np.hstack([linear_B, m.base_angular_velocity_B, m.joint_velocity])


def start_height(q: Array, robot: Robot) -> float:
    """Height of the ground to start from [m].

    The median height of the lowest contact over the recording: right for a robot that stands on something
    most of the time. The prior mean is no good start: feet in the ground are harmless, feet in the air are
    not.
    """
    data = robot.model.createData()
    lowest = np.empty(len(q))
    for k, configuration in enumerate(q):
        pin.forwardKinematics(robot.model, data, configuration)
        lowest[k] = min(data.oMi[c.joint_id].act(c.offset)[2] - c.radius for c in robot.contacts)
    return float(np.median(lowest))


def prior_std(robot: Robot, config: EstimatorConfig) -> Array:
    """Standard deviation of the prior of (q, v, theta) in the tangent."""
    prior, inertia = config.prior, config.inertia_prior
    n = len(robot.joint_names)
    body = [inertia.log_mass] + 3 * [inertia.log_size] + 3 * [inertia.shear] + 3 * [inertia.com]
    return np.concatenate(
        [
            np.repeat([prior.base_position, prior.base_rotation], 3),
            np.full(n, prior.joint_position),
            np.repeat([prior.base_linear_velocity, prior.base_angular_velocity], 3),
            np.full(n, prior.joint_velocity),
            np.tile(body, len(config.links)),
            [config.ground_height.std],
        ]
    )


def knot_measurements(
    m: KnotMeasurements, q: Array, v: Array, robot: Robot, config: EstimatorConfig
) -> _core.KnotSeries:
    """Measurements with their weights, inverse variances: zero where the standard deviation is infinite."""
    std_base = [m.std_base_position, m.std_base_rotation]
    std_q = np.hstack([np.repeat(np.column_stack(std_base), 3, axis=1), m.std_joint_position])
    std_rate = np.repeat(m.std_base_angular_velocity[:, None], 3, axis=1)
    std_v = np.hstack([np.full((len(v), 3), np.inf), std_rate, m.std_joint_velocity])
    knots = _core.KnotSeries()
    knots.configuration = np.hstack([m.base_position_W, m.base_quat_xyzw, m.joint_position]).T
    knots.configuration_weight = std_q.T**-2.0
    knots.base_time_offset = m.base_time_offset
    knots.velocity = v.T
    knots.velocity_weight = std_v.T**-2.0
    knots.torque = np.nan_to_num(m.joint_torque).T
    knots.control_weight = control_std(m, len(robot.contacts), config).T ** -2.0
    return knots


def control_std(m: KnotMeasurements, contacts: int, config: EstimatorConfig) -> Array:
    """Standard deviations of the disturbance and the contact slack of every knot, shape (K + 1, nv + 3 C)."""
    knots = len(m.stamp_ns)
    sensor = np.where(np.isfinite(m.std_joint_torque), m.std_joint_torque, config.missing_torque_std)
    base = np.repeat([config.disturbance.force, config.disturbance.moment], 3)
    slack = np.tile([config.slack.tangential, config.slack.tangential, config.slack.normal], contacts)
    joint = np.hypot(sensor, config.disturbance.joint_torque)
    return np.hstack([np.tile(base, (knots, 1)), joint, np.tile(slack, (knots, 1))])
