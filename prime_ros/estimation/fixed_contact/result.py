# SPDX-License-Identifier: Apache-2.0
"""From a solution with rigid contact to the estimate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prime_ros import _core
from prime_ros.config import EstimatorConfig
from prime_ros.estimation.covariance import link_parameters, links_of
from prime_ros.estimation.estimate import Certificate, Estimate
from prime_ros.estimation.fixed_contact.posterior import RigidPosterior
from prime_ros.estimation.fixed_contact.problem import RigidProblem
from prime_ros.estimation.observability import link_directions
from prime_ros.estimation.problem import BASE_NV
from prime_ros.estimation.progress import Progress
from prime_ros.estimation.sensors import AXES, Channels
from prime_ros.measurements.knots import KnotMeasurements
from prime_ros.robot import Robot

Array = NDArray[np.float64]


def to_estimate(
    solver: Any,
    problem: RigidProblem,
    posterior: RigidPosterior,
    certificate: Certificate,
    history: tuple[Progress, ...],
    measurements: KnotMeasurements,
    robot: Robot,
    config: EstimatorConfig,
    timing: Mapping[str, float],
) -> Estimate:
    """The estimate of the first K knots of a solution over K steps."""
    steps, nq, nv = problem.steps, robot.model.nq, robot.model.nv
    states, controls = np.array(solver.xs[1 : steps + 1]), np.array(solver.us[1:])
    q, v = states[:, :nq], states[:, nq : nq + nv]
    standing = _by_contact(problem, robot)
    parameters = link_parameters(states[0, nq + nv :], posterior.theta_covariance, robot, config)
    channels = _channels(np.array(solver.xs[1:]), controls, problem, posterior, robot)
    q_std, v_std = posterior.state_std[:steps, :nv], posterior.state_std[:steps, nv : 2 * nv]
    return Estimate(
        stamp_ns=measurements.stamp_ns[:steps],
        dt=config.dt,
        joint_names=robot.joint_names,
        contact_names=robot.contact_names,
        base_position_W=q[:, :3],
        base_quat_xyzw=q[:, 3:7] / np.linalg.norm(q[:, 3:7], axis=1, keepdims=True),
        base_velocity_B=v[:, :BASE_NV],
        joint_position=q[:, 7:],
        joint_velocity=v[:, BASE_NV:],
        joint_torque=measurements.joint_torque[:steps] + controls[:, BASE_NV:],
        contact_force_W=posterior.force_W,
        contact_probability=standing,
        std={
            "base_position_W": posterior.position_std[:steps],
            "base_quat_xyzw": q_std[:, 3:6],
            "base_velocity_B": v_std[:, :BASE_NV],
            "joint_position": q_std[:, BASE_NV:],
            "joint_velocity": v_std[:, BASE_NV:],
            "joint_torque": posterior.control_std[:, BASE_NV:],
            "contact_force_W": posterior.force_std,
            "contact_probability": np.zeros_like(standing),
        },
        links=links_of(parameters, robot),
        ground_height=problem.ground_height,
        std_ground_height=float("nan"),
        certificate=certificate,
        sensors={name: channel.report() for name, channel in channels.items()},
        timing=timing,
        residuals={
            name: channel.residuals(measurements.stamp_ns)
            for name, channel in channels.items()
            if channel.measured
        },
        history=history,
        directions=link_directions(parameters),
        parameters=parameters if parameters.links else None,
    )


def _by_contact(problem: RigidProblem, robot: Robot) -> Array:
    """Whether the foot of every contact stands, 0 or 1, shape (K, C)."""
    standing = np.zeros((problem.steps, len(robot.contacts)))
    for f, foot in enumerate(problem.feet):
        standing[:, list(foot.contacts)] = problem.standing[: problem.steps, f, None]
    return standing


def _channels(
    states: Array, controls: Array, problem: RigidProblem, posterior: RigidPosterior, robot: Robot
) -> dict[str, Channels]:
    """Residuals of every sensor, and the disturbance, by the names that the full-information estimator gives.

    The leverage of a measurement is its weight times the posterior variance of what it measures.
    """
    nv, joints = robot.model.nv, robot.joint_names
    residual = _residuals(states, problem)
    knots = problem.smooth.knots
    weight = np.vstack([knots.configuration_weight, knots.velocity_weight])
    variance = posterior.state_std[:, : 2 * nv].T ** 2
    control_weight = knots.control_weight[:nv, : problem.steps]

    def measured(first: int, count: int, unit: str, names: tuple[str, ...]) -> Channels:
        rows = slice(first, first + count)
        return _channel(unit, names, residual[rows], weight[rows], variance[rows], True)

    def applied(first: int, count: int, unit: str, names: tuple[str, ...], is_sensor: bool) -> Channels:
        rows = slice(first, first + count)
        std = posterior.control_std.T[rows]
        return _channel(unit, names, controls.T[rows], control_weight[rows], std**2, is_sensor)

    n = nv - BASE_NV
    channels = {
        "mocap position": measured(0, 3, "m", AXES),
        "mocap orientation": measured(3, 3, "rad", AXES),
        "joint position": measured(BASE_NV, n, "rad", joints),
        "gyroscope": measured(nv + 3, 3, "rad/s", AXES),
        "joint velocity": measured(nv + BASE_NV, n, "rad/s", joints),
        "joint torque": applied(BASE_NV, n, "Nm", joints, True),
        "disturbance force": applied(0, 3, "N", AXES, False),
        "disturbance moment": applied(3, 3, "Nm", AXES, False),
    }
    return {name: each for name, each in channels.items() if bool((each.weight > 0.0).any())}


def _channel(
    unit: str, names: tuple[str, ...], residual: Array, weight: Array, variance: Array, measured: bool
) -> Channels:
    nothing = np.zeros(residual.shape, dtype=bool)
    return Channels(unit, names, residual, weight, nothing, float((weight * variance).sum()), measured)


def _residuals(states: Array, problem: RigidProblem) -> Array:
    """Prediction minus measurement of (q, v) at all knots, shape (2 nv, K + 1).

    The measurement model is that of the full-information estimator, whose core has it.
    """
    smooth = problem.smooth
    core = _core.GaussNewton(smooth.step, smooth.knots, smooth.prior, smooth.prior_information, 1)
    with_ground = np.column_stack([states, np.full(len(states), problem.ground_height)])
    core.set_trajectory(with_ground.T, smooth.controls)
    return np.array(core.residuals())  # a copy: the core goes
