# SPDX-License-Identifier: Apache-2.0
"""An inspection on the terminal: readable at 80 columns and when piped."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from prime_ros.inspection.inspection import Inspection
from prime_ros.inspection.streams import StreamStatistics

STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}


def print_inspection(inspection: Inspection, console: Console) -> None:
    """Print what is in a recording, what would be used, and what is wrong.

    Args:
        inspection: What was found.
        console: Where to print.
    """
    source = inspection.description
    console.print(
        f"[bold]{escape(str(source.path))}[/]: {source.format}, {source.duration:.1f} s",
        highlight=False,
        soft_wrap=True,
    )
    console.print()
    console.print(_topics(inspection))
    if inspection.streams:
        console.print(_streams(inspection))
        for line in _details(inspection):
            console.print(Padding(escape(line), (0, 0, 0, 2), expand=False), highlight=False)
    _print_missing(inspection, console)
    _print_checks(inspection, console)
    console.print()
    console.print(_verdict(inspection), highlight=False)


def _topics(inspection: Inspection) -> Table:
    table = Table(title="Topics", title_justify="left", box=None, pad_edge=False)
    for name, justify in (("topic", "left"), ("type", "left"), ("messages", "right"), ("used for", "left")):
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for topic in inspection.description.topics:
        roles = [role for role, use in inspection.uses.items() if use.source == topic.name]
        unused = f"[dim]not used, fits {topic.role}[/]" if topic.role else "[dim]-[/]"
        note = f" ({escape(topic.note)})" if topic.note else ""
        table.add_row(
            escape(topic.name),
            escape(topic.msgtype.replace("/msg/", "/")),
            str(topic.count),
            (", ".join(roles) or unused) + note,
        )
    return table


def _streams(inspection: Inspection) -> Table:
    table = Table(title="\nStreams", title_justify="left", box=None, pad_edge=False)
    table.add_column("stream")
    for name in ("samples", "used", "rate Hz", "jitter ms", "from s", "to s", "longest gap"):
        table.add_column(name, justify="right", overflow="fold")
    for role, stream in inspection.streams.items():
        table.add_row(
            role,
            str(stream.counts.read),
            str(stream.counts.used),
            f"{stream.rate:.4g}",
            f"{1e3 * stream.jitter:.2f}",
            f"{stream.start:.2f}",
            f"{stream.start + stream.duration:.2f}",
            _longest(stream),
        )
    return table


def _longest(stream: StreamStatistics) -> str:
    if not stream.longest_gaps:
        return "none"
    gap = stream.longest_gaps[0]
    return f"{1e3 * gap.duration:.0f} ms"


def _details(inspection: Inspection) -> Iterator[str]:
    """Gaps and what was left out, one line per stream."""
    for role, stream in inspection.streams.items():
        if stream.gaps:
            listed = ", ".join(f"{1e3 * g.duration:.0f} ms at {g.start:.2f} s" for g in stream.longest_gaps)
            more = (
                f" and {stream.gaps - len(stream.longest_gaps)} more"
                if stream.gaps > len(stream.longest_gaps)
                else ""
            )
            yield f"{role}: gaps: {listed}{more}"
        left_out = ", ".join(f"{count} {reason}" for reason, count in stream.counts.left_out())
        if left_out:
            yield f"{role}: left out: {left_out}"
    for channel, count in inspection.knots_without.items():
        if count and inspection.knots:
            yield f"{channel}: not measured at {count} of {inspection.knots} knots"


def _print_missing(inspection: Inspection, console: Console) -> None:
    missing = [(role, use) for role, use in inspection.uses.items() if use.source is None]
    for role, use in missing:
        style, word = ("bold red", "missing") if use.needed else ("yellow", "not there")
        console.print(f"[{style}]{word}[/]: {role} ({use.purpose})", highlight=False)


def _print_checks(inspection: Inspection, console: Console) -> None:
    """Findings, worst first, then problems and notes."""
    console.print("\nChecks", style="italic")
    if inspection.robot is None:
        console.print(
            "  with --robot, frames, clocks and joints are checked too", style="dim", highlight=False
        )
    clock = inspection.clock
    if clock is not None:
        used = "added" if clock.applied else "not added"
        text = f"clock of motion capture: {1e3 * clock.seconds:+.1f} +- {1e3 * clock.std:.1f} ms, {used}"
        console.print(Padding(text, (0, 0, 0, 2), expand=False), highlight=False)
    rank = list(STYLES)
    for finding in sorted(inspection.findings, key=lambda found: rank.index(found.severity)):
        style = STYLES[finding.severity]
        text = f"[{style}]{finding.severity}[/] {finding.check}: {escape(str(finding))}"
        console.print(Padding(text, (0, 0, 0, 2), expand=False), highlight=False)
    for problem in inspection.problems:
        console.print(
            Padding(f"[bold red]error[/] {escape(problem)}", (0, 0, 0, 2), expand=False), highlight=False
        )
    for note in inspection.notes:
        console.print(Padding(f"[dim]note[/] {escape(note)}", (0, 0, 0, 2), expand=False), highlight=False)
    if not inspection.findings and not inspection.problems:
        console.print("  nothing wrong was found", style="green", highlight=False)


def _verdict(inspection: Inspection) -> str:
    if not inspection.usable:
        return "[bold red]Cannot be estimated as it is.[/]"
    if inspection.robot is None:
        return "[green]Can be read.[/]"
    return f"[green]Can be estimated for {escape(inspection.robot)}:[/] {inspection.knots} knots."
