# SPDX-License-Identifier: Apache-2.0
"""Poses of motion capture that are not poses of the robot: lost or frozen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prime_ros.measurements.samples import Floats, JointSamples, MocapSamples, Stamps
from prime_ros.robot import Robot

UNIT = 0.05  # deviation from unit length that rounding of a published quaternion does not explain
MOVED = 10.0  # standard deviations of a joint encoder that count as motion

Mask = NDArray[np.bool_]


def finite_poses(samples: MocapSamples) -> Mask:
    """Which poses, shape (N,), have only finite numbers."""
    return np.asarray(np.isfinite(samples.position).all(axis=1) & np.isfinite(samples.quat_xyzw).all(axis=1))


def lost_poses(samples: MocapSamples) -> Mask:
    """Which poses, shape (N,), stand for a body not seen: no unit quaternion, or exactly the origin."""
    with np.errstate(invalid="ignore", over="ignore"):
        norm = np.linalg.norm(samples.quat_xyzw, axis=1)
        return np.asarray((np.abs(norm - 1) > UNIT) | (samples.position == 0).all(axis=1))


def frozen_poses(samples: MocapSamples, joints: JointSamples, robot: Robot) -> Mask:
    """Which poses repeat the one before to the last bit although the robot has moved since it was new.

    Args:
        samples: Poses in time order.
        joints: Joints in model order and in time order.
        robot: States the noise of the encoders.

    Returns:
        Mask of shape (N,).
    """
    values = np.hstack([samples.position, samples.quat_xyzw])
    same = np.concatenate([[False], (values[1:] == values[:-1]).all(axis=1)])[: len(values)]
    if not same.any():
        return same
    rows = np.flatnonzero(same)
    new = np.maximum.accumulate(np.where(same, 0, np.arange(len(same))))[rows]
    moved = np.zeros(len(rows), dtype=bool)
    now_ns, then_ns = samples.stamp_ns[rows], samples.stamp_ns[new]
    for column, noise in enumerate(robot.noise.joint_position):
        finite = np.isfinite(joints.position[:, column])
        if finite.any():
            change = _change(joints.stamp_ns[finite], joints.position[finite, column], then_ns, now_ns)
            moved |= np.abs(change) > MOVED * noise
    same[rows] = moved
    return same


def _change(stamp_ns: Stamps, values: Floats, then_ns: Stamps, now_ns: Stamps) -> Floats:
    start = stamp_ns[0]
    return np.asarray(
        np.interp(now_ns - start, stamp_ns - start, values)
        - np.interp(then_ns - start, stamp_ns - start, values)
    )
