# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks share: metrics, targets, the gate against a committed baseline, and their tables."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

from prime_ros.experiments.target import Target

Better = Literal["lower", "higher"]
STYLE = {True: "green", False: "bold red"}
MINIMUM_WIDTH = 150


@dataclass(frozen=True)
class Metric:
    """A figure that a baseline remembers."""

    value: float
    unit: str
    better: Better
    tolerance: float
    """How much worse than the baseline is still accepted, in `unit`."""


@dataclass(frozen=True)
class Results:
    """What a benchmark leaves."""

    settings: Mapping[str, Any]
    """What was run: figures compare only under the same settings."""
    metrics: Mapping[str, Metric]
    targets: Sequence[Target]
    details: Mapping[str, Any]
    """Everything else, for the JSON file."""

    def as_json(self) -> str:
        """The results as JSON; a number that is not finite becomes null."""
        return _dump(
            {
                "settings": self.settings,
                "targets": [{**asdict(t), "passed": t.passed} for t in self.targets],
                "metrics": {name: asdict(metric) for name, metric in self.metrics.items()},
                **self.details,
            }
        )


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Options that every benchmark has."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    parser.add_argument("--check", type=Path, metavar="BASELINE", help="fail if worse than this baseline")
    parser.add_argument("--write-baseline", type=Path, metavar="BASELINE", help="write a new baseline")


def finish(results: Results, options: argparse.Namespace, console: Console) -> int:
    """Print the targets, serve the options of `add_output_options`, and say how the benchmark ended.

    Returns:
        Exit code: 0, or 1 if a target is missed or a metric is worse than the baseline allows.
    """
    console.print(target_table(results.targets))
    if options.json:
        options.json.write_text(results.as_json())
    if options.write_baseline:
        write_baseline(results, options.write_baseline)
    worse = check(results, options.check) if options.check else []
    for line in worse:
        console.print(f"[bold red]baseline[/bold red] {line}")
    if options.check and not worse:
        console.print(f"no metric is worse than {options.check} allows")
    missed = sum(not target.passed for target in results.targets)
    console.print(f"{len(results.targets) - missed} of {len(results.targets)} targets met")
    return 1 if missed or worse else 0


def target_table(targets: Sequence[Target]) -> Table:
    """A row per target and limit, a column per group."""
    groups = list(dict.fromkeys(target.group for target in targets))
    rows: dict[tuple[str, str, str], dict[str, Target]] = {}
    for target in targets:
        rows.setdefault((target.name, target.limits, target.unit), {})[target.group] = target
    table = Table("target", "limit", "unit", *groups, title="Targets")
    for key, row in rows.items():
        table.add_row(*key, *(_cell(row.get(group)) for group in groups))
    return table


def _cell(target: Target | None) -> str:
    if target is None:
        return ""
    note = f" ({target.note})" if target.note else ""
    style = STYLE[target.passed]
    return f"[{style}]{'PASS' if target.passed else 'FAIL'}[/{style}] {target.value:.3g}{note}"


def write_baseline(results: Results, path: Path) -> None:
    """Write settings and metrics, tolerances included, as the new baseline."""
    metrics = {name: asdict(metric) for name, metric in results.metrics.items()}
    path.write_text(_dump({"settings": results.settings, "metrics": metrics}))


def check(results: Results, path: Path) -> list[str]:
    """Compare with a baseline.

    Returns:
        A line for every metric that is missing, or worse than the baseline by more than the tolerance stated
        there. Under other settings nothing compares, which is one line.
    """
    baseline = json.loads(path.read_text())
    settings = json.loads(_dump(results.settings))
    if baseline["settings"] != settings:
        return [f"does not compare: measured with {baseline['settings']}, this with {settings}"]
    lines = []
    for name, entry in baseline["metrics"].items():
        metric = results.metrics.get(name)
        if metric is None:
            lines.append(f"{name}: not measured")
        elif not _within(metric.value, Metric(**entry)):
            lines.append(f"{name}: {metric.value:.4g} is worse than {entry['value']:.4g} {metric.unit}")
    return lines


def _within(value: float, baseline: Metric) -> bool:
    """NaN is never within."""
    change = value - baseline.value
    return (change if baseline.better == "lower" else -change) <= baseline.tolerance


def stdout_console() -> Console:
    """Where tables go; wide enough for them if it is no terminal."""
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, MINIMUM_WIDTH)
    return console


def stderr_console() -> Console:
    """Where progress goes, so that the tables on stdout can be redirected."""
    return Console(file=sys.stderr)


def _dump(value: Any) -> str:
    return json.dumps(_rounded(value), indent=1, allow_nan=False) + "\n"


def _rounded(value: Any) -> Any:
    """Six digits are enough, and keep a baseline readable."""
    if isinstance(value, Mapping):
        return {str(key): _rounded(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(entry) for entry in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if abs(value) < float("inf") else None
    return value
