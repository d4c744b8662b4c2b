# SPDX-License-Identifier: Apache-2.0
"""What the page holds beyond what it draws at first: all joints, and more knots for when one zooms in."""

from __future__ import annotations

from typing import Any, Literal

from prime_ros.estimation.estimate import Estimate
from prime_ros.outputs.report.series import POINTS, packed, packed_rows
from prime_ros.outputs.report.tables import (
    BASE,
    JOINT,
    Columns,
    base_columns,
    force_columns,
    joint_columns,
    rows_to_show,
)

_FORCE, _BASE, _JOINT = 8, 48, 12
"""Bytes of a knot in the page: of a contact, of the base, of a joint."""
_ROWS = 1.35
"""How much longer they are where knots are left out, and their numbers are kept."""
WORTHWHILE = 2 * POINTS
"""Fewer knots than that are not worth keeping beside those that are drawn."""


def detail(estimate: Estimate, room: int) -> dict[str, Any]:
    """Columns for the script of the page: as many knots as there is room for, those with extremes first.

    Forces come first, then the base, then joints beyond `POINTS` knots each, which they have in any case.

    Args:
        estimate: Of K knots.
        room: Bytes that this may take in the page.

    Returns:
        `plots`: packed columns by plot, absent where the plot shows every knot already; `joints`: by plot and
        joint.
    """
    knots, contacts, joints = len(estimate.stamp_ns), len(estimate.contact_names), len(estimate.joint_names)
    room -= _size(min(knots, POINTS), joints * _JOINT, knots)
    force_points = _points(room, contacts * _FORCE, knots)
    room -= _size(force_points, contacts * _FORCE, knots)
    base_points = _points(room, _BASE, knots)
    room -= _size(base_points, _BASE, knots)
    joint_points = POINTS + int(max(room, 0) / max(_ROWS * joints * _JOINT, 1))
    plots: dict[str, Any] = {}
    if force_points:
        plots = {
            f"force_{contact}": _packed(force_columns(estimate, contact), force_points)
            for contact in range(contacts)
        }
    if base_points:
        plots |= {plot: _packed(base_columns(estimate, plot), base_points) for plot in BASE}
    return {"plots": plots, "joints": _joints(estimate, joint_points)}


def _points(room: int, bytes_per_knot: int, knots: int) -> int:
    """Knots to keep: none if the plot shows all already, or if there is room for too few."""
    if knots <= POINTS or not bytes_per_knot:
        return 0
    if room >= knots * bytes_per_knot:
        return knots
    points = int(room / (_ROWS * bytes_per_knot))
    return points if points >= WORTHWHILE else 0


def _size(points: int, bytes_per_knot: int, knots: int) -> int:
    """Bytes of some of the knots in the page."""
    return int(points * bytes_per_knot * (1.0 if points == knots else _ROWS))


def _joints(estimate: Estimate, points: int) -> dict[str, Any]:
    joints = range(len(estimate.joint_names))
    return {
        field: [_packed(joint_columns(estimate, field, joint), points) for joint in joints]
        for field in JOINT
        if joints
    }


def _packed(columns: Columns, points: int) -> dict[str, Any]:
    rows = rows_to_show(columns, points)
    made = {name: packed(values[rows], _bits(name)) for name, values in columns.items()}
    return made if len(rows) == len(next(iter(columns.values()))) else {**made, "time": packed_rows(rows)}


def _bits(column: str) -> Literal[8, 16]:
    """Deviations and probabilities need no more than 8."""
    return 8 if column == "probability" or column.endswith("_std") else 16
