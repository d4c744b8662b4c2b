# SPDX-License-Identifier: Apache-2.0
"""The `prime` command. Heavy modules are imported when a command needs them, so that help comes at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_ros import __version__
from prime_ros.terminal import Activity, progress_bar, reported_errors

if TYPE_CHECKING:
    from prime_ros.estimation.estimate import Estimate
    from prime_ros.outputs.write import WrittenResults

EXIT_NOT_CONVERGED = 3


class SolverName(str, Enum):
    """Solvers that `--solver` names."""

    GAUSS_NEWTON = "gauss-newton"
    FDDP = "fddp"


app = typer.Typer(
    name="prime",
    help="Contact forces, dynamically consistent motion and link inertia of legged robots, from recordings.",
    epilog="`prime COMMAND --help` explains a command with examples.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Entry point of the `prime` script."""
    app()


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"prime_ros {__version__}")
        raise typer.Exit()


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Options before the command; its presence also keeps `solve` a subcommand while it is the only one."""


@app.command(
    epilog="[bold]Exit codes[/]: 0 converged; 2 bad input or usage, nothing written; "
    "3 not converged, results written and flagged; 130 interrupted, nothing written."
)
def solve(
    recording: Annotated[
        Path,
        typer.Argument(
            metavar="INPUT", help="rosbag2 (directory, .mcap or .db3) or measurement table (.npz)."
        ),
    ],
    robot: Annotated[str, typer.Option(help="Shipped robot, such as go2, or the path of a robot YAML.")],
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Where to put the results; earlier results are replaced as a set."),
    ],
    config: Annotated[
        str,
        typer.Option(
            metavar="F", help="Estimator: a shipped name or a YAML file with the settings to change."
        ),
    ] = "pfie",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change one setting of the estimator. Repeatable."),
    ] = None,
    start: Annotated[
        float, typer.Option(min=0.0, help="Leave out this much at the beginning, in seconds.")
    ] = 0.0,
    duration: Annotated[
        float | None, typer.Option(min=0.0, help="Use only this much, in seconds; to the end if absent.")
    ] = None,
    links: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...", help="Links whose inertia to identify, instead of those of the settings."
        ),
    ] = None,
    no_identify: Annotated[
        bool, typer.Option("--no-identify", help="Trust the inertia of the model and identify none.")
    ] = False,
    urdf: Annotated[
        Path | None,
        typer.Option(metavar="F", help="URDF or MJCF to use instead of the robot's own."),
    ] = None,
    solver: Annotated[
        SolverName | None,
        typer.Option(
            help="gauss-newton is the fast one, fddp (Crocoddyl) the reference it is tested against."
        ),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Estimate forces, motion and inertia over a whole recording.

    Needs joint states with torque and motion capture of the base; uses an IMU if there is one.

    [bold]Examples[/]

      prime solve walk.mcap --robot go2 --out results

      prime solve walk.mcap --robot go2 --out results --start 5 --duration 10

      prime solve walk.npz --robot go2 --out results --links base,FL_calf

      prime solve walk.npz --robot go2 --out results --no-identify --set dt=0.005

    [bold]What it leaves in DIR[/]

      estimate.npz     motion, torques, contact forces and states, with std

      inertia.yaml     nominal and estimated inertia with std, ground height

      calibrated.urdf  the robot's URDF with the estimated inertia
    """
    overrides = _overrides(set_ or [], links, no_identify, solver)
    job = _Job(recording, robot, out, config, overrides, start, duration, urdf)
    activity = Activity()
    with reported_errors(activity, debug):
        estimate, written = _run(job, activity)
        _summarise(estimate, written, activity)
        if not estimate.certificate.converged:
            raise typer.Exit(EXIT_NOT_CONVERGED)


@dataclass(frozen=True)
class _Job:
    """What one solve is asked to do."""

    recording: Path
    robot: str
    out: Path
    config: str
    overrides: list[str]
    start: float
    duration: float | None
    urdf: Path | None


def _run(job: _Job, activity: Activity) -> tuple[Estimate, WrittenResults]:
    """Everything between the arguments and the summary."""
    with activity.phase("setup"):
        from prime_ros.config import load_estimator_config
        from prime_ros.outputs.write import check_directory, write_results

        check_directory(job.out)
        config = load_estimator_config(job.config, job.overrides)

        from prime_ros.robot import load_robot

        robot = load_robot(job.robot, job.urdf)
    with activity.phase("load"):
        from prime_ros import sources

        recording = sources.load(job.recording).cropped(job.start, job.duration)
    with activity.phase("align"):
        from prime_ros.measurements.alignment import align

        measurements = align(recording, robot, config)
    _warn(measurements.diagnostics.warnings())
    with activity.phase("solve"), progress_bar(activity) as show:
        from prime_ros.estimation.full_information import solve as solve_full_information

        estimate = solve_full_information(measurements, robot, config, progress=show)
    with activity.phase("write"):
        written = write_results(estimate, robot, job.out)
    return estimate, written


def _warn(lines: Iterable[str]) -> None:
    for line in lines:
        typer.secho(f"warning: {line}", fg="yellow", err=True)


def _summarise(estimate: Estimate, written: WrittenResults, activity: Activity) -> None:
    from rich.console import Console

    from prime_ros.outputs.summary import print_summary

    solving = dict(estimate.timing)
    # What the estimator did not account for itself stays visible as "solve".
    rest = activity.seconds["solve"] - sum(solving.values())
    timing = {**activity.seconds, "solve": max(rest, 0.0), **solving}
    print_summary(estimate, Console(), written, timing)


def _overrides(
    settings: Sequence[str], links: str | None, no_identify: bool, solver: SolverName | None
) -> list[str]:
    """Options that are settings of the estimator, as overrides; the named options win over --set."""
    overrides = list(settings)
    if links is not None and no_identify:
        raise typer.BadParameter("--links and --no-identify exclude each other")
    if links is not None:
        names = [name.strip() for name in links.split(",") if name.strip()]
        if not names:
            raise typer.BadParameter("--links needs at least one name; use --no-identify to identify none")
        overrides.append(f"links={json.dumps(names)}")
    if no_identify:
        overrides.append("links=[]")
    if solver is not None:
        overrides.append(f"solver.name={solver.value}")
    return overrides


if __name__ == "__main__":
    main()
