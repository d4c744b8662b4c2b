# SPDX-License-Identifier: Apache-2.0
"""Recordings written as rosbag2, without ROS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.rosbag2.errors import WriterError
from rosbags.typesys import Stores, get_typestore

from prime_ros.exceptions import SourceError
from prime_ros.measurements.samples import (
    NANOSECONDS,
    Floats,
    ImuSamples,
    JointSamples,
    MocapSamples,
    Recording,
)
from prime_ros.sources.options import Topics
from prime_ros.sources.roles import IMU, JOINT_STATE, POSE_STAMPED

DEFAULT_TOPICS = Topics(joints="/joint_states", imu="/imu", mocap="/mocap")

Stream = Iterator[tuple[int, Any]]

_TYPES = get_typestore(Stores.ROS2_HUMBLE)
_NO_COVARIANCE = np.zeros(9)
_NO_ORIENTATION = np.array([-1.0, *np.zeros(8)])  # as sensor_msgs/Imu marks what is not measured


def write_rosbag(
    recording: Recording,
    path: str | Path,
    storage: Literal["sqlite3", "mcap"] = "sqlite3",
    topics: Topics = DEFAULT_TOPICS,
) -> None:
    """Write a bag that `read_rosbag` and ROS read back.

    Args:
        recording: The samples.
        path: Folder of the bag, must not exist.
        storage: Plain sqlite3, or mcap with compressed chunks.
        topics: Names of the topics.

    Raises:
        SourceError: If the folder exists or cannot be written.
    """
    plugin = {"sqlite3": StoragePlugin.SQLITE3, "mcap": StoragePlugin.MCAP}[storage]
    try:
        writer = Writer(Path(path), version=Writer.VERSION_LATEST, storage_plugin=plugin)
        if storage == "mcap":
            writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
        with writer:
            _write(writer, recording, topics)
    except (WriterError, OSError) as error:
        raise SourceError(f"{path}: cannot be written: {error}") from error


def _write(writer: Writer, recording: Recording, topics: Topics) -> None:
    """Write the messages of all streams in the order of their stamps."""
    streams: list[tuple[str, str, Stream]] = [
        (topics.joints or "/joint_states", JOINT_STATE, _joint_messages(recording.joints)),
        (topics.mocap or "/mocap", POSE_STAMPED, _mocap_messages(recording.mocap)),
    ]
    if recording.imu is not None:
        streams.append((topics.imu or "/imu", IMU, _imu_messages(recording.imu)))
    queue = []
    for name, msgtype, messages in streams:
        connection = writer.add_connection(name, msgtype, typestore=_TYPES)
        queue += [(stamp, connection, _TYPES.serialize_cdr(message, msgtype)) for stamp, message in messages]
    for stamp, connection, data in sorted(queue, key=lambda item: item[0]):
        writer.write(connection, stamp, data)


def _new(msgtype: str, *values: Any) -> Any:
    return _TYPES.types[msgtype](*values)


def _header(stamp_ns: int, frame: str) -> Any:
    time = _new("builtin_interfaces/msg/Time", *divmod(stamp_ns, NANOSECONDS))
    return _new("std_msgs/msg/Header", time, frame)


def _vector(values: Floats, kind: str = "Vector3") -> Any:
    return _new(f"geometry_msgs/msg/{kind}", *(float(value) for value in values))


def _joint_messages(samples: JointSamples) -> Stream:
    names = list(samples.names)
    # Rows are written as they lie in memory.
    tables = (np.ascontiguousarray(table) for table in (samples.position, samples.velocity, samples.torque))
    for stamp, *values in zip(samples.stamp_ns.tolist(), *tables, strict=True):
        yield stamp, _new(JOINT_STATE, _header(stamp, ""), names, *values)


def _imu_messages(samples: ImuSamples) -> Stream:
    rows = zip(samples.stamp_ns.tolist(), samples.angular_velocity, samples.linear_acceleration, strict=True)
    orientation = _vector(np.array([0.0, 0.0, 0.0, 1.0]), "Quaternion")
    for stamp, rate, acceleration in rows:
        inertial = (_vector(rate), _NO_COVARIANCE, _vector(acceleration), _NO_COVARIANCE)
        yield stamp, _new(IMU, _header(stamp, "imu"), orientation, _NO_ORIENTATION, *inertial)


def _mocap_messages(samples: MocapSamples) -> Stream:
    for stamp, position, quat in zip(
        samples.stamp_ns.tolist(), samples.position, samples.quat_xyzw, strict=True
    ):
        pose = _new("geometry_msgs/msg/Pose", _vector(position, "Point"), _vector(quat, "Quaternion"))
        yield stamp, _new(POSE_STAMPED, _header(stamp, "world"), pose)
