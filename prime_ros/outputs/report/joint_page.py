# SPDX-License-Identifier: Apache-2.0
"""report.html of several recordings: their inertia alone and together, and links to their own reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from prime_ros.estimation.fusion import Agreement
from prime_ros.estimation.identifiability import UNKNOWN, standing, warnings
from prime_ros.outputs.advice import decimals, with_std
from prime_ros.outputs.comparison import Comparison, Row, contradictions, rows, share_text
from prime_ros.outputs.html import template, trusted
from prime_ros.outputs.report.error_bars import error_bars_svg

TEMPLATE = Path(__file__).parent / "template"


@dataclass(frozen=True)
class Part:
    """One recording, or file, in the table of all."""

    name: str
    href: str | None
    """Its own report, from this page."""
    cells: tuple[str, ...]
    """By the columns of the page."""


@dataclass(frozen=True)
class JointPage:
    """Everything that the page says."""

    robot: str
    base: str | None
    """Name of the link that the free base moves."""
    comparison: Comparison
    converged: bool
    verdict: str
    """One word: what was reached."""
    reason: str
    parts_title: str
    columns: tuple[str, ...]
    parts: tuple[Part, ...]
    settings: str = ""
    """As YAML."""


def render_joint(page: JointPage) -> str:
    """The page as HTML, which needs nothing else; its links lead to the pages beside it."""
    comparison = page.comparison
    links: dict[str, list[dict[str, Any]]] = {name: [] for name in comparison.links}
    for row in rows(comparison):
        links[row.link].append(_row(row))
    return template(TEMPLATE / "joint.jinja").render(
        robot=page.robot,
        comparison=comparison,
        converged=page.converged,
        verdict=page.verdict,
        reason=page.reason,
        actions=list(_actions(page)),
        links=links,
        unknown=UNKNOWN,
        parts_title=page.parts_title,
        columns=list(page.columns),
        parts=page.parts,
        told=list(_told(comparison)),
        settings=page.settings,
        style=trusted((TEMPLATE / "page.css").read_text(encoding="utf-8")),
    )


def agreement_cells(agreement: Agreement) -> tuple[str, str, str]:
    """Chi-square, degrees of freedom and probability."""
    return f"{agreement.chi_square:.1f}", str(agreement.dof), f"{agreement.probability:.2g}"


def _actions(page: JointPage) -> Iterator[tuple[str, str, str]]:
    """Severity, what it is, and what to do."""
    if not page.converged:
        yield "error", f"Not converged: {page.reason}", "look at the report of that recording"
    for what, advice in contradictions(page.comparison):
        yield "warning", what, advice
    for what, advice in warnings(page.comparison.links, page.base):
        yield "warning", what, advice


def _row(row: Row) -> dict[str, Any]:
    entry = row.together
    digits = decimals(entry.std) + (entry.unit == "kg m²")
    values = [(each.estimate, each.std) for each in (*row.alone, entry)]
    return {
        "name": entry.name,
        "unit": entry.unit,
        "nominal": f"{round(entry.nominal, digits) + 0.0:.{digits}f}",  # adding zero turns -0 into 0
        "alone": [with_std(value, std, between="±") for value, std in values[:-1]],
        "together": with_std(entry.estimate, entry.std, between="±"),
        "ratio": f"{row.shrinkage:.2f}" if isfinite(row.shrinkage) else "–",
        "learned": share_text(entry.learned, 1),
        "standing": standing(entry.learned) if isfinite(entry.learned) else "",
        "bars": error_bars_svg(values),
    }


def _told(comparison: Comparison) -> Iterator[Mapping[str, Any]]:
    for direction, shares in zip(comparison.directions, comparison.shares, strict=True):
        yield {
            "link": direction.link,
            "words": direction.description,
            "learned": share_text(direction.learned, 1),
            "standing": standing(direction.learned),
            "shares": [share_text(float(share)) for share in shares],
        }


def columns_of(first: Sequence[str]) -> tuple[str, ...]:
    """Columns of the table of recordings: the page's own, and those of `agreement_cells`."""
    return (*first, "χ²", "dof", "p")
