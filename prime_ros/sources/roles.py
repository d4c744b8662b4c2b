# SPDX-License-Identifier: Apache-2.0
"""Which topic of a bag is which stream: by type, and by name where the type leaves a choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from prime_ros.sources.bag import BagTopic
from prime_ros.sources.options import SourceOptions

Role = Literal["joints", "mocap", "imu"]

JOINT_STATE = "sensor_msgs/msg/JointState"
IMU = "sensor_msgs/msg/Imu"
LOW_STATES = ("unitree_go/msg/LowState", "unitree_hg/msg/LowState")
POSE_STAMPED = "geometry_msgs/msg/PoseStamped"
POSE_WITH_COVARIANCE = "geometry_msgs/msg/PoseWithCovarianceStamped"
ODOMETRY = "nav_msgs/msg/Odometry"
TRANSFORM_STAMPED = "geometry_msgs/msg/TransformStamped"
TF_MESSAGE = "tf2_msgs/msg/TFMessage"

TYPES: dict[Role, tuple[str, ...]] = {
    "joints": (JOINT_STATE, *LOW_STATES),
    "mocap": (POSE_STAMPED, POSE_WITH_COVARIANCE, ODOMETRY, TRANSFORM_STAMPED, TF_MESSAGE),
    "imu": (IMU, *LOW_STATES),
}
"""Types that can play a role."""
OPTIONAL: tuple[Role, ...] = ("imu",)


@dataclass(frozen=True)
class Choice:
    """Topics to read."""

    topics: dict[Role, BagTopic] = field(default_factory=dict)
    """By role; the IMU may be absent."""
    problems: tuple[str, ...] = ()
    """Why it cannot be read: what is missing or ambiguous, each with what to do."""
    notes: tuple[str, ...] = ()
    """What should be looked at."""


def role_of(topic: BagTopic) -> Role | None:
    """First role that a topic can play, or None. Static transforms are no motion capture."""
    return next((role for role in TYPES if can_play(topic, role)), None)


def can_play(topic: BagTopic, role: Role) -> bool:
    """Whether the type of a topic fits a role."""
    return topic.msgtype in TYPES[role] and not topic.name.endswith("/tf_static")


def choose(topics: Sequence[BagTopic], options: SourceOptions) -> Choice:
    """Choose the topics of a bag.

    A topic without messages is no choice where another one has some. Transforms on tf are motion capture only
    where nothing else is, or if `options` name a body or the topic: robots publish their own links there.

    Args:
        topics: All topics of the bag.
        options: Names and the tracked body.

    Returns:
        The topics, and what is wrong.
    """
    chosen: dict[Role, BagTopic] = {}
    problems: list[str] = []
    for role in TYPES:
        name = getattr(options.topics, role)
        candidates = _candidates(topics, role, name, options.body)
        if len(candidates) == 1 and candidates[0].count:
            chosen[role] = candidates[0]
        elif name or role not in OPTIONAL or any(topic.count for topic in candidates):
            problems.append(_problem(topics, role, name, candidates, options.body))
    if options.stamps == "tick" and not any(topic.msgtype in LOW_STATES for topic in chosen.values()):
        problems.append("stamps: got tick, expected a LowState among the topics: nothing else has a counter")
    return Choice(chosen, tuple(problems), _doubts(chosen, options))


def _doubts(chosen: dict[Role, BagTopic], options: SourceOptions) -> tuple[str, ...]:
    """About what nobody named, and robots publish as well as motion capture does."""
    topic = chosen.get("mocap")
    if topic is None or options.topics.mocap is not None or topic.msgtype not in (ODOMETRY, TF_MESSAGE):
        return ()
    if topic.msgtype == TF_MESSAGE and options.body is not None:
        return ()
    return (
        f"{topic.name} ({topic.msgtype}) taken as motion capture: make sure that it is not what the robot"
        f" itself estimates; --topic mocap={topic.name} confirms it",
    )


def _candidates(topics: Sequence[BagTopic], role: Role, name: str | None, body: str | None) -> list[BagTopic]:
    fitting = [topic for topic in topics if can_play(topic, role)]
    if name is not None:
        return [topic for topic in fitting if topic.name.lstrip("/") == name.lstrip("/")]
    if role == "mocap":
        transforms = [topic for topic in fitting if topic.msgtype in (TF_MESSAGE, TRANSFORM_STAMPED)]
        poses = [topic for topic in fitting if topic.msgtype != TF_MESSAGE]
        fitting = transforms if body is not None else poses if any(p.count for p in poses) else fitting
    return [topic for topic in fitting if topic.count] or fitting


def _problem(
    topics: Sequence[BagTopic], role: Role, name: str | None, candidates: list[BagTopic], body: str | None
) -> str:
    of_body = body is not None and role == "mocap"
    types = " or ".join((TRANSFORM_STAMPED, TF_MESSAGE) if of_body else TYPES[role])
    found = ", ".join(str(topic) for topic in topics) or "no topics"
    if len(candidates) > 1:
        names = ", ".join(str(topic) for topic in candidates)
        return (
            f"{role}: got {len(candidates)} topics that fit: {names}; say which,"
            f" for example --topic {role}={candidates[0].name}"
        )
    if candidates:
        return f"{role}: got no messages on {candidates[0].name}, expected some; the bag has {found}"
    wanted = f"a topic '{name}' of type {types}" if name else f"a topic of type {types}"
    wanted += f" with the body '{body}'" if of_body else ""
    return f"{role}: expected {wanted}, got none; the bag has {found}"
