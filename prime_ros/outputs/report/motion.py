# SPDX-License-Identifier: Apache-2.0
"""Motion over time: the base with its deviations, and one joint at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.models import Range1d
from bokeh.plotting import figure
from numpy.typing import NDArray

from prime_ros.estimation.estimate import Estimate
from prime_ros.outputs.report import style
from prime_ros.outputs.report.tables import BASE, JOINT, base_columns, drawn, joint_columns

Floats = NDArray[np.float64]


def base_plots(estimate: Estimate, time: Floats, shared: Range1d) -> dict[str, figure]:
    """Figures `base_position`, `base_orientation` (world), `base_velocity` and `base_rate` (base axes)."""
    last = list(BASE)[-1]
    return {plot: _base_plot(estimate, time, shared, plot, plot == last) for plot in BASE}


def joint_plots(estimate: Estimate, time: Floats, shared: Range1d) -> dict[str, figure]:
    """Figures `joint_position` ... of the first joint; the page's script puts others into them."""
    if not estimate.joint_names:
        return {}
    last = list(JOINT)[-1]
    return {plot: _joint_plot(estimate, time, shared, plot, plot == last) for plot in JOINT}


def _base_plot(estimate: Estimate, time: Floats, shared: Range1d, plot: str, last: bool) -> figure:
    label, axes = BASE[plot]
    columns = base_columns(estimate, plot)
    heights = style.value_range(*(columns[axis] for axis in axes))
    made = style.time_plot(176, shared, label, last, y_range=heights)
    table = drawn(columns, time, plot)
    tips, lines = [], []
    for index, axis in enumerate(axes):
        look: dict[str, Any] = {"source": table, "legend_label": axis}
        colour = style.colour(index)
        made.varea("time", f"{axis}_low", f"{axis}_high", fill_color=colour, fill_alpha=0.25, **look)
        lines.append(made.line("time", axis, line_color=colour, line_width=1.4, **look))
        tips.append((axis, f"@{axis}{{0.0000}} ± @{axis}_std{{0.0000}}"))
    style.legend(made)
    style.hover(made, [*tips, ("time", "@time{0.000} s")], lines[:1])
    return made


def _joint_plot(estimate: Estimate, time: Floats, shared: Range1d, plot: str, last: bool) -> figure:
    label, unit = JOINT[plot]
    columns = joint_columns(estimate, plot, 0)
    heights = style.value_range(columns["value"])
    heights.name = f"page:{plot}_range"
    made = style.time_plot(150, shared, f"{label} [{unit}]", last, y_range=heights)
    table, colour = drawn(columns, time, plot), style.PALETTE[0]
    made.varea("time", "value_low", "value_high", source=table, fill_color=colour, fill_alpha=0.3)
    line = made.line("time", "value", source=table, line_color=colour, line_width=1.5)
    tips = [(label, f"@value{{0.000}} ± @value_std{{0.000}} {unit}"), ("time", "@time{0.000} s")]
    style.hover(made, tips, [line])
    return made
