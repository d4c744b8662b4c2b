# SPDX-License-Identifier: Apache-2.0
"""A recording made ready for the knots: cleaned, checked, and on one clock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from prime_ros.config import EstimatorConfig
from prime_ros.measurements.cleaning import StreamDiagnostics, in_model_order, in_time_order, shifted
from prime_ros.measurements.findings import ClockOffset, Finding
from prime_ros.measurements.frames import frame_findings
from prime_ros.measurements.joint_checks import joint_findings
from prime_ros.measurements.jumps import jumping_poses
from prime_ros.measurements.masking import finite_poses, frozen_poses, lost_poses
from prime_ros.measurements.offset import clock_offset
from prime_ros.measurements.ranges import imu_in_range, joints_in_range, mocap_out_of_range
from prime_ros.measurements.samples import Floats, ImuSamples, JointSamples, MocapSamples, Recording, selected
from prime_ros.measurements.stamps import stamp_findings
from prime_ros.measurements.support import support_findings
from prime_ros.measurements.time_order import time_order
from prime_ros.measurements.turning import turning
from prime_ros.robot import Robot

JointOrImuSamples = TypeVar("JointOrImuSamples", JointSamples, ImuSamples)


@dataclass(frozen=True)
class Prepared:
    """Streams ready for the knots, and what was found on the way."""

    joints: JointSamples
    """In model order; NaN where not measured or out of range."""
    imu: ImuSamples | None
    """Or None; NaN alike."""
    mocap: MocapSamples
    """Valid poses on the clock of the robot."""
    counts: dict[str, StreamDiagnostics] = field(default_factory=dict)
    """Of the streams ``joints``, ``imu`` (if recorded) and ``mocap``."""
    ignored_joints: tuple[str, ...] = ()
    """Recorded joints that the robot does not have."""
    findings: tuple[Finding, ...] = ()
    """What the checks found, errors among it."""
    clock: ClockOffset | None = None
    """Offset of motion capture that was left after the configured one, or None if it could not be seen."""


def prepare(recording: Recording, robot: Robot, config: EstimatorConfig) -> Prepared:
    """Clean the streams, mask what is no measurement, correct the clock of motion capture, check the rest.

    Args:
        recording: The samples.
        robot: The robot that was recorded.
        config: Rules of sampling (`sampling`).

    Returns:
        The streams. Findings of severity ``error`` say that they must not be used.

    Raises:
        MeasurementError: If a joint of the robot is not in the recording.
    """
    sampling = config.sampling
    joints, ignored, joint_counts, found = _joints(recording.joints, robot, config)
    imu, imu_counts, imu_found = _imu(recording.imu, config)
    mocap, mocap_counts, mocap_found = _mocap(recording.mocap, joints, robot, config)
    counts = {"joints": joint_counts, **({"imu": imu_counts} if imu_counts else {}), "mocap": mocap_counts}
    findings = [*found, *imu_found, *mocap_found]
    clock = None
    if not any(finding.severity == "error" for finding in findings):
        seen = turning(mocap, imu, robot, sampling.max_gap, sampling.clock_offset.search)
        if seen is not None:
            correlation = seen.correlation()
            fitted = seen.fitted(correlation) if seen.informative(correlation) else None
            findings += frame_findings(seen, correlation, fitted, robot, joints)
            clock, about_clock = clock_offset(seen, correlation, fitted, sampling.clock_offset.estimate)
            findings += about_clock
            mocap = shifted(mocap, clock.seconds) if clock is not None and clock.applied else mocap
        findings += joint_findings(joints, robot)
        # In the wrong axes nothing stands on the ground, which would be one more error of the same cause.
        if not any(finding.severity == "error" for finding in _wanted(findings, config)):
            findings += support_findings(joints, imu, mocap, robot, sampling.skip_checks)
    kept = tuple(_wanted(findings, config))
    return Prepared(joints, imu, mocap, counts, ignored, kept, clock)


def _wanted(findings: Iterable[Finding], config: EstimatorConfig) -> Iterable[Finding]:
    return (finding for finding in findings if finding.check not in config.sampling.skip_checks)


def _skipped(check: str, config: EstimatorConfig) -> bool:
    return check in config.sampling.skip_checks


def _joints(
    samples: JointSamples, robot: Robot, config: EstimatorConfig
) -> tuple[JointSamples, tuple[str, ...], StreamDiagnostics, list[Finding]]:
    findings = stamp_findings("joints", samples.stamp_ns, time_order(samples.stamp_ns))
    joints, counts = in_time_order(samples, config.sampling.clock_offset.joints)
    joints, ignored = in_model_order(joints, robot.joint_names)
    joints, missing = _without_infinite(joints, ("position", "velocity", "torque"))
    outside = 0
    if not _skipped("joint-limits", config):
        joints, outside, found = joints_in_range(joints, robot)
        findings += found
    return joints, ignored, replace(counts, non_finite=missing, out_of_range=outside), findings


def _imu(
    samples: ImuSamples | None, config: EstimatorConfig
) -> tuple[ImuSamples | None, StreamDiagnostics | None, list[Finding]]:
    if samples is None or not samples.stamp_ns.size:
        return None, None, []
    findings = stamp_findings("imu", samples.stamp_ns, time_order(samples.stamp_ns))
    imu, counts = in_time_order(samples, config.sampling.clock_offset.imu)
    imu, missing = _without_infinite(imu, ("angular_velocity", "linear_acceleration"))
    outside = 0
    if not _skipped("sensor-range", config):
        imu, outside, found = imu_in_range(imu)
        findings += found
    return imu, replace(counts, non_finite=missing, out_of_range=outside), findings


def _mocap(
    samples: MocapSamples, joints: JointSamples, robot: Robot, config: EstimatorConfig
) -> tuple[MocapSamples, StreamDiagnostics, list[Finding]]:
    findings = stamp_findings("mocap", samples.stamp_ns, time_order(samples.stamp_ns))
    mocap, counts = in_time_order(samples, config.sampling.clock_offset.mocap)
    masked = {}
    finite = finite_poses(mocap)
    mocap, masked["non_finite"] = selected(mocap, finite), int(np.sum(~finite))
    lost = lost_poses(mocap)
    mocap, masked["lost"] = selected(mocap, ~lost), int(np.sum(lost))
    if not _skipped("sensor-range", config):
        outside, found = mocap_out_of_range(mocap)
        findings += found
        mocap, masked["out_of_range"] = selected(mocap, ~outside), int(np.sum(outside))
    if not _skipped("mocap-frozen", config):
        frozen = frozen_poses(mocap, joints, robot)
        mocap, masked["frozen"] = selected(mocap, ~frozen), int(np.sum(frozen))
    if not _skipped("mocap-jumps", config) and not any(found.severity == "error" for found in findings):
        jumps, found = jumping_poses(mocap, robot.noise)
        findings += found
        mocap, masked["jumps"] = selected(mocap, ~jumps), int(np.sum(jumps))
    return mocap, replace(counts, used=len(mocap.stamp_ns), **masked), findings


def _without_infinite(samples: JointOrImuSamples, channels: tuple[str, ...]) -> tuple[JointOrImuSamples, int]:
    """The samples with NaN for infinite values, and how many values are not finite."""
    values: dict[str, Floats] = {name: getattr(samples, name) for name in channels}
    missing = sum(int(np.sum(~np.isfinite(value))) for value in values.values())
    changed = {name: np.where(np.isinf(v), np.nan, v) for name, v in values.items() if np.isinf(v).any()}
    return (replace(samples, **changed) if changed else samples), missing  # type: ignore[arg-type]
