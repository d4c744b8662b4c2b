# SPDX-License-Identifier: Apache-2.0
"""Which measurements of a knot of the moving window have weight: not what contradicts all others.

Live, an outlier must not be fused before it is seen to be one: the window would follow it. So each knot is
judged twice: grossly against the prediction of the dynamics, before it is fused, and by its residual
afterwards, the worst sensor first, as one that is wrong makes others look wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prime_ros.config import EstimatorConfig
from prime_ros.estimation.gate import squared_limit
from prime_ros.estimation.problem import BASE_NV

Array = NDArray[np.float64]

UNITS = {
    "mocap position": "m",
    "mocap orientation": "rad",
    "gyroscope": "rad/s",
    "joint position": "rad",
    "joint velocity": "rad/s",
}

# How far a measurement may be from the prediction over one step: beyond what impacts do to it.
ALLOWED = {
    "mocap position": 0.1,
    "mocap orientation": 0.35,
    "gyroscope": 1.0,
    "joint position": 0.3,
    "joint velocity": 10.0,
}
# What a second without an accepted pose adds [m, rad].
DRIFT = {"mocap position": 0.3, "mocap orientation": 0.5}


@dataclass(frozen=True)
class Group:
    """Channels of one sensor that are judged together: rows of (q, v) in the tangent."""

    sensor: str
    rows: NDArray[np.int64]
    limit: float
    """Squared whitened residual beyond which they lose their weight; 0: none."""


def groups(nv: int, config: EstimatorConfig) -> list[Group]:
    """What is judged together, by the gates of `outliers`."""
    gates = config.outliers

    def group(sensor: str, rows: range, sigmas: float) -> Group:
        return Group(sensor, np.array(rows), squared_limit(sigmas, len(rows)) if sigmas else 0.0)

    joints = [range(row, row + 1) for row in range(BASE_NV, nv)]
    rates = [range(nv + row, nv + row + 1) for row in range(BASE_NV, nv)]
    return [
        group("mocap position", range(3), gates.mocap),
        group("mocap orientation", range(3, 6), gates.mocap),
        group("gyroscope", range(nv + 3, nv + 6), gates.gyroscope),
        *(group("joint position", row, gates.joint_position) for row in joints),
        *(group("joint velocity", row, gates.joint_velocity) for row in rates),
    ]


class LiveGate:
    """Judges the knots of a window and counts what lost its weight."""

    def __init__(self, nv: int, config: EstimatorConfig) -> None:
        self.groups = groups(nv, config)
        self.rejected: dict[str, int] = {}
        """Scalar measurements that lost their weight, by sensor."""
        self.contradicted_s = 0.0
        """For how long every pose was far from the prediction [s]."""
        self._pose_ns: int | None = None
        self._contradicted_ns: int | None = None
        self._active = any(group.limit for group in self.groups)
        self._rows = np.concatenate([group.rows for group in self.groups])
        self._starts = np.cumsum([0, *(len(group.rows) for group in self.groups[:-1])])
        self._allowed = np.array([ALLOWED[group.sensor] for group in self.groups])
        self._drift = np.array([DRIFT.get(group.sensor, 0.0) for group in self.groups])
        self._limits = np.array([group.limit or np.inf for group in self.groups])
        self._poses = np.array([group.sensor.startswith("mocap") for group in self.groups])

    def gross(self, residual: Array, weights: Array, stamp_ns: int) -> Array:
        """Weights (2 nv,) without what is far from the prediction.

        Args:
            residual: Prediction minus measurement of (q, v), shape (2 nv,).
            weights: Inverse variances, zero where nothing was measured.
            stamp_ns: Time of the knot [ns].
        """
        kept = weights.copy()
        if not self._active:
            return kept
        blind = max((stamp_ns - (self._pose_ns or stamp_ns)) / 1e9, 0.0)
        measured = self._sums(weights) > 0.0
        far = measured & (self._sums(residual**2) > (self._allowed + self._drift * blind) ** 2)
        if far[self._poses].any():
            far |= self._poses
            self._contradict(stamp_ns)
        elif weights[:6].any():
            self._pose_ns = max(stamp_ns, self._pose_ns or stamp_ns)
            self._contradicted_ns, self.contradicted_s = None, 0.0
        for index in np.flatnonzero(far):
            self._drop(self.groups[index], kept)
        return kept

    def worst(self, residual: Array, weights: Array) -> Array | None:
        """Weights without the group that exceeds its limit by most, or None if none does."""
        ratios = self._sums(weights * residual**2) / self._limits
        index = int(np.argmax(ratios))
        if ratios[index] <= 1.0:
            return None
        kept = weights.copy()
        self._drop(self.groups[index], kept)
        return kept

    def _sums(self, values: Array) -> Array:
        """Sum over the rows of each group, shape (groups,)."""
        return np.asarray(np.add.reduceat(values[self._rows], self._starts))

    def _drop(self, group: Group, weights: Array) -> None:
        lost = int((weights[group.rows] > 0.0).sum())
        self.rejected[group.sensor] = self.rejected.get(group.sensor, 0) + lost
        weights[group.rows] = 0.0

    def _contradict(self, stamp_ns: int) -> None:
        if self._contradicted_ns is None:
            self._contradicted_ns = stamp_ns
        self.contradicted_s = (stamp_ns - self._contradicted_ns) / 1e9
