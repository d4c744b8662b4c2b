# SPDX-License-Identifier: Apache-2.0
"""Forces on the standing feet that give the base a wanted force and moment."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prime_ros.simulation.legs import cross

Array = NDArray[np.float64]

FRICTION_USE = 0.6  # of the friction coefficient that foot forces may take
SMALLEST = 5.0  # normal force of a standing foot [N]
MOMENT_WEIGHT = 4.0  # a moment of 1 Nm is as dear as this force [1/m]
REGULARISATION = 1e-3  # of the least squares, against the one moment that two feet cannot give


def share_out(feet: Array, force: Array, moment: Array, friction: float, largest: float) -> Array:
    """Least forces that together come closest to a force and a moment, then put inside the friction cones.

    Args:
        feet: Feet that stand, from the point the moment is about, shape (m, 3) [m].
        force: Wanted sum, shape (3,) [N].
        moment: Wanted moment, shape (3,) [Nm].
        friction: Coefficient [-].
        largest: Largest normal force of a foot [N].

    Returns:
        Force of the ground on each foot, shape (m, 3) [N].
    """
    count = len(feet)
    if count == 0:
        return np.zeros((0, 3))
    levers = cross(feet[:, None], np.eye(3)[None])  # (m, 3, 3): row j is the moment of a unit force along j
    blocks = np.empty((6, count, 3))
    blocks[:3] = np.eye(3)[:, None]
    blocks[3:] = MOMENT_WEIGHT * levers.transpose(2, 0, 1)
    system = blocks.reshape(6, 3 * count)
    wanted = np.concatenate([force, MOMENT_WEIGHT * moment])
    forces = system.T @ np.linalg.solve(system @ system.T + REGULARISATION * np.eye(6), wanted)
    return _in_cones(forces.reshape(count, 3), friction, largest)


def _in_cones(forces: Array, friction: float, largest: float) -> Array:
    normal = np.clip(forces[:, 2], SMALLEST, largest)
    sideways = np.sqrt(forces[:, 0] ** 2 + forces[:, 1] ** 2)
    scale = np.minimum(1.0, FRICTION_USE * friction * normal / np.maximum(sideways, 1e-9))
    return np.column_stack([forces[:, 0] * scale, forces[:, 1] * scale, normal])
