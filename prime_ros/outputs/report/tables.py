# SPDX-License-Identifier: Apache-2.0
"""What is drawn over time, as columns of one value per knot; `X_std` is the deviation of column `X`."""

from __future__ import annotations

import numpy as np
from bokeh.models import ColumnDataSource
from numpy.typing import NDArray

from prime_ros.estimation.estimate import Estimate
from prime_ros.outputs.report.series import POINTS, Indices, finite, kept_rows, single

Floats = NDArray[np.float64]
Columns = dict[str, Floats]

BASE = {
    "base_position": ("position [m]", ("x", "y", "z")),
    "base_orientation": ("orientation [deg]", ("roll", "pitch", "yaw")),
    "base_velocity": ("velocity [m/s]", ("x", "y", "z")),
    "base_rate": ("angular rate [rad/s]", ("x", "y", "z")),
}
"""Plots of the base: label and columns."""
JOINT = {
    "joint_position": ("position", "rad"),
    "joint_velocity": ("velocity", "rad/s"),
    "joint_torque": ("torque", "Nm"),
}
"""Plots of a joint: label and unit."""


def force_columns(estimate: Estimate, contact: int) -> Columns:
    """`force` (vertical) and `tangential` [N], and `probability` of contact [-]."""
    force = finite(estimate.contact_force_W[:, contact])
    return {
        "force": force[:, 2],
        "force_std": finite(estimate.std["contact_force_W"][:, contact, 2]),
        "tangential": np.hypot(force[:, 0], force[:, 1]),
        "probability": finite(estimate.contact_probability[:, contact]),
    }


def base_columns(estimate: Estimate, plot: str) -> Columns:
    """The columns that `BASE` names."""
    values, std = _base(estimate, plot)
    axes = BASE[plot][1]
    columns = dict(zip(axes, values.T, strict=True))
    return columns | {f"{axis}_std": deviation for axis, deviation in zip(axes, std.T, strict=True)}


def joint_columns(estimate: Estimate, field: str, joint: int) -> Columns:
    """`value` of a joint, in the unit that `JOINT` names."""
    values, std = getattr(estimate, field)[:, joint], estimate.std[field][:, joint]
    return {"value": finite(values), "value_std": finite(std)}


def rows_to_show(columns: Columns, points: int = POINTS) -> Indices:
    """Knots that show the extremes of every column that has a deviation."""
    return kept_rows(np.column_stack([columns[name] for name in with_std(columns)]), points)


def with_std(columns: Columns) -> list[str]:
    """Names of the columns that have a deviation."""
    return [name for name in columns if f"{name}_std" in columns]


def drawn(columns: Columns, time: Floats, plot: str) -> ColumnDataSource:
    """Columns thinned for a plot, with `X_low` and `X_high` two deviations around every `X` that has one."""
    rows = rows_to_show(columns)
    data = {"time": single(time[rows]), **{name: single(values[rows]) for name, values in columns.items()}}
    for name in with_std(columns):
        data[f"{name}_low"] = data[name] - 2 * data[f"{name}_std"]
        data[f"{name}_high"] = data[name] + 2 * data[f"{name}_std"]
    return ColumnDataSource(data, name=f"page:{plot}")


def roll_pitch_yaw(quat_xyzw: Floats) -> Floats:
    """Angles about the axes x, y and z of the base from quaternions, yaw without jumps.

    Args:
        quat_xyzw: Base to world, shape (K, 4).

    Returns:
        Shape (K, 3) [deg].
    """
    x, y, z, w = quat_xyzw.T
    roll = np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2 * (w * y - z * x), -1.0, 1.0))
    yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    known = ~np.isnan(yaw)
    yaw[known] = np.unwrap(yaw[known])
    return np.rad2deg(np.column_stack([roll, pitch, yaw]))


def _base(estimate: Estimate, plot: str) -> tuple[Floats, Floats]:
    if plot == "base_position":
        return finite(estimate.base_position_W), finite(estimate.std["base_position_W"])
    if plot == "base_orientation":
        std = np.rad2deg(finite(estimate.std["base_quat_xyzw"]))
        return roll_pitch_yaw(finite(estimate.base_quat_xyzw)), std
    part = slice(0, 3) if plot == "base_velocity" else slice(3, 6)
    return finite(estimate.base_velocity_B[:, part]), finite(estimate.std["base_velocity_B"][:, part])
