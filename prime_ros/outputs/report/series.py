# SPDX-License-Identifier: Apache-2.0
"""Long series made small enough for a page without losing what one looks for: peaks, gaps and events."""

from __future__ import annotations

import base64
import math
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

POINTS = 2000
"""Points of one curve above which it is thinned: smallest and largest of every pixel of a wide page."""
INTERVALS = 6000
"""The shortest interval shown is this part of the recording."""


def finite(values: ArrayLike) -> Floats:
    """Copy with NaN for every value that is not finite."""
    array = np.array(values, dtype=float)
    array[~np.isfinite(array)] = np.nan
    return array


def kept_rows(values: ArrayLike, points: int = POINTS) -> Indices:
    """Rows of a table that show the extremes of all its columns.

    The rows are cut into equal buckets; of each, the rows with the smallest and the largest finite value of
    every column are kept, and the first and the last row of the table.

    Args:
        values: Shape (K, m) or (K,).
        points: Rows to be kept at most, about.

    Returns:
        Increasing indices; all of them if K <= points.
    """
    table = finite(values)
    table = table.reshape(len(table), math.prod(table.shape[1:]))
    rows, columns = table.shape
    if rows <= points:
        return np.arange(rows)
    size = -(-rows // max(points // (2 * columns), 1))
    buckets = -(-rows // size)
    kept = [np.array([0, rows - 1])]
    for fill, pick in ((np.inf, np.argmin), (-np.inf, np.argmax)):
        padded = np.full((buckets * size, columns), fill)
        padded[:rows] = np.where(np.isnan(table), fill, table)
        best = pick(padded.reshape(buckets, size, columns), axis=1)
        kept.append((best + size * np.arange(buckets)[:, None]).ravel())
    return np.unique(np.concatenate(kept))


def intervals(active: NDArray[np.bool_], time: Floats, dt: float) -> tuple[Floats, Floats]:
    """When something held.

    Args:
        active: Whether it holds at each knot, shape (K,).
        time: Of the knots, shape (K,) [s].
        dt: Spacing of the knots, each stands for dt / 2 before and after it [s].

    Returns:
        Starts and ends [s]; in a long recording, intervals apart by less than 1 / `INTERVALS` of it are one.
    """
    if not len(active):
        return np.empty(0), np.empty(0)
    edges = np.diff(np.concatenate([[0], active.astype(np.int8), [0]]))
    starts, ends = np.flatnonzero(edges > 0), np.flatnonzero(edges < 0) - 1
    shortest = (time[-1] - time[0]) / INTERVALS
    apart = time[starts[1:]] - time[ends[:-1]] - dt > shortest if len(starts) > 1 else np.empty(0, dtype=bool)
    first = np.concatenate([np.ones(min(1, len(starts)), dtype=bool), apart])
    last = np.concatenate([apart, np.ones(min(1, len(ends)), dtype=bool)])
    return time[starts[first]] - dt / 2, time[ends[last]] + dt / 2


def packed(values: ArrayLike, bits: Literal[8, 16] = 16) -> dict[str, Any]:
    """A series as equal steps between its extremes, for the scripts of the page.

    Returns:
        `data`: base64 of little-endian unsigned integers of `bits`, 0 for NaN;
        value = `low` + (data - 1) `step`.
    """
    series = finite(values).ravel()
    known = series[~np.isnan(series)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    step = (high - low) / (2**bits - 2) or 1.0
    codes = np.nan_to_num(np.round((series - low) / step) + 1.0, nan=0.0)
    return {"bits": bits, "low": low, "step": step, "data": _base64(codes.astype(f"<u{bits // 8}"))}


def packed_rows(rows: Indices) -> dict[str, Any]:
    """Increasing indices as their differences, mostly small ones.

    Returns:
        `rows`: base64 of little-endian unsigned integers of `bits`, the first index and the differences.
    """
    steps = np.diff(rows, prepend=0)
    largest = int(steps.max()) if steps.size else 0
    bits = next(bits for bits in (8, 16, 32) if largest < 2**bits)
    return {"bits": bits, "rows": _base64(steps.astype(f"<u{bits // 8}"))}


def packed_exactly(values: ArrayLike) -> dict[str, Any]:
    """A series as 32-bit floats, for times, whose steps are finer than 16 bit."""
    return {"exact": _base64(np.asarray(values, dtype="<f4"))}


def _base64(array: NDArray[Any]) -> str:
    return base64.b64encode(array.tobytes()).decode("ascii")


def single(values: ArrayLike) -> NDArray[np.float32]:
    """Finite values as 32-bit floats, half the size in the page."""
    return finite(values).astype(np.float32)
