# SPDX-License-Identifier: Apache-2.0
"""The estimate as a rosbag2 folder for RViz, Foxglove and PlotJuggler; written without ROS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from rosbags.interfaces import (
    Connection,
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.rosbag2.errors import WriterError
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from prime_ros.config.loading import shipped_folder
from prime_ros.estimation.estimate import Estimate
from prime_ros.exceptions import OutputError
from prime_ros.outputs import topics
from prime_ros.outputs.cdr import Bytes, encode
from prime_ros.outputs.kinematics import Poses, contact_points, joint_poses
from prime_ros.outputs.messages import FrameNames, frame_names
from prime_ros.outputs.topics import Topic
from prime_ros.robot import Robot

BLOCK = 1000
"""Knots that are encoded at once; bounds the memory to some tens of MB."""

# Newer ROS reads older folders, not the other way round: Humble and Iron cannot read version 9.
_VERSION: Final = 8
_NEVER = QosTime(0, 0)  # unspecified
_LATCHED = Qos(
    QosHistory.KEEP_LAST,
    1,
    QosReliability.RELIABLE,
    QosDurability.TRANSIENT_LOCAL,
    _NEVER,
    _NEVER,
    QosLiveliness.AUTOMATIC,
    _NEVER,
    avoid_ros_namespace_conventions=False,
)


def write_bag(estimate: Estimate, robot: Robot, folder: Path, urdf: bytes | None = None) -> None:
    """Write an estimate as a rosbag2 folder of one mcap file, in the order of time.

    Args:
        estimate: What to write; K knots.
        robot: The robot it was estimated with.
        folder: Must not exist.
        urdf: Content of /robot_description; without it the topic is left out.

    Raises:
        OutputError: If the estimate is not one of this robot or the folder exists.
        ConfigError: If the definitions of the messages are missing from the installation.
        OSError: If the folder cannot be written.
    """
    types = typestore()
    try:
        writer = Writer(folder, version=_VERSION, storage_plugin=StoragePlugin.MCAP)
        writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
        with writer:
            connections: dict[str, Connection] = {}
            for block in _blocks(estimate, robot, urdf):
                _write(writer, connections, types, [topics.named(topic) for topic in block])
    except WriterError as error:
        raise OutputError(f"{folder}: cannot be written: {error}") from error


@cache
def typestore() -> Typestore:
    """Types of ROS and of this package.

    Raises:
        ConfigError: If the definitions of this package are missing from the installation.
    """
    store = get_typestore(Stores.ROS2_HUMBLE)
    definitions = {}
    for path in sorted(shipped_folder("msg", "ContactForceArray.msg").glob("*.msg")):
        definitions.update(get_types_from_msg(path.read_text(encoding="utf-8"), f"prime_ros/msg/{path.stem}"))
    store.register(definitions)
    return store


def _write(writer: Writer, connections: dict[str, Connection], types: Typestore, block: list[Topic]) -> None:
    """Write the messages of a block; those of one instant in the order of the topics."""
    tables: list[tuple[Connection, Bytes]] = []
    for topic in block:
        if topic.name not in connections:
            connections[topic.name] = writer.add_connection(
                topic.name,
                topic.msgtype,
                typestore=types,
                offered_qos_profiles=[_LATCHED] if topic.latched else [],
            )
        table = encode(types.fielddefs, topic.msgtype, topic.values, len(topic.stamp_ns))
        tables.append((connections[topic.name], table))
    for stamp, which, knot in _in_order(block):
        connection, table = tables[which]
        writer.write(connection, stamp, table[knot].data)


def _in_order(block: list[Topic]) -> Iterator[tuple[int, int, int]]:
    """Stamp, index of the topic and index of the message in it, by time."""
    stamp = np.concatenate([topic.stamp_ns for topic in block])
    which = np.repeat(np.arange(len(block)), [len(topic.stamp_ns) for topic in block])
    knot = np.concatenate([np.arange(len(topic.stamp_ns)) for topic in block])
    order = np.argsort(stamp, kind="stable")
    yield from zip(stamp[order].tolist(), which[order].tolist(), knot[order].tolist(), strict=True)


def _blocks(estimate: Estimate, robot: Robot, urdf: bytes | None) -> Iterator[list[Topic]]:
    """All topics, block by block."""
    frames = frame_names(robot)
    count = len(estimate.stamp_ns)
    if before := topics.model(robot, estimate.stamp_ns[:1], urdf):
        yield before
    last_marker: int | None = None
    for start in range(0, count, BLOCK):
        block = rows(estimate, np.arange(start, min(start + BLOCK, count)))
        shown = _thinned(block.stamp_ns, last_marker)
        if len(shown):
            last_marker = int(block.stamp_ns[shown[-1]])
        yield _block(block, robot, frames, shown)
    yield topics.knowledge(estimate, frames)


def _block(block: Estimate, robot: Robot, frames: FrameNames, shown: np.ndarray) -> list[Topic]:
    """What is there at every knot, and the markers at those that are shown."""
    poses = joint_poses(robot, block)
    points = contact_points(robot, block, poses)
    there = [Poses(pose.rotation[shown], pose.position[shown]) for pose in poses]
    markers = topics.markers(rows(block, shown), robot, frames, there, points[shown])
    return [
        topics.transforms(block, robot, frames, poses, points),
        *topics.motion(block, frames, poses, points),
        markers,
    ]


def _thinned(stamp_ns: np.ndarray, last: int | None) -> np.ndarray:
    """Knots at which markers are due."""
    shown = []
    for knot, stamp in enumerate(stamp_ns.tolist()):
        if topics.is_due(stamp, last):
            shown.append(knot)
            last = stamp
    return np.array(shown, dtype=int)


def rows(estimate: Estimate, knots: np.ndarray) -> Estimate:
    """The trajectories of an estimate at some of its knots."""
    whole = len(estimate.stamp_ns)
    fields = {
        name: value[knots]
        for name, value in vars(estimate).items()
        if isinstance(value, np.ndarray) and value.shape[:1] == (whole,)
    }
    return replace(estimate, **fields, std={name: std[knots] for name, std in estimate.std.items()})
