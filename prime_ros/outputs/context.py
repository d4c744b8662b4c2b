# SPDX-License-Identifier: Apache-2.0
"""What a report says about a run besides its estimate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from prime_ros.config import EstimatorConfig
from prime_ros.measurements import AlignmentDiagnostics


@dataclass(frozen=True)
class RunContext:
    """Where an estimate comes from."""

    recording: str
    """What was read, as the user named it."""
    config: EstimatorConfig
    """Settings of the estimator."""
    diagnostics: AlignmentDiagnostics
    """What was used, left out and found on the way from samples to knots."""
    timing: Mapping[str, float] = field(default_factory=dict)
    """Wall time by phase [s]."""
    together_with: tuple[str, ...] = ()
    """Other recordings that the inertia is from as well, in a joint solve whose results are around these."""
