# SPDX-License-Identifier: Apache-2.0
"""`prime experiments`. Heavy modules are imported when it runs, so that help comes at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from prime_ros.terminal import Activity, reported_errors

EXIT_MISSED = 1


class ExperimentName(str, Enum):
    """Experiments that can be named."""

    ALL = "all"
    HOPPER = "hopper"
    INERTIA_GO2 = "inertia-go2"
    INERTIA_G1 = "inertia-g1"
    IDENTIFICATION = "identification"
    BASELINE = "baseline"
    BASELINE_TUNING = "baseline-tuning"
    KAPPA = "kappa"
    TIMING = "timing"


def experiments(
    names: Annotated[
        list[ExperimentName],
        typer.Argument(metavar="NAME...", help="Experiments, or all.", show_choices=True),
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where to put results.md, results.json and images/.")
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder of simulated logs with truth (.npz); the hopper needs none."
        ),
    ] = None,
    seeds: Annotated[str, typer.Option(metavar="A,B,...", help="Seeds of the sensor noise.")] = "0,1,2",
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    r"""Regenerate the experiments of PRIME's paper on data with truth.

    Needs Matplotlib, and MuJoCo for the hopper: pip install 'prime_ros\[experiments]'.

    [bold]Examples[/]

      prime experiments hopper --out results

      prime experiments all --data logs --out docs

    [bold]Experiments[/]

      hopper           contact sequence and inertia from a biased start (Fig. 2)

      inertia-go2      payload and shifted centre of mass of a Go2 (Table I)

      inertia-g1       battery on the torso of a G1 (Table II)

      identification   forces and cost with and without it (Table III)

      baseline         against a fixed contact sequence (Table VI, Fig. 10)

      baseline-tuning  how the baseline's settings were chosen

      kappa            sharpness of the contact, in stages or not (Fig. 11, 12)

      timing           a step and a solve
    """
    chosen = _numbers(seeds)
    activity = Activity("experiments")
    with reported_errors(activity, debug), _status() as show:
        from prime_ros.experiments.runner import EXPERIMENTS, run_experiments

        wanted = list(EXPERIMENTS) if ExperimentName.ALL in names else [name.value for name in names]
        targets = run_experiments(wanted, data, out, chosen, show)
    for target in targets:
        verdict = "PASS" if target.passed else "FAIL"
        figure = f"{target.value:.4g} {target.unit}".strip()
        typer.echo(f"{verdict}  {target.group}: {target.name} {figure} ({target.limits})")
    typer.echo(f"results  {out / 'results.md'}")
    if not all(target.passed for target in targets):
        raise typer.Exit(EXIT_MISSED)


def _numbers(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() for part in parts):
        raise typer.BadParameter(f"--seeds {text}: expected whole numbers separated by commas, like 0,1,2")
    return tuple(dict.fromkeys(int(part) for part in parts))


@contextmanager
def _status() -> Iterator[Callable[[str], None]]:
    """What is solved, on stderr if it is a terminal; yields the callback that says it."""
    from rich.console import Console

    console = Console(stderr=True)
    with console.status("preparing") as status:
        yield status.update
