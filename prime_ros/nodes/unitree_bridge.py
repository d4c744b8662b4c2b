# SPDX-License-Identifier: Apache-2.0
"""unitree_bridge: lowstate of a Unitree robot as JointState and Imu, without Unitree's ROS packages.

Needs unitree_sdk2py (PyPI: unitree-sdk2py-dimos). It talks DDS to the robot itself, beside ROS.
"""

from __future__ import annotations

import importlib
from array import array
from typing import Any

from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import Imu, JointState

from prime_ros.exceptions import ConfigError, MeasurementError
from prime_ros.measurements.samples import NANOSECONDS
from prime_ros.measurements.tick_clock import TickClock
from prime_ros.nodes import conversion, running
from prime_ros.nodes.parameters import Parameters
from prime_ros.nodes.settings import BridgeSettings
from prime_ros.robot import load_robot

SDK = "unitree_sdk2py"


class UnitreeBridge(Node):
    """Publishes joint_states and imu, joints by name, stamped on the clock of this machine."""

    def __init__(self) -> None:
        """Connect to the robot.

        Raises:
            ConfigError: If the SDK is not installed, cannot connect, or the robot names no motors.
        """
        self._subscriber: Any = None
        super().__init__("unitree_bridge")
        self.settings = Parameters(self, BridgeSettings()).value
        robot = load_robot(self.settings.robot, self.settings.urdf or None)
        self._names = list(robot.vendor_joint_names)
        if not self._names:
            raise ConfigError(f"{robot.name} names no motors; state vendor_joint_order in the robot's YAML")
        self._ticks = TickClock()
        self._joints = self.create_publisher(JointState, "joint_states", qos_profile_sensor_data)
        self._imu = self.create_publisher(Imu, "imu", qos_profile_sensor_data)
        self._received = 0
        self.create_timer(1.0, self._watch)
        self._subscriber = self._connect()

    def destroy_node(self) -> None:
        """Disconnect."""
        if self._subscriber is not None:
            self._subscriber.Close()
        super().destroy_node()

    def _connect(self) -> Any:
        settings = self.settings
        try:
            channel = importlib.import_module(f"{SDK}.core.channel")
            types = importlib.import_module(f"{SDK}.idl.{settings.message}.msg.dds_")
        except ImportError as error:
            raise ConfigError(
                f"unitree_bridge needs {SDK} ({error}): pip install unitree-sdk2py-dimos; with Unitree's ROS"
                " packages instead, set lowstate_type of mhe_node"
            ) from error
        try:
            channel.ChannelFactoryInitialize(settings.domain, settings.interface or None)
            subscriber = channel.ChannelSubscriber(settings.dds_topic, types.LowState_)
            subscriber.Init(self._receive, 10)
        except Exception as error:  # the SDK raises plain exceptions
            raise ConfigError(
                f"no connection: interface '{settings.interface}', domain {settings.domain}: {error}"
            ) from error
        return subscriber

    def _receive(self, message: Any) -> None:
        """Called by the SDK, in a thread of its own."""
        try:
            self._forward(message)
        except Exception:
            if self.context.ok():  # otherwise the node is ending
                raise

    def _forward(self, message: Any) -> None:
        receipt = self.get_clock().now().nanoseconds
        self._received += 1
        try:
            values = conversion.motors(message, len(self._names))
        except MeasurementError as error:
            self.get_logger().error(str(error), throttle_duration_sec=5.0)
            return
        stamp = self._ticks.stamp(message.tick, receipt)
        joints = JointState(name=self._names)
        joints.position, joints.velocity, joints.effort = (array("d", v.tolist()) for v in values)
        self._joints.publish(_stamped(joints, stamp, ""))
        rate, acceleration = conversion.vendor_imu(message)
        imu = Imu()
        imu.orientation_covariance[0] = conversion.NO_ESTIMATE  # the estimate does not need it
        values_of = {"angular_velocity": rate, "linear_acceleration": acceleration}
        for name, vector in values_of.items():
            conversion.fill(getattr(imu, name), dict(zip("xyz", vector.tolist(), strict=True)))
        self._imu.publish(_stamped(imu, stamp, self.settings.imu_frame))

    def _watch(self) -> None:
        """Say so if nothing comes."""
        if not self._received:
            self.get_logger().warning(
                f"nothing on {self.settings.dds_topic} in domain {self.settings.domain};"
                " is the network interface the one to the robot?",
                throttle_duration_sec=10.0,
            )
        self._received = 0


def _stamped(message: Any, stamp_ns: int, frame: str) -> Any:
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp_ns, NANOSECONDS)
    message.header.frame_id = frame
    return message


def main() -> None:
    """Entry point of unitree_bridge."""
    running.run(UnitreeBridge)


if __name__ == "__main__":
    main()
