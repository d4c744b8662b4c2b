# SPDX-License-Identifier: Apache-2.0
r"""Poses of motion capture that jump: single ones, pieces that come back, and a world that moved.

A step between two poses is predicted by the median of the speeds around it, which a few outliers do not move.
Steps that the prediction misses cut the recording into pieces; of the pieces the largest set is kept in which
each follows from the one before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from prime_ros.measurements.findings import Finding, Severity
from prime_ros.measurements.samples import NANOSECONDS, Floats, MocapSamples
from prime_ros.robot import SensorNoise

NEIGHBOURS = 4  # steps to either side that predict a step
SIGMAS = 7.0  # of the recording's own noise, as far as it can be seen in the steps
NOISES = 5.0  # of the stated noise of the difference of two poses, which is sqrt(2) of that of a pose
# What a base does beyond the prediction: accelerate between two poses; after a pause, its speed limits it.
ACCELERATION, SPEED = 30.0, 5.0  # [m/s^2, m/s]
SUSTAINED = 20.0  # [m/s^2] over more than one step; there and back, a quarter of it counts
ANGULAR_ACCELERATION, RATE = 100.0, 10.0  # [rad/s^2, rad/s]
LOOK_BACK = 64  # pieces between which a connection is looked for
MANY = 0.3  # share of jumping poses that makes motion capture useless
SCATTERED = 10.0  # times the stated noise, where steps look like jumps one and all
CERTAIN = 3.0  # times the limit: a jump beyond doubt
LASTING = 1.0  # [s] a doubtful jump is believed to be motion if it saves so many poses
MOVED_ADVICE = (
    "if motion capture was started anew or took other markers for the body, cut the recording there (--start,"
    " --duration)"
)

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class _Steps:
    """Steps between successive poses: shape (N - 1, 3) each, and their duration [s]."""

    position: Floats
    rotation: Floats
    duration: Floats


@dataclass(frozen=True)
class _Pieces:
    """Runs of poses without a jump between."""

    first: NDArray[np.int64]
    """First row of each."""
    last: NDArray[np.int64]
    """Last row of each."""
    excess: Floats
    """Jump before each but the first, over what is allowed."""


def jumping_poses(samples: MocapSamples, noise: SensorNoise) -> tuple[Mask, list[Finding]]:
    """Find poses that do not follow from the others.

    Args:
        samples: Finite poses of a tracked body in time order.
        noise: Stated noise of motion capture.

    Returns:
        Mask of shape (N,); a warning if the world moved for good, an error if a large part jumps.
    """
    count = len(samples.stamp_ns)
    jumping = np.zeros(count, dtype=bool)
    if count < 2 * NEIGHBOURS:
        return jumping, []
    time = (samples.stamp_ns - samples.stamp_ns[0]) / NANOSECONDS
    rotation = Rotation.from_quat(samples.quat_xyzw)
    steps = _Steps(
        np.diff(samples.position, axis=0), (rotation[:-1].inv() * rotation[1:]).as_rotvec(), np.diff(time)
    )
    shift, turn = _Signal.of(steps.position, steps.duration), _Signal.of(steps.rotation, steps.duration)
    still = max(SIGMAS * shift.noise, NOISES * np.sqrt(2.0) * noise.mocap_position)
    straight = max(SIGMAS * turn.noise, NOISES * np.sqrt(2.0) * noise.mocap_rotation)
    excess = np.maximum(
        shift.surprise / _allowed(still, steps.duration, ACCELERATION, SPEED),
        turn.surprise / _allowed(straight, steps.duration, ANGULAR_ACCELERATION, RATE),
    )
    broken = excess > 1.0
    scatter = max(shift.noise / noise.mocap_position, turn.noise / noise.mocap_rotation) / np.sqrt(2.0)
    if (share := float(broken.mean())) > MANY or scatter > SCATTERED:
        what = (
            f"mocap: {share:.0%} of the steps between poses are jumps, and the others scatter by"
            f" {scatter:.3g} times the stated noise; expected next to none and about 1"
        )
        advice = "look at the markers, the body's definition and the rate of the stream"
        return jumping, [Finding("mocap-jumps", "error", what, advice)]
    if not broken.any():
        return jumping, []
    first = np.concatenate([[0], np.flatnonzero(broken) + 1])
    pieces = _Pieces(first, np.concatenate([first[1:] - 1, [count - 1]]), excess[first[1:] - 1])
    kept = _largest_chain(samples, time, pieces, (still, straight), shift.speed)
    for piece in np.flatnonzero(~kept):
        jumping[pieces.first[piece] : pieces.last[piece] + 1] = True
    return jumping, _findings(samples, time, pieces, kept)


@dataclass(frozen=True)
class _Signal:
    """Steps of a signal against their prediction."""

    speed: Floats
    """Median speed of the steps around each, shape (N - 1, 3)."""
    surprise: Floats
    """Distance of each step from its prediction, shape (N - 1,)."""
    noise: float
    """Robust standard deviation of that, per axis."""

    @classmethod
    def of(cls, step: Floats, duration: Floats) -> _Signal:
        padded = np.pad(step / duration[:, None], ((NEIGHBOURS, NEIGHBOURS), (0, 0)), mode="edge")
        windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * NEIGHBOURS + 1, axis=0)
        speed = np.median(windows, axis=-1)
        missed = step - speed * duration[:, None]
        return cls(speed, np.linalg.norm(missed, axis=1), 1.4826 * float(np.median(np.abs(missed))))


def _allowed(explained: float, duration: Floats, acceleration: float, speed: float) -> Floats:
    """How far a step may be from its prediction: noise, and what a base can do in that time."""
    return explained + np.minimum(acceleration * duration**2, speed * duration)


def _largest_chain(
    samples: MocapSamples, time: Floats, pieces: _Pieces, explained: tuple[float, float], speed: Floats
) -> Mask:
    """Which pieces belong to the chain of pieces, each following from the one before, with the most poses."""
    first, last = pieces.first, pieces.last
    price = LASTING / float(np.median(np.diff(time)))  # [poses] of a doubtful jump
    best, previous = (last - first + 1).astype(float), np.full(len(first), -1)
    for piece in range(1, len(first)):
        before = np.arange(max(0, piece - LOOK_BACK), piece)
        pause = time[first[piece]] - time[last[before]]
        row = int(first[piece])
        # Half of the way at the speed before, half at the speed after.
        around = (speed[np.maximum(last[before] - 1, 0)] + speed[min(row, len(speed) - 1)]) / 2
        shift = np.linalg.norm(
            samples.position[row] - samples.position[last[before]] - around * pause[:, None], axis=1
        )
        turn = _between(samples, last[before], row)[1]
        possible = _allowed(0.0, pause, SUSTAINED / 4, SPEED)
        # What only an acceleration explains is as doubtful as it is large.
        doubt = np.maximum(shift - explained[0], 0.0) / possible
        reachable = (doubt <= 1.0) & (turn <= explained[1] + RATE * pause)
        worth = np.where(reachable, best[before] - price * doubt, -np.inf)
        doubtful = pieces.excess[piece - 1] < CERTAIN
        worth[-1] = best[piece - 1] - price if doubtful else -np.inf  # the step that cut them apart
        if worth.max() > 0:
            previous[piece] = before[np.argmax(worth)]
            best[piece] += worth.max()
    kept = np.zeros(len(first), dtype=bool)
    piece = int(np.argmax(best))
    while piece >= 0:
        kept[piece] = True
        piece = int(previous[piece])
    return kept


def _between(samples: MocapSamples, rows: NDArray[np.int64], row: int) -> tuple[Floats, Floats]:
    """Distances [m] and angles [rad] from poses at `rows` to the pose at `row`."""
    distance = np.linalg.norm(samples.position[row] - samples.position[rows], axis=1)
    length = np.linalg.norm(samples.quat_xyzw[rows], axis=1) * np.linalg.norm(samples.quat_xyzw[row])
    cosine = np.abs(samples.quat_xyzw[rows] @ samples.quat_xyzw[row]) / length
    return distance, 2.0 * np.arccos(np.minimum(cosine, 1.0))


def _findings(samples: MocapSamples, time: Floats, pieces: _Pieces, kept: Mask) -> list[Finding]:
    """Warnings about jumps that do not come back, at the worst of them."""
    size = pieces.last - pieces.first + 1
    chain = np.flatnonzero(kept)
    doubtful = chain[1:][np.diff(chain) == 1]
    if doubtful.size:
        at = int(doubtful[np.argmax(pieces.excess[doubtful - 1])])
        what = f"{_jump(samples, time, pieces, at)} and it did not come back; poses on both sides were used"
        return [Finding("mocap-jumps", "warning", what, MOVED_ADVICE)]
    outside = np.flatnonzero(~kept & ((np.arange(len(size)) < chain[0]) | (np.arange(len(size)) > chain[-1])))
    left_out = int(size[outside].sum())
    if left_out <= LASTING / float(np.median(np.diff(time))):
        return []
    at = int(outside[np.argmax(size[outside])])
    at = at + 1 if at < chain[0] else at
    what = (
        f"{_jump(samples, time, pieces, at)} and it did not come back; the {left_out} poses of the shorter"
        " part were left out"
    )
    severity: Severity = "error" if left_out > MANY * len(time) else "warning"
    return [Finding("mocap-jumps", severity, what, MOVED_ADVICE)]


def _jump(samples: MocapSamples, time: Floats, pieces: _Pieces, piece: int) -> str:
    """The step into a piece, in words."""
    row = int(pieces.first[piece])
    distance, angle = _between(samples, np.array([row - 1]), row)
    size = f"{distance[0]:.2f} m and {np.rad2deg(angle[0]):.0f} deg"
    return f"mocap: the body jumped by {size} at {time[row]:.2f} s"
