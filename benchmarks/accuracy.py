# SPDX-License-Identifier: Apache-2.0
"""How accurate the estimates are: simulated logs with ground truth, seeded noise, one configuration for all.

    python benchmarks/accuracy.py LOGDIR [--robot go2|g1] [--logs NAME ...] [--seeds 0-7] [--ground-height H]
                                  [--json FILE] [--check BASELINE]

Every run starts from the robot's nominal inertia and the shipped configuration. Limits on errors hold for the
worst seed. The first and last knots (`EDGE_KNOTS` of `prime_ros.experiments.force_errors`) are left out:
they have data on one side only.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from accuracy_summary import LogSummary, metrics_of, tables_of, targets_of
from report import Results, add_output_options, finish, stderr_console, stdout_console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from prime_ros.config import EstimatorConfig, load_estimator_config
from prime_ros.estimation.full_information import solve
from prime_ros.experiments.force_errors import EDGE_KNOTS
from prime_ros.experiments.run_metrics import run_metrics
from prime_ros.experiments.simulation_logs import load_log, noisy_recording
from prime_ros.measurements import align
from prime_ros.robot import Robot, load_robot

LOGS = {
    "go2": ("go2_walk", "go2_payload_3kg", "go2_com_down_0.1m", "go2_payload_3kg_stiff"),
    "g1": ("g1_walk", "g1_dance", "g1_walk_battery_2.9kg"),
}
MOCAP_RATE = 100.0  # [Hz]


def main() -> int:
    """Run, print, compare."""
    options = parsed_options()
    overrides = ground_overrides(options.ground_height)
    robot, config = load_robot(options.robot), load_estimator_config("pfie", overrides, options.robot)
    summaries = [LogSummary(name, ()) for name in options.logs]
    runs = []
    with progress_bar() as bar:
        task = bar.add_task("", total=len(options.logs) * len(options.seeds))
        for i, name in enumerate(options.logs):
            for figures in seeded_runs(options.folder / f"{name}.npz", options.seeds, robot, config):
                summaries[i] = summaries[i].with_run(figures)
                runs.append({"log": name, "seed": options.seeds[len(summaries[i].runs) - 1], **figures})
                bar.update(task, advance=1, description=name)
    settings = {
        "robot": options.robot,
        "logs": options.logs,
        "seeds": options.seeds,
        "mocap_rate": MOCAP_RATE,
        "overrides": overrides,
        "edge_knots": EDGE_KNOTS,
    }
    console = stdout_console()
    for table in tables_of(summaries):
        console.print(table)
    results = Results(settings, metrics_of(summaries), targets_of(summaries), details(summaries, runs))
    return finish(results, options, console)


def parsed_options() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="folder with the simulated logs (.npz)")
    parser.add_argument("--robot", choices=LOGS, default="go2")
    parser.add_argument("--logs", nargs="+", metavar="NAME", help="default: all of the robot")
    parser.add_argument("--seeds", type=seed_range, default=seed_range("0-7"), help="FIRST-LAST or A,B,...")
    parser.add_argument(
        "--ground-height",
        type=float,
        metavar="H",
        help="prior mean of the ground height [m]; true is 0. Default: as configured",
    )
    add_output_options(parser)
    options = parser.parse_args()
    options.logs = options.logs or list(LOGS[options.robot])
    unknown = [name for name in options.logs if name not in LOGS[options.robot]]
    if unknown:
        parser.error(f"--logs: got {', '.join(unknown)}, expected some of {', '.join(LOGS[options.robot])}")
    return options


def seed_range(text: str) -> list[int]:
    """Seeds of ``0-7`` or ``0,3,5``."""
    first, dash, last = text.partition("-")
    return list(range(int(first), int(last) + 1)) if dash else [int(seed) for seed in text.split(",")]


def ground_overrides(height: float | None) -> list[str]:
    """Settings that make the prior of the ground height wrong, if a height is given."""
    if height is None:
        return []
    return [f"ground_height.initial={height}"]


def seeded_runs(
    path: Path, seeds: Sequence[int], robot: Robot, config: EstimatorConfig
) -> Iterator[dict[str, float]]:
    """Figures of one log under the noise of every seed."""
    log = load_log(path)
    for seed in seeds:
        measurements = align(noisy_recording(log, seed, mocap_rate=MOCAP_RATE), robot, config)
        estimate = solve(measurements, robot, config)
        yield run_metrics(estimate, measurements, log, robot, config.contact_threshold)


def details(summaries: Sequence[LogSummary], runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the JSON file has beyond targets and metrics: every run, and medians, worst values and spreads."""
    return {"summary": {summary.name: summary.as_dict() for summary in summaries}, "runs": runs}


def progress_bar() -> Progress:
    """Counts runs, on stderr."""
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    return Progress(*columns, console=stderr_console(), transient=True)


if __name__ == "__main__":
    sys.exit(main())
