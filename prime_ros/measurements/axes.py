# SPDX-License-Identifier: Apache-2.0
"""Angles between directions, in words and degrees."""

from __future__ import annotations

import numpy as np

from prime_ros.measurements.samples import Floats

DEGREES = 180.0 / np.pi


def tilt(force: Floats) -> float:
    """Angle of a vector (3,) from up [deg]; NaN if it has no length."""
    return angle(force, np.array([0.0, 0.0, 1.0]))


def angle(one: Floats, other: Floats) -> float:
    """Angle between two vectors (3,) [deg]; NaN if one has no length."""
    size = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(np.degrees(np.arccos(np.clip(one @ other / size, -1.0, 1.0)))) if size > 0 else np.nan


def named_axis(force: Floats) -> str:
    """Axis of the world that gravity points along: against the specific force."""
    axis = int(np.argmax(np.abs(force)))
    return ("-" if force[axis] > 0 else "+") + "xyz"[axis]
