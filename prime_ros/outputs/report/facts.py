# SPDX-License-Identifier: Apache-2.0
"""The words and numbers of the page, as plain strings and lists for its template."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from math import isfinite
from platform import python_version
from typing import Any

import numpy as np
import yaml

from prime_ros import __version__
from prime_ros.estimation.estimate import Estimate, LinkEstimate, SensorReport
from prime_ros.estimation.identifiability import standing
from prime_ros.outputs.advice import (
    CHI_SQUARE_RANGE,
    decimals,
    payload_position,
    payload_position_std,
    with_std,
)
from prime_ros.outputs.context import RunContext
from prime_ros.outputs.inertia_entries import Entry, entries, principal_moments, principal_moments_std
from prime_ros.robot import Robot

GRAVITY = 9.81
_PACKAGES = {"numpy": "numpy", "pinocchio": "pin", "crocoddyl": "crocoddyl", "bokeh": "bokeh"}


@dataclass(frozen=True)
class Card:
    """One of the figures at the top."""

    label: str
    value: str
    note: str = ""


def text(value: float, digits: int = 3, sign: bool = False) -> str:
    """A number, or a dash if it is not finite."""
    if not isfinite(value):
        return "–"
    # Adding zero turns a rounded -0 into 0.
    return f"{round(value, digits) + 0.0:{'+' if sign else ''}.{digits}f}"


def measured(value: float, std: float, sign: bool = False) -> str:
    """A number with its standard deviation, or a dash."""
    if not isfinite(value):
        return "–"
    return with_std(value, std, sign, "±") if isfinite(std) else f"{text(value, 3, sign)} ± –"


def significant(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, or a dash."""
    return f"{value:.{digits}g}" if isfinite(value) else "–"


def duration(estimate: Estimate) -> float:
    """From the first knot to the last [s]."""
    return float(estimate.stamp_ns[-1] - estimate.stamp_ns[0]) * 1e-9


