# SPDX-License-Identifier: Apache-2.0
"""Measurements at equally spaced knots: what the estimation sees of a recording."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from prime_ros.measurements.cleaning import StreamDiagnostics
from prime_ros.measurements.findings import ClockOffset, Finding
from prime_ros.measurements.samples import Floats, Stamps


@dataclass(frozen=True)
class AlignmentDiagnostics:
    """What was used, left out and missing on the way from samples to knots."""

    streams: dict[str, StreamDiagnostics]
    """Counts of the streams ``joints``, ``imu`` (if recorded) and ``mocap``."""
    knots_without: dict[str, int]
    """Knots at which a channel, or one joint of it, has no measurement."""
    ignored_joints: tuple[str, ...] = ()
    """Recorded joints that the robot does not have."""
    notes: tuple[str, ...] = ()
    """What the user should know."""
    findings: tuple[Finding, ...] = ()
    """What the checks of clocks, frames, joints and samples found; no error among them, these are raised."""
    clock: ClockOffset | None = None
    """Offset of motion capture, or None if it could not be estimated."""

    def warnings(self) -> Iterator[str]:
        """One line for everything that was dropped, ignored or missing."""
        yield from self.notes
        yield from (str(finding) for finding in self.findings if finding.severity != "note")
        for name, stream in self.streams.items():
            found = ", ".join(f"{count} {reason}" for reason, count in stream.left_out())
            if found:
                yield f"{name}: left out of {stream.read} samples: {found}"
        for channel, count in self.knots_without.items():
            if count:
                yield f"{channel}: not measured at {count} knots"
        if self.ignored_joints:
            yield f"joints that the robot does not have: {', '.join(self.ignored_joints)}"


@dataclass(frozen=True)
class KnotMeasurements:
    """Measurements at M = K + 1 knots that bound K steps, for n joints in model order.

    A standard deviation of infinity marks a missing measurement; its value is then a finite start value.
    """

    stamp_ns: Stamps
    """Knots, dt apart, shape (M,) [ns]."""
    dt: float
    """Spacing of the knots [s]."""
    base_position_W: Floats
    """Base in the world, shape (M, 3) [m]."""
    base_quat_xyzw: Floats
    """Base to world, shape (M, 4)."""
    base_time_offset: Floats
    """Time of the pose minus time of the knot, in (-dt, 0], shape (M,) [s]."""
    std_base_position: Floats
    """Per axis, shape (M,) [m]."""
    std_base_rotation: Floats
    """Per axis, shape (M,) [rad]."""
    joint_position: Floats
    """At the knot, shape (M, n) [rad]."""
    std_joint_position: Floats
    """Shape (M, n) [rad]."""
    base_angular_velocity_B: Floats
    """Mean over (knot - dt, knot], base axes, shape (M, 3) [rad/s]."""
    std_base_angular_velocity: Floats
    """Per axis, shape (M,) [rad/s]."""
    joint_velocity: Floats
    """Mean over (knot - dt, knot], shape (M, n) [rad/s]."""
    std_joint_velocity: Floats
    """Shape (M, n) [rad/s]."""
    joint_torque: Floats
    """Mean over knot +- dt, weighted by a triangle; row k drives step k, the last is unused, (M, n) [Nm]."""
    std_joint_torque: Floats
    """Shape (M, n) [Nm]."""
    diagnostics: AlignmentDiagnostics
    """What was used, left out and missing."""
