# SPDX-License-Identifier: Apache-2.0
"""`prime simulate`. Heavy modules are imported when it runs, so that help comes at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_ros.terminal import Activity, reported_errors

if TYPE_CHECKING:
    from prime_ros.simulation.job import SimulationJob
    from prime_ros.simulation.recording import TruthTable


class GaitName(str, Enum):
    """Gaits that `--gait` names."""

    STAND = "stand"
    SWAY = "sway"
    TROT = "trot"
    HOP = "hop"


class FeetName(str, Enum):
    """Feet that `--feet` names."""

    SOFT = "soft"
    STIFF = "stiff"


def simulate(
    robot: Annotated[str, typer.Option(help="Shipped robot, such as go2, or the path of a robot YAML.")],
    out: Annotated[
        Path,
        typer.Option(
            metavar="PATH", help="New folder for a rosbag (mcap), or a table: .npz, .csv or .parquet."
        ),
    ],
    gait: Annotated[GaitName, typer.Option(help="What the robot does.")] = GaitName.TROT,
    duration: Annotated[float, typer.Option(metavar="S", help="Length in seconds.")] = 10.0,
    payload: Annotated[
        str | None,
        typer.Option(
            metavar="KG[@X,Y,Z]",
            help="Box on the base; its centre in the base frame in metres, 10 cm above the origin if absent.",
        ),
    ] = None,
    payload_from: Annotated[
        float, typer.Option(metavar="S", help="Put the payload on at this time instead of the start.")
    ] = 0.0,
    payload_until: Annotated[
        float | None, typer.Option(metavar="S", help="Take the payload off at this time.")
    ] = None,
    feet: Annotated[FeetName, typer.Option(help="Feet that give way by a centimetre, or hardly.")] = (
        FeetName.SOFT
    ),
    seed: Annotated[int, typer.Option(min=0, help="Of the noise and of the motion.")] = 0,
    mocap_rate: Annotated[float, typer.Option(metavar="HZ", help="Rate of motion capture.")] = 100.0,
    noise_free: Annotated[bool, typer.Option("--noise-free", help="Sensors without noise.")] = False,
    truth: Annotated[
        Path | None,
        typer.Option(metavar="F.npz", help="Write what really was there, to compare with afterwards."),
    ] = None,
    urdf: Annotated[
        Path | None, typer.Option(metavar="F", help="URDF or MJCF to use instead of the robot's own.")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    r"""Simulate a walking robot and record its sensors.

    Joints and IMU at 500 Hz and motion capture, with the noise that the robot's YAML states.
    Needs MuJoCo: pip install 'prime_ros\[simulation]'.

    [bold]Examples[/]

      prime simulate --robot go2 --out trot

      prime simulate --robot go2 --out trot --payload 3@0,0,0.1 --truth truth.npz

      prime simulate --robot go2 --out hop.npz --gait hop --duration 30 --payload 3 --payload-from 10

      prime solve trot --robot go2 --out results
    """
    activity = Activity("simulation")
    with reported_errors(activity, debug):
        from prime_ros.simulation.job import SimulationJob, run

        job = SimulationJob(
            robot=robot,
            out=out,
            gait=gait.value,
            feet=feet.value,
            duration=duration,
            payload=payload,
            payload_from=payload_from,
            payload_until=payload_until,
            seed=seed,
            mocap_rate=mocap_rate,
            noise_free=noise_free,
            truth=truth,
            urdf=urdf,
        )
        with _progress_bar(duration) as show:
            true = run(job, show)
        for line in _summary(job, true):
            print(line)


@contextmanager
def _progress_bar(duration: float) -> Iterator[Callable[[float], None]]:
    """Simulated time on stderr if it is a terminal; yields the callback that moves it."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(bar_width=20), TextColumn("{task.description}"), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("preparing", total=duration)
        yield lambda time: bar.update(task, completed=time, description=f"{time:.1f} of {duration:g} s")


def _summary(job: SimulationJob, true: TruthTable) -> Iterator[str]:
    total = true.contact_force_W[..., 2].sum(axis=1).mean()
    first, last = true.payload_mass[[0, -1]]
    loads = f"{first:g} kg" if first == last else f"{first:g} kg at the start, {last:g} kg at the end"
    yield f"{len(true.stamp_ns)} samples of {job.gait}, payload {loads}, mean force on the feet {total:.1f} N"
    yield f"recording  {job.out}"
    if job.truth is not None:
        yield f"truth      {job.truth}"
    yield f"next       prime solve {job.out} --robot {job.robot} --out DIR"
