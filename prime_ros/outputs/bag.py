# SPDX-License-Identifier: Apache-2.0
"""The estimate as a rosbag2 folder for RViz, Foxglove and PlotJuggler; written without ROS."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
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
from prime_ros.outputs import messages
from prime_ros.outputs.cdr import Bytes, encode
from prime_ros.outputs.kinematics import Edge, Poses, contact_points, fixed_links, joint_poses, moving_links
from prime_ros.outputs.markers import contact_markers
from prime_ros.outputs.messages import FrameNames, Values
from prime_ros.robot import FREE_BASE, Robot

NAMESPACE = "/prime"
BLOCK = 1000
"""Knots that are encoded at once; bounds the memory to some tens of MB."""
MARKER_PERIOD = 0.02
"""Least time from one set of markers to the next [s]: as often as a screen shows them."""

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


@dataclass(frozen=True)
class Topic:
    """Messages of one topic over a block of knots, or a single one."""

    name: str
    msgtype: str
    values: Values
    stamp_ns: np.ndarray
    """Of each message, shape (K,) [ns]."""
    latched: bool = False
    """Whether those who subscribe late get the last one."""


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
            for topics in _blocks(estimate, robot, urdf):
                _write(writer, connections, types, topics)
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


def wrench_topics(contact_names: tuple[str, ...]) -> list[str]:
    """Topic of the wrench of each contact; what ROS does not allow in a name becomes an underscore."""
    names: list[str] = []
    for contact in contact_names:
        token = re.sub(r"\W", "_", contact, flags=re.ASCII)
        if token[:1].isdigit():
            token = f"_{token}"
        while token in names:
            token += "_"
        names.append(token)
    return [f"{NAMESPACE}/contacts/{token}/wrench" for token in names]


def _write(writer: Writer, connections: dict[str, Connection], types: Typestore, topics: list[Topic]) -> None:
    """Write the messages of a block; those of one instant in the order of the topics."""
    tables: list[tuple[Connection, Bytes]] = []
    for topic in topics:
        if topic.name not in connections:
            connections[topic.name] = writer.add_connection(
                topic.name,
                topic.msgtype,
                typestore=types,
                offered_qos_profiles=[_LATCHED] if topic.latched else [],
            )
        table = encode(types.fielddefs, topic.msgtype, topic.values, len(topic.stamp_ns))
        tables.append((connections[topic.name], table))
    for stamp, which, knot in _in_order(topics):
        connection, table = tables[which]
        writer.write(connection, stamp, table[knot].data)


def _in_order(topics: list[Topic]) -> Iterator[tuple[int, int, int]]:
    """Stamp, index of the topic and index of the message in it, by time."""
    stamp = np.concatenate([topic.stamp_ns for topic in topics])
    which = np.repeat(np.arange(len(topics)), [len(topic.stamp_ns) for topic in topics])
    knot = np.concatenate([np.arange(len(topic.stamp_ns)) for topic in topics])
    order = np.argsort(stamp, kind="stable")
    yield from zip(stamp[order].tolist(), which[order].tolist(), knot[order].tolist(), strict=True)


def _blocks(estimate: Estimate, robot: Robot, urdf: bytes | None) -> Iterator[list[Topic]]:
    """All topics, block by block."""
    frames = messages.frame_names(robot)
    count = len(estimate.stamp_ns)
    if before := _before(robot, estimate.stamp_ns[:1], urdf):
        yield before
    last_marker: int | None = None
    for start in range(0, count, BLOCK):
        block = _rows(estimate, np.arange(start, min(start + BLOCK, count)))
        shown = _thinned(block.stamp_ns, last_marker)
        if len(shown):
            last_marker = int(block.stamp_ns[shown[-1]])
        yield _trajectories(block, robot, frames, shown)
    yield _after(estimate, frames)


def _before(robot: Robot, stamp_ns: np.ndarray, urdf: bytes | None) -> list[Topic]:
    """What does not change: the model and how its links are fixed to each other."""
    topics = []
    if urdf is not None:
        description = {"data": urdf.decode(errors="replace")}
        topics.append(Topic("/robot_description", "std_msgs/msg/String", description, stamp_ns, True))
    if edges := fixed_links(robot):
        static = messages.transforms(stamp_ns, edges)
        topics.append(Topic("/tf_static", "tf2_msgs/msg/TFMessage", static, stamp_ns, True))
    return topics


def _trajectories(block: Estimate, robot: Robot, frames: FrameNames, shown: np.ndarray) -> list[Topic]:
    """What is there at every knot, and the markers at those that are shown."""
    stamps = block.stamp_ns
    poses = joint_poses(robot, block)
    base = poses[FREE_BASE]
    points = contact_points(robot, block, poses)
    edges = [Edge(frames.world, frames.base, base), *moving_links(robot, poses)]
    edges += [
        Edge(frames.world, frame, Poses(poses[0].rotation, points[:, index]))
        for index, frame in enumerate(frames.contacts)
    ]
    markers = contact_markers(_rows(block, shown), robot, frames, points[shown])
    forces = messages.contact_forces(block, frames, points)
    topics = [
        Topic("/tf", "tf2_msgs/msg/TFMessage", messages.transforms(stamps, edges), stamps),
        Topic("joint_states", "sensor_msgs/msg/JointState", messages.joint_state(block), stamps),
        Topic("odometry", "nav_msgs/msg/Odometry", messages.odometry(block, frames, base), stamps),
        Topic("contacts", "prime_ros/msg/ContactForceArray", forces, stamps),
        Topic("contact_markers", "visualization_msgs/msg/MarkerArray", markers, stamps[shown]),
    ]
    for index, name in enumerate(wrench_topics(block.contact_names)):
        values = messages.wrench(block, index, frames)
        topics.append(Topic(name, "geometry_msgs/msg/WrenchStamped", values, stamps))
    return [_named(topic) for topic in topics]


def _after(estimate: Estimate, frames: FrameNames) -> list[Topic]:
    """What is known at the end of the recording."""
    end = estimate.stamp_ns[-1:]
    inertia, status = messages.inertia(estimate, int(end[0]), frames), messages.status(estimate, int(end[0]))
    topics = [
        Topic("inertia", "prime_ros/msg/InertiaEstimate", inertia, end, True),
        Topic("status", "prime_ros/msg/EstimatorStatus", status, end, True),
    ]
    return [_named(topic) for topic in topics]


def _named(topic: Topic) -> Topic:
    return topic if topic.name.startswith("/") else replace(topic, name=f"{NAMESPACE}/{topic.name}")


def _thinned(stamp_ns: np.ndarray, last: int | None) -> np.ndarray:
    """Knots at least `MARKER_PERIOD` apart, half a millisecond of rounding granted."""
    period = round(1e9 * MARKER_PERIOD) - 500_000
    shown = []
    for knot, stamp in enumerate(stamp_ns.tolist()):
        if last is None or stamp - last >= period:
            shown.append(knot)
            last = stamp
    return np.array(shown, dtype=int)


def _rows(estimate: Estimate, knots: np.ndarray) -> Estimate:
    """The trajectories of an estimate at some of its knots."""
    whole = len(estimate.stamp_ns)
    fields = {
        name: value[knots]
        for name, value in vars(estimate).items()
        if isinstance(value, np.ndarray) and value.shape[:1] == (whole,)
    }
    return replace(estimate, **fields, std={name: std[knots] for name, std in estimate.std.items()})
