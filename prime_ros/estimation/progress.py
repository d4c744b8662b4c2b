# SPDX-License-Identifier: Apache-2.0
"""What a solver tells while it works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """Where a solve stands."""

    stage: int
    """Current stage, counted from 1."""
    stages: int
    """Number of stages."""
    kappa: float
    """Sharpness of the contact smoothing in this stage [1/J]."""
    iteration: int
    """Iterations so far, over all stages."""
    cost: float
    """Negative log-posterior, up to a constant [-]."""
    largest_gap: float
    """Largest defect of the dynamics [m, rad, m/s, rad/s]."""
    piece: int = 1
    """Piece of a long recording, counted from 1."""
    pieces: int = 1
    """Number of pieces."""
    recording: int = 1
    """Recording of a joint solve, counted from 1."""
    recordings: int = 1
    """Number of recordings."""
    round: int = 1
    """Time that all recordings are solved, counted from 1."""


Report = Callable[[Progress], None]
