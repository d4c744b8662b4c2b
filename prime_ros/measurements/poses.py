# SPDX-License-Identifier: Apache-2.0
"""Poses of motion capture at knots: each sample is used once, by the knot whose interval holds it."""

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from prime_ros.exceptions import MeasurementError
from prime_ros.measurements.samples import NANOSECONDS, Floats, MocapSamples, Stamps


@dataclass(frozen=True)
class KnotPoses:
    """Mean pose of the base over (knot - dt, knot], for M knots; interpolated where `count` is zero."""

    position: Floats
    """In the world, shape (M, 3) [m]."""
    quat_xyzw: Floats
    """Base to world, unit, without jumps of sign, shape (M, 4)."""
    time_offset: Floats
    """Mean time of the samples minus time of the knot, in (-dt, 0], shape (M,) [s]."""
    count: NDArray[np.int64]
    """Samples averaged, shape (M,)."""


def at_knots(samples: MocapSamples, T_BM: pin.SE3, knot_ns: Stamps, dt_ns: int) -> KnotPoses:
    """Average the poses in the interval of each knot.

    Args:
        samples: Valid poses of the tracked body.
        T_BM: Pose of the tracked body in the base frame.
        knot_ns: Knots, dt apart, shape (M,) [ns].
        dt_ns: Spacing of the knots [ns].

    Returns:
        Poses of the base.

    Raises:
        MeasurementError: If no knot has a pose.
    """
    knot = -((knot_ns[0] - samples.stamp_ns) // dt_ns)
    inside = (knot >= 0) & (knot < len(knot_ns))
    knot = knot[inside]
    if not knot.size:
        raise MeasurementError("motion capture has no valid pose while joints were recorded")
    position, quat = _base_poses(samples.position[inside], samples.quat_xyzw[inside], T_BM)
    offset = (samples.stamp_ns[inside] - knot_ns[knot])[:, None] / NANOSECONDS
    count = np.bincount(knot, minlength=len(knot_ns))
    means = _sums(knot, np.hstack([position, quat, offset]), len(knot_ns)) / np.maximum(count, 1)[:, None]
    filled = filled_in(means[:, :7], count > 0)
    quat = _sign_continuous(filled[:, 3:] / np.linalg.norm(filled[:, 3:], axis=1, keepdims=True))
    return KnotPoses(filled[:, :3], quat, means[:, 7], count)


def filled_in(values: Floats, valid: NDArray[np.bool_]) -> Floats:
    """Copy of `values` (M, w) with rows that are not `valid` (M,) interpolated from the others, or zero."""
    if valid.all():
        return values
    rows = np.arange(len(values))
    known = rows[valid]
    if not known.size:
        return np.zeros_like(values)
    return np.column_stack([np.interp(rows, known, column[valid]) for column in values.T])


def _base_poses(position: Floats, quat_xyzw: Floats, T_BM: pin.SE3) -> tuple[Floats, Floats]:
    """T_WB = T_WM T_BM^-1 for every pose."""
    mount = np.asarray(pin.SE3ToXYZQUAT(T_BM.inverse()))
    quat_WM = quat_xyzw / np.linalg.norm(quat_xyzw, axis=1, keepdims=True)
    if mount[:3].any():  # not worth a rotation of SciPy otherwise: live, it is made for every knot
        position = position + Rotation.from_quat(quat_WM).apply(mount[:3])
    return position, _sign_continuous(quat_WM @ _product_with(mount[3:]))


def _product_with(quat_xyzw: Floats) -> Floats:
    """The matrix P for which q @ P is the quaternion product of q and this one, shape (4, 4)."""
    x, y, z, w = quat_xyzw
    return np.array([[w, -z, y, -x], [z, w, -x, -y], [-y, x, w, -z], [x, y, z, w]])


def _sign_continuous(quat: Floats) -> Floats:
    """Flip signs so that neighbours lie in one half space: q and -q are one rotation, but not their mean."""
    turns = np.where(np.sum(quat[1:] * quat[:-1], axis=1) < 0, -1.0, 1.0)
    return quat * np.concatenate([[1.0], np.cumprod(turns)])[:, None]


def _sums(knot: NDArray[np.int64], values: Floats, knots: int) -> Floats:
    return np.column_stack([np.bincount(knot, column, minlength=knots) for column in values.T])
