# SPDX-License-Identifier: Apache-2.0
"""Look at a recording as an estimation would, and report instead of refusing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from prime_ros.config import EstimatorConfig
from prime_ros.exceptions import MeasurementError, SourceError
from prime_ros.inspection.inspection import Inspection, Use
from prime_ros.inspection.streams import StreamStatistics, statistics
from prime_ros.measurements.alignment import align_prepared
from prime_ros.measurements.cleaning import StreamDiagnostics
from prime_ros.measurements.findings import Finding
from prime_ros.measurements.masking import finite_poses, lost_poses
from prime_ros.measurements.preparation import prepare
from prime_ros.measurements.samples import NANOSECONDS, Recording, Stamps
from prime_ros.measurements.stamps import stamp_findings
from prime_ros.measurements.time_order import time_order
from prime_ros.robot import Robot
from prime_ros.sources import SourceDescription, SourceOptions, describe, load

#: What an estimation takes from each stream, and whether it can do without.
ROLES = {
    "joints": ("joint positions, velocities and torques", True),
    "mocap": ("pose of the base", True),
    "imu": ("angular velocity of the base, clock of motion capture", False),
}


def inspect(
    path: str | Path,
    options: SourceOptions | None = None,
    robot: Robot | None = None,
    config: EstimatorConfig | None = None,
    start: float = 0.0,
    duration: float | None = None,
) -> Inspection:
    """Look at a recording; with a robot, check it as an estimation would.

    Args:
        path: A bag or a table, see `prime_ros.sources.load`.
        options: What to read of it.
        robot: The robot that was recorded, or None: then only the source and the stamps are looked at.
        config: Rules of sampling; default: those of `EstimatorConfig`.
        start: Leave out this much at the beginning [s].
        duration: Look at this much [s]; None: to the end.

    Returns:
        What was found; that something is wrong with the recording is in there too.

    Raises:
        SourceError: If it cannot be opened at all.
    """
    description = describe(path, options)
    found = Inspection(
        description, _uses(description, options), {}, (), robot.name if robot else None, (), None, None, {},
        description.problems, description.notes,
    )  # fmt: skip
    if found.problems:
        return found
    try:
        recording = load(path, options).cropped(start, duration)
    except (SourceError, MeasurementError) as error:
        return replace(found, problems=(str(error),))
    found = replace(
        found,
        streams=_statistics(recording),
        joints=recording.joints.names,
        findings=tuple(_stamp_findings(recording)),
        notes=tuple(dict.fromkeys((*found.notes, *recording.notes))),
    )
    return found if robot is None else _checked(found, recording, robot, config or EstimatorConfig())


def _checked(found: Inspection, recording: Recording, robot: Robot, config: EstimatorConfig) -> Inspection:
    """With what the robot's checks and the alignment say."""
    try:
        prepared = prepare(recording, robot, config)
    except MeasurementError as error:
        return replace(found, problems=(*found.problems, str(error)))
    notes = list(found.notes)
    if prepared.ignored_joints:
        notes.append(f"joints that the robot does not have: {', '.join(prepared.ignored_joints)}")
    found = replace(
        found,
        findings=prepared.findings,
        clock=prepared.clock,
        streams={
            role: replace(stream, counts=prepared.counts.get(role, stream.counts))
            for role, stream in found.streams.items()
        },
        notes=tuple(notes),
    )
    if not found.usable:
        return found
    try:
        knots = align_prepared(prepared, robot, config)
    except MeasurementError as error:
        return replace(found, problems=(*found.problems, str(error)))
    more = tuple(note for note in knots.diagnostics.notes if note not in notes)
    return replace(
        found,
        knots=len(knots.stamp_ns),
        knots_without=knots.diagnostics.knots_without,
        notes=(*found.notes, *more),
    )


def _uses(description: SourceDescription, options: SourceOptions | None) -> dict[str, Use]:
    """What is read for each role; a LowState is read for two."""
    used = [topic for topic in description.topics if topic.used]
    named = options.topics if options else None
    uses = {}
    for role, (purpose, needed) in ROLES.items():
        source = next((t.name for t in used if t.name == getattr(named, role, None)), None)
        source = source or next((t.name for t in used if t.role == role), None)
        source = source or next(
            (t.name for t in used if f"and {role}" in t.note or f"as {role}" in t.note), None
        )
        uses[role] = Use(purpose, needed, source)
    return uses


def _stamps(recording: Recording) -> Iterator[tuple[str, Stamps]]:
    yield "joints", recording.joints.stamp_ns
    yield "mocap", recording.mocap.stamp_ns
    if recording.imu is not None:
        yield "imu", recording.imu.stamp_ns


def _statistics(recording: Recording) -> dict[str, StreamStatistics]:
    """Of all streams, with what can be counted without a robot."""
    streams = {}
    orders = {role: time_order(stamp_ns) for role, stamp_ns in _stamps(recording)}
    firsts = [int(stamp[orders[role].keep][0]) for role, stamp in _stamps(recording) if len(stamp)]
    for role, stamp_ns in _stamps(recording):
        order = orders[role]
        counts = StreamDiagnostics(
            len(stamp_ns), int(order.keep.sum()), order.duplicates, order.backward, order.stray
        )
        streams[role] = statistics(stamp_ns, min(firsts), replace(counts, **_invalid(recording, role)))
    return streams


def _invalid(recording: Recording, role: str) -> dict[str, int]:
    """Values that are no measurement whatever the robot."""
    if role == "mocap":
        finite, lost = finite_poses(recording.mocap), lost_poses(recording.mocap)
        return {"non_finite": int(np.sum(~finite)), "lost": int(np.sum(finite & lost))}
    samples = recording.joints if role == "joints" else recording.imu
    values = [
        array for array in vars(samples).values() if isinstance(array, np.ndarray) and array.dtype.kind == "f"
    ]
    return {"non_finite": int(sum(np.sum(~np.isfinite(array)) for array in values))}


def _stamp_findings(recording: Recording) -> Iterator[Finding]:
    for role, stamp_ns in _stamps(recording):
        yield from stamp_findings(role, stamp_ns, time_order(stamp_ns))
    spans = {role: (stamp[0], stamp[-1]) for role, stamp in _stamps(recording) if len(stamp)}
    if spans and max(first for first, _ in spans.values()) > min(last for _, last in spans.values()):
        apart = (
            max(first for first, _ in spans.values()) - min(last for _, last in spans.values())
        ) / NANOSECONDS
        what = f"the streams have no time in common: the last begins {apart:.3f} s after the first has ended"
        yield Finding(
            "overlap", "error", what, "are their clocks the same? sampling.clock_offset shifts them"
        )
