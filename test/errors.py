# SPDX-License-Identifier: Apache-2.0
"""Errors of trajectories."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

Array = NDArray[np.float64]


def rms(error: Array) -> float:
    """Root mean square of the norms of the rows."""
    return float(np.sqrt((error**2).sum(axis=-1).mean()))


def turn(quat: Array, other: Array) -> Array:
    """Rotation vectors from one sequence of orientations to another [rad]."""
    return (Rotation.from_quat(quat).inv() * Rotation.from_quat(other)).as_rotvec()
