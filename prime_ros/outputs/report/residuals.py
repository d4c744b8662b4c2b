# SPDX-License-Identifier: Apache-2.0
"""Whitened residuals of one sensor at a time: over time, as histogram, and their autocorrelation."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.models import BoxAnnotation, ColumnDataSource, Range1d, Span
from bokeh.plotting import figure
from numpy.typing import NDArray

from prime_ros.estimation.estimate import Estimate, Residuals
from prime_ros.outputs.report import style
from prime_ros.outputs.report.series import finite, kept_rows, packed, packed_exactly
from prime_ros.outputs.report.whiteness import EDGES, Whiteness, whiteness

Floats = NDArray[np.float64]
POINTS = 4000
"""Points over time per sensor."""
REJECTED = 1000
"""Rejected measurements shown per sensor."""
BAND = 3.0
"""Residuals rarely leave +- this [-]."""


def residual_plots(shared: Range1d) -> dict[str, figure]:
    """Figures `residual_time`, `histogram`, `autocorrelation`, empty: the page's script fills them."""
    return {
        "residual_time": _over_time(shared),
        "histogram": _histogram(),
        "autocorrelation": _autocorrelation(),
    }


def statistics(estimate: Estimate) -> dict[str, Whiteness]:
    """Statistics of every sensor that has residuals."""
    found = {
        name: whiteness(residuals, estimate.sensors.get(name))
        for name, residuals in estimate.residuals.items()
    }
    return {name: result for name, result in found.items() if result is not None}


def residual_store(estimate: Estimate, found: dict[str, Whiteness]) -> dict[str, Any]:
    """What the page's script shows of each sensor, by its name."""
    return {name: _stored(estimate, estimate.residuals[name], result) for name, result in found.items()}


def _stored(estimate: Estimate, residuals: Residuals, result: Whiteness) -> dict[str, Any]:
    time = 1e-9 * (residuals.stamp_ns - estimate.stamp_ns[0])
    values = finite(residuals.whitened) / result.expected_std
    points = _points(values, residuals.rejected)
    return {
        "channels": [style.plain(name) for name in residuals.channels],
        "used": _cloud(time, values, points[0]),
        "rejected": _cloud(time, values, points[1]),
        "density": _rounded(result.density),
        "expected": _rounded(result.expected),
        "autocorrelation": _rounded(result.autocorrelation),
        "bound": round(result.bound, 5),
        "dt": estimate.dt,
    }


def _points(
    values: Floats, rejected: NDArray[np.bool_]
) -> tuple[tuple[NDArray[Any], NDArray[Any]], tuple[NDArray[Any], NDArray[Any]]]:
    """Rows and channels of the measurements to show: used ones, and rejected ones (the largest)."""
    used = np.where(rejected, np.nan, values)
    budget = max(POINTS // max(values.shape[1], 1), 16)
    rows, channels = [], []
    for channel in range(values.shape[1]):
        kept = kept_rows(used[:, channel], budget)
        kept = kept[~np.isnan(used[kept, channel])]
        rows.append(kept)
        channels.append(np.full(len(kept), channel))
    out = np.argwhere(rejected & ~np.isnan(values))
    if len(out) > REJECTED:
        size = np.abs(values[out[:, 0], out[:, 1]])
        out = out[np.sort(np.argsort(size)[-REJECTED:])]
    empty = np.empty(0, dtype=int)
    used_points = (np.concatenate([empty, *rows]), np.concatenate([empty, *channels]))
    return used_points, (out[:, 0], out[:, 1])


def _cloud(time: Floats, values: Floats, at: tuple[NDArray[Any], NDArray[Any]]) -> dict[str, Any]:
    rows, channels = at
    return {
        "time": packed_exactly(time[rows]),
        "value": packed(values[rows, channels]),
        "channel": packed(channels, 8),
    }


def _rounded(values: Floats) -> list[float | None]:
    return [round(float(value), 4) if np.isfinite(value) else None for value in values]


def _over_time(shared: Range1d) -> figure:
    made = style.time_plot(
        220, shared, "residual / expected std [-]", True, y_range=Range1d(-5, 5, name="page:residual_range")
    )
    made.add_layout(BoxAnnotation(bottom=-BAND, top=BAND, fill_color=style.GRID, fill_alpha=0.15))
    made.add_layout(Span(location=0, dimension="width", line_color=style.TEXT, line_width=1))
    used = ColumnDataSource({"time": [], "value": [], "channel": [], "colour": []}, name="page:used")
    rejected = ColumnDataSource({"time": [], "value": [], "channel": []}, name="page:rejected")
    dots = made.scatter("time", "value", source=used, size=3, color="colour", alpha=0.6)
    crosses = made.scatter(
        "time",
        "value",
        source=rejected,
        marker="x",
        size=8,
        line_width=2,
        color=style.BAD,
    )
    tips = [("channel", "@channel"), ("residual", "@value{0.00} std"), ("time", "@time{0.000} s")]
    style.hover(made, tips, [dots, crosses], "mouse")
    return made


def _histogram() -> figure:
    made = style.plot(
        240,
        x_range=Range1d(-5, 5),
        y_axis_label="density",
        x_axis_label="residual / expected std [-]",
        tools="save",
        active_drag=None,
    )
    made.y_range.start = 0
    table = ColumnDataSource(
        {"left": EDGES[:-1], "right": EDGES[1:], "density": 0 * EDGES[1:], "expected": 0 * EDGES[1:]},
        name="page:histogram",
    )
    made.quad(
        left="left",
        right="right",
        top="density",
        bottom=0,
        source=table,
        fill_color=style.PALETTE[0],
        fill_alpha=0.45,
        line_color=None,
        legend_label="residuals",
    )
    grid = np.linspace(-5, 5, 101)
    made.line(
        grid,
        np.exp(-0.5 * grid**2) / np.sqrt(2 * np.pi),
        line_color=style.PALETTE[1],
        line_width=2,
        legend_label="N(0, 1)",
    )
    style.legend(made)
    return made


def _autocorrelation() -> figure:
    made = style.plot(
        240,
        x_range=Range1d(0, 50, name="page:lag_range"),
        y_range=Range1d(-0.6, 1.02),
        y_axis_label="autocorrelation [-]",
        x_axis_label="lag [knots]",
        tools="save",
        active_drag=None,
    )
    table = ColumnDataSource({"lag": [], "value": []}, name="page:autocorrelation")
    made.add_layout(
        BoxAnnotation(bottom=0, top=0, fill_color=style.PALETTE[1], fill_alpha=0.25, name="page:white_band")
    )
    made.vbar("lag", 0.7, "value", source=table, fill_color=style.PALETTE[0], line_color=None)
    made.add_layout(Span(location=0, dimension="width", line_color=style.TEXT, line_width=1))
    return made
