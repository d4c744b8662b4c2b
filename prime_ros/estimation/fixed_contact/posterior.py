# SPDX-License-Identifier: Apache-2.0
"""Posterior of the baseline: covariances along the trajectory by the gains of the backward pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from prime_ros.estimation.fixed_contact.problem import RigidProblem
from prime_ros.robot import Robot

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RigidPosterior:
    """Forces of the contacts and standard deviations of everything over K steps."""

    state_std: Array
    """Of the tangent (q, v, theta), shape (K + 1, ndx)."""
    position_std: Array
    """Of the base in world axes, shape (K + 1, 3) [m]."""
    control_std: Array
    """Shape (K, nv)."""
    theta_covariance: Array
    force_W: Array
    """Shape (K, C, 3) [N]."""
    force_std: Array
    """Shape (K, C, 3) [N]."""


def posterior_of(solver: Any, problem: RigidProblem, robot: Robot) -> RigidPosterior:
    """Forces and standard deviations of a solution.

    Args:
        solver: Crocoddyl's solver after a backward pass at the solution.
        problem: What it solved.
        robot: The robot.
    """
    nv, steps = robot.model.nv, problem.steps
    actions = solver.problem.runningModels
    state_std, position_std, control_std = [], [], []
    force_W, force_std = np.zeros((2, steps, len(robot.contacts), 3))
    frames = robot.model.createData()
    covariances = list(state_covariances(solver.problem.runningDatas, solver.K, solver.Quu))
    for k, covariance in enumerate(covariances):
        x = solver.xs[k + 1]
        pin.forwardKinematics(robot.model, frames, x[: robot.model.nq])
        rotation = frames.oMi[1].rotation
        state_std.append(_std(covariance))
        position_std.append(_std(rotation @ covariance[:3, :3] @ rotation.T))
        if k == steps:
            break
        gain, rest = solver.K[k + 1], np.linalg.inv(solver.Quu[k + 1])
        control_std.append(_std(gain @ covariance @ gain.T + rest))
        wrench, by_x, by_u = actions[k + 1].wrenches(x, solver.us[k + 1])
        chain = by_x - by_u @ gain
        spread = chain @ covariance @ chain.T + by_u @ rest @ by_u.T
        for f, foot in enumerate(problem.feet):
            axes = (frames.oMi[foot.joint_id].rotation @ foot.placement.rotation) if foot.flat else np.eye(3)
            to_points = np.kron(np.eye(len(foot.contacts)), axes) @ foot.spread
            block = slice(6 * f, 6 * f + 6)
            places = list(foot.contacts)
            force_W[k, places] = (to_points @ wrench.reshape(6, -1)[:, f]).reshape(-1, 3)
            force_std[k, places] = _std(to_points @ spread[block, block] @ to_points.T).reshape(-1, 3)
    return RigidPosterior(
        np.array(state_std),
        np.array(position_std),
        np.array(control_std),
        covariances[-1][2 * nv :, 2 * nv :],
        force_W,
        force_std,
    )


def state_covariances(
    data: Iterable[Any], gains: Iterable[Array], curvatures: Iterable[Array]
) -> Iterator[Array]:
    """Posterior covariance of the state after every action, walking forward.

    With the gains K and the curvature Quu of the backward pass, every action has u = -K dx + e with the
    covariance Quu^-1 of e. The first one is the arrival action, before which nothing is uncertain.

    Args:
        data: Derivatives of the running actions.
        gains: K of each.
        curvatures: Quu of each.
    """
    covariance: Array | None = None
    for action, gain, curvature in zip(data, gains, curvatures, strict=True):
        covariance_of_noise = action.Fu @ np.linalg.solve(curvature, action.Fu.T)
        if covariance is None:
            covariance = covariance_of_noise
        else:
            closed = action.Fx - action.Fu @ gain
            covariance = closed @ covariance @ closed.T + covariance_of_noise
        yield covariance


def _std(covariance: Array) -> Array:
    return np.sqrt(np.maximum(np.diag(covariance), 0.0))
