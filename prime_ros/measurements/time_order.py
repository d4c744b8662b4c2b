# SPDX-License-Identifier: Apache-2.0
"""Which samples of a stream are in time order."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Stamps = NDArray[np.int64]

FAR_NS = 60_000_000_000  # no pause within one run of a robot is that long
FEW = 0.01  # share of a stream that may lie that far from the rest and be called stray


@dataclass(frozen=True)
class TimeOrder:
    """Samples whose stamps increase, and the number of the others by what is wrong with them."""

    keep: NDArray[np.bool_]
    """Shape (N,)."""
    duplicates: int = 0
    """On the stamp of the sample kept before them."""
    backward: int = 0
    """Earlier than the sample kept before them."""
    stray: int = 0
    """Later than samples after them, or minutes away from all others."""


def time_order(stamp_ns: Stamps) -> TimeOrder:
    """Keep as many samples as possible with strictly increasing stamps; of equal stamps the first.

    One stamp far in the future costs one sample, not all after it; a bag that was played twice is kept once.

    Args:
        stamp_ns: Stamps as recorded, shape (N,) [ns].

    Returns:
        What to keep.
    """
    if len(stamp_ns) < 2 or bool((np.diff(stamp_ns) > 0).all()):
        keep = np.ones(len(stamp_ns), dtype=bool)
        duplicates = backward = stray = 0
    else:
        keep = _longest_increasing(stamp_ns)
        before = stamp_ns[np.maximum.accumulate(np.where(keep, np.arange(len(keep)), 0))]
        duplicates = int(np.sum(~keep & (stamp_ns == before)))
        backward = int(np.sum(~keep & (stamp_ns < before)))
        stray = int(np.sum(~keep)) - duplicates - backward
    far = _far_from_the_rest(stamp_ns[keep])
    if far.any():
        keep[np.flatnonzero(keep)[far]] = False
        stray += int(far.sum())
    return TimeOrder(keep, duplicates, backward, stray)


def _longest_increasing(stamp_ns: Stamps) -> NDArray[np.bool_]:
    """Longest strictly increasing subsequence by patience sorting; of equal stamps the first is kept."""
    values = stamp_ns.tolist()
    tails: list[int] = []  # smallest last value of a subsequence of each length
    ends: list[int] = []  # its sample
    previous = np.full(len(values), -1)
    for sample, value in enumerate(values):
        length = bisect_left(tails, value)
        if length == len(tails):
            tails.append(value)
            ends.append(sample)
        elif value < tails[length]:
            tails[length], ends[length] = value, sample
        else:
            continue
        previous[sample] = ends[length - 1] if length else -1
    keep = np.zeros(len(values), dtype=bool)
    sample = ends[-1]
    while sample >= 0:
        keep[sample] = True
        sample = int(previous[sample])
    return keep


def _far_from_the_rest(stamp_ns: Stamps) -> NDArray[np.bool_]:
    """Which of increasing stamps lie beyond a pause of minutes, in a group of a few."""
    group = np.concatenate([[0], np.cumsum(np.diff(stamp_ns) > FAR_NS)]) if len(stamp_ns) else stamp_ns
    few = np.bincount(group) < max(1.0, FEW * len(stamp_ns))
    if not len(few) or few.all():
        return np.zeros(len(stamp_ns), dtype=bool)
    return np.asarray(few[group] | False)
