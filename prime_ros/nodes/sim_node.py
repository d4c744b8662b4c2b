# SPDX-License-Identifier: Apache-2.0
"""sim_node: a simulated robot that publishes what a real one does, in real time. See docs/live.md."""

from __future__ import annotations

import threading
import time
from typing import Any

from pydantic import Field
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from std_srvs.srv import Trigger

from prime_ros.config.units import Number
from prime_ros.estimation.estimate import BodyInertia
from prime_ros.nodes import conversion, running
from prime_ros.nodes.parameters import Parameters
from prime_ros.nodes.settings import ModelSettings
from prime_ros.outputs.messages import WORLD_FRAME, body, header, quaternion, vector
from prime_ros.outputs.topics import TYPES
from prime_ros.robot import load_robot
from prime_ros.simulation.payload import parse_payload
from prime_ros.simulation.sensors import SensorSample
from prime_ros.simulation.simulator import STEP, Simulator, Truth

LATE = 0.1
"""Delay after which the simulation gives up catching up, and time goes slower [s]."""
TRUTH = ("contacts", "inertia")
"""Topics below ~/truth."""
INERTIA_EVERY = 50  # steps between messages on the true inertia


class SimSettings(ModelSettings):
    """Settings of sim_node."""

    gait: str = "trot"
    """What the robot does: stand, sway, trot or hop."""

    feet: str = "soft"
    """Feet that give way by a centimetre (soft), or hardly (stiff)."""

    payload: str = ""
    """Box on the base at the start, KG[@X,Y,Z]; empty: none."""

    next_payload: str = "3"
    """Box that the service add_payload puts on the base, KG[@X,Y,Z]."""

    seed: int = Field(0, ge=0)
    """Of the noise."""

    mocap_rate: Number = Field(100.0, gt=0)
    """Poses of motion capture per second [1/s]."""


class SimNode(Node):
    """Publishes joint_states, imu and mocap, and the truth below its own name."""

    def __init__(self) -> None:
        """Start the robot."""
        super().__init__("sim")
        self.settings = Parameters(
            self, SimSettings(), fixed=SimSettings.model_fields.keys() - {"next_payload"}, on_change=_check
        )
        settings = self.settings.value
        self._robot = load_robot(settings.robot, settings.urdf or None)
        self._simulator = Simulator(
            self._robot,
            gait=settings.gait,
            feet=settings.feet,
            payload=parse_payload(settings.payload) if settings.payload else None,
            seed=settings.seed,
            mocap_rate=settings.mocap_rate,
            start_ns=0,
        )
        self._topics = {
            name: self.create_publisher(conversion.message_type(kind), name, qos_profile_sensor_data)
            for name, kind in {
                "joint_states": TYPES["joint_states"],
                "imu": "sensor_msgs/msg/Imu",
                "mocap": "geometry_msgs/msg/PoseStamped",
                **{f"~/truth/{name}": TYPES[name] for name in TRUTH},
            }.items()
        }
        # Messages are made once and filled again: making them takes as long as sending them.
        self._messages = {name: publisher.msg_type() for name, publisher in self._topics.items()}
        self._messages["joint_states"].name = list(self._robot.joint_names)
        self.create_service(Trigger, "~/add_payload", self._on_add)
        self.create_service(Trigger, "~/remove_payload", self._on_remove)
        self._in_use, self._ending = threading.Lock(), threading.Event()
        self._steps, self._start_ns = 0, 0
        self._thread = threading.Thread(target=self._run, name="simulation", daemon=True)
        self._thread.start()

    def destroy_node(self) -> None:
        """End the simulation first."""
        self._ending.set()
        self._thread.join()
        super().destroy_node()

    def _run(self) -> None:
        """Simulate in real time: every sample is computed ahead and told when its time has come."""
        begin = time.monotonic()
        self._start_ns = self.get_clock().now().nanoseconds
        while not self._ending.is_set() and self.context.ok():
            with self._in_use:
                self._simulator.step()
                sample, truth = self._simulator.sensors(), self._simulator.truth()
            ahead = begin + self._steps * STEP - time.monotonic()
            if ahead < -LATE:
                begin -= ahead
                self.get_logger().warning("slower than real time", throttle_duration_sec=5.0)
            elif ahead > 0.0:
                time.sleep(ahead)
            try:
                self._publish(sample, truth)
            except Exception:
                if self.context.ok():  # otherwise the node is ending
                    raise
                return
            self._steps += 1
            if self._simulator.fallen:
                self.get_logger().error("the robot fell")
                return

    def _publish(self, sample: SensorSample, truth: Truth) -> None:
        joints = {
            "header": header(self._start_ns + truth.stamp_ns, ""),
            "position": sample.joint_position,
            "velocity": sample.joint_velocity,
            "effort": sample.joint_torque,
        }
        self._send("joint_states", joints)
        imu = {
            "header": header(self._start_ns + truth.stamp_ns, "imu"),
            "angular_velocity": vector(sample.angular_velocity),
            "linear_acceleration": vector(sample.linear_acceleration),
        }
        self._send("imu", imu)
        if sample.mocap is not None:
            pose = {
                "position": vector(sample.mocap.position),
                "orientation": quaternion(sample.mocap.quat_xyzw),
            }
            self._send(
                "mocap", {"header": header(self._start_ns + sample.stamp_ns, WORLD_FRAME), "pose": pose}
            )
        self._tell_truth(truth)

    def _tell_truth(self, truth: Truth) -> None:
        """On topics of its own, for comparison only."""
        if not any(self._topics[f"~/truth/{name}"].get_subscription_count() for name in TRUTH):
            return
        common = header(self._start_ns + truth.stamp_ns, WORLD_FRAME)
        contacts = [
            {"contact": name, "force": vector(force), "probability": float(force[2] > 0.0)}
            for name, force in zip(self._robot.contact_names, truth.contact_force_W, strict=True)
        ]
        self._send("~/truth/contacts", {"header": common, "contacts": contacts})
        if self._steps % INERTIA_EVERY == 0:
            inertia = truth.base_inertia
            values = body(BodyInertia(inertia.mass, inertia.lever, inertia.inertia))
            links = [self._robot.base_link]
            self._send("~/truth/inertia", {"header": common, "links": links, "estimate": [values]})

    def _send(self, topic: str, values: dict[str, Any]) -> None:
        self._topics[topic].publish(conversion.fill(self._messages[topic], values))

    def _on_add(self, request: Any, response: Any) -> Any:
        payload = parse_payload(self.settings.value.next_payload)
        with self._in_use:
            self._simulator.add_payload(payload)
        response.success, response.message = True, f"{payload.mass} kg at {payload.position} m"
        return response

    def _on_remove(self, request: Any, response: Any) -> Any:
        with self._in_use:
            response.success = bool(self._simulator.payloads)
            if response.success:
                self._simulator.remove_payload()
        response.message = "" if response.success else "there is no payload"
        return response


def _check(settings: SimSettings) -> None:
    parse_payload(settings.next_payload)


def main() -> None:
    """Entry point of sim_node."""
    running.run(SimNode)


if __name__ == "__main__":
    main()
