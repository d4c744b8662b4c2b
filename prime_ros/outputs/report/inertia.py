# SPDX-License-Identifier: Apache-2.0
"""Estimated inertia of a link against the nominal one, as figures."""

from __future__ import annotations

import numpy as np
from bokeh.models import ColumnDataSource, FactorRange, Span, TeeHead, Whisker
from bokeh.plotting import figure

from prime_ros.estimation.estimate import LinkEstimate
from prime_ros.outputs.inertia_entries import Entry, entries
from prime_ros.outputs.report import style


def inertia_plots(link: LinkEstimate, index: int) -> dict[str, figure]:
    """Figures `relative_I` (mass and moments, % of nominal) and `com_I` [mm] of link I."""
    found = entries(link)
    relative = [entry for entry in found if entry.unit != "mm"]
    return {
        f"relative_{index}": _changes(relative, "change [% of nominal]", 100.0, index),
        f"com_{index}": _changes([entry for entry in found if entry.unit == "mm"], "shift [mm]", 1.0, index),
    }


def _changes(found: list[Entry], label: str, factor: float, index: int) -> figure:
    names = [entry.name for entry in found]
    change = factor * np.array([entry.change for entry in found])
    std = factor * np.array([entry.change_std for entry in found])
    table = ColumnDataSource(
        {"name": names, "change": change, "std": std, "low": change - 2 * std, "high": change + 2 * std}
    )
    made = style.plot(
        250,
        x_range=FactorRange(*names),
        y_range=style.value_range(change - 2 * std, change + 2 * std, [0.0]),
        y_axis_label=label,
        tools="save",
        active_drag=None,
    )
    made.xgrid.visible = False
    made.add_layout(Span(location=0, dimension="width", line_color=style.TEXT, line_width=1))
    colour = style.PALETTE[0]
    made.vbar("name", 0.5, "change", source=table, fill_color=colour, fill_alpha=0.35, line_color=None)
    dots = made.scatter("name", "change", source=table, size=7, color=colour)
    heads = {
        "upper_head": TeeHead(size=10, line_color=colour),
        "lower_head": TeeHead(size=10, line_color=colour),
    }
    made.add_layout(
        Whisker(
            base="name", lower="low", upper="high", source=table, line_color=colour, line_width=2, **heads
        )
    )
    style.hover(made, [("entry", "@name"), ("change", "@change{+0.00} ± @std{0.00}")], [dots])
    return made
