# SPDX-License-Identifier: Apache-2.0
"""Time of a sample: of its header, of its receipt by the recorder, or from the counter of a LowState."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prime_ros.exceptions import SourceError
from prime_ros.measurements.samples import NANOSECONDS, Stamps
from prime_ros.measurements.tick_clock import MAX_RATE_ERROR, MILLISECOND, WRAP

MAX_BINS = 64
EARLY = 0.1
"""Quantile of the delay between counting and receipt that a line is laid through: what came early."""


def header_stamps(seconds: NDArray[np.integer], nanoseconds: NDArray[np.integer], where: str) -> Stamps:
    """Stamps of headers.

    Args:
        seconds: ``stamp.sec``, shape (N,).
        nanoseconds: ``stamp.nanosec``, shape (N,).
        where: What the headers belong to, for errors.

    Returns:
        Nanoseconds, shape (N,).

    Raises:
        SourceError: If all are zero, or all the same.
    """
    stamps = np.asarray(seconds, np.int64) * NANOSECONDS + np.asarray(nanoseconds, np.int64)
    advice = "take the time of receipt with --stamps receipt, or fix the publisher"
    if stamps.size and not stamps.any():
        raise SourceError(
            f"{where}: got headers without time, expected the time of measurement in header.stamp; {advice}"
        )
    if stamps.size > 1 and (stamps == stamps[0]).all():
        raise SourceError(
            f"{where}: got the same header.stamp in all {stamps.size} messages ({stamps[0]} ns),"
            f" expected the time of measurement; {advice}"
        )
    return stamps


def tick_stamps(tick: NDArray[np.integer], receipt: Stamps) -> Stamps:
    """Stamps of a counter of milliseconds, on the clock of the recorder.

    A counter knows when a message was made, the recorder only when it came. A line of robust slope through
    the messages that came early takes out the jitter of the delay and the drift between the two clocks.

    Args:
        tick: Milliseconds since some time, as uint32 that wraps around, shape (N,).
        receipt: Time of receipt, shape (N,) [ns].

    Returns:
        Nanoseconds, shape (N,).

    Raises:
        SourceError: If the counter stands still, goes back or does not count milliseconds.
    """
    counted = _unwrapped(tick)
    problem = _problem(counted)
    if problem:
        raise SourceError(problem)
    delay = receipt - counted * MILLISECOND
    slope, offset = _early_line(counted, delay - delay[0])
    if abs(slope) > MAX_RATE_ERROR * MILLISECOND:
        raise SourceError(
            f"tick: got {1 + slope / MILLISECOND:.3g} ms of the recorder's clock per count, expected 1 ms"
        )
    return counted * MILLISECOND + delay[0] + np.round(offset + slope * counted).astype(np.int64)


def _unwrapped(tick: NDArray[np.integer]) -> Stamps:
    """Counts since the first one, whatever happens to the upper end of uint32."""
    counts = np.asarray(tick, np.int64)
    steps = (counts[1:] - counts[:-1]) % WRAP
    steps[steps >= WRAP // 2] -= WRAP
    return np.concatenate([np.zeros(min(1, len(tick)), np.int64), np.cumsum(steps, dtype=np.int64)])


def _problem(counted: Stamps) -> str:
    steps = np.diff(counted)
    if len(counted) < 2 or (steps == 0).mean() > 0.5:
        return f"tick: got a counter that stands still over {len(counted)} messages, expected milliseconds"
    if (steps < -1000).any():
        return (
            "tick: got a counter that goes back, as if the robot had been restarted, expected one that rises"
        )
    return ""


def _early_line(counted: Stamps, delay: Stamps) -> tuple[float, float]:
    """Slope [ns per count] and offset [ns] of a line through the early ones of pieces of the recording."""
    bins = int(np.clip(len(counted) // 16, 1, MAX_BINS))
    counts = np.array_split(counted, bins)
    centre = np.array([piece.mean() for piece in counts])
    one, other = np.triu_indices(bins, 1)
    apart = centre[other] != centre[one]
    one, other = one[apart], other[apart]

    def early(slope: float) -> NDArray[np.float64]:
        pieces = np.array_split(delay - slope * counted, bins)
        return np.array([np.quantile(piece, EARLY) for piece in pieces])

    slope = 0.0
    for _ in range(
        2 if one.size else 0
    ):  # again without the drift inside a piece, which shifts what is early
        level = early(slope)
        slope += float(np.median((level[other] - level[one]) / (centre[other] - centre[one])))
    return slope, float(np.median(early(slope)))
