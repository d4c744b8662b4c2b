# SPDX-License-Identifier: Apache-2.0
"""The topics an estimate is told on, the same in a bag and live: their names, types and what they say."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from prime_ros.estimation.estimate import Estimate
from prime_ros.outputs import markers as shapes
from prime_ros.outputs import messages
from prime_ros.outputs.kinematics import Array, Edge, Poses, fixed_links, moving_links
from prime_ros.outputs.messages import FrameNames, Values
from prime_ros.robot import FREE_BASE, Robot

NAMESPACE = "/prime"
"""Of the topics whose name does not start with a slash."""
MARKER_PERIOD = 0.02
"""Least time from one set of markers to the next [s]: as often as a screen shows them."""
TYPES = {
    "joint_states": "sensor_msgs/msg/JointState",
    "odometry": "nav_msgs/msg/Odometry",
    "contacts": "prime_ros/msg/ContactForceArray",
    "markers": "visualization_msgs/msg/MarkerArray",
    "inertia": "prime_ros/msg/InertiaEstimate",
    "status": "prime_ros/msg/EstimatorStatus",
}
"""By name in the namespace; those of `wrench_topics` are `WRENCH`."""
WRENCH = "geometry_msgs/msg/WrenchStamped"
TRANSFORMS = "tf2_msgs/msg/TFMessage"
DESCRIPTION = "std_msgs/msg/String"
_GRANTED = 0.0005  # [s] rounding of stamps


@dataclass(frozen=True)
class Topic:
    """Messages of one topic over a block of knots, or a single one."""

    name: str
    """Starting with a slash, or in `NAMESPACE`."""
    msgtype: str
    values: Values
    stamp_ns: np.ndarray
    """Of each message, shape (K,) [ns]."""
    latched: bool = False
    """Whether those who subscribe late get the last one."""


def model(robot: Robot, stamp_ns: np.ndarray, urdf: bytes | None) -> list[Topic]:
    """What does not change: the URDF, if there is one, and how its links are fixed to each other."""
    topics = []
    if urdf is not None:
        description = {"data": urdf.decode(errors="replace")}
        topics.append(Topic("/robot_description", DESCRIPTION, description, stamp_ns, True))
    if edges := fixed_links(robot):
        static = messages.transforms(stamp_ns, edges)
        topics.append(Topic("/tf_static", TRANSFORMS, static, stamp_ns, True))
    return topics


def motion(
    block: Estimate,
    frames: FrameNames,
    poses: list[Poses],
    points: Array,
    wanted: Callable[[str], bool] = lambda name: True,
) -> list[Topic]:
    """What is told at every knot: motion, contact forces and states.

    Args:
        block: K knots, C contacts.
        frames: Names of the frames.
        poses: Of the joints (`kinematics.joint_poses`).
        points: Of contact (`kinematics.contact_points`), shape (K, C, 3) [m].
        wanted: Which topics to make.
    """
    makers: dict[str, Callable[[], Values]] = {
        "joint_states": lambda: messages.joint_state(block),
        "odometry": lambda: messages.odometry(block, frames, poses[FREE_BASE]),
        "contacts": lambda: messages.contact_forces(block, frames, points),
    }
    for index, name in enumerate(wrench_topics(block.contact_names)):
        makers[name] = partial(messages.wrench, block, index, frames)
    return [
        Topic(name, TYPES.get(name, WRENCH), make(), block.stamp_ns)
        for name, make in makers.items()
        if wanted(name)
    ]


def base_transform(block: Estimate, frames: FrameNames, poses: list[Poses]) -> Topic:
    """Pose of the base in the world."""
    return _transforms(block, [Edge(frames.world, frames.base, poses[FREE_BASE])])


def transforms(block: Estimate, robot: Robot, frames: FrameNames, poses: list[Poses], points: Array) -> Topic:
    """Poses of the base, of all links that joints move, and of the contacts; arguments as for `motion`."""
    edges = [Edge(frames.world, frames.base, poses[FREE_BASE]), *moving_links(robot, poses)]
    edges += [
        Edge(frames.world, frame, Poses(poses[0].rotation, points[:, index]))
        for index, frame in enumerate(frames.contacts)
    ]
    return _transforms(block, edges)


def markers(block: Estimate, robot: Robot, frames: FrameNames, poses: list[Poses], points: Array) -> Topic:
    """Forces, friction cones, states of the contacts and inertia as viewers draw them; as for `motion`."""
    values = shapes.markers(block, robot, frames, poses, points)
    return _topic("markers", values, block.stamp_ns)


def knowledge(estimate: Estimate, frames: FrameNames) -> list[Topic]:
    """What is known at the newest measurement: inertia, and how far to trust the estimate."""
    end = estimate.stamp_ns[-1:]
    return [
        _topic("inertia", messages.inertia(estimate, int(end[0]), frames), end, latched=True),
        _topic("status", messages.status(estimate, int(end[0])), end, latched=True),
    ]


def named(topic: Topic) -> Topic:
    """The topic under its full name."""
    return topic if topic.name.startswith("/") else replace(topic, name=f"{NAMESPACE}/{topic.name}")


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
    return [f"contacts/{token}/wrench" for token in names]


def is_due(stamp_ns: int, last_ns: int | None, period: float = MARKER_PERIOD) -> bool:
    """Whether `period` [s] has passed since the last one, or there was none."""
    return last_ns is None or not 0 <= stamp_ns - last_ns < round(1e9 * (period - _GRANTED))


def _topic(name: str, values: Values, stamp_ns: np.ndarray, latched: bool = False) -> Topic:
    return Topic(name, TYPES[name], values, stamp_ns, latched)


def _transforms(block: Estimate, edges: list[Edge]) -> Topic:
    values = messages.transforms(block.stamp_ns, edges)
    return Topic("/tf", TRANSFORMS, values, block.stamp_ns)
