# SPDX-License-Identifier: Apache-2.0
"""`prime solve A B C --joint`: one inertia from several recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prime_ros.commands.reading import Reading, warn
from prime_ros.exceptions import MeasurementError
from prime_ros.terminal import Activity, progress_bar

if TYPE_CHECKING:
    from prime_ros.config import EstimatorConfig
    from prime_ros.estimation.joint import JointEstimate
    from prime_ros.measurements import KnotMeasurements
    from prime_ros.outputs.context import RunContext
    from prime_ros.outputs.write import WrittenResults
    from prime_ros.robot import Robot


@dataclass(frozen=True)
class JointJob:
    """What one joint solve is asked to do."""

    readings: tuple[Reading, ...]
    robot: str
    out: Path
    config: str
    overrides: list[str]
    urdf: Path | None


def run_joint(job: JointJob, activity: Activity) -> bool:
    """Solve, write and summarise; whether it converged.

    Raises:
        PrimeError: If something asked for makes no sense, a recording cannot be used, or results cannot be
            written.
    """
    _check(job)
    with activity.phase("setup"):
        from prime_ros.config import load_estimator_config
        from prime_ros.outputs.write_joint import check_joint_directory, folder_names

        names = folder_names([reading.path for reading in job.readings])
        check_joint_directory(job.out, names)
        config = load_estimator_config(job.config, job.overrides, job.robot)

        from prime_ros.estimation.joint import check, solve_joint

        check(len(job.readings), config)

        from prime_ros.robot import load_robot

        robot = load_robot(job.robot, job.urdf)
    measurements = [_measured(reading, robot, config, activity) for reading in job.readings]
    with activity.phase("solve"), progress_bar(activity) as show:
        joint = solve_joint(measurements, robot, config, progress=show)
    with activity.phase("write"):
        from prime_ros.outputs.write_joint import write_joint_results

        contexts = _contexts(job, config, measurements, joint)
        written = write_joint_results(joint, robot, job.out, names, contexts)
    _summarise(joint, names, written, robot, activity)
    return joint.certificate.converged


def _check(job: JointJob) -> None:
    paths = [reading.path.resolve() for reading in job.readings]
    if len(paths) < 2:
        raise MeasurementError(
            f"--joint: got one recording, {job.readings[0].path}, expected several of the same body; name"
            " them one after another, or leave --joint out"
        )
    twice = [path for path in dict.fromkeys(paths) if paths.count(path) > 1]
    if twice:
        raise MeasurementError(f"--joint: got {twice[0]} twice: its data would count twice; name it once")


def _measured(
    reading: Reading, robot: Robot, config: EstimatorConfig, activity: Activity
) -> KnotMeasurements:
    """Measurements of one recording; what is wrong with it is told with its name."""
    try:
        measurements = reading.measurements(robot, config, activity)
    except MeasurementError as error:
        raise MeasurementError(f"{reading.path}: {error}") from error
    warn(f"{reading.path}: {line}" for line in measurements.diagnostics.warnings())
    return measurements


def _contexts(
    job: JointJob,
    config: EstimatorConfig,
    measurements: Sequence[KnotMeasurements],
    joint: JointEstimate,
) -> list[RunContext]:
    from prime_ros.outputs.context import RunContext

    parts = zip(job.readings, measurements, joint.recordings, strict=True)
    return [
        RunContext(str(reading.path), config, measured.diagnostics, estimate.timing)
        for reading, measured, estimate in parts
    ]


def _summarise(
    joint: JointEstimate, names: Sequence[str], written: WrittenResults, robot: Robot, activity: Activity
) -> None:
    from rich.console import Console

    from prime_ros.outputs.joint_summary import print_comparison, print_joint, print_written
    from prime_ros.outputs.write_joint import comparison_of

    console = Console()
    print_joint(joint, names, console)
    print_comparison(comparison_of(joint, names), console, robot.base_link)
    seconds = ", ".join(f"{phase} {time:.2f}" for phase, time in activity.seconds.items())
    console.print(f"Time: {sum(activity.seconds.values()):.2f} s ({seconds})", highlight=False)
    print_written(written, console)
