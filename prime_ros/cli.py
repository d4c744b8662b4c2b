# SPDX-License-Identifier: Apache-2.0
"""The `prime` command. Heavy modules are imported when a command needs them, so that help comes at once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_ros import __version__
from prime_ros.commands.fuse import fuse
from prime_ros.commands.joint import JointJob, run_joint
from prime_ros.commands.reading import Reading, warn
from prime_ros.exceptions import MeasurementError
from prime_ros.experiments.command import experiments
from prime_ros.simulation.command import simulate
from prime_ros.terminal import EXIT_BAD_INPUT, Activity, progress_bar, reported_errors

if TYPE_CHECKING:
    from prime_ros.estimation.estimate import Estimate
    from prime_ros.outputs.write import WrittenResults

EXIT_NOT_CONVERGED = 3
ROLES = ("joints", "imu", "mocap")


class StampName(str, Enum):
    """Clocks that `--stamps` names."""

    AUTO = "auto"
    HEADER = "header"
    RECEIPT = "receipt"
    TICK = "tick"


class SolverName(str, Enum):
    """Solvers that `--solver` names."""

    GAUSS_NEWTON = "gauss-newton"
    FDDP = "fddp"


class EstimatorName(str, Enum):
    """Estimators that `--estimator` names."""

    PFIE = "pfie"
    FIXED_CONTACT = "fixed-contact"


Input = Annotated[
    Path,
    typer.Argument(metavar="INPUT", help="rosbag2 (folder, .mcap, .db3) or table (.npz, .csv, .parquet)."),
]
Inputs = Annotated[
    list[Path],
    typer.Argument(
        metavar="INPUT...",
        help="rosbag2 (folder, .mcap, .db3) or table (.npz, .csv, .parquet); several with --joint.",
    ),
]
Config = Annotated[
    str,
    typer.Option(metavar="F", help="Estimator: a shipped name or a YAML file with the settings to change."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change one setting of the estimator. Repeatable."),
]
TopicNames = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="ROLE=NAME",
        help="Topic of a bag for joints, imu or mocap, where its type does not settle it. Repeatable.",
    ),
]
Stamps = Annotated[
    StampName,
    typer.Option(
        help="Time of a sample: its header, its receipt by the recorder, or the tick of a LowState."
    ),
]
Body = Annotated[
    str | None,
    typer.Option(metavar="FRAME", help="Tracked body in /tf, if there are several (child_frame_id)."),
]
Start = Annotated[float, typer.Option(min=0.0, help="Leave out this much at the beginning, in seconds.")]
Duration = Annotated[
    float | None, typer.Option(min=0.0, help="Use only this much, in seconds; to the end if absent.")
]
Urdf = Annotated[
    Path | None, typer.Option(metavar="F", help="URDF or MJCF to use instead of the robot's own.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

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
    """Options before the command."""


@app.command(
    epilog="[bold]Exit codes[/]: 0 converged; 2 bad input or usage, nothing written; "
    "3 not converged, results written and flagged; 130 interrupted, nothing written."
)
def solve(
    recordings: Inputs,
    robot: Annotated[str, typer.Option(help="Shipped robot, such as go2, or the path of a robot YAML.")],
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Where to put the results; earlier results are replaced as a set."),
    ],
    config: Config = "pfie",
    set_: Settings = None,
    start: Start = 0.0,
    duration: Duration = None,
    links: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...", help="Links whose inertia to identify, instead of those of the settings."
        ),
    ] = None,
    no_identify: Annotated[
        bool, typer.Option("--no-identify", help="Trust the inertia of the model and identify none.")
    ] = False,
    urdf: Urdf = None,
    solver: Annotated[
        SolverName | None,
        typer.Option(
            help="gauss-newton is the fast one, fddp (Crocoddyl) the reference it is tested against."
        ),
    ] = None,
    estimator: Annotated[
        EstimatorName | None,
        typer.Option(
            help="pfie finds contacts itself; fixed-contact, a baseline to compare with, takes low feet for"
            " standing and holds them fast."
        ),
    ] = None,
    topic: TopicNames = None,
    stamps: Stamps = StampName.AUTO,
    body: Body = None,
    joint: Annotated[
        bool,
        typer.Option("--joint", help="Estimate one inertia from several recordings of one body."),
    ] = False,
    debug: Debug = False,
) -> None:
    """Estimate forces, motion and inertia over a whole recording.

    Needs joint states with torque and motion capture of the base; uses an IMU if there is one.
    `prime info INPUT` tells what a recording has.

    [bold]Examples[/]

      prime solve walk.mcap --robot go2 --out results

      prime solve walk.mcap --robot go2 --out results --start 5 --duration 10

      prime solve walk.mcap --robot go2 --out results --topic mocap=/vrpn/go2/pose

      prime solve walk.csv --robot go2 --out results --links base,FL_calf

      prime solve walk.npz --robot go2 --out results --no-identify --set dt=0.005

      prime solve monday.mcap tuesday.mcap --joint --robot go2 --out results

    [bold]What it leaves in DIR[/]

      report.html       what was found, as plots; open it in a browser

      estimate.npz      motion, torques, contact forces and states, with std

      estimate.parquet  the same as one table

      estimate_bag      the same as a rosbag, for RViz, Foxglove and PlotJuggler

      inertia.yaml      nominal and estimated inertia with std, ground height

      calibrated.urdf   the robot's URDF with the estimated inertia
    """
    overrides = _overrides(set_ or [], links, no_identify, solver, estimator)
    topics = _topics(topic or [])
    readings = [Reading(path, topics, stamps.value, body, start, duration) for path in recordings]
    activity = Activity()
    with reported_errors(activity, debug):
        if joint:
            if not run_joint(JointJob(tuple(readings), robot, out, config, overrides, urdf), activity):
                raise typer.Exit(EXIT_NOT_CONVERGED)
            return
        job = _Job(_only(readings), robot, out, config, overrides, urdf)
        estimate = _run(job, activity)
        if not estimate.certificate.converged:
            raise typer.Exit(EXIT_NOT_CONVERGED)


@app.command(epilog="[bold]Exit codes[/]: 0 `prime solve` can use the recording; 2 it cannot, or bad usage.")
def info(
    recording: Input,
    robot: Annotated[
        str | None,
        typer.Option(help="Shipped robot or path of a robot YAML: checks joints, clocks and frames too."),
    ] = None,
    config: Config = "pfie",
    set_: Settings = None,
    start: Start = 0.0,
    duration: Duration = None,
    urdf: Urdf = None,
    topic: TopicNames = None,
    stamps: Stamps = StampName.AUTO,
    body: Body = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document, for scripts.")] = False,
    debug: Debug = False,
) -> None:
    """Tell what a recording has, what would be used of it, and what is wrong with it.

    [bold]Examples[/]

      prime info walk.mcap

      prime info walk.mcap --robot go2

      prime info walk.mcap --robot go2 --json | jq .checks
    """
    reading = Reading(recording, _topics(topic or []), stamps.value, body, start, duration)
    activity = Activity()
    with reported_errors(activity, debug):
        usable = _inspect(reading, robot, urdf, config, set_ or [], as_json)
    if not usable:
        raise typer.Exit(EXIT_BAD_INPUT)


@app.command(epilog="[bold]Exit codes[/]: 0 shown or written; 2 nothing to show, or bad usage.")
def view(
    results: Annotated[
        Path, typer.Argument(metavar="RESULTS", help="DIR of `prime solve`, or the bag of an estimate.")
    ],
    robot: Annotated[
        str | None,
        typer.Option(help="Shipped robot or path of a robot YAML; as the results say if absent."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="F", help="Write the replay as one file that needs no network instead."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of this machine to serve it on.")] = 8765,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no browser.")] = False,
    debug: Debug = False,
) -> None:
    """Replay an estimate in 3-D in the browser.

    Shows the robot, contact forces with their uncertainty, contact states, friction cones, the centre of
    mass, and the inertia before and after.

    [bold]Examples[/]

      prime view results

      prime view results --html results/view.html

      prime view results/estimate_bag --robot go2
    """
    with reported_errors(Activity("reading"), debug):
        from prime_ros.viewing import view as show

        show(results, robot, html, port, not no_browser, typer.echo, lambda note: warn([note]))


app.command(epilog="[bold]Exit codes[/]: 0 fused; 2 bad input or usage, nothing written.")(fuse)
app.command()(simulate)
app.command(
    epilog="[bold]Exit codes[/]: 0 all targets met; 1 one missed, results written; 2 bad input or usage."
)(experiments)


@dataclass(frozen=True)
class _Job:
    """What one solve is asked to do."""

    reading: Reading
    robot: str
    out: Path
    config: str
    overrides: list[str]
    urdf: Path | None


def _only(readings: Sequence[Reading]) -> Reading:
    """The one recording of a solve that is not joint."""
    if len(readings) > 1:
        named = ", ".join(str(reading.path) for reading in readings)
        raise MeasurementError(
            f"got {len(readings)} recordings ({named}), expected one; add --joint to estimate one inertia"
            " from all, if they are of the same robot with the same load, or solve them one by one"
        )
    return readings[0]


def _run(job: _Job, activity: Activity) -> Estimate:
    """Everything from the arguments to the summary."""
    with activity.phase("setup"):
        from prime_ros.config import load_estimator_config
        from prime_ros.outputs.context import RunContext
        from prime_ros.outputs.write import check_directory, write_results

        check_directory(job.out)
        config = load_estimator_config(job.config, job.overrides, job.robot)

        from prime_ros.robot import load_robot

        robot = load_robot(job.robot, job.urdf)
    measurements = job.reading.measurements(robot, config, activity)
    warn(measurements.diagnostics.warnings())
    with activity.phase("solve"), progress_bar(activity) as show:
        from prime_ros.estimation.estimators import solve as estimate_from

        estimate = estimate_from(measurements, robot, config, progress=show)
    with activity.phase("write"):
        context = RunContext(
            str(job.reading.path), config, measurements.diagnostics, _timing(estimate, activity)
        )
        written = write_results(estimate, robot, job.out, context)
    _summarise(estimate, written, _timing(estimate, activity), robot.base_link)
    return estimate


def _inspect(
    reading: Reading, robot: str | None, urdf: Path | None, config: str, overrides: list[str], as_json: bool
) -> bool:
    """Print what is found; whether the recording can be used."""
    from rich.console import Console

    from prime_ros.config import load_estimator_config
    from prime_ros.inspection import inspect, print_inspection

    settings = load_estimator_config(config, overrides, robot)
    model = None
    if robot is not None:
        from prime_ros.robot import load_robot

        model = load_robot(robot, urdf)
    found = inspect(
        reading.path,
        reading.options(model),
        model,
        settings,
        start=reading.start,
        duration=reading.duration,
    )
    if as_json:
        print(json.dumps(found.to_dict(), indent=2, allow_nan=False))
    else:
        print_inspection(found, Console())
    return found.usable


def _timing(estimate: Estimate, activity: Activity) -> dict[str, float]:
    """Wall time by phase; what the estimator did not account for itself stays visible as "solve" [s]."""
    solving = dict(estimate.timing)
    rest = activity.seconds["solve"] - sum(solving.values())
    return {**activity.seconds, "solve": max(rest, 0.0), **solving}


def _summarise(estimate: Estimate, written: WrittenResults, timing: Mapping[str, float], base: str) -> None:
    from rich.console import Console

    from prime_ros.outputs.summary import print_summary

    print_summary(estimate, Console(), written, timing, base)


def _topics(names: Sequence[str]) -> dict[str, str]:
    """``ROLE=NAME`` options by role."""
    topics: dict[str, str] = {}
    for text in names:
        role, equals, name = text.partition("=")
        if not equals or not name or role not in ROLES:
            raise typer.BadParameter(
                f"--topic {text}: expected ROLE=NAME, ROLE {', '.join(ROLES)}, like mocap=/vrpn/pose"
            )
        if role in topics:
            raise typer.BadParameter(f"--topic {role}: got it twice, expected it once")
        topics[role] = name
    return topics


def _overrides(
    settings: Sequence[str],
    links: str | None,
    no_identify: bool,
    solver: SolverName | None,
    estimator: EstimatorName | None,
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
    if estimator is not None:
        overrides.append(f"estimator={estimator.value}")
    return overrides


if __name__ == "__main__":
    main()
