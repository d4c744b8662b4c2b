# SPDX-License-Identifier: Apache-2.0
"""How the solver got there: cost and largest gap by iteration."""

from __future__ import annotations

import numpy as np
from bokeh.models import BoxAnnotation, ColumnDataSource, Range1d, Span
from bokeh.plotting import figure
from numpy.typing import NDArray

from prime_ros.estimation.estimate import Estimate
from prime_ros.outputs.report import style

_TINY = 1e-12


def convergence_plots(estimate: Estimate, gap_tolerance: float) -> dict[str, figure]:
    """Figures `cost` and `gap`; none without a history."""
    history = estimate.history
    if not history:
        return {}
    cost = np.array([step.cost for step in history], dtype=float)
    gap = np.array([step.largest_gap for step in history], dtype=float)
    table = ColumnDataSource(
        {
            "iteration": [step.iteration for step in history],
            "stage": [step.stage for step in history],
            "kappa": [step.kappa for step in history],
            "cost": cost,
            "gap": gap,
            "cost_shown": _positive(cost),
            "gap_shown": _positive(gap),
        }
    )
    shared = Range1d(0.5, max(step.iteration for step in history) + 0.5)
    plots = {
        "cost": _curve(table, "cost", "cost [-]", estimate, shared),
        "gap": _curve(table, "gap", "largest gap [SI]", estimate, shared),
    }
    shown = table.data["gap_shown"][np.isfinite(table.data["gap_shown"])]
    if shown.size:
        low, high = min(float(shown.min()), gap_tolerance), max(float(shown.max()), gap_tolerance)
        plots["gap"].y_range = Range1d(low / 3, high * 3)
    plots["gap"].add_layout(
        Span(location=gap_tolerance, dimension="width", line_color=style.TEXT, line_dash="dashed")
    )
    return plots


def _positive(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values for a logarithmic axis: zero is drawn at the bottom, what is not finite is not drawn."""
    shown = np.where(np.isfinite(values), values, np.nan)
    known = shown[shown > 0]
    floor = max(float(known.min()), _TINY) if known.size else _TINY
    return np.where(np.isnan(shown), np.nan, np.maximum(shown, floor))


def _curve(table: ColumnDataSource, name: str, label: str, estimate: Estimate, shared: Range1d) -> figure:
    made = style.plot(
        260,
        x_range=shared,
        y_axis_type="log",
        y_axis_label=label,
        x_axis_label="iteration",
        tools="reset,save",
        active_drag=None,
    )
    made.min_border_left = 78
    made.xaxis.ticker.min_interval = 1
    for index, (start, end) in enumerate(_stages(estimate)):
        if index % 2:
            made.add_layout(
                BoxAnnotation(left=start - 0.5, right=end + 0.5, fill_color=style.GRID, fill_alpha=0.15)
            )
    made.line("iteration", f"{name}_shown", source=table, line_color=style.PALETTE[0], line_width=1.5)
    dots = made.scatter("iteration", f"{name}_shown", source=table, size=7, color=style.PALETTE[0])
    tips = [
        ("iteration", "@iteration, stage @stage (kappa @kappa)"),
        ("cost", "@cost{0.000}"),
        ("largest gap", "@gap{0.0e+0}"),
    ]
    style.hover(made, tips, [dots])
    return made


def _stages(estimate: Estimate) -> list[tuple[int, int]]:
    """First and last iteration of each stage."""
    found: dict[int, list[int]] = {}
    for step in estimate.history:
        found.setdefault(step.stage, []).append(step.iteration)
    return [(min(steps), max(steps)) for steps in found.values()]
