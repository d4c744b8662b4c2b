# SPDX-License-Identifier: Apache-2.0
"""The answer on the terminal when several recordings are estimated together or fused."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from prime_ros.estimation.identifiability import warnings
from prime_ros.estimation.joint import JointEstimate
from prime_ros.outputs.advice import NOT_CONVERGED, com_line, decimals, payload_line, with_std
from prime_ros.outputs.comparison import Comparison, Row, contradictions, rows
from prime_ros.outputs.inertia_entries import Entry
from prime_ros.outputs.write import WrittenResults

MOST_COLUMNS = 2
"""Recordings that have a column of their own; all are in the report."""


def print_joint(joint: JointEstimate, names: Sequence[str], console: Console) -> None:
    """Print how a joint solve ended, and what belongs to each recording; `names` of the recordings."""
    certificate = joint.certificate
    reason = escape(certificate.reason)
    console.print()
    if certificate.converged:
        done = f"[bold green]Converged[/] in {joint.rounds} rounds, {certificate.iterations} iterations"
        console.print(f"{done}: {reason}", highlight=False)
    else:
        console.print(
            f"[bold red]NOT CONVERGED[/] after {joint.rounds} rounds: {reason}\n"
            f"Do not use the numbers below. {NOT_CONVERGED}",
            highlight=False,
        )
    for name, estimate in zip(names, joint.recordings, strict=True):
        height = with_std(1e3 * estimate.ground_height, 1e3 * estimate.std_ground_height, sign=True)
        length = (len(estimate.stamp_ns) - 1) * estimate.dt
        console.print(f"{name}: {length:.2f} s, ground height {height} mm", highlight=False, markup=False)


def print_comparison(comparison: Comparison, console: Console, base: str | None = None) -> None:
    """Print what is known of the body together, beside what each recording says alone.

    Args:
        comparison: What to print.
        console: Where.
        base: Name of the link that the free base moves.
    """
    for name, link in comparison.links.items():
        console.print(payload_line(name, link), highlight=False, markup=False)
        console.print(com_line(name, link), highlight=False, markup=False)
    for what, advice in (*contradictions(comparison), *warnings(comparison.links, base)):
        console.print(f"[yellow]{escape(f'{what}; {advice}')}[/]", highlight=False)
    console.print()
    console.print(_table(comparison))


def print_written(written: WrittenResults, console: Console) -> None:
    """Where the results are, and what could not be written."""
    for note in written.notes:
        console.print(escape(note), highlight=False, soft_wrap=True)
    where = f"Results in {written.directory}: {', '.join(written.files)}"
    console.print(escape(where), highlight=False, soft_wrap=True)


def _table(comparison: Comparison) -> Table:
    names = comparison.names if len(comparison.names) <= MOST_COLUMNS else ("best alone",)
    table = Table(title="Inertia, alone and together: kg, mm, kg m^2", title_justify="left", box=SIMPLE_HEAD)
    found = [_cells(row, len(comparison.links) > 1, len(names)) for row in rows(comparison)]
    for i, heading in enumerate(("", "nominal", *names, "together", "ratio")):
        width = max(len(cells[i]) for cells in found)
        table.add_column(escape(heading), justify="right" if i else "left", no_wrap=True, min_width=width)
    for cells in found:
        table.add_row(*map(escape, cells))
    table.caption = "ratio: std of all together over the least of one alone"
    table.caption_justify = "left"
    return table


def _cells(row: Row, several: bool, columns: int) -> list[str]:
    entry = row.together
    digits = decimals(entry.std) + (entry.unit == "kg m²")
    alone = row.alone if columns == len(row.alone) else [min(row.alone, key=lambda each: each.std)]
    return [
        f"{row.link} {entry.name}" if several else entry.name,
        f"{round(entry.nominal, digits) + 0.0:.{digits}f}",  # adding zero turns -0 into 0
        *(_short(each) for each in (*alone, entry)),
        f"{row.shrinkage:.2f}",
    ]


def _short(entry: Entry) -> str:
    return with_std(entry.estimate, entry.std, between="±").replace(" ", "")
