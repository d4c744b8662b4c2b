# SPDX-License-Identifier: Apache-2.0
"""From messages to arrays, and from the values of `prime_ros.outputs.messages` to messages."""

from __future__ import annotations

import importlib
from array import array
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from prime_ros.exceptions import MeasurementError
from prime_ros.measurements.samples import NANOSECONDS, Floats

NO_ESTIMATE = -1.0
"""First covariance of an Imu message whose sensor does not measure that quantity."""


def header_stamp(message: Any) -> int:
    """Time of measurement [ns].

    Raises:
        MeasurementError: If the header has no time.
    """
    stamp = message.header.stamp
    time = stamp.sec * NANOSECONDS + stamp.nanosec
    if time == 0:
        raise MeasurementError("got a header without time; set the parameter stamps to receipt")
    return int(time)


def joints(message: Any) -> tuple[Sequence[str], Floats, Floats, Floats]:
    """Names, and position, velocity and torque of sensor_msgs/JointState; NaN where the message has none.

    Raises:
        MeasurementError: If the lengths do not fit, or a name occurs twice.
    """
    names = message.name
    if len(set(names)) != len(names):
        raise MeasurementError(f"name: got {', '.join(names)}, expected different names")
    values = [_or_nan(message, field, len(names)) for field in ("position", "velocity", "effort")]
    return names, values[0], values[1], values[2]


def imu(message: Any) -> tuple[Floats, Floats]:
    """Angular velocity and specific force of sensor_msgs/Imu, (3,); NaN where it states that it has none."""
    rate = _xyz(message.angular_velocity, message.angular_velocity_covariance)
    return rate, _xyz(message.linear_acceleration, message.linear_acceleration_covariance)


def pose(message: Any) -> tuple[Floats, Floats]:
    """Position (3,) and quaternion x y z w (4,) of PoseStamped, PoseWithCovarianceStamped or Odometry."""
    pose = message.pose
    while hasattr(pose, "pose"):
        pose = pose.pose
    p, q = pose.position, pose.orientation
    return np.array([p.x, p.y, p.z]), np.array([q.x, q.y, q.z, q.w])


def motors(message: Any, count: int) -> tuple[Floats, Floats, Floats]:
    """Position, velocity and torque of the first motors of a LowState, shape (count,).

    Raises:
        MeasurementError: If it has fewer motors.
    """
    states = message.motor_state[:count]
    if len(states) < count:
        raise MeasurementError(
            f"got {len(states)} motors, expected one for each of the {count} joints of vendor_joint_order"
        )
    table = np.array([(motor.q, motor.dq, motor.tau_est) for motor in states], dtype=float).T
    return table[0], table[1], table[2]


def vendor_imu(message: Any) -> tuple[Floats, Floats]:
    """Angular velocity and specific force of a LowState, shape (3,)."""
    state = message.imu_state
    return np.array(state.gyroscope, dtype=float), np.array(state.accelerometer, dtype=float)


def fill(message: Any, values: Mapping[str, Any]) -> Any:
    """Set fields of a message.

    Args:
        message: Any message; changed and returned.
        values: Of one knot, as `prime_ros.outputs.messages.row` gives them.
    """
    for name, value in values.items():
        if isinstance(value, Mapping):
            fill(getattr(message, name), value)
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            kind = _element(type(message).__module__, type(message).__name__, name)
            setattr(message, name, [fill(kind(), item) for item in value])
        elif isinstance(value, np.ndarray):
            fixed = isinstance(getattr(message, name), np.ndarray)
            setattr(message, name, value if fixed else array("d", value.tolist()))
        else:
            setattr(message, name, value.item() if isinstance(value, np.generic) else value)
    return message


def message_type(name: str) -> Any:
    """Class of a type such as ``nav_msgs/msg/Odometry``.

    Raises:
        ImportError: If its package is not there.
    """
    package, _, kind = name.split("/")
    return getattr(importlib.import_module(f"{package}.msg"), kind)


@cache
def _element(module: str, kind: str, field: str) -> Any:
    """Class of the messages in a list."""
    types = getattr(importlib.import_module(module), kind).get_fields_and_field_types()
    inner = types[field]
    package, name = inner[inner.index("<") + 1 : -1].split(",")[0].split("/")
    return message_type(f"{package}/msg/{name}")


def _or_nan(message: Any, field: str, count: int) -> Floats:
    values = getattr(message, field)
    if len(values) == count:
        return np.array(values, dtype=float)
    if len(values) == 0:
        return np.full(count, np.nan)
    raise MeasurementError(f"{field}: got {len(values)} values, expected {count}, one per name, or none")


def _xyz(vector: Any, covariance: Sequence[float]) -> Floats:
    if covariance[0] == NO_ESTIMATE:
        return np.full(3, np.nan)
    return np.array([vector.x, vector.y, vector.z])
