# SPDX-License-Identifier: Apache-2.0
"""Do the axes of motion capture, IMU and base agree, by how they turn and by where gravity points?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from prime_ros.measurements.axes import named_axis
from prime_ros.measurements.axes import tilt as tilt_of
from prime_ros.measurements.clocks import Fit
from prime_ros.measurements.findings import Finding
from prime_ros.measurements.imu_units import imu_units
from prime_ros.measurements.mounts import WRONG, mount_findings
from prime_ros.measurements.rates import Correlation, Match
from prime_ros.measurements.samples import Floats, JointSamples
from prime_ros.measurements.turning import Turning
from prime_ros.robot import Robot

UPRIGHT = 15.0  # [deg] by which mean accelerations and small errors of a mount tilt gravity
AGREES = 0.85  # gain of rates in the configured axes; noise leaves it at 1, and no wrong reading comes near
WIDE = 10.0  # [s] of clock offset looked for when nothing agrees

Reading = Callable[[Floats], Floats]


def _inverse(quat: Floats) -> Floats:
    return quat * np.array([-1.0, -1.0, -1.0, 1.0])


def _scalar_first(quat: Floats) -> Floats:
    return quat[:, [1, 2, 3, 0]]


READINGS: dict[str, tuple[Reading, str]] = {
    "w x y z read as x y z w": (_scalar_first, "write the quaternion of motion capture in the order x y z w"),
    "world to body instead of body to world": (
        _inverse,
        "publish the inverse rotation: of the body in the world",
    ),
    "w x y z read as x y z w, and world to body instead of body to world": (
        lambda quat: _inverse(_scalar_first(quat)),
        "write the rotation of the body in the world in the order x y z w",
    ),
}


@dataclass(frozen=True)
class _View:
    """One reading of the data: how well rates agree in the configured axes, and how gravity is tilted."""

    gain: float
    tilt: float


def frame_findings(
    turning: Turning, correlation: Correlation, fitted: Fit | None, robot: Robot, joints: JointSamples
) -> list[Finding]:
    """Check quaternion order, mounts, the axis that points up, and the units of the IMU.

    Args:
        turning: What motion capture and IMU saw.
        correlation: Of their rates.
        fitted: Offset and rotation between them, or None if the robot hardly turned.
        robot: Its mounts are checked.
        joints: Joints in model order: where the feet are tells which of two sensors is upside down.

    Returns:
        What was found.
    """
    informative = turning.informative(correlation)
    units, sees_gravity = imu_units(turning, correlation, informative)
    if any(finding.severity == "error" for finding in units):
        return units
    view = _view(turning, correlation, informative, sees_gravity)
    if (informative and not view.gain > AGREES) or view.tilt > UPRIGHT:
        return units + _what_is_wrong(turning, correlation, fitted, view, sees_gravity, robot, joints)
    return units + ([] if fitted is None else mount_findings(turning, fitted, robot, joints))


def _view(
    turning: Turning,
    correlation: Correlation,
    informative: bool,
    sees_gravity: bool,
    reading: Reading | None = None,
) -> _View:
    fixed = correlation.turned(turning.R_MI)
    gain = float(fixed.gain[0]) if informative and len(fixed.gain) else np.nan
    lag = float(fixed.lag[0]) if informative and len(fixed.lag) else 0.0
    force = turning.gravity(lag, turning.R_MI, reading)
    return _View(gain, tilt_of(force) if sees_gravity else np.nan)


def _what_is_wrong(
    turning: Turning,
    correlation: Correlation,
    fitted: Fit | None,
    view: _View,
    sees_gravity: bool,
    robot: Robot,
    joints: JointSamples,
) -> list[Finding]:
    """The likeliest cause of rates or gravity that do not agree in the configured axes."""
    informative = fitted is not None
    got = _in_words(view)
    for name, (reading, advice) in READINGS.items():
        other = _view(turning, turning.correlation(reading), informative, sees_gravity, reading)
        if (other.gain > AGREES or not informative) and not other.tilt > UPRIGHT:
            what = f"mocap: {got}; read as it should be they agree: the quaternions are {name}"
            return [Finding("quaternion-order", "error", what, advice)]
    if fitted is None:
        force = turning.gravity(0.0, turning.R_MI)
        return _upright_only(force, view.tilt)
    free: Match = correlation.free(1)
    if not free.gain[0] > AGREES:
        return [_not_together(turning, float(free.gain[0]))]
    force = turning.gravity(fitted.offset, fitted.R_MI)
    mount = mount_findings(turning, fitted, robot, joints)
    tilt = tilt_of(force) if sees_gravity else np.nan
    if not tilt > UPRIGHT:
        return mount
    if tilt > 180.0 - UPRIGHT and not mount:
        what = "imu: the accelerometer points down at rest (-9.81 m/s^2), expected +9.81 upwards"
        return [Finding("imu-units", "warning", what, "change the sign of the accelerometer")]
    return [*mount, _world_up(force)]


def _not_together(turning: Turning, gain: float) -> Finding:
    """In no axes do the two turn together within the offsets that were looked for; maybe beyond?"""
    what = (
        f"mocap and IMU do not turn together: their rates agree to {gain:.2f}, expected 1, in any axes and at"
        f" any offset of the clocks up to {turning.search:g} s"
    )
    wide = min(WIDE, float(turning.imu_time[-1]) / 2)
    far = turning.correlation(search=wide).free(1)
    # At a large lag only a part of the two overlaps.
    if len(far.gain) and (agree := far.gain[0] / (1.0 - abs(far.lag[0]) / (2.0 * wide))) > AGREES:
        what += f"; at an offset of {far.lag[0]:+.2f} s they agree to {agree:.2f}"
        advice = f"set sampling.clock_offset.mocap={far.lag[0]:.2f}; what is left is then estimated"
    else:
        advice = "do both belong to this robot and this run, and are their clocks the same?"
    return Finding("imu-mount", "error", what, advice)


def _upright_only(force: Floats, tilt: float) -> list[Finding]:
    """The robot hardly turned: gravity alone tells."""
    axis = named_axis(force)
    what = (
        f"gravity, seen by the accelerometer, points along {axis} of the world of motion capture"
        f" ({tilt:.0f} deg off), expected along -z"
    )
    advice = (
        "one of these is wrong: the order of the quaternions, imu.quat_xyzw, mocap.quat_xyzw, or which axis"
        " of motion capture points up; a recording in which the robot turns tells which"
    )
    return [Finding("world-up", "error" if tilt > WRONG else "warning", what, advice)]


def _world_up(force: Floats) -> Finding:
    tilt = tilt_of(force)
    what = (
        f"gravity points along {named_axis(force)} of the world of motion capture ({tilt:.0f} deg off),"
        " expected along -z"
    )
    advice = "set the up axis of motion capture to z, or turn its poses"
    return Finding("world-up", "error" if tilt > WRONG else "warning", what, advice)


def _in_words(view: _View) -> str:
    parts = []
    if np.isfinite(view.gain):
        parts.append(f"angular rates of motion capture and gyroscope agree to {view.gain:.2f} (expected 1)")
    if np.isfinite(view.tilt):
        parts.append(f"gravity is {view.tilt:.0f} deg off -z of the world (expected 0)")
    return " and ".join(parts)
