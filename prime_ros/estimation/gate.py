# SPDX-License-Identifier: Apache-2.0
"""Measurements that contradict all others: bounded on the way of the solver, without weight in the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, norm

from prime_ros import _core
from prime_ros.config import EstimatorConfig
from prime_ros.estimation.problem import BASE_NV

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Part = Literal["configuration", "velocity", "control"]
PARTS: tuple[Part, ...] = ("configuration", "velocity", "control")

# Factors on the gate, round after round: an outlier makes its neighbours look bad, so the worst go first.
GATE_FACTORS = (4.0, 2.0, 1.0, 1.0)


@dataclass(frozen=True)
class _Sensor:
    """Channels of one sensor; the rows of one group are judged, and lost, together."""

    part: Part
    groups: tuple[tuple[int, ...], ...]
    sigmas: float


class Gate:
    """Weights of all measurements, from the noise of the sensors and from what the solver made of them.

    A measurement is rejected when its whitened residual is larger than the `outliers` of the configuration,
    in standard deviations of a Gaussian. Where the residuals of a whole sensor are larger than its stated
    noise, its own median scales them first: a wrong noise setting is not an outlier.
    """

    def __init__(self, knots: _core.KnotSeries, config: EstimatorConfig) -> None:
        self.base: dict[Part, Array] = {
            "configuration": knots.configuration_weight,
            "velocity": knots.velocity_weight,
            "control": knots.control_weight,
        }
        """Inverse variances, one column per knot; those of the control are (nu, K + 1)."""
        self.rejected: dict[Part, Mask] = {part: np.zeros(w.shape, bool) for part, w in self.base.items()}
        self._softened = False
        self._sensors = _sensors(self.base["configuration"].shape[0], config)
        self._unknown_torque = 1.0 / (config.missing_torque_std**2 + config.disturbance.joint_torque**2)

    @property
    def weights(self) -> dict[Part, Array]:
        """Inverse variances that are left, as `base`."""
        left = {part: np.where(self.rejected[part], 0.0, self.base[part]) for part in PARTS}
        left["control"] = np.where(self.rejected["control"], self._unknown_torque, self.base["control"])
        return left

    def weighted(self, knots: _core.KnotSeries) -> _core.KnotSeries:
        """The knots with the weights that are left."""
        series = _core.KnotSeries()
        for field in ("configuration", "base_time_offset", "velocity", "torque"):
            setattr(series, field, getattr(knots, field))
        weights = self.weights
        for part in PARTS:
            setattr(series, f"{part}_weight", weights[part])
        return series

    def set_slack(self, solver: _core.GaussNewton, weight: Array) -> None:
        """Give the contact slack new weights, shape (3 C, K), and the solver with it."""
        control = self.base["control"].copy()
        control[-len(weight) :, : weight.shape[1]] = weight
        self.base["control"] = control
        self.hand_over(solver)

    def hand_over(self, solver: _core.GaussNewton) -> None:
        """Give a solver the weights that are left."""
        solver.set_weights(*(self.weights[part] for part in PARTS))

    def soften(self, solver: _core.GaussNewton) -> None:
        """Bound the influence of every measurement at the gate (Huber's weights at the current iterate)."""
        factor = {part: np.ones_like(weight) for part, weight in self.base.items()}
        for sensor, square, limit in self._judged(solver):
            bounded = np.sqrt(np.minimum(1.0, limit / np.maximum(square, 1e-12)))
            for rows, values in zip(sensor.groups, bounded, strict=True):
                factor[sensor.part][list(rows)] = values
        softened = any(bool((f < 1.0).any()) for f in factor.values())
        if softened or self._softened:
            solver.set_weights(*(factor[part] * self.base[part] for part in PARTS))
        self._softened = softened

    def reject(self, solver: _core.GaussNewton, attempt: int | None = None) -> bool:
        """Decide what is rejected at the current iterate, and give the solver the weights.

        Args:
            solver: Holds the iterate.
            attempt: Index into `GATE_FACTORS`; None: the final word, which takes nothing back (so that
                nothing can cycle).

        Returns:
            Whether the weights changed.
        """
        factor = 1.0 if attempt is None else GATE_FACTORS[attempt]
        rejected = {part: np.zeros_like(mask) for part, mask in self.rejected.items()}
        for sensor, square, limit in self._judged(solver):
            beyond = square > limit * factor**2
            for rows, values in zip(sensor.groups, beyond, strict=True):
                rejected[sensor.part][list(rows)] = values
        if attempt is None:
            rejected = {part: mask | self.rejected[part] for part, mask in rejected.items()}
        changed = self._softened or any(bool((rejected[p] != self.rejected[p]).any()) for p in PARTS)
        self.rejected, self._softened = rejected, False
        if changed:
            self.hand_over(solver)
        return changed

    def _judged(self, solver: _core.GaussNewton) -> list[tuple[_Sensor, Array, float]]:
        """Of every sensor the squared whitened residuals (groups, K + 1), and what they may be."""
        square = self._squares(solver)
        result = []
        for sensor in self._sensors:
            size = len(sensor.groups[0])
            values = np.array([square[sensor.part][list(rows)].sum(axis=0) for rows in sensor.groups])
            measured = values[values > 0.0]
            typical = float(np.median(measured)) / chi2.median(size) if measured.size else 1.0
            limit = squared_limit(sensor.sigmas, size) * max(1.0, typical)
            result.append((sensor, values, limit))
        return result

    def _squares(self, solver: _core.GaussNewton) -> dict[Part, Array]:
        """Squared residuals of all channels by their base weights."""
        residual = solver.residuals()
        nv = len(residual) // 2
        control = np.hstack([solver.controls, np.zeros((len(self.base["control"]), 1))])
        parts = {"configuration": residual[:nv], "velocity": residual[nv:], "control": control}
        return {part: self.base[part] * parts[part] ** 2 for part in PARTS}


def squared_limit(sigmas: float, size: int) -> float:
    """What the squared whitened residual of `size` channels exceeds as rarely as a Gaussian `sigmas` std."""
    return float(chi2.isf(2.0 * norm.sf(sigmas), size))


def _sensors(nv: int, config: EstimatorConfig) -> list[_Sensor]:
    """The sensors that have a gate."""
    joints = tuple((row,) for row in range(BASE_NV, nv))
    gates = config.outliers
    sensors = [
        _Sensor("configuration", (tuple(range(BASE_NV)),), gates.mocap),
        _Sensor("velocity", ((3, 4, 5),), gates.gyroscope),
        _Sensor("configuration", joints, gates.joint_position),
        _Sensor("velocity", joints, gates.joint_velocity),
        _Sensor("control", joints, gates.joint_torque),
    ]
    return [sensor for sensor in sensors if sensor.sigmas > 0.0 and sensor.groups]