def moment(estimate: Estimate) -> str:
    """Date and time of the first knot, if the stamps are of a clock that tells the date."""
    seconds = int(estimate.stamp_ns[0]) // 1_000_000_000
    if not 946_684_800 <= seconds < 7_258_118_400:  # the years 2000 to 2199
        return f"clock starts at {seconds} s"
    return datetime.fromtimestamp(seconds, tz=timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def cards(estimate: Estimate, robot: Robot) -> Iterator[Card]:
    """Payload, centre of mass, floor, weight, and how many sensors agree."""
    for name, link in estimate.links.items():
        yield from _link_cards(name, link)
    if not estimate.links:
        yield Card("Inertia", "nominal", "not identified in this run")
    height, std = 1e3 * estimate.ground_height, 1e3 * estimate.std_ground_height
    yield Card("Ground height", f"{measured(height, std, sign=True)} mm", "in the world of motion capture")
    if estimate.contact_names:
        force = np.asarray(estimate.contact_force_W)[..., 2].sum(axis=1)
        weight = GRAVITY * total_mass(estimate, robot)
        yield Card("Mean support", f"{text(float(force.mean()), 1)} N", f"weight {text(weight, 1)} N")
    sensors = [report for report in estimate.sensors.values() if report.measured]
    low, high = CHI_SQUARE_RANGE
    fit = sum(low <= report.chi_square_per_dof <= high for report in sensors)
    yield Card(
        "Sensors that fit their noise", f"{fit} of {len(sensors)}", "by chi-square per degree of freedom"
    )


def total_mass(estimate: Estimate, robot: Robot) -> float:
    """Mass of the robot with the estimated links [kg]."""
    nominal = sum(inertia.mass for inertia in list(robot.model.inertias)[1:])
    return float(nominal + sum(link.estimate.mass - link.nominal.mass for link in estimate.links.values()))


def _link_cards(name: str, link: LinkEstimate) -> Iterator[Card]:
    change = link.estimate.mass - link.nominal.mass
    mass = f"{text(link.nominal.mass)} → {measured(link.estimate.mass, link.std.mass)} kg"
    yield Card(f"Payload on {name}", f"{measured(change, link.std.mass, sign=True)} kg", f"mass {mass}")
    position = payload_position(link)
    if position is not None:
        place = ", ".join(text(1e3 * float(p), 0, sign=True) for p in position)
        bars = ", ".join(text(1e3 * float(s), 1) for s in payload_position_std(link))
        yield Card(f"Where on {name}", f"{place} mm", f"x, y, z in the frame of the link; ± {bars}")
    shift = 1e3 * (np.asarray(link.estimate.com) - np.asarray(link.nominal.com))
    std = 1e3 * np.asarray(link.std.com)
    digits = max(min(decimals(float(std.max())), 2), 1) if np.isfinite(std).all() else 1
    axes = ", ".join(text(float(s), digits, sign=True) for s in shift)
    deviations = ", ".join(text(float(d), digits) for d in std)
    yield Card(f"Centre of mass of {name}", f"{axes} mm", f"shift x, y, z; ± {deviations}")


def inertia_rows(link: LinkEstimate) -> list[dict[str, str]]:
    """Table of an inertia."""
    return [_inertia_row(entry) for entry in entries(link)]


def _inertia_row(entry: Entry) -> dict[str, str]:
    digits = 2 if entry.unit == "mm" else max(decimals(entry.std) + (entry.unit == "kg m²"), 3)
    change = (
        f"{text(100 * entry.change, 1, True)} %"
        if entry.unit != "mm"
        else text(entry.change, 2, True) + " mm"
    )
    return {
        "name": entry.name,
        "unit": entry.unit,
        "nominal": text(entry.nominal, digits),
        "estimate": text(entry.estimate, digits),
        "std": text(entry.std, digits),
        "change": change,
        "learned": f"{text(100 * entry.learned, 1)} %" if isfinite(entry.learned) else "–",
        "standing": standing(entry.learned) if isfinite(entry.learned) else "",
    }


def principal_line(link: LinkEstimate) -> str:
    """Principal moments of both inertias."""
    nominal = ", ".join(text(moment, 4) for moment in principal_moments(link.nominal))
    pairs = zip(principal_moments(link.estimate), principal_moments_std(link), strict=True)
    estimate = ", ".join(f"{text(moment, 4)} ± {text(std, 4)}" for moment, std in pairs)
    return f"Principal moments [kg m²]: nominal {nominal}; estimate {estimate}."


def contact_rows(estimate: Estimate) -> list[dict[str, str]]:
    """Mean and peak force, its deviation there, and duty factor of every contact."""
    rows = []
    force = np.nan_to_num(np.asarray(estimate.contact_force_W)[..., 2], nan=0.0, posinf=0.0, neginf=0.0)
    std = np.asarray(estimate.std["contact_force_W"])[..., 2]
    touching = np.asarray(estimate.contact_probability) > 0.5
    for index, name in enumerate(estimate.contact_names):
        peak = int(np.argmax(force[:, index]))
        rows.append(
            {
                "name": name,
                "mean": text(float(force[:, index].mean()), 1),
                "peak": measured(float(force[peak, index]), float(std[peak, index])),
                "std": text(float(np.median(std[:, index])), 1),
                "duty": text(float(touching[:, index].mean()), 2),
            }
        )
    return rows


def fit(report: SensorReport) -> str:
    """`low`, `ok` or `high`: chi-square per degree of freedom; `setting` for what is no sensor."""
    if not report.measured:
        return "setting"
    low, high = CHI_SQUARE_RANGE
    ratio = report.chi_square_per_dof
    return "low" if ratio < low else "high" if ratio > high else "ok" if isfinite(ratio) else "none"


def stream_table(context: RunContext) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of what became of the samples of each stream; zero columns are left out."""
    streams = context.diagnostics.streams
    if not streams:
        return [], []
    names = [field.name for field in fields(next(iter(streams.values())))]
    counts = {n: [getattr(s, n) for s in streams.values()] for n in names}
    numeric = {n: c for n, c in counts.items() if all(isinstance(v, int | float) for v in c)}
    shown = [name for name in numeric if name in ("read", "used") or any(numeric[name])]
    rows = [[stream, *(f"{numeric[name][i]:g}" for name in shown)] for i, stream in enumerate(streams)]
    return ["stream", *(name.replace("_", " ") for name in shown)], rows


def clock_line(context: RunContext) -> str:
    """What is known of the offset of motion capture."""
    clock = context.diagnostics.clock
    if clock is None:
        return "Offset between the clocks of motion capture and robot: not estimated."
    offset = f"{measured(1e3 * clock.seconds, 1e3 * clock.std, sign=True)} ms"
    done = "added to its stamps" if clock.applied else "not applied"
    return f"Offset of the clock of motion capture: {offset}, {done}."


def settings(context: RunContext) -> str:
    """All settings as YAML."""
    dumped: dict[str, Any] = context.config.model_dump(mode="json")
    return yaml.safe_dump(dumped, sort_keys=False, allow_unicode=True)


def versions() -> list[tuple[str, str]]:
    """Versions of what computed the estimate and of what drew the page."""
    found = [("prime_ros", __version__), ("Python", python_version())]
    for name, package in _PACKAGES.items():
        try:
            found.append((name, version(package)))
        except PackageNotFoundError:
            found.append((name, "not known"))
    return found
