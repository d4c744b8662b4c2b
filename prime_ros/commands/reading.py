# SPDX-License-Identifier: Apache-2.0
"""From what a user names to measurements at knots."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from prime_ros.terminal import Activity

if TYPE_CHECKING:
    from prime_ros.config import EstimatorConfig
    from prime_ros.measurements import KnotMeasurements
    from prime_ros.robot import Robot
    from prime_ros.sources import SourceOptions


@dataclass(frozen=True)
class Reading:
    """What to read."""

    path: Path
    topics: dict[str, str]
    stamps: Literal["auto", "header", "receipt", "tick"]
    body: str | None
    start: float
    duration: float | None

    def options(self, robot: Robot | None) -> SourceOptions:
        """How to read it for a robot, or for none in particular."""
        from prime_ros.sources import SourceOptions, Topics

        return SourceOptions(
            topics=Topics(**self.topics),
            stamps=self.stamps,
            body=self.body,
            vendor_joint_names=() if robot is None else robot.vendor_joint_names,
            number_motors=robot is None,
        )

    def measurements(self, robot: Robot, config: EstimatorConfig, activity: Activity) -> KnotMeasurements:
        """Load and align; the samples are not kept."""
        with activity.phase("load"):
            from prime_ros import sources

            recording = sources.load(self.path, self.options(robot))
            recording = recording.cropped(self.start, self.duration)
        with activity.phase("align"):
            from prime_ros.measurements.alignment import align

            return align(recording, robot, config)


def warn(lines: Iterable[str]) -> None:
    """Print warnings to stderr."""
    for line in lines:
        typer.secho(f"warning: {line}", fg="yellow", err=True)
