# SPDX-License-Identifier: Apache-2.0
"""The experiments by name, and running some of them into a page."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prime_ros import __version__
from prime_ros.exceptions import OutputError
from prime_ros.experiments.baseline import baseline, baseline_tuning
from prime_ros.experiments.context import Context
from prime_ros.experiments.data import LogFolder
from prime_ros.experiments.hopper import hopper
from prime_ros.experiments.identification import identification
from prime_ros.experiments.inertia import inertia_g1, inertia_go2
from prime_ros.experiments.kappa import kappa
from prime_ros.experiments.logs import BASELINE, G1, GO2, IDENTIFIED, KAPPA, TUNING
from prime_ros.experiments.plots import load_matplotlib
from prime_ros.experiments.section import Section, Table, target_table
from prime_ros.experiments.solving import Solves
from prime_ros.experiments.target import Target
from prime_ros.experiments.timing import timing

PAGE = "results.md"
FIGURES = "results.json"
INTRODUCTION = """\
<!-- Written by `prime experiments`; do not edit. -->
# Experiments

The experiments of the paper of PRIME, on simulated logs with ground truth and on a hopper of our own, by one
command: `prime experiments all --data DIR --out docs`. Sensor noise is seeded, so that they come out the same
but for wall times. What the paper measured on its robots and its machine is named as the paper's.
[Accuracy and speed](accuracy_and_speed.md) has the benchmarks over more seeds.
"""


@dataclass(frozen=True)
class Experiment:
    """One experiment."""

    run: Callable[[Context], Section]
    logs: tuple[str, ...] = ()
    """That it needs."""


EXPERIMENTS: Mapping[str, Experiment] = {
    "hopper": Experiment(hopper),
    "inertia-go2": Experiment(inertia_go2, GO2),
    "inertia-g1": Experiment(inertia_g1, G1),
    "identification": Experiment(identification, IDENTIFIED),
    "baseline": Experiment(baseline, BASELINE),
    "baseline-tuning": Experiment(baseline_tuning, TUNING),
    "kappa": Experiment(kappa, KAPPA),
    "timing": Experiment(timing, (GO2[0], G1[0])),
}


def run_experiments(
    names: Sequence[str],
    data: Path | None,
    out: Path,
    seeds: Sequence[int],
    progress: Callable[[str], None] = lambda text: None,
) -> tuple[Target, ...]:
    """Run experiments and write their page, their figures as JSON and their pictures.

    Args:
        names: Of `EXPERIMENTS`.
        data: Folder of the simulated logs; only those that use none do without.
        out: Folder to write to.
        seeds: Of the sensor noise.
        progress: Told what is done.

    Returns:
        The targets of all of them.

    Raises:
        SourceError: If a log is missing.
        OutputError: If Matplotlib is missing or a file cannot be written.
    """
    logs = LogFolder(data)
    for name in names:
        logs.require(EXPERIMENTS[name].logs)
    load_matplotlib()
    context = Context(Solves(logs, progress), tuple(seeds), out)
    sections = [EXPERIMENTS[name].run(context) for name in names]
    targets = tuple(target for section in sections for target in section.targets)
    _write(out, sections)
    return targets


def _write(out: Path, sections: Sequence[Section]) -> None:
    """Write the page; sections of other experiments that an earlier run left in the folder stay."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        kept = json.loads((out / FIGURES).read_text(encoding="utf-8")) if (out / FIGURES).is_file() else {}
        every = kept | {section.name: _figures(section) for section in sections}
        ordered = {name: every[name] for name in EXPERIMENTS if name in every}
        (out / PAGE).write_text(_page(ordered), encoding="utf-8")
        (out / FIGURES).write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
    except (OSError, ValueError) as error:
        raise OutputError(f"{out}: the results cannot be written: {error}") from error


def _page(figures: Mapping[str, Any]) -> str:
    targets = [Target(**target) for each in figures.values() for target in each["targets"]]
    machine = f"Machine: {platform.machine()}, {_processor()}; prime_ros {__version__}.\n"
    summary = ["## Targets\n", *target_table(targets).markdown()] if targets else []
    lines = [INTRODUCTION, machine, *(each["markdown"] for each in figures.values()), *summary]
    return "\n".join(lines).rstrip() + "\n"


def _figures(section: Section) -> dict[str, Any]:
    """A section for scripts, and as it reads."""
    return {
        "command": section.command,
        "tables": [
            {"columns": part.columns, "rows": part.rows} for part in section.parts if isinstance(part, Table)
        ],
        "targets": [vars(target) for target in section.targets],
        "markdown": section.markdown(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{models[0]}, {len(models)} cores" if models else "unknown processor"
