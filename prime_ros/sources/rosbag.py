# SPDX-License-Identifier: Apache-2.0
"""Recordings in rosbag2 (sqlite3 or mcap), read without ROS."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.highlevel import AnyReader
from rosbags.interfaces import Connection
from rosbags.typesys import Stores, get_typestore

from prime_ros.exceptions import PrimeError, SourceError
from prime_ros.measurements.samples import (
    NANOSECONDS,
    Floats,
    ImuSamples,
    JointSamples,
    MocapSamples,
    Recording,
    Stamps,
)

JOINT_STATE = "sensor_msgs/msg/JointState"
IMU = "sensor_msgs/msg/Imu"
POSE_STAMPED = "geometry_msgs/msg/PoseStamped"
FIELDS = ("position", "velocity", "effort")


@dataclass(frozen=True)
class Topics:
    """Topics to read. None: the only topic of the right type."""

    joints: str | None = None
    """sensor_msgs/JointState, effort in Nm."""
    imu: str | None = None
    """sensor_msgs/Imu."""
    mocap: str | None = None
    """geometry_msgs/PoseStamped of the tracked body in the world."""


def read_rosbag(path: str | Path, topics: Topics | None = None) -> Recording:
    """Read a bag.

    Samples carry the stamps of their headers, not the time at which the recorder received them. Joints are
    told apart by their names, message by message; a velocity or effort that a message leaves out becomes NaN.

    Args:
        path: A rosbag2 folder, or an ``.mcap`` or ``.db3`` file.
        topics: Topics to read; default: found by their type.

    Returns:
        The samples; without IMU if the bag has no topic of its type.

    Raises:
        SourceError: If the bag cannot be read, or a topic is missing, ambiguous or of another type.
    """
    wanted = topics or Topics()
    path = Path(path)
    try:
        with AnyReader(_parts(path), default_typestore=get_typestore(Stores.ROS2_HUMBLE)) as reader:
            bag = _Bag(path, reader)
            joints = bag.topic(JOINT_STATE, wanted.joints)
            mocap = bag.topic(POSE_STAMPED, wanted.mocap)
            imu = bag.topic(IMU, wanted.imu) if wanted.imu or bag.names(IMU) else None
            return Recording(
                _joint_samples(bag.messages(joints), f"{path}: {joints}"),
                _mocap_samples(bag.messages(mocap), f"{path}: {mocap}"),
                None if imu is None else _imu_samples(bag.messages(imu), f"{path}: {imu}"),
            )
    except PrimeError:
        raise
    except Exception as error:  # a damaged bag surfaces as whatever its storage or its decoder raises
        raise SourceError(f"{path}: cannot be read as a rosbag2: {error}") from error


def _parts(path: Path) -> list[Path]:
    """What the reader wants: a complete bag, or the storage files of one without metadata."""
    if path.is_file() or (path / "metadata.yaml").is_file():
        return [path]
    return sorted(part for part in path.iterdir() if part.suffix in (".mcap", ".db3"))


@dataclass(frozen=True)
class _Bag:
    path: Path
    reader: AnyReader

    def names(self, msgtype: str) -> list[str]:
        """Topics of a message type."""
        return sorted({c.topic for c in self._connections() if c.msgtype == msgtype})

    def topic(self, msgtype: str, name: str | None) -> str:
        """Name of the topic to read; `name` may leave out the leading slash."""
        candidates = self.names(msgtype)
        if name is not None:
            candidates = [topic for topic in candidates if topic.lstrip("/") == name.lstrip("/")]
        if len(candidates) == 1:
            return candidates[0]
        wanted = f"a topic '{name}' of type {msgtype}" if name else f"one topic of type {msgtype}"
        found = ", ".join(sorted({f"{c.topic} ({c.msgtype})" for c in self._connections()})) or "no topics"
        got = f"{len(candidates)} ({', '.join(candidates)}): say which" if candidates else "none"
        raise SourceError(f"{self.path}: expected {wanted}, got {got}; the bag has {found}")

    def messages(self, topic: str) -> Iterator[Any]:
        """Messages of a topic in the order in which they were recorded."""
        chosen = [c for c in self._connections() if c.topic == topic]
        for connection, _, data in self.reader.messages(connections=chosen):
            yield self.reader.deserialize(data, connection.msgtype)

    def _connections(self) -> list[Connection]:
        return self.reader.connections


def _joint_samples(messages: Iterable[Any], where: str) -> JointSamples:
    stamps: list[int] = []
    rows: list[Floats] = []
    layouts: dict[tuple[str, ...], list[int]] = {}
    for index, message in enumerate(messages):
        names = tuple(message.name)
        stamps.append(_stamp(message))
        if len(set(names)) != len(names):
            raise SourceError(
                f"{where}: message {index}: name: got {', '.join(names)}, expected different names"
            )
        rows.append(_joint_values(message, len(names), f"{where}: message {index}"))
        layouts.setdefault(names, []).append(index)
    all_names = tuple(dict.fromkeys(name for names in layouts for name in names))
    table = np.full((len(FIELDS), len(rows), len(all_names)), np.nan)
    for names, indices in layouts.items():
        columns = [all_names.index(name) for name in names]
        table[:, np.array(indices)[:, None], columns] = np.array([rows[i] for i in indices]).transpose(
            1, 0, 2
        )
    return JointSamples(_checked(stamps, where), all_names, *table)


def _joint_values(message: Any, joints: int, where: str) -> Floats:
    """Position, velocity and effort of one message, shape (3, joints)."""
    values = np.full((len(FIELDS), joints), np.nan)
    for row, field in enumerate(FIELDS):
        given = getattr(message, field)
        if len(given) == joints:
            values[row] = given
        elif len(given) > 0:
            raise SourceError(
                f"{where}: {field}: got {len(given)} values, expected {joints}, one per name, or none"
            )
    return values


def _imu_samples(messages: Iterable[Any], where: str) -> ImuSamples:
    stamps, rows = _rows(messages, lambda m: (*_xyz(m.angular_velocity), *_xyz(m.linear_acceleration)), 6)
    return ImuSamples(_checked(stamps, where), rows[:, :3], rows[:, 3:])


def _mocap_samples(messages: Iterable[Any], where: str) -> MocapSamples:
    stamps, rows = _rows(
        messages, lambda m: (*_xyz(m.pose.position), *_xyz(m.pose.orientation), m.pose.orientation.w), 7
    )
    return MocapSamples(_checked(stamps, where), rows[:, :3], rows[:, 3:])


def _rows(messages: Iterable[Any], values: Any, width: int) -> tuple[list[int], Floats]:
    pairs = [(_stamp(message), values(message)) for message in messages]
    return [stamp for stamp, _ in pairs], np.array([row for _, row in pairs], dtype=float).reshape(-1, width)


def _xyz(vector: Any) -> tuple[float, float, float]:
    return vector.x, vector.y, vector.z


def _stamp(message: Any) -> int:
    stamp = message.header.stamp
    return int(stamp.sec) * NANOSECONDS + int(stamp.nanosec)


def _checked(stamps: list[int], where: str) -> Stamps:
    array = np.array(stamps, dtype=np.int64)
    if array.size and not array.any():
        raise SourceError(
            f"{where}: got headers without time, expected the time of measurement in header.stamp"
        )
    return array
