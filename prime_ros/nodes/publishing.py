# SPDX-License-Identifier: Apache-2.0
"""An estimate on topics below the name of the node, under the names it has in a bag."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from scipy.spatial.transform import Rotation

from prime_ros.estimation.estimate import Estimate
from prime_ros.nodes.broadcasting import Broadcaster
from prime_ros.nodes.conversion import fill, message_type
from prime_ros.nodes.settings import OutputSettings
from prime_ros.outputs import topics
from prime_ros.outputs.kinematics import Poses, contact_points
from prime_ros.outputs.messages import frame_names, row
from prime_ros.outputs.topics import Topic
from prime_ros.robot import Robot

KNOWLEDGE_PERIOD = 0.1
"""Least time from one message on inertia and status to the next [s]."""
LATCHED = ("inertia", "status")
LAGGED = "lagged/"
LAGGED_TOPICS = ("odometry", "contacts")


class EstimatePublisher:
    """Publishes estimates of one knot."""

    def __init__(self, node: Node, robot: Robot, settings: OutputSettings, lagged: bool = False) -> None:
        """Create the publishers.

        Args:
            node: Whose name the topics are below.
            robot: The robot; C contacts.
            settings: Frames and rates.
            lagged: Whether there will be lagged estimates.

        Raises:
            ConfigError: If the messages for tf are wanted and not installed.
        """
        self.settings = settings
        self._node, self._robot = node, robot
        self._data = robot.model.createData()
        self._frames = replace(frame_names(robot), world=settings.world_frame)
        kinds = topics.TYPES | dict.fromkeys(topics.wrench_topics(robot.contact_names), topics.WRENCH)
        if lagged:
            kinds |= {LAGGED + name: topics.TYPES[name] for name in LAGGED_TOPICS}
        types = {name: message_type(kind) for name, kind in kinds.items()}
        self._publishers = {name: self._publisher(name, kind) for name, kind in types.items()}
        self._motion = [n for n in types if n not in LATCHED and n != "markers" and not n.startswith(LAGGED)]
        # Always filled as a whole, so that one message of each serves: making it would take as long.
        self._messages = {name: types[name]() for name in types if name not in LATCHED}
        self._last_shown: int | None = None
        self._last_known: int | None = None
        self.broadcaster = (
            None if settings.transforms == "none" else Broadcaster(node, robot, self._frames, settings)
        )

    @property
    def wants_lagged(self) -> bool:
        """Whether somebody listens to the lagged estimate."""
        return any(map(self._is_wanted, (LAGGED + name for name in LAGGED_TOPICS)))

    def publish(self, estimate: Estimate) -> None:
        """Publish an estimate of one knot, K = 1."""
        stamp, rate = int(estimate.stamp_ns[0]), self.settings.marker_rate
        shown = rate > 0.0 and topics.is_due(stamp, self._last_shown, 1.0 / rate)
        self._last_shown = stamp if shown else self._last_shown
        markers = shown and self._is_wanted("markers")
        if markers or self.broadcaster is not None or any(map(self._is_wanted, self._motion)):
            self._publish_motion(estimate, shown, markers)
        if topics.is_due(stamp, self._last_known, KNOWLEDGE_PERIOD):
            self._last_known = stamp
            self._send(topics.knowledge(estimate, self._frames))

    def publish_lagged(self, estimate: Estimate) -> None:
        """Publish an older estimate of one knot, K = 1."""
        if not self.wants_lagged:
            return
        poses = self._poses(estimate)
        points = contact_points(self._robot, estimate, poses)
        motion = topics.motion(estimate, self._frames, poses, points, LAGGED_TOPICS.__contains__)
        self._send(replace(topic, name=LAGGED + topic.name) for topic in motion)

    def _publish_motion(self, estimate: Estimate, shown: bool, markers: bool) -> None:
        """What follows from the poses of the links; `shown`: the screen is due, `markers`: and wanted."""
        poses = self._poses(estimate)
        points = contact_points(self._robot, estimate, poses)
        self._send(topics.motion(estimate, self._frames, poses, points, self._is_wanted))
        if markers:
            self._send([topics.markers(estimate, self._robot, self._frames, poses, points)])
        if self.broadcaster is None:
            return
        if self.settings.transforms == "base":
            self.broadcaster.send(topics.base_transform(estimate, self._frames, poses))
        elif shown:
            self.broadcaster.send(topics.transforms(estimate, self._robot, self._frames, poses, points))

    def publish_status(self, values: Any) -> None:
        """Publish prime_ros/EstimatorStatus, values as of `prime_ros.outputs.messages.status`."""
        self._send([Topic("status", topics.TYPES["status"], values, np.zeros(1, dtype=np.int64), True)])

    def close(self) -> None:
        """Withdraw all topics."""
        for publisher in self._publishers.values():
            self._node.destroy_publisher(publisher)
        self._publishers = {}
        if self.broadcaster is not None:
            self.broadcaster.close()

    def _publisher(self, name: str, kind: Any) -> Any:
        durability = DurabilityPolicy.TRANSIENT_LOCAL if name in LATCHED else DurabilityPolicy.VOLATILE
        quality = QoSProfile(
            depth=1 if name in LATCHED else 10, reliability=ReliabilityPolicy.RELIABLE, durability=durability
        )
        options = QoSOverridingOptions.with_default_policies()
        return self._node.create_publisher(kind, f"~/{name}", quality, qos_overriding_options=options)

    def _is_wanted(self, name: str) -> bool:
        """Whether there is such a topic, and a listener or somebody who may still come for the last one."""
        publisher = self._publishers.get(name)
        return publisher is not None and (name in LATCHED or publisher.get_subscription_count() > 0)

    def _send(self, block: Iterable[Topic]) -> None:
        for topic in block:
            if self._is_wanted(topic.name):
                publisher = self._publishers[topic.name]
                message = self._messages.get(topic.name) or publisher.msg_type()
                publisher.publish(fill(message, row(topic.values, 0)))

    def _poses(self, estimate: Estimate) -> list[Poses]:
        """As `kinematics.joint_poses`, which is made for many knots and takes milliseconds for one."""
        configuration = np.concatenate(
            [estimate.base_position_W[0], estimate.base_quat_xyzw[0], estimate.joint_position[0]]
        )
        pin.forwardKinematics(self._robot.model, self._data, configuration)
        rows = np.array([pin.SE3ToXYZQUAT(placement) for placement in self._data.oMi])
        rotations = Rotation.from_quat(rows[:, 3:])
        return [Poses(rotations[k : k + 1], rows[k : k + 1, :3]) for k in range(len(rows))]
