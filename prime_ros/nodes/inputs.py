# SPDX-License-Identifier: Apache-2.0
"""Topics of the robot and of motion capture: subscribed, checked, and handed on as arrays."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import numpy as np
from rclpy.node import Node
from rclpy.qos import QoSCompatibility, QoSProfile, qos_check_compatible, qos_profile_sensor_data
from rclpy.qos_overriding_options import QoSOverridingOptions

from prime_ros.exceptions import ConfigError, MeasurementError
from prime_ros.measurements.samples import NANOSECONDS, Floats
from prime_ros.measurements.tick_clock import TickClock
from prime_ros.nodes import conversion, mailbox
from prime_ros.nodes.mailbox import Aside
from prime_ros.nodes.settings import InputSettings
from prime_ros.robot import Robot

QUEUE = 2500
"""Messages per topic that can wait, five seconds of joints; then the oldest are lost."""
AT_ONCE = 50
"""Most messages per topic that are taken at once: some steps of the estimator, fewer than its window has."""
GRACE = 0.0003
"""Time for what was measured together with the joints and is sent after them, as IMU and pose [s]."""
DISORDER_NS = 500_000_000
"""Step back in time that is disorder; a longer one is another clock [ns]."""
TORQUES_KEPT = 16
TORQUE_AGE_NS = 30_000_000
"""Oldest sample of a topic of its own that counts as the torque of a joint state [ns]."""

MOCAP_TYPES = {
    "pose_stamped": "geometry_msgs/msg/PoseStamped",
    "pose_with_covariance": "geometry_msgs/msg/PoseWithCovarianceStamped",
    "odometry": "nav_msgs/msg/Odometry",
}
JOINT_STATE = "sensor_msgs/msg/JointState"
IMU = "sensor_msgs/msg/Imu"


class Sink(Protocol):
    """Takes samples; `prime_ros.estimation.live.LiveEstimator` is one."""

    def push_joints(
        self, stamp_ns: int, names: Sequence[str], position: Floats, velocity: Floats, torque: Floats
    ) -> None:
        """Take a sample of the joints; NaN: not measured."""

    def push_imu(self, stamp_ns: int, angular_velocity: Floats, linear_acceleration: Floats) -> None:
        """Take a sample of the IMU, in its own axes."""

    def push_mocap(self, stamp_ns: int, position: Floats, quat_xyzw: Floats) -> None:
        """Take a pose of the tracked body."""


@dataclass
class Channel:
    """One topic that is listened to."""

    topic: str
    """Full name, remapped."""
    msgtype: str
    subscription: Any
    quality: QoSProfile
    received: int = 0
    refused: int = 0
    """Messages that could not be used at all."""
    complaint: str = ""
    """What was wrong with the last of them."""
    newest_ns: int = 0
    """Latest time of measurement [ns]."""
    disordered: int = 0
    """Messages that came after one of a later time."""
    last: float = -np.inf
    """Receipt of the last message, monotonic clock [s]."""


class Inputs:
    """Subscriptions of a node; what they bring goes to a sink when a thread asks for it."""

    def __init__(self, node: Node, settings: InputSettings, robot: Robot, sink: Sink) -> None:
        """Subscribe.

        Args:
            node: Whose topics to listen to.
            settings: Which topics, of which types.
            robot: The robot.
            sink: Takes the samples, in the thread that calls `take`.

        Raises:
            ConfigError: If the type of a topic is not installed, or does not fit the robot.
        """
        self.channels: dict[str, Channel] = {}
        self._node, self._settings, self._robot = node, settings, robot
        self._sink = sink
        self._torques: deque[tuple[int, dict[str, float]]] = deque(maxlen=TORQUES_KEPT)
        self._ticks = TickClock()
        self._time = 0  # of the message at hand [ns]
        self._age = 0.0  # of the message at hand, since its receipt [s]
        self._aside = Aside()
        self._force = np.zeros(4)  # sum of specific forces [m/s^2], and their number
        if settings.torque == "topic":  # first: joints look for the torque that belongs to them
            self._listen("joint_torques", JOINT_STATE, self._torque)
        if settings.lowstate_type == "none":
            self._pace = self._listen("joint_states", JOINT_STATE, self._joints)
            self._listen("imu", IMU, self._imu)
        else:
            self._require_order()
            self._pace = self._listen("lowstate", f"{settings.lowstate_type}/msg/LowState", self._low_state)
        self._listen("mocap", MOCAP_TYPES[settings.mocap_type], self._mocap)

    def close(self) -> None:
        """Stop listening."""
        channels, self.channels = self.channels, {}
        for channel in channels.values():
            self._node.destroy_subscription(channel.subscription)

    def take(self, timeout: float) -> None:
        """Hand messages that wait to the sink, oldest first. One thread only.

        Args:
            timeout: How long to wait for a message of the joints [s]; the other topics follow them.
        """
        mailbox.wait(self._pace.subscription, self._node.context, timeout)
        time.sleep(GRACE)
        for channel in self.channels.values():
            for message, self._age in islice(mailbox.messages(channel.subscription), AT_ONCE):
                self._receive(channel, message)

    def mean_specific_force(self) -> Floats | None:
        """Mean of the accelerometer since the last call, in its axes, shape (3,) [m/s^2]; None: no sample."""
        force, self._force = self._force, np.zeros(4)
        return force[:3] / force[3] if force[3] else None

    def problems(self, name: str) -> list[str]:
        """What is wrong with the publishers of a topic, as the middleware sees them."""
        channel = self.channels[name]
        found = self._node.get_publishers_info_by_topic(channel.topic)
        fitting = [p for p in found if p.topic_type == channel.msgtype]
        problems = [
            f"{_who(p)} publishes {p.topic_type}, expected {channel.msgtype}"
            for p in found
            if p.topic_type != channel.msgtype
        ]
        if not found:
            problems.append("no publisher")
        if len(fitting) > 1:
            problems.append(f"{len(fitting)} publishers, expected one: {', '.join(map(_who, fitting))}")
        for publisher in fitting:
            verdict, reason = qos_check_compatible(publisher.qos_profile, channel.quality)
            if verdict == QoSCompatibility.ERROR:
                problems.append(
                    f"QoS of {_who(publisher)} does not fit, no message comes through: {reason};"
                    f" set qos_overrides.{channel.topic}.subscription.reliability (or .durability)"
                )
        return problems

    def _listen(self, name: str, msgtype: str, push: Callable[[Any], None]) -> Channel:
        try:
            kind = conversion.message_type(msgtype)
        except ImportError as error:
            raise ConfigError(
                f"topic {name}: the type {msgtype} is not installed ({error}); build and source its package"
            ) from error
        quality = QoSProfile(
            history=qos_profile_sensor_data.history,
            depth=QUEUE,
            reliability=qos_profile_sensor_data.reliability,
            durability=qos_profile_sensor_data.durability,
        )
        subscription = self._node.create_subscription(
            kind,
            name,
            push,
            quality,
            callback_group=self._aside,
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )
        self.channels[name] = Channel(subscription.topic_name, msgtype, subscription, quality)
        return self.channels[name]

    def _receive(self, channel: Channel, message: Any) -> None:
        channel.received += 1
        channel.last = time.monotonic() - self._age
        try:
            channel.subscription.callback(message)
        except MeasurementError as error:
            channel.refused += 1
            if channel.complaint != str(error):
                channel.complaint = str(error)
                self._node.get_logger().warning(f"{channel.topic}: message refused: {error}")
            return
        back = channel.newest_ns - self._time
        channel.disordered += int(0 < back < DISORDER_NS)
        channel.newest_ns = channel.newest_ns if 0 < back < DISORDER_NS else self._time

    def _stamp(self, message: Any) -> int:
        header = self._settings.stamps == "header"
        self._time = conversion.header_stamp(message) if header else self._receipt()
        return self._time

    def _receipt(self) -> int:
        return int(self._node.get_clock().now().nanoseconds) - round(self._age * NANOSECONDS)

    def _joints(self, message: Any) -> None:
        names, position, velocity, torque = conversion.joints(message)
        stamp = self._stamp(message)
        if self._settings.torque == "topic":
            torque = self._nearest_torque(stamp, names)
        self._sink.push_joints(stamp, names, position, velocity, torque)

    def _torque(self, message: Any) -> None:
        names, _, _, torque = conversion.joints(message)
        self._torques.append((self._stamp(message), dict(zip(names, torque.tolist(), strict=True))))

    def _nearest_torque(self, stamp: int, names: Sequence[str]) -> Floats:
        """Torque by name of the sample closest in time; NaN if there is none."""
        near = min(self._torques, key=lambda sample: abs(sample[0] - stamp), default=(0, {}))
        torque = near[1] if abs(near[0] - stamp) <= TORQUE_AGE_NS else {}
        return np.array([torque.get(name, np.nan) for name in names])

    def _imu(self, message: Any) -> None:
        self._push_imu(self._stamp(message), *conversion.imu(message))

    def _mocap(self, message: Any) -> None:
        self._sink.push_mocap(self._stamp(message), *conversion.pose(message))

    def _low_state(self, message: Any) -> None:
        names = self._robot.vendor_joint_names
        values = conversion.motors(message, len(names))
        stamp = self._time = self._ticks.stamp(message.tick, self._receipt())
        if self._settings.torque == "topic":
            values = (*values[:2], self._nearest_torque(stamp, names))
        self._sink.push_joints(stamp, names, *values)
        self._push_imu(stamp, *conversion.vendor_imu(message))

    def _push_imu(self, stamp: int, rate: Floats, acceleration: Floats) -> None:
        self._force = self._force + np.append(acceleration, 1.0)
        self._sink.push_imu(stamp, rate, acceleration)

    def _require_order(self) -> None:
        if not self._robot.vendor_joint_names:
            raise ConfigError(
                f"lowstate_type: got {self._settings.lowstate_type}, but {self._robot.name} names no motors;"
                " state vendor_joint_order in the robot's YAML"
            )


def _who(publisher: Any) -> str:
    if "UNKNOWN" in publisher.node_name:  # not ROS, or its name is still on its way
        return "an unknown node"
    return f"{publisher.node_namespace.rstrip('/')}/{publisher.node_name}"
