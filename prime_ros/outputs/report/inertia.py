# SPDX-License-Identifier: Apache-2.0
"""Estimated inertia of a link against the nominal one: figure and table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from bokeh.models import ColumnDataSource, FactorRange, Span, TeeHead, Whisker
from bokeh.plotting import figure

from prime_ros.estimation.estimate import BodyInertia, LinkEstimate
from prime_ros.outputs.report import style

ENTRIES = {"Ixx": (0, 0), "Iyy": (1, 1), "Izz": (2, 2), "Ixy": (0, 1), "Ixz": (0, 2), "Iyz": (1, 2)}


@dataclass(frozen=True)
class Entry:
    """One number of an inertia."""

    name: str
    unit: str
    nominal: float
    estimate: float
    std: float
    scale: float
    """What a change is measured by: 1 for lengths, else the nominal size."""

    @property
    def change(self) -> float:
        """Estimate minus nominal, by `scale`."""
        return (self.estimate - self.nominal) / self.scale if self.scale > 0 else float("nan")

    @property
    def change_std(self) -> float:
        """Standard deviation of `change`."""
        return self.std / self.scale if self.scale > 0 else float("nan")


def entries(link: LinkEstimate) -> list[Entry]:
    """Mass, centre of mass [mm] and rotational inertia of a link."""
    bodies = (link.nominal, link.estimate, link.std)
    found = [_measured("mass", "kg", [body.mass for body in bodies], link.nominal.mass)]
    for axis, name in enumerate("xyz"):
        found.append(_measured(f"com {name}", "mm", [1e3 * body.com[axis] for body in bodies], 1.0))
    moments = np.abs(np.diag(link.nominal.inertia_com))
    for name, (row, column) in ENTRIES.items():
        scale = float(np.sqrt(moments[row] * moments[column]))
        found.append(_measured(name, "kg m²", [body.inertia_com[row, column] for body in bodies], scale))
    return found


def _measured(name: str, unit: str, values: list[float], scale: float) -> Entry:
    nominal, estimate, std = map(float, values)
    return Entry(name, unit, nominal, estimate, std, scale)


def principal_moments(body: BodyInertia) -> list[float]:
    """Moments about the principal axes, increasing [kg m^2]; NaN if the inertia is not finite."""
    matrix = np.asarray(body.inertia_com, dtype=float)
    if not np.isfinite(matrix).all():
        return [float("nan")] * 3
    return [float(moment) for moment in np.linalg.eigvalsh(matrix)]


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
