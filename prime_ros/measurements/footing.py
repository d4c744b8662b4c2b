# SPDX-License-Identifier: Apache-2.0
"""Where the contacts are and how they move, from motion capture and joints, without any dynamics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from prime_ros.measurements.samples import NANOSECONDS, Floats, ImuSamples, JointSamples, MocapSamples, Stamps
from prime_ros.robot import Robot

HALF = 0.05  # [s] displacements are taken over twice that: noise of motion capture falls with it
MOST = 250  # moments looked at
MAX_GAP = 0.05  # [s]
MIN_MOMENTS = 20
MIN_SECONDS = 0.8  # a shorter piece may hold less than a step


@dataclass(frozen=True)
class Moments:
    """K moments, spread over a recording, in each of which all sensors are there."""

    position: Floats
    """Of the base in the world, shape (K, 3) [m]."""
    rotation: Rotation
    """K rotations from base to world."""
    shift: Floats
    """Displacement of the base in the world in the time around the moment, shape (K, 3) [m]."""
    turn: Floats
    """Turn of the base in that time, base axes, shape (K, 3) [rad]."""
    before: Floats
    """Joint positions at its start, shape (K, n) [rad]."""
    after: Floats
    """Joint positions at its end, shape (K, n) [rad]."""
    torque: Floats
    """Mean joint torque in that time, shape (K, n) [Nm]."""
    duration: float
    """From the first moment to the last [s]."""


def moments(
    joints: JointSamples, imu: ImuSamples | None, mocap: MocapSamples, robot: Robot
) -> Moments | None:
    """Choose moments and gather what the sensors say about them; None if there are too few."""
    if min(len(joints.stamp_ns), len(mocap.stamp_ns)) < 3:
        return None
    half = round(HALF * NANOSECONDS)
    start = max(int(joints.stamp_ns[0]), int(mocap.stamp_ns[0])) + half
    end = min(int(joints.stamp_ns[-1]), int(mocap.stamp_ns[-1])) - half
    if end - start < MIN_SECONDS * NANOSECONDS:
        return None
    count = int(min(MOST, (end - start) // (half // 5)))
    at = np.linspace(start, end, count).astype(np.int64)
    at = at[_covered(joints.stamp_ns, at, half) & _covered(mocap.stamp_ns, at, half)]
    finite = np.isfinite(joints.position).all(axis=1) & np.isfinite(joints.torque).all(axis=1)
    if len(at) < MIN_MOMENTS or finite.sum() < 3:
        return None
    stamp, position, torque = joints.stamp_ns[finite], joints.position[finite], joints.torque[finite]
    at = at[_covered(stamp, at, half)]
    if len(at) < MIN_MOMENTS:
        return None
    R_MB = Rotation.from_matrix(robot.T_BM.rotation.T)
    rotation = Rotation.from_quat(_nearest(mocap, at)) * R_MB
    first, last = (Rotation.from_quat(_nearest(mocap, when)) * R_MB for when in (at - half, at + half))
    turn = (first.inv() * last).as_rotvec()
    if imu is not None and np.isfinite(imu.angular_velocity).all(axis=1).sum() > 2:
        known = np.isfinite(imu.angular_velocity).all(axis=1)
        turn = _integral(imu.stamp_ns[known], imu.angular_velocity[known], at, half) @ robot.R_BI.T
    lever = robot.T_BM.translation
    base = mocap.position - (Rotation.from_quat(mocap.quat_xyzw) * R_MB).apply(lever)
    return Moments(
        _at(mocap.stamp_ns, base, at),
        rotation,
        _at(mocap.stamp_ns, base, at + half) - _at(mocap.stamp_ns, base, at - half),
        turn,
        _at(stamp, position, at - half),
        _at(stamp, position, at + half),
        _integral(stamp, torque, at, half) / (2 * HALF),
        float(at[-1] - at[0]) / NANOSECONDS,
    )


@dataclass(frozen=True)
class Footing:
    """C contacts at K moments."""

    height: Floats
    """Of the lowest point of each contact in the world, shape (K, C) [m]."""
    speed: Floats
    """Of each contact in the world, shape (K, C) [m/s]."""
    position_B: Floats
    """Centre of each contact in the base frame, shape (K, C, 3) [m]."""


def footing(seen: Moments, robot: Robot, order: Sequence[int] | None = None) -> Footing:
    """Kinematics of the contacts, with the columns of the joints taken in another order."""
    columns = list(range(seen.before.shape[1])) if order is None else list(order)
    first = _centres(robot, seen.before[:, columns])
    last = _centres(robot, seen.after[:, columns])
    middle = (first + last) / 2
    in_base = last - first + np.cross(seen.turn[:, None, :], middle)
    matrix = seen.rotation.as_matrix()
    moved = seen.shift[:, None, :] + np.einsum("kij,kcj->kci", matrix, in_base)
    radius = np.array([contact.radius for contact in robot.contacts])
    height = seen.position[:, 2:] + np.einsum("kj,kcj->kc", matrix[:, 2], middle) - radius
    return Footing(height, np.linalg.norm(moved, axis=2) / (2 * HALF), middle)


def _centres(robot: Robot, position: Floats) -> Floats:
    """Centres of the contacts in the base frame, shape (K, C, 3)."""
    data = robot.model.createData()
    q = np.concatenate([[0.0, 0, 0, 0, 0, 0, 1], np.zeros(position.shape[1])])
    centres = np.empty((len(position), len(robot.contacts), 3))
    for row, joints in enumerate(position):
        q[7:] = joints
        pin.forwardKinematics(robot.model, data, q)
        for column, contact in enumerate(robot.contacts):
            centres[row, column] = data.oMi[contact.joint_id].act(contact.offset)
    return centres


def _covered(stamp_ns: Stamps, at: Stamps, half: int) -> NDArray[np.bool_]:
    """Whether samples lie close to the start, the middle and the end of each moment."""
    near = np.ones(len(at), dtype=bool)
    for when in (at - half, at, at + half):
        row = np.clip(np.searchsorted(stamp_ns, when), 1, len(stamp_ns) - 1)
        near &= stamp_ns[row] - stamp_ns[row - 1] <= MAX_GAP * NANOSECONDS
        near &= (when >= stamp_ns[0]) & (when <= stamp_ns[-1])
    return near


def _at(stamp_ns: Stamps, values: Floats, at: Stamps) -> Floats:
    start = stamp_ns[0]
    return np.column_stack([np.interp(at - start, stamp_ns - start, column) for column in values.T])


def _nearest(mocap: MocapSamples, at: Stamps) -> Floats:
    row = np.clip(np.searchsorted(mocap.stamp_ns, at), 1, len(mocap.stamp_ns) - 1)
    row -= at - mocap.stamp_ns[row - 1] < mocap.stamp_ns[row] - at
    return np.asarray(mocap.quat_xyzw[row])


def _integral(stamp_ns: Stamps, values: Floats, at: Stamps, half: int) -> Floats:
    """Integral over the time around each moment, values held from the sample before."""
    step = np.diff(stamp_ns)[:, None] / NANOSECONDS
    total = np.vstack([np.zeros((1, values.shape[1])), np.cumsum(step * values[1:], axis=0)])
    return _at(stamp_ns, total, at + half) - _at(stamp_ns, total, at - half)
