# SPDX-License-Identifier: Apache-2.0
"""Values that no joint and no sensor can have, and the units that most likely made them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from prime_ros.measurements.axes import DEGREES
from prime_ros.measurements.findings import Finding
from prime_ros.measurements.samples import Floats, ImuSamples, JointSamples, MocapSamples
from prime_ros.robot import BASE_NV, Robot

# Encoders pass the limits of a URDF by their calibration and by the play of the stops, a few degrees; a wrong
# unit, turn or joint is off by much more.
POSITION_MARGIN = 0.5  # [rad]
VELOCITY_FACTOR = 3.0  # impacts and the noise of differenced encoders exceed the rating, but not by this
TORQUE_FACTOR = 3.0
MAX_RATE = 70.0  # [rad/s] 4000 deg/s: twice the widest range of common gyroscopes
MAX_ACCELERATION = 1000.0  # [m/s^2] about 100 g
MAX_DISTANCE = 1000.0  # [m] from the origin of motion capture
MAJORITY = 0.5

Mask = NDArray[np.bool_]


def joint_limits(robot: Robot) -> tuple[Floats, Floats]:
    """Least and greatest values that a joint can have, infinite where the model states no limit.

    Args:
        robot: Its model states the limits of n joints.

    Returns:
        Two arrays of shape (3 n,): of positions [rad], then velocities [rad/s], then torques [Nm].
    """
    model = robot.model
    low, high = model.lowerPositionLimit[7:], model.upperPositionLimit[7:]
    limited = high > low  # a URDF without limits has none, or zeros
    speed = _rating(model.velocityLimit[BASE_NV:], VELOCITY_FACTOR)
    effort = _rating(model.effortLimit[BASE_NV:], TORQUE_FACTOR)
    lower = _where(limited, low - POSITION_MARGIN, -np.inf)
    upper = _where(limited, high + POSITION_MARGIN, np.inf)
    return np.concatenate([lower, -speed, -effort]), np.concatenate([upper, speed, effort])


def joints_in_range(samples: JointSamples, robot: Robot) -> tuple[JointSamples, int, list[Finding]]:
    """Make values NaN that are far beyond the limits of the model.

    Args:
        samples: Joints in model order.
        robot: Its model states the limits; a joint without limits is not checked.

    Returns:
        The samples, how many values were left out, and an error per channel where that is the majority of
        the samples of a joint.
    """
    low, high = (np.split(limit, 3) for limit in joint_limits(robot))
    limits = {
        "position": (low[0], high[0]),
        "velocity": (low[1], high[1]),
        "torque": (low[2], high[2]),
    }
    units = {"position": "rad", "velocity": "rad/s", "torque": "Nm"}
    changed: dict[str, Floats] = {}
    count, findings = 0, []
    for channel, (lower, upper) in limits.items():
        values: Floats = getattr(samples, channel)
        outside = np.isfinite(values) & ((values < lower) | (values > upper))
        if not outside.any():
            continue
        count += int(outside.sum())
        changed[channel] = np.where(outside, np.nan, values)
        most = outside.mean(axis=0) > MAJORITY
        if most.any():
            findings.append(_joint_error(channel, units[channel], samples, values, most, (lower, upper)))
    return (replace(samples, **changed) if changed else samples), count, findings  # type: ignore[arg-type]


def imu_in_range(samples: ImuSamples) -> tuple[ImuSamples, int, list[Finding]]:
    """Make rows NaN that no IMU can measure.

    Args:
        samples: IMU.

    Returns:
        The samples, how many rows were left out, and an error per sensor where that is the majority.
    """
    changed: dict[str, Floats] = {}
    count, findings = 0, []
    limits = {"angular_velocity": (MAX_RATE, "rad/s"), "linear_acceleration": (MAX_ACCELERATION, "m/s^2")}
    for channel, (limit, unit) in limits.items():
        values: Floats = getattr(samples, channel)
        finite = np.isfinite(values)  # infinite values are counted as such
        outside = np.asarray((finite & (np.abs(values) > limit)).any(axis=1))
        if not outside.any():
            continue
        count += int(outside.sum())
        changed[channel] = np.where(outside[:, None], np.nan, values)
        if outside.mean() > MAJORITY:
            what = (
                f"imu: {channel} is beyond {limit:.0f} {unit} in {outside.mean():.0%} of the samples,"
                f" up to {float(np.abs(values[finite]).max()):.4g}"
            )
            likely = (
                "the gyroscope seems to be in deg/s: divide by 57.3" if unit == "rad/s" else "check its unit"
            )
            findings.append(Finding("sensor-range", "error", what, likely))
    return (replace(samples, **changed) if changed else samples), count, findings  # type: ignore[arg-type]


def mocap_out_of_range(samples: MocapSamples) -> tuple[Mask, list[Finding]]:
    """Find poses that are absurdly far away.

    Args:
        samples: Finite poses.

    Returns:
        Mask of shape (N,); an error if positions seem to be in millimetres.
    """
    distance = np.abs(samples.position).max(axis=1, initial=0.0)
    outside = distance > MAX_DISTANCE
    tracked = distance[np.isfinite(distance) & (distance > 0)]
    if not tracked.size:
        return outside, []
    typical = float(np.median(np.minimum(tracked, 1e12)))
    # A mocap volume is metres wide: a hundred of them, or a thousand, is the volume in millimetres.
    if typical > 100.0:
        what = f"mocap: positions are {typical:.4g} from the origin (median), expected metres within 100 m"
        return outside, [
            Finding("sensor-range", "error", what, "they seem to be in millimetres: publish metres")
        ]
    return outside, []


def _rating(limit: Floats, factor: float) -> Floats:
    """Multiple of a limit; without limit (0 or infinite in the model) everything passes."""
    return _where((limit > 0) & np.isfinite(limit), factor * limit, np.inf)


def _where(condition: Mask, values: Floats, other: float) -> Floats:
    return np.where(condition, values, other)


def _joint_error(
    channel: str, unit: str, samples: JointSamples, values: Floats, most: Mask, limits: tuple[Floats, Floats]
) -> Finding:
    with np.errstate(over="ignore"):
        typical = np.array([float(np.nanmedian(column)) for column in values[:, most].T])
    worst = int(np.flatnonzero(most)[np.argmax(np.abs(typical))])
    lower, upper = float(limits[0][worst]), float(limits[1][worst])
    what = (
        f"joints: {channel} of {', '.join(np.array(samples.names)[most])} is out of range most of the time,"
        f" e.g. {samples.names[worst]} {typical[np.argmax(np.abs(typical))]:.4g} {unit} (median),"
        f" expected {lower:.4g} to {upper:.4g}"
    )
    with np.errstate(invalid="ignore"):
        scaled = values[:, most] / DEGREES
        fits = float(np.mean((scaled >= limits[0][most]) & (scaled <= limits[1][most])))
    if channel != "torque" and fits > 0.95:
        advice = "divided by 57.3 it fits: degrees for radians; record radians"
    elif channel == "position":
        advice = "check its unit, its zero and the order of the joints, or skip the check joint-limits"
    else:
        advice = "check its unit (a torque is in Nm), or skip the check joint-limits"
    return Finding("joint-limits", "error", what, advice)
