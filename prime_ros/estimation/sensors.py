# SPDX-License-Identifier: Apache-2.0
"""How the residuals of every sensor compare with its stated noise, over time and in sum."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prime_ros import _core
from prime_ros.estimation.estimate import Residuals, SensorReport
from prime_ros.estimation.gate import Gate
from prime_ros.estimation.problem import BASE_NV

Array = NDArray[np.float64]
AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Channels:
    """m channels of one sensor over N knots: K + 1, but K for what acts between knots."""

    unit: str
    names: tuple[str, ...]
    """Axes, joints or contacts, m of them."""
    residual: Array
    """Prediction minus measurement, shape (m, N)."""
    weight: Array
    """Inverse variance by the stated noise, zero where nothing was measured, shape (m, N)."""
    rejected: NDArray[np.bool_]
    """Shape (m, N)."""
    leverage: float
    """Trace of the hat matrix over all channels and knots."""
    measured: bool = True
    """False for what the model had to invent."""

    def report(self) -> SensorReport:
        """Sums over all channels and knots."""
        used = (self.weight > 0.0) & ~self.rejected
        count = int(used.sum())
        return SensorReport(
            count=count,
            dof=count - self.leverage,
            chi_square=float((self.weight * self.residual**2)[used].sum()),
            rms_residual=float(np.sqrt((self.residual[used] ** 2).mean())) if count else float("nan"),
            unit=self.unit,
            measured=self.measured,
            rejected=int((self.rejected & (self.weight > 0.0)).sum()),
        )

    def residuals(self, stamp_ns: NDArray[np.int64]) -> Residuals:
        """The whitened residuals over time, of the first knots of `stamp_ns`."""
        present = self.weight > 0.0
        whitened = np.where(present, np.sqrt(self.weight) * self.residual, np.nan)
        return Residuals(stamp_ns[: present.shape[1]], self.names, whitened.T, (self.rejected & present).T)


def sensor_channels(
    solver: _core.GaussNewton,
    posterior: _core.Posterior,
    gate: Gate,
    joint_names: tuple[str, ...],
    contact_names: tuple[str, ...],
) -> dict[str, Channels]:
    """Channels of every sensor, and of the disturbance and slack that the model had to invent, by name.

    Degrees of freedom are the number of measurements minus the trace of the hat matrix of that sensor. What
    was never measured is left out.
    """
    nv = BASE_NV + len(joint_names)
    residual, controls = solver.residuals(), solver.controls
    base, rejected = gate.base, gate.rejected
    q = _Part(residual[:nv], base["configuration"], rejected["configuration"])
    v = _Part(residual[nv:], base["velocity"], rejected["velocity"])
    u = _Part(controls, base["control"], rejected["control"])
    hat_q, hat_v, hat_u = (
        posterior.configuration_leverage,
        posterior.velocity_leverage,
        posterior.control_leverage,
    )
    joints, slack = range(BASE_NV, nv), range(nv, len(controls))
    normal = [row for row in slack if (row - nv) % 3 == 2]
    along = [row for row in slack if (row - nv) % 3 != 2]
    along_names = tuple(f"{name} {axis}" for name in contact_names for axis in "xy")
    channels = {
        "mocap position": q.rows(range(3), hat_q, "m", AXES),
        "mocap orientation": q.rows(range(3, 6), hat_q, "rad", AXES),
        "joint position": q.rows(joints, hat_q, "rad", joint_names),
        "gyroscope": v.rows(range(3, 6), hat_v, "rad/s", AXES),
        "joint velocity": v.rows(joints, hat_v, "rad/s", joint_names),
        "joint torque": u.rows(joints, hat_u, "Nm", joint_names),
        "disturbance force": u.rows(range(3), hat_u, "N", AXES, measured=False),
        "disturbance moment": u.rows(range(3, 6), hat_u, "Nm", AXES, measured=False),
        "slack tangential": u.rows(along, hat_u, "m/s", along_names, measured=False),
        "slack normal": u.rows(normal, hat_u, "m/s", contact_names, measured=False),
    }
    return {name: each for name, each in channels.items() if bool((each.weight > 0.0).any())}


@dataclass(frozen=True)
class _Part:
    """All channels of the configuration, the velocity or the control; weights may have a column more."""

    residual: Array
    weight: Array
    rejected: NDArray[np.bool_]

    def rows(
        self,
        rows: Iterable[int],
        leverage: Array,
        unit: str,
        names: tuple[str, ...],
        measured: bool = True,
    ) -> Channels:
        chosen, knots = list(rows), self.residual.shape[1]
        return Channels(
            unit=unit,
            names=names,
            residual=self.residual[chosen],
            weight=self.weight[chosen, :knots],
            rejected=self.rejected[chosen, :knots],
            leverage=float(leverage[chosen].sum()),
            measured=measured,
        )
