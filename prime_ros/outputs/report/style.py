# SPDX-License-Identifier: Apache-2.0
"""Look of the plots: one colour per foot, told apart by colour-blind people; figures that share time."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.models import HoverTool, Range1d
from bokeh.plotting import figure
from numpy.typing import ArrayLike

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a6f00", "#8a5a44")
"""After Okabe and Ito, its yellow and black replaced: they vanish on white or on black."""
TEXT = "#75797f"
GRID = "#9aa0a6"
BAD = "#d62728"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def colour(index: int) -> str:
    """Colour of a foot, axis or channel."""
    return PALETTE[index % len(PALETTE)]


def plain(name: str) -> str:
    """A name that a plot shows as it is, not as a formula."""
    return name.replace("$$", "$ $").replace("\\(", "\\ (").replace("\\[", "\\ [")


def value_range(*values: ArrayLike, start: float | None = None) -> Range1d:
    """Range of an axis that shows all finite values, with a margin."""
    joined = np.concatenate([np.asarray(v, dtype=float).ravel() for v in values]) if values else np.empty(0)
    joined = joined[np.isfinite(joined)]
    low, high = (float(joined.min()), float(joined.max())) if joined.size else (0.0, 1.0)
    margin = 0.06 * (high - low) or max(abs(high), 1e-9) * 0.1
    return Range1d(low - margin if start is None else start, high + margin)


def plot(height: int, **settings: Any) -> figure:
    """A figure as wide as its place in the page."""
    settings.setdefault("tools", "box_zoom,pan,wheel_zoom,reset,save")
    settings.setdefault("active_drag", "box_zoom")
    settings.setdefault("active_scroll", None)
    made = figure(height=height, sizing_mode="stretch_width", **settings)
    made.toolbar.logo = None
    made.toolbar.autohide = True
    made.border_fill_color = made.background_fill_color = None
    made.outline_line_color = None
    made.min_border_left, made.min_border_right, made.min_border_top = 62, 14, 6
    made.grid.grid_line_color, made.grid.grid_line_alpha = GRID, 0.3
    made.axis.axis_line_color = made.axis.major_tick_line_color = GRID
    made.axis.minor_tick_line_color = None
    made.axis.major_label_text_color = made.axis.axis_label_text_color = TEXT
    made.axis.axis_label_text_font = made.axis.major_label_text_font = FONT
    made.axis.axis_label_text_font_style = "normal"
    made.axis.axis_label_text_font_size = "12px"
    made.axis.major_label_text_font_size = "11px"
    made.title.text_font, made.title.text_font_size, made.title.text_color = FONT, "13px", TEXT
    return made


def time_plot(height: int, time: Range1d, unit: str, last: bool = False, **settings: Any) -> figure:
    """A figure over time that zooms along time only; `last` of a stack carries the axis."""
    settings.setdefault("tools", "xbox_zoom,xpan,xwheel_zoom,reset,save")
    settings.setdefault("active_drag", "xbox_zoom")
    made = plot(height + (40 if last else 0), x_range=time, y_axis_label=unit, **settings)
    made.xaxis.visible = last
    if last:
        made.xaxis.axis_label = "time since the first knot [s]"
    return made


def legend(made: figure) -> None:
    """Put the legend above the plot, in a row; a click hides a curve."""
    shown = made.legend[0]
    made.add_layout(shown, "above")
    shown.orientation, shown.click_policy = "horizontal", "hide"
    shown.border_line_color = shown.background_fill_color = None
    shown.label_text_color, shown.label_text_font, shown.label_text_font_size = TEXT, FONT, "12px"
    shown.padding, shown.margin, shown.spacing = 0, 4, 12
    shown.glyph_width = shown.glyph_height = 16
    shown.ncols = "auto"


def hover(made: figure, tips: list[tuple[str, str]], renderers: list[Any], mode: str = "vline") -> None:
    """Show values under the pointer."""
    made.add_tools(HoverTool(tooltips=tips, renderers=renderers, mode=mode, point_policy="snap_to_data"))
