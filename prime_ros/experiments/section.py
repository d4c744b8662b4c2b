# SPDX-License-Identifier: Apache-2.0
"""What an experiment leaves: tables, plots and targets, and how they read in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from prime_ros.experiments.target import Target


@dataclass(frozen=True)
class Table:
    """Rows of text."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""

    def markdown(self) -> Iterator[str]:
        """Its lines."""
        if self.title:
            yield f"{self.title}\n"
        yield _row(self.columns)
        yield _row(["---"] * len(self.columns))
        yield from (_row(row) for row in self.rows)
        yield ""


@dataclass(frozen=True)
class Plot:
    """A picture that was written."""

    file: str
    """Relative to the page."""
    caption: str

    def markdown(self) -> Iterator[str]:
        """Its lines."""
        yield f"![{self.caption}]({self.file})\n"
        yield f"*{self.caption}*\n"


@dataclass(frozen=True)
class Section:
    """Result of one experiment."""

    name: str
    title: str
    text: str
    """What is compared with what, and how."""
    command: str
    """That runs it again."""
    parts: tuple[Table | Plot, ...] = ()
    targets: tuple[Target, ...] = ()
    notes: tuple[str, ...] = field(default_factory=tuple)
    """What the figures show, below them."""

    def markdown(self) -> str:
        """The section as Markdown."""
        lines = [f"## {self.title}\n", f"{self.text}\n", f"Run again: `{self.command}`\n"]
        for part in self.parts:
            lines += part.markdown()
        lines += [f"{note}\n" for note in self.notes]
        return "\n".join(lines)


def target_table(targets: Sequence[Target]) -> Table:
    """Every target with what was measured."""
    rows = tuple(
        (
            target.group,
            target.name,
            f"{target.value:.3g} {target.unit}".strip(),
            target.limits,
            verdict(target),
        )
        for target in targets
    )
    return Table(("experiment", "figure", "measured", "required", "verdict"), rows)


def verdict(target: Target) -> str:
    """PASS or FAIL."""
    return "PASS" if target.passed else "FAIL"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
