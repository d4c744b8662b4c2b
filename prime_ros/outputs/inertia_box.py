# SPDX-License-Identifier: Apache-2.0
"""Inertia to look at: the box of even density that has the inertia of a body."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from prime_ros.estimation.estimate import BodyInertia

Array = NDArray[np.float64]


@dataclass(frozen=True)
class InertiaBox:
    """A box in the frame of the body's joint."""

    centre: Array
    """Centre of mass, shape (3,) [m]."""
    rotation: Rotation
    """From the principal axes to the frame."""
    size: Array
    """Edges along the principal axes, in the order of ascending moments, hence falling, shape (3,) [m]."""


def inertia_box(body: BodyInertia) -> InertiaBox:
    """The box of even density with the mass, the centre of mass and the inertia of a body.

    A box of edges a, b, c has the principal moments m (b^2 + c^2) / 12 and so on, so the square of an edge is
    6 / m times the sum of all moments minus twice its own. An inertia that no body can have gives edges of
    zero.

    Args:
        body: Its mass must be positive.
    """
    moments, axes = np.linalg.eigh(np.asarray(body.inertia_com, dtype=float))
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] *= -1.0
    squares = 6.0 * (moments.sum() - 2.0 * moments) / body.mass
    return InertiaBox(
        np.asarray(body.com, dtype=float), Rotation.from_matrix(axes), np.sqrt(np.maximum(squares, 0.0))
    )
