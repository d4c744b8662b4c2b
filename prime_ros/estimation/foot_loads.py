# SPDX-License-Identifier: Apache-2.0
"""What a flat foot carries altogether: wrench, centre of pressure, roll from heel to toe, with deviations.

How a flat foot shares its load out among its contact points is not determined by the motion of the robot; the
wrench is. So its deviation is that of the sum, with the correlations between the points, which are strongly
negative.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from prime_ros.estimation.estimate import FootLoads
from prime_ros.estimation.fixed_contact.feet import Foot, soles_of
from prime_ros.robot import Robot

Array = NDArray[np.float64]


def foot_loads(
    configuration: Array, force_W: Array, covariance: Array, robot: Robot, threshold: float
) -> FootLoads | None:
    """Loads of all flat feet.

    Args:
        configuration: q, shape (K, nq).
        force_W: On the contacts, world axes, shape (K, C, 3) [N].
        covariance: Of these, contact after contact, shape (K, 3 C, 3 C) [N^2].
        robot: Its feet.
        threshold: Normal force above which a foot has a centre of pressure [N].

    Returns:
        None if no foot is a sole, that is, has contact points that span an area.
    """
    feet = soles_of(robot)
    if not feet:
        return None
    arm, rotation = _geometry(configuration, feet, robot)
    wrench, spread = _wrenches(force_W, covariance, feet, arm)
    centre, centre_std = _pressure_centres(wrench, spread, rotation)
    loaded = wrench[..., 2] > threshold
    length = np.array([foot.size[0] for foot in feet])
    return FootLoads(
        names=tuple(foot.name for foot in feet),
        wrench_W=wrench,
        std_wrench_W=np.sqrt(np.maximum(np.diagonal(spread, axis1=2, axis2=3), 0.0)),
        pressure_centre_F=np.where(loaded[..., None], centre, np.nan),
        std_pressure_centre_F=np.where(loaded[..., None], centre_std, np.nan),
        roll=np.where(loaded, np.clip(centre[..., 0] / length + 0.5, 0.0, 1.0), np.nan),
    )


def _geometry(configuration: Array, feet: Sequence[Foot], robot: Robot) -> tuple[list[Array], Array]:
    """By foot, from the middle of the sole to its contacts, world axes, (K, m, 3); rotations (K, F, 3, 3)."""
    data = robot.model.createData()
    arm = [np.empty((len(configuration), len(foot.contacts), 3)) for foot in feet]
    rotation = np.empty((len(configuration), len(feet), 3, 3))
    for k, q in enumerate(configuration):
        pin.forwardKinematics(robot.model, data, q)
        for f, foot in enumerate(feet):
            sole = data.oMi[foot.joint_id] * foot.placement
            rotation[k, f] = sole.rotation
            for i, place in enumerate(foot.contacts):
                contact = robot.contacts[place]
                point = data.oMi[foot.joint_id].act(contact.offset) - [0.0, 0.0, contact.radius]
                arm[f][k, i] = point - sole.translation
    return arm, rotation


def _wrenches(
    force_W: Array, covariance: Array, feet: Sequence[Foot], arm: Sequence[Array]
) -> tuple[Array, Array]:
    """Wrench about the middle of every sole, (K, F, 6), and its covariance, (K, F, 6, 6)."""
    knots = len(force_W)
    wrench, spread = np.empty((knots, len(feet), 6)), np.empty((knots, len(feet), 6, 6))
    for f, foot in enumerate(feet):
        to_wrench = np.zeros((knots, 6, 3 * len(foot.contacts)))
        for i in range(len(foot.contacts)):
            columns = slice(3 * i, 3 * i + 3)
            to_wrench[:, :3, columns] = np.eye(3)
            to_wrench[:, 3:, columns] = _skew(arm[f][:, i])
        rows = np.concatenate([np.arange(3 * place, 3 * place + 3) for place in foot.contacts])
        force = force_W[:, list(foot.contacts)].reshape(knots, -1)
        wrench[:, f] = np.einsum("kij,kj->ki", to_wrench, force)
        spread[:, f] = to_wrench @ covariance[:, rows[:, None], rows] @ to_wrench.transpose(0, 2, 1)
    return wrench, spread


def _pressure_centres(wrench: Array, spread: Array, rotation: Array) -> tuple[Array, Array]:
    """Where in the plane of the sole the moments along it vanish, and its deviation, each (K, F, 2) [m]."""
    turned = np.zeros((*rotation.shape[:2], 6, 6))
    turned[..., :3, :3] = turned[..., 3:, 3:] = rotation.swapaxes(2, 3)
    w = np.einsum("kfij,kfj->kfi", turned, wrench)
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = np.stack([-w[..., 4], w[..., 3]], axis=-1) / w[..., 2:3]
        slope = np.zeros((*w.shape[:2], 2, 6))
        slope[..., 0, 4], slope[..., 1, 3] = -1.0 / w[..., 2], 1.0 / w[..., 2]
        slope[..., 2] = -centre / w[..., 2:3]
        in_sole = slope @ turned
        variance = np.diagonal(in_sole @ spread @ in_sole.swapaxes(2, 3), axis1=2, axis2=3)
    return centre, np.sqrt(np.maximum(variance, 0.0))


def _skew(vectors: Array) -> Array:
    """Matrices of the cross product, shape (K, 3) to (K, 3, 3)."""
    out = np.zeros((len(vectors), 3, 3))
    x, y, z = vectors.T
    out[:, 0, 1], out[:, 0, 2], out[:, 1, 2] = -z, y, -x
    return out - out.transpose(0, 2, 1)
