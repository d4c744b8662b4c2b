# SPDX-License-Identifier: Apache-2.0
r"""Averages of samples over windows around knots, as sparse matrices.

With semi-implicit integration :math:`q_{k+1} = q_k \oplus dt\, v_{k+1}` the velocity of knot k is the mean
over :math:`(t_k - dt, t_k]`, and the force of step k the mean over :math:`t_k \pm dt` weighted by a triangle.
All weights come from differences of integer nanoseconds, so they depend neither on the epoch nor on the rate
of the samples.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Stamps = NDArray[np.int64]


@dataclass(frozen=True)
class Average:
    """A linear map from N samples to M knots; rows sum to one, or are empty where not `covered`."""

    rows: Indices
    """Knot of every weight."""
    columns: Indices
    """Sample of every weight."""
    weights: Floats
    """The weights."""
    covered: NDArray[np.bool_]
    """Whether the samples cover the window without a gap, shape (M,)."""
    samples: int
    """N."""

    @property
    def matrix(self) -> sparse.csr_matrix:
        """The weights, shape (M, N)."""
        return sparse.csr_matrix((self.weights, (self.rows, self.columns)), (len(self.covered), self.samples))

    def of(self, values: Floats) -> Floats:
        """Averages of `values` (N, w) at the knots, shape (M, w); meaningless where not `covered`."""
        if len(self.covered) == 1:  # live: a matrix for one knot would cost more than the average
            return (self.weights @ values[self.columns])[None]
        return self.matrix @ values

    @property
    def noise_gain(self) -> Floats:
        """Standard deviation of the average of unit white noise, shape (M,); infinite where not `covered`."""
        gain = np.sqrt(np.bincount(self.rows, self.weights**2, minlength=len(self.covered)))
        return np.where(self.covered, gain, np.inf)


def box(stamp_ns: Stamps, knot_ns: Stamps, dt_ns: int, max_gap_ns: int) -> Average:
    """Mean over (knot - dt, knot] of samples that each hold from the stamp before them up to their own.

    This is what a differenced encoder and a semi-implicit simulator deliver. Ends of the window take the part
    of a sample's interval that lies inside.

    Args:
        stamp_ns: Stamps of the samples, increasing, shape (N,) [ns].
        knot_ns: Knots, shape (M,) [ns].
        dt_ns: Length of the window [ns].
        max_gap_ns: Largest spacing of samples that still counts as measured [ns].

    Returns:
        The average.
    """
    if len(stamp_ns) < 2:
        return _empty(len(knot_ns), len(stamp_ns))
    first = np.searchsorted(stamp_ns, knot_ns - dt_ns, side="right")
    last = np.searchsorted(stamp_ns, knot_ns, side="left")
    covered = _covered(stamp_ns, first - 1, last, max_gap_ns)
    rows, columns = _ranges(first, last, covered)
    begin = np.maximum(stamp_ns[columns - 1], knot_ns[rows] - dt_ns)
    end = np.minimum(stamp_ns[columns], knot_ns[rows])
    return _average(rows, columns, (end - begin).astype(float), covered, len(stamp_ns))


def triangle(stamp_ns: Stamps, knot_ns: Stamps, dt_ns: int, max_gap_ns: int) -> Average:
    """Mean over knot -+ dt, weighted by 1 - abs(stamp - knot) / dt times the local spacing of the samples.

    A window without a sample inside is bridged by linear interpolation between its neighbours. Arguments and
    result as for `box`.
    """
    if len(stamp_ns) < 3:
        return _empty(len(knot_ns), len(stamp_ns))
    first = np.searchsorted(stamp_ns, knot_ns - dt_ns, side="right")
    last = np.searchsorted(stamp_ns, knot_ns + dt_ns, side="left") - 1
    covered = _covered(stamp_ns, first - 1, last + 1, max_gap_ns)
    bridged = covered & (last < first)
    rows, columns = _ranges(first, last, covered & ~bridged)
    height = dt_ns - np.abs(stamp_ns[columns] - knot_ns[rows])
    spacing = stamp_ns[columns + 1] - stamp_ns[columns - 1]
    inside = _average(rows, columns, height * spacing.astype(float), covered, len(stamp_ns))
    if not bridged.any():
        return inside
    between = interpolation(stamp_ns, knot_ns, max_gap_ns)
    use = bridged[between.rows]
    return Average(
        np.concatenate([inside.rows, between.rows[use]]),
        np.concatenate([inside.columns, between.columns[use]]),
        np.concatenate([inside.weights, between.weights[use]]),
        covered,
        len(stamp_ns),
    )


def interpolation(stamp_ns: Stamps, knot_ns: Stamps, max_gap_ns: int) -> Average:
    """Linear interpolation between the two neighbours of a knot. Arguments and result as for `box`."""
    if len(stamp_ns) < 1:
        return _empty(len(knot_ns), 0)
    after = np.searchsorted(stamp_ns, knot_ns, side="left")
    exact = stamp_ns[np.minimum(after, len(stamp_ns) - 1)] == knot_ns
    before = np.where(exact, after, after - 1)
    covered = _covered(stamp_ns, before, after, max_gap_ns)
    rows, columns = _ranges(before, after, covered)
    reach = np.where(
        exact, 1, stamp_ns[np.clip(after, 0, len(stamp_ns) - 1)] - stamp_ns[np.maximum(before, 0)]
    )
    weights = reach[rows] - np.abs(stamp_ns[columns] - knot_ns[rows])
    return _average(rows, columns, weights.astype(float), covered, len(stamp_ns))


def _covered(stamp_ns: Stamps, before: Indices, after: Indices, max_gap_ns: int) -> NDArray[np.bool_]:
    """Whether samples `before` to `after` exist without two neighbours further apart than the gap."""
    count = len(stamp_ns)
    exists = (before >= 0) & (after < count)
    gaps = np.concatenate([[0], np.cumsum(np.diff(stamp_ns) > max_gap_ns)])
    inside = gaps[np.clip(after, 0, count - 1)] - gaps[np.clip(before, 0, count - 1)]
    return exists & (inside == 0)


def _ranges(first: Indices, last: Indices, use: NDArray[np.bool_]) -> tuple[Indices, Indices]:
    """Row and column of every entry when row k holds columns first[k] to last[k], for rows in `use`."""
    lengths = np.where(use, last - first + 1, 0)
    rows = np.repeat(np.arange(len(first)), lengths)
    starts = np.cumsum(lengths) - lengths
    return rows, np.arange(lengths.sum()) - starts[rows] + first[rows]


def _average(
    rows: Indices, columns: Indices, weights: Floats, covered: NDArray[np.bool_], samples: int
) -> Average:
    """Normalise the weights of each row."""
    total = np.bincount(rows, weights, minlength=len(covered))
    return Average(rows, columns, weights / total[rows], covered, samples)


def _empty(knots: int, samples: int) -> Average:
    nothing = np.empty(0, dtype=np.int64)
    return Average(nothing, nothing, np.empty(0), np.zeros(knots, dtype=bool), samples)
