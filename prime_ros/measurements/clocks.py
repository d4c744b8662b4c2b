# SPDX-License-Identifier: Apache-2.0
r"""Offset of the clock of motion capture, and the rotation between it and the IMU, by how the robot turns.

The orientation that the gyroscope integrates to and the one that motion capture sees differ by a constant
rotation on either side, by drift, and by the offset of the clocks. Within a few seconds, drift is a
polynomial in time. So the small rotation

.. math:: e_i = \log( R_{WM}(t_i)\, R_{MI}\, G(t_i + \tau)^T R_0^T ) - \text{polynomial}_{\text{window}}(t_i)

is noise of motion capture, and its least squares over :math:`\tau`, :math:`R_{MI}` and the bias of the
gyroscope use every pose once, without differencing it. What is left of drift goes into the polynomial.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from prime_ros.measurements.rates import integrated
from prime_ros.measurements.samples import Floats

WINDOW = 4.0  # [s] in which the drift of a gyroscope is a parabola
DEGREE = 2
MOST_WINDOWS = (
    32  # spread over the recording; more do not help, see the least standard deviation in offset.py
)
MIN_POSES = 20  # in a window; fewer say nothing beside its polynomial
BLOCK = 0.5  # [s] errors further apart are independent; gait and the filter of motion capture correlate them
ITERATIONS = 8
COLUMNS = 7  # offset, mount, bias


@dataclass(frozen=True)
class Fit:
    """Offset and rotation with what is left."""

    offset: float
    """To be added to the stamps of motion capture [s]."""
    std: float
    """Its standard deviation from the residuals [s]."""
    R_MI: Floats
    """From axes of the IMU to axes of the tracked body, shape (3, 3)."""
    cov_rotation: Floats
    """Covariance of that rotation, in axes of the IMU, shape (3, 3) [rad^2]."""
    residual: float
    """Root mean square of what is left, per axis [rad]."""


@dataclass(frozen=True)
class _Turning:
    """What both sensors saw."""

    time: Floats
    pose: Rotation
    gyro_time: Floats
    rate: Floats
    path: Rotation
    max_gap: float


def fit(
    time: Floats,
    quat_xyzw: Floats,
    gyro_time: Floats,
    rate: Floats,
    starts: list[tuple[float, Floats]],
    max_gap: float,
) -> Fit | None:
    """Fit offset and rotation by least squares.

    Args:
        time: Times of the poses, increasing, shape (N,) [s].
        quat_xyzw: Tracked body to world, shape (N, 4).
        gyro_time: Times of the gyroscope, increasing, shape (K,) [s].
        rate: Angular velocity in its axes, shape (K, 3) [rad/s].
        starts: Offsets [s] and rotations R_MI to start from; the best end is returned.
        max_gap: Longest pause of the gyroscope that is integrated over [s].

    Returns:
        The fit, or None if there are too few poses.
    """
    turning = _Turning(
        time, Rotation.from_quat(quat_xyzw), gyro_time, rate, integrated(gyro_time, rate), max_gap
    )
    fits = [one for start in starts if (one := _descend(turning, *start)) is not None]
    return min(fits, key=lambda one: one.residual) if fits else None


def _descend(turning: _Turning, offset: float, R_MI: Floats) -> Fit | None:
    """Gauss-Newton from one start."""
    mount = Rotation.from_matrix(R_MI)
    for _ in range(ITERATIONS):
        system = _linearised(turning, offset, mount)
        if system is None:
            return None
        jacobian, error, _ = system
        step = -np.linalg.lstsq(jacobian.reshape(-1, COLUMNS), error.ravel(), rcond=None)[0]
        turn = step[1:4]
        # A start far off must not leave the search; the next step goes on.
        offset += float(np.clip(step[0], -0.05, 0.05))
        mount = mount * Rotation.from_rotvec(turn * min(1.0, 0.5 / max(float(np.linalg.norm(turn)), 1e-9)))
        if abs(step[0]) < 1e-6 and np.linalg.norm(turn) < 1e-5:
            break
    system = _linearised(turning, offset, mount)
    if system is None:
        return None
    jacobian, error, block = system
    bias = np.linalg.lstsq(jacobian[:, :, 4:].reshape(-1, 3), error.ravel(), rcond=None)[0]
    error = error - jacobian[:, :, 4:] @ bias
    covariance = _covariance(jacobian, error, block)
    return Fit(
        offset,
        float(np.sqrt(covariance[0, 0])),
        mount.as_matrix(),
        covariance[1:4, 1:4],
        float(np.sqrt(np.mean(error**2))),
    )


def _linearised(
    turning: _Turning, offset: float, mount: Rotation
) -> tuple[Floats, Floats, NDArray[np.int64]] | None:
    """Jacobian (n, 3, 7) for offset, mount and bias, errors (n, 3), and block (n,) of each pose used."""
    pieces = _pieces(turning, offset)
    if not pieces:
        return None
    rows = np.concatenate(pieces)
    at = turning.time[rows] + offset
    after = np.searchsorted(turning.gyro_time, at, side="left")
    rate = turning.rate[after]
    # A sample holds from the one before it: that much of it is not yet over.
    back = Rotation.from_rotvec((at - turning.gyro_time[after])[:, None] * rate)
    path, body = turning.path[after] * back, turning.pose[rows] * mount
    error, jacobian = np.empty((len(rows), 3)), np.empty((len(rows), 3, COLUMNS))
    end = 0
    for piece in pieces:
        part = slice(end, end + len(piece))
        end = part.stop
        between = body[part] * path[part].inv()
        constant = between.mean()
        axes = body[part].as_matrix()
        interval = np.diff(turning.time[piece], prepend=turning.time[piece[0]])
        jacobian[part, :, 0] = -(constant * path[part]).apply(rate[part])
        jacobian[part, :, 1:4] = axes
        jacobian[part, :, 4:] = np.cumsum(interval[:, None, None] * axes, axis=0)
        without = _without_polynomial(turning.time[piece])
        error[part] = without((between * constant.inv()).as_rotvec())
        jacobian[part] = without(jacobian[part].reshape(len(piece), -1)).reshape(-1, 3, COLUMNS)
    block = np.floor((turning.time[rows] - turning.time[0]) / BLOCK).astype(np.int64)
    return jacobian, error, block


def _pieces(turning: _Turning, offset: float) -> list[NDArray[np.int64]]:
    """Rows of the poses of each window, which no pause of the gyroscope divides."""
    at = turning.time + offset
    after = np.searchsorted(turning.gyro_time, at, side="left")
    inside = (after > 0) & (after < len(turning.gyro_time))
    safe = np.clip(after, 1, len(turning.gyro_time) - 1)
    gap = np.diff(turning.gyro_time)
    inside &= gap[safe - 1] <= turning.max_gap
    pauses = np.concatenate([[0], np.cumsum(gap > turning.max_gap)])
    window = np.floor((turning.time - turning.time[0]) / WINDOW).astype(np.int64)
    rows = np.flatnonzero(inside)
    pieces = [
        rows[start:end]
        for start, end in _runs(window[rows] * (pauses[-1] + 1) + pauses[safe[rows]])
        if end - start >= MIN_POSES
    ]
    return pieces[:: max(1, -(-len(pieces) // MOST_WINDOWS))]


def _runs(labels: NDArray[np.int64]) -> list[tuple[int, int]]:
    """First and last-plus-one of every run of equal labels."""
    edges = np.flatnonzero(np.diff(labels)) + 1
    return list(zip([0, *edges], [*edges, len(labels)], strict=True)) if len(labels) else []


class _without_polynomial:
    """Takes the part of columns away that is a polynomial in time."""

    def __init__(self, time: Floats) -> None:
        span = max(float(time[-1] - time[0]), 1e-9)
        powers = np.vander(2.0 * (time - time[0]) / span - 1.0, DEGREE + 1)
        self._basis = np.linalg.qr(powers)[0]

    def __call__(self, columns: Floats) -> Floats:
        return np.asarray(columns - self._basis @ (self._basis.T @ columns))


def _covariance(jacobian: Floats, error: Floats, block: NDArray[np.int64]) -> Floats:
    """Covariance (7, 7) from white residuals, widened where residuals of one block go together."""
    flat = jacobian.reshape(-1, COLUMNS)
    inverse = np.linalg.pinv(flat.T @ flat)
    white = inverse * float(np.mean(error**2))
    score = np.einsum("nij,ni->nj", jacobian, error)
    sums = np.column_stack([np.bincount(block - block[0], column) for column in score.T])
    clustered = inverse @ (sums.T @ sums) @ inverse
    widen = np.sqrt(np.maximum(np.diag(clustered) / np.maximum(np.diag(white), 1e-300), 1.0))
    return white * np.outer(widen, widen)
