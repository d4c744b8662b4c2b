# SPDX-License-Identifier: Apache-2.0
"""Whole solves from the measurements to the estimate with covariance: time over length, and peak memory."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from child import run_alone
from speed_problem import measurements_of, robot

from prime_ros.estimation.full_information import solve


@dataclass(frozen=True)
class SolveTime:
    """One solve, from cold."""

    knots: int
    dt: float
    converged: bool
    iterations: int
    seconds: float
    """From measurements at knots to the estimate, wall time."""
    processor_seconds: float
    """The same as processor time of all threads."""
    seconds_per_iteration: float
    """Of the solver alone: neither the problem nor the covariance."""


def timed_solve(knots: int) -> SolveTime:
    """Solve about this many knots, from cold."""
    measurements, config = measurements_of(knots)
    start = time.process_time()
    estimate = solve(measurements, robot(), config)
    processor_seconds = time.process_time() - start
    certificate = estimate.certificate
    return SolveTime(
        knots=len(measurements.stamp_ns),
        dt=config.dt,
        converged=certificate.converged,
        iterations=certificate.iterations,
        seconds=sum(estimate.timing.values()),
        processor_seconds=processor_seconds,
        seconds_per_iteration=estimate.timing["solver"] / certificate.iterations,
    )


def growth_exponent(knots: Sequence[int], seconds: Sequence[float]) -> float:
    """Slope of log(seconds) over log(knots): 1 is linear."""
    return float(np.polyfit(np.log(knots), np.log(seconds), 1)[0])


def peak_memory(knots: int) -> float:
    """Largest resident memory of a process that imports, reads and solves about this many knots [MB]."""
    return run_alone(_solve_and_tell_memory, knots)


def _solve_and_tell_memory(knots: int) -> float:
    timed_solve(knots)
    # Not getrusage: its maximum survives exec, so that a child would report the memory of its parent.
    status = Path("/proc/self/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return float(line.split()[1]) * 1024 / 1e6
