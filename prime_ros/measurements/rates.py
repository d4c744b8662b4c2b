# SPDX-License-Identifier: Apache-2.0
r"""Angular rates of two sensors on one body: offset of their clocks and rotation between them, roughly.

With :math:`a(t) = R\, b(t + \tau)`, the rotation that makes the correlation
:math:`\mathrm{tr}(R^T \sum a(t)\, b(t + \tau)^T)` largest is found in closed form for every :math:`\tau`
(Kabsch), so that neither needs to be known to find the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from prime_ros.measurements.samples import Floats

GRID = 0.01  # [s]
HALF_WINDOW = 3  # grid steps to either side that a rate is taken over: the noise of a pose falls with it


@dataclass(frozen=True)
class Rates:
    """Angular rate on a regular grid of `GRID` seconds."""

    start: float
    """Time of the first point [s]."""
    rate: Floats
    """Without its mean; zero where unknown, shape (n, 3) [rad/s]."""
    known: NDArray[np.bool_]
    """Shape (n,)."""


@dataclass(frozen=True)
class Match:
    """Lags at which two rates may agree, best first."""

    lag: Floats
    """Seconds after which the second sensor sees what the first sees, shape (m,)."""
    correlation: Floats
    """Of the two rates at that lag, turned onto each other, at most 1, shape (m,)."""
    gain: Floats
    """Size of the first rate per size of the second, shape (m,): 1 if both have the same unit."""
    rotation: Floats
    """From axes of the second sensor to axes of the first, shape (m, 3, 3)."""


def pose_rates(time: Floats, quat_xyzw: Floats, grid: Floats, max_gap: float) -> Rates:
    """Angular rate in body axes from orientations.

    Args:
        time: Times of the orientations, increasing, shape (N,) [s].
        quat_xyzw: Body to world, shape (N, 4), N >= 2.
        grid: Times wanted, `GRID` apart, shape (n,) [s].
        max_gap: Longest pause that is bridged [s].

    Returns:
        The rates.
    """
    quat = _interpolated(time, quat_xyzw, grid)
    rotation = Rotation.from_quat(quat)
    reach = 2 * HALF_WINDOW
    rate = np.zeros((len(grid), 3))
    turned = (rotation[:-reach].inv() * rotation[reach:]).as_rotvec()
    rate[HALF_WINDOW:-HALF_WINDOW] = turned / (reach * GRID)
    return _without_mean(grid, rate, _covered(time, grid, max_gap))


def gyro_rates(time: Floats, rate: Floats, grid: Floats, max_gap: float) -> Rates:
    """Angular rate averaged as that of poses is; a sample holds from the one before it. Arguments alike."""
    angle = np.concatenate([np.zeros((1, 3)), np.cumsum(np.diff(time)[:, None] * rate[1:], axis=0)])
    at = np.column_stack([np.interp(grid, time, axis) for axis in angle.T])
    reach = 2 * HALF_WINDOW
    averaged = np.zeros((len(grid), 3))
    averaged[HALF_WINDOW:-HALF_WINDOW] = (at[reach:] - at[:-reach]) / (reach * GRID)
    return _without_mean(grid, averaged, _covered(time, grid, max_gap))


@dataclass(frozen=True)
class Correlation:
    """Correlation of two rates over lags."""

    lag: Floats
    """Seconds after which the second sensor sees what the first sees, shape (m,)."""
    matrix: Floats
    """Sum of the first rate times the second, transposed, shape (m, 3, 3) [rad^2/s^2]."""
    power: tuple[float, float]
    """Sum of the squares of either [rad^2/s^2]."""
    points: int
    """Points of the grid at which both are known."""

    @classmethod
    def of(cls, first: Rates, second: Rates, search: float) -> Correlation:
        """Correlate two rates on the same grid over lags up to `search` to either side [s]."""
        lags = np.arange(-round(search / GRID), round(search / GRID) + 1)
        size = 1 << (len(first.rate) + len(lags)).bit_length()
        spectra = np.fft.rfft(first.rate, size, axis=0), np.fft.rfft(second.rate, size, axis=0)
        matrix = np.empty((len(lags), 3, 3))
        for row in range(3):
            product = np.conj(spectra[0][:, row, None]) * spectra[1]
            matrix[:, row] = np.fft.irfft(product, size, axis=0)[lags]
        power = float(np.sum(first.rate**2)), float(np.sum(second.rate**2))
        return cls(
            np.asarray(GRID * lags, dtype=np.float64), matrix, power, int(np.sum(first.known & second.known))
        )

    def turned(self, rotation: Floats, most: int = 1) -> Match:
        """Best lags with a given rotation from axes of the second sensor to axes of the first."""
        agreement = np.einsum("ij,nij->n", rotation, self.matrix)
        peaks = _peaks(agreement, most)
        return self._match(peaks, agreement, np.broadcast_to(rotation, (len(peaks), 3, 3)))

    def free(self, most: int = 5) -> Match:
        """Best lags with whatever rotation fits best at each; periodic motion fits at more than one."""
        left, values, right = np.linalg.svd(self.matrix)
        sign = np.where(np.linalg.det(left @ right) < 0, -1.0, 1.0)
        agreement = values[:, 0] + values[:, 1] + sign * values[:, 2]
        peaks = _peaks(agreement, most)
        turn = np.stack([np.ones(len(peaks)), np.ones(len(peaks)), sign[peaks]], axis=1)
        return self._match(peaks, agreement, (left[peaks] * turn[:, None, :]) @ right[peaks])

    def _match(self, peaks: NDArray[np.int64], agreement: Floats, rotation: Floats) -> Match:
        size = max(np.sqrt(self.power[0] * self.power[1]), 1e-12)
        gain = agreement[peaks] / max(self.power[1], 1e-12)
        return Match(self.lag[peaks], agreement[peaks] / size, gain, rotation)


def _peaks(values: Floats, most: int) -> NDArray[np.int64]:
    """The highest local maxima, highest first."""
    padded = np.concatenate([[-np.inf], values, [-np.inf]])
    peaks = np.flatnonzero((values >= padded[:-2]) & (values > padded[2:]))
    return peaks[np.argsort(-values[peaks], kind="stable")][:most]


def integrated(time: Floats, rate: Floats) -> Rotation:
    """Orientation after each sample of a gyroscope against that at the first; a sample holds since the last.

    Args:
        time: Increasing, shape (N,) [s].
        rate: Shape (N, 3) [rad/s].

    Returns:
        N rotations, from axes of the gyroscope at that time to its axes at the first.
    """
    turns = Rotation.from_rotvec(np.concatenate([np.zeros((1, 3)), np.diff(time)[:, None] * rate[1:]]))
    # A product of N rotations in about 2 sqrt(N) steps: all blocks side by side, then their ends in turn.
    length = int(np.ceil(np.sqrt(len(time))))
    blocks = -(-len(time) // length)
    quat = np.tile([0.0, 0.0, 0.0, 1.0], (blocks * length, 1))
    quat[: len(time)] = turns.as_quat()
    quat = quat.reshape(blocks, length, 4)
    for step in range(1, length):
        quat[:, step] = _product(quat[:, step - 1], quat[:, step])
    for block in range(1, blocks):
        quat[block] = _product(quat[block - 1, -1:], quat[block])
    return Rotation.from_quat(quat.reshape(-1, 4)[: len(time)])


def _product(one: Floats, other: Floats) -> Floats:
    """Hamilton product of quaternions x y z w."""
    v, w = one[..., :3], one[..., 3:]
    u, s = other[..., :3], other[..., 3:]
    vector = w * u + s * v + np.cross(v, u)
    return np.concatenate([vector, w * s - np.sum(v * u, axis=-1, keepdims=True)], axis=-1)


def _interpolated(time: Floats, quat: Floats, grid: Floats) -> Floats:
    """Orientations on a grid, along the chord: poses are close together, or the point is not known anyway."""
    turns = np.where(np.sum(quat[1:] * quat[:-1], axis=1) < 0, -1.0, 1.0)
    smooth = quat * np.concatenate([[1.0], np.cumprod(turns)])[:, None]
    at = np.column_stack([np.interp(grid, time, axis) for axis in smooth.T])
    norm = np.linalg.norm(at, axis=1, keepdims=True)
    return np.where(norm > 1e-6, at / np.maximum(norm, 1e-6), [0.0, 0.0, 0.0, 1.0])


def _covered(time: Floats, grid: Floats, max_gap: float) -> NDArray[np.bool_]:
    """Whether the window around each point lies inside the samples and holds no pause."""
    reach = HALF_WINDOW * GRID
    pauses = np.concatenate([[0], np.cumsum(np.diff(time) > max_gap)])
    first = np.searchsorted(time, grid - reach, side="right") - 1
    last = np.searchsorted(time, grid + reach, side="left")
    inside = (first >= 0) & (last < len(time))
    first, last = np.clip(first, 0, len(time) - 1), np.clip(last, 0, len(time) - 1)
    known = inside & (pauses[last] == pauses[first])
    known[:HALF_WINDOW] = False
    known[len(known) - HALF_WINDOW :] = False
    return np.asarray(known)


def _without_mean(grid: Floats, rate: Floats, known: NDArray[np.bool_]) -> Rates:
    mean = rate[known].mean(axis=0) if known.any() else np.zeros(3)
    return Rates(float(grid[0]), np.where(known[:, None], rate - mean, 0.0), known)
