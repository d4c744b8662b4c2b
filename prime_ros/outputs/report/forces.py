# SPDX-License-Identifier: Apache-2.0
"""Contacts and contact forces over time: gait bars, one row of force per contact, and an overview."""

from __future__ import annotations

import numpy as np
from bokeh.models import ColumnDataSource, Range1d, RangeTool
from bokeh.plotting import figure
from numpy.typing import NDArray

from prime_ros.estimation.estimate import Estimate
from prime_ros.outputs.report import style
from prime_ros.outputs.report.series import POINTS, finite, intervals, kept_rows, single
from prime_ros.outputs.report.tables import drawn, force_columns

Floats = NDArray[np.float64]
CONTACT = 0.5
"""Probability above which a contact is drawn as closed [-]."""
UNSURE = (0.05, 0.95)
"""Between these probabilities the state of a contact is drawn as unsure [-]."""


def force_plots(estimate: Estimate, time: Floats, shared: Range1d) -> dict[str, figure]:
    """Figures by name: `gait`, `force_0` ... and `overview`, all over the shared range of time."""
    names = [style.plain(name) for name in estimate.contact_names]
    if not names:
        return {}
    bars = [_stance(estimate, time, index) for index in range(len(names))]
    vertical = finite(estimate.contact_force_W[..., 2])
    std = finite(estimate.std["contact_force_W"][..., 2])
    heights = style.value_range(vertical - 2 * std, vertical + 2 * std)
    plots = {"gait": _gait(names, bars, shared)}
    for index, name in enumerate(names):
        table = drawn(force_columns(estimate, index), time, f"force_{index}")
        plots[f"force_{index}"] = _row(index, name, table, bars[index], heights, shared, len(names) - 1)
    plots["overview"] = _overview(vertical.sum(axis=1), time, shared)
    return plots


def _stance(estimate: Estimate, time: Floats, index: int) -> dict[str, ColumnDataSource]:
    """When a contact was closed, and when nobody can tell."""
    probability = finite(estimate.contact_probability)[:, index]
    states = {
        "closed": probability > CONTACT,
        "unsure": (probability > UNSURE[0]) & (probability < UNSURE[1]),
    }
    sources = {}
    for state, active in states.items():
        start, end = intervals(active, time, estimate.dt)
        sources[state] = ColumnDataSource(
            {"start": single(start), "end": single(end), "length": single(end - start)}
        )
    return sources


def _gait(names: list[str], bars: list[dict[str, ColumnDataSource]], shared: Range1d) -> figure:
    rows = Range1d(len(names) - 0.5, -0.5)
    made = style.time_plot(34 + 22 * len(names), shared, "", y_range=rows, title="Contact")
    made.ygrid.visible = False
    made.yaxis.ticker = list(range(len(names)))
    made.yaxis.major_label_overrides = dict(enumerate(names))
    drawn = []
    for index in range(len(names)):
        look = {"line_color": None, "height": 0.62, "y": index, "name": names[index]}
        fill = style.colour(index)
        drawn.append(
            made.hbar(left="start", right="end", source=bars[index]["closed"], fill_color=fill, **look)
        )
        look |= {"height": 0.2, "name": f"{names[index]}, unsure"}
        made.hbar(
            left="start", right="end", source=bars[index]["unsure"], fill_color=style.TEXT, alpha=0.9, **look
        )
    style.hover(
        made,
        [("contact", "$name"), ("from", "@start{0.000} s"), ("for", "@length{0.000} s")],
        drawn,
        "mouse",
    )
    return made


def _row(
    index: int,
    name: str,
    table: ColumnDataSource,
    bars: dict[str, ColumnDataSource],
    heights: Range1d,
    shared: Range1d,
    last: int,
) -> figure:
    made = style.time_plot(128, shared, "force [N]", index == last, y_range=heights, title=name)
    made.title.text_color, made.title.text_font_style = style.colour(index), "bold"
    fill = style.colour(index)
    made.vstrip(x0="start", x1="end", source=bars["closed"], fill_color=fill, fill_alpha=0.1, line_color=None)
    made.varea("time", "force_low", "force_high", source=table, fill_color=fill, fill_alpha=0.35)
    line = made.line("time", "force", source=table, line_color=fill, line_width=1.6)
    tangential = made.line(
        "time", "tangential", source=table, line_color=style.TEXT, line_dash=[4, 2], line_width=1
    )
    tangential.name, tangential.visible = f"page:tangential_{index}", False
    tips = [
        ("vertical", "@force{0.0} ± @force_std{0.0} N"),
        ("tangential", "@tangential{0.0} N"),
        ("contact probability", "@probability{0.00}"),
        ("time", "@time{0.000} s"),
    ]
    style.hover(made, tips, [line])
    return made


def _overview(total: Floats, time: Floats, shared: Range1d) -> figure:
    """Total vertical force over the whole recording, with the shown part marked; drag it to move."""
    rows = kept_rows(total, POINTS // 2)
    whole = Range1d(float(time[0]), float(time[-1]) if len(time) > 1 else float(time[0]) + 1.0)
    made = style.plot(
        96,
        x_range=whole,
        y_range=style.value_range(total),
        tools="",
        active_drag=None,
        y_axis_label="sum [N]",
        name="page:overview",
        title="Overview of the whole recording",
    )
    made.yaxis.ticker.desired_num_ticks = 3
    made.line(single(time[rows]), single(total[rows]), line_color=style.TEXT, line_width=1)
    window = RangeTool(x_range=shared, start_gesture="pan")
    window.overlay.fill_color, window.overlay.fill_alpha = style.PALETTE[0], 0.15
    made.add_tools(window)
    return made
