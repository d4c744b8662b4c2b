# SPDX-License-Identifier: Apache-2.0
"""Transforms on tf, on request, and never a second parent of a frame that has one."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile

from prime_ros.exceptions import ConfigError, OutputError
from prime_ros.measurements.samples import NANOSECONDS
from prime_ros.nodes.conversion import fill, message_type
from prime_ros.nodes.settings import OutputSettings
from prime_ros.outputs import topics
from prime_ros.outputs.messages import FrameNames, row
from prime_ros.outputs.topics import Topic
from prime_ros.outputs.urdf import calibrated_urdf, shown_urdf
from prime_ros.robot import Robot

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
QUEUE = 100
REMEMBERED = 500
"""Stamps of transforms of ours that may still come back."""


class Broadcaster:
    """Sends transforms until somebody else gives one of the frames a parent."""

    def __init__(self, node: Node, robot: Robot, frames: FrameNames, settings: OutputSettings) -> None:
        """Listen to tf, and publish what does not change.

        Raises:
            ConfigError: If tf2_msgs is not installed.
        """
        try:
            self._kind = message_type(topics.TRANSFORMS)
        except ImportError as error:
            raise ConfigError(
                f"transforms: got {settings.transforms}, but tf2_msgs is not installed ({error}); use none"
            ) from error
        self.rival = ""
        """Who else gives one of the frames a parent; empty: nobody."""
        self._node, self._frames = node, frames
        self._sent: deque[int] = deque(maxlen=REMEMBERED)
        self._children = {frames.base}
        self._publisher = node.create_publisher(self._kind, "/tf", QUEUE)
        self._held: list[Any] = [self._publisher]
        if settings.transforms == "robot":
            self._children.update(robot.link_names)
            self._publish_model(robot)
        self._subscriptions = [
            node.create_subscription(self._kind, "/tf", self._watch, QUEUE),
            node.create_subscription(self._kind, "/tf_static", self._watch, LATCHED),
        ]

    def send(self, topic: Topic) -> None:
        """Broadcast transforms of one knot."""
        if self.rival:
            return
        self._sent.append(int(topic.stamp_ns[0]))
        self._publisher.publish(fill(self._kind(), row(topic.values, 0)))

    def close(self) -> None:
        """Withdraw."""
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)
        for publisher in self._held:
            self._node.destroy_publisher(publisher)

    def _watch(self, message: Any) -> None:
        if self.rival:
            return
        for transform in message.transforms:
            if transform.child_frame_id not in self._children or self._is_ours(transform):
                continue
            self.rival = f"{transform.header.frame_id} -> {transform.child_frame_id}"
            self._node.get_logger().error(
                f"somebody else broadcasts {self.rival}: a frame must not have two parents, so this node"
                " stops broadcasting; set the parameter transforms to none, or stop the other one"
            )
            return

    def _is_ours(self, transform: Any) -> bool:
        """Whether it is one that was sent, on its way back."""
        stamp = transform.header.stamp
        return stamp.sec * NANOSECONDS + stamp.nanosec in self._sent

    def _publish_model(self, robot: Robot) -> None:
        now = self._node.get_clock().now().nanoseconds
        for topic in topics.model(robot, np.array([now]), _urdf(robot)):
            kind = message_type(topic.msgtype)
            publisher = self._node.create_publisher(kind, topic.name, LATCHED)
            publisher.publish(fill(kind(), row(topic.values, 0)))
            self._held.append(publisher)
            if topic.name == "/tf_static":
                self._sent.append(int(now))


def _urdf(robot: Robot) -> bytes | None:
    """The robot's URDF with absolute paths; None if its model is none."""
    path = robot.urdf_path
    try:
        return shown_urdf(calibrated_urdf(path.read_bytes(), {}, path.resolve().parent))
    except (OSError, OutputError):
        return None
