# SPDX-License-Identifier: Apache-2.0
"""Statistics of the stamps of a stream."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prime_ros.measurements.cleaning import StreamDiagnostics
from prime_ros.measurements.samples import NANOSECONDS, Stamps
from prime_ros.measurements.time_order import time_order

LISTED_GAPS = 3
PAUSE = 3.0  # times the usual interval


@dataclass(frozen=True)
class Gap:
    """A pause of a stream."""

    start: float
    """From the start of the recording [s]."""
    duration: float
    """[s]"""


@dataclass(frozen=True)
class StreamStatistics:
    """When a stream was sampled, and what of it is left out."""

    start: float
    """First sample, from the start of the recording [s]."""
    duration: float
    """From the first to the last sample [s]."""
    rate: float
    """Samples per second by the median interval [Hz]; 0 if it has no two samples."""
    jitter: float
    """Robust standard deviation of the interval [s]."""
    gaps: int
    """Pauses of more than three usual intervals."""
    longest_gaps: tuple[Gap, ...]
    """The longest of them, longest first."""
    counts: StreamDiagnostics
    """Samples read, used and left out, by reason."""


def statistics(stamp_ns: Stamps, start_ns: int, counts: StreamDiagnostics | None = None) -> StreamStatistics:
    """Statistics of a stream.

    Args:
        stamp_ns: Its stamps as recorded, shape (N,) [ns].
        start_ns: Start of the recording [ns].
        counts: What became of its samples; default: what its stamps alone say.

    Returns:
        The statistics, of the samples in time order.
    """
    order = time_order(stamp_ns)
    kept = stamp_ns[order.keep]
    if counts is None:
        counts = StreamDiagnostics(len(stamp_ns), len(kept), order.duplicates, order.backward, order.stray)
    if len(kept) < 2:
        first = (int(kept[0]) - start_ns) / NANOSECONDS if len(kept) else 0.0
        return StreamStatistics(first, 0.0, 0.0, 0.0, 0, (), counts)
    interval = np.diff(kept) / NANOSECONDS
    usual = float(np.median(interval))
    pauses = np.flatnonzero(interval > PAUSE * usual)
    longest = pauses[np.argsort(-interval[pauses], kind="stable")][:LISTED_GAPS]
    return StreamStatistics(
        start=(int(kept[0]) - start_ns) / NANOSECONDS,
        duration=(int(kept[-1]) - int(kept[0])) / NANOSECONDS,
        rate=1.0 / usual,
        jitter=1.4826 * float(np.median(np.abs(interval - usual))),
        gaps=len(pauses),
        longest_gaps=tuple(
            Gap((int(kept[row]) - start_ns) / NANOSECONDS, float(interval[row])) for row in longest
        ),
        counts=counts,
    )
