# SPDX-License-Identifier: Apache-2.0
"""`prime fuse`. Heavy modules are imported when it runs, so that help comes at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prime_ros.commands.reading import warn
from prime_ros.terminal import Activity, reported_errors


def fuse(
    results: Annotated[
        list[Path],
        typer.Argument(metavar="INERTIA...", help="inertia.yaml of several results, or their folders."),
    ],
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Where to put the results; earlier results are replaced as a set."),
    ],
    robot: Annotated[
        str | None,
        typer.Option(help="Shipped robot or path of a robot YAML, to calibrate its URDF; without: no URDF."),
    ] = None,
    urdf: Annotated[
        Path | None, typer.Option(metavar="F", help="URDF or MJCF to use instead of the robot's own.")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Combine earlier estimates of one body into one inertia.

    Takes the posteriors of `prime solve`, from recordings of the same robot with the same load, and adds up
    what each learned; what was assumed before counts once. Tells if they contradict each other.
    Where the recordings are at hand, `prime solve A B --joint` is more accurate.

    [bold]Examples[/]

      prime fuse monday tuesday --out both --robot go2

      prime fuse monday/inertia.yaml tuesday/inertia.yaml --out both
    """
    with reported_errors(Activity("fusion"), debug):
        from rich.console import Console

        from prime_ros.outputs.fusing import counted_twice, fuse_files, write_fused
        from prime_ros.outputs.joint_summary import print_comparison, print_written
        from prime_ros.robot import load_robot

        model = None if robot is None else load_robot(robot, urdf)
        fused = fuse_files(results)
        warn(counted_twice(fused))
        written = write_fused(fused, model, out)
        console = Console()
        print_comparison(fused.comparison, console, None if model is None else model.base_link)
        print_written(written, console)
