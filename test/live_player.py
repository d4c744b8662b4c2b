# SPDX-License-Identifier: Apache-2.0
"""Plays a recording to ROS 2 topics as a robot would publish it, in a process of its own.

    python live_player.py TABLE [--loops 2] [--reliability best_effort] [--clock] [--fault NAME]

Topics: joint_states, imu, mocap. A fault changes the messages of an interval (--at S --for S).
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from geometry_msgs.msg import PoseStamped
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState

from prime_ros.measurements import Recording
from prime_ros.sources import read_table

NS = 1_000_000_000
DISCOVERY = 20.0  # [s] for the listener to appear
Item = tuple[int, str, Any]  # when to publish [ns], topic, message


def queue(recording: Recording) -> list[Item]:
    """All messages in the order of their stamps."""
    items: list[Item] = []
    joints, imu, mocap = recording.joints, recording.imu, recording.mocap
    for k, stamp in enumerate(joints.stamp_ns.tolist()):
        message = JointState(name=list(joints.names))
        message.position, message.velocity = joints.position[k].tolist(), joints.velocity[k].tolist()
        message.effort = joints.torque[k].tolist()
        items.append((stamp, "joint_states", stamped(message, stamp)))
    for k, stamp in enumerate(() if imu is None else imu.stamp_ns.tolist()):
        message = Imu()
        set_fields(message.angular_velocity, "xyz", imu.angular_velocity[k])
        set_fields(message.linear_acceleration, "xyz", imu.linear_acceleration[k])
        items.append((stamp, "imu", stamped(message, stamp)))
    for k, stamp in enumerate(mocap.stamp_ns.tolist()):
        message = PoseStamped()
        set_fields(message.pose.position, "xyz", mocap.position[k])
        set_fields(message.pose.orientation, "xyzw", mocap.quat_xyzw[k])
        items.append((stamp, "mocap", stamped(message, stamp)))
    return sorted(items, key=lambda item: item[0])


def stamped(message: Any, stamp: int) -> Any:
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, NS)
    return message


def set_fields(message: Any, names: str, values: np.ndarray) -> None:
    for name, value in zip(names, values.tolist(), strict=True):
        setattr(message, name, value)


def of(topic: str, change: Callable[[Any], None]) -> Callable[[list[Item], Any], list[Item]]:
    """Fault that changes every message of a topic."""

    def apply(items: list[Item], random: Any) -> list[Item]:
        for _, name, message in items:
            if name == topic:
                change(message)
        return items

    return apply


def zeros(message: PoseStamped) -> None:
    set_fields(message.pose.position, "xyz", np.zeros(3))
    set_fields(message.pose.orientation, "xyzw", np.zeros(4))


def nan_encoder(message: JointState) -> None:
    message.position[4] = math.nan


def wrong_name(message: JointState) -> None:
    message.name = ["bogus_joint", *message.name[1:]]


def wxyz(message: PoseStamped) -> None:
    q = message.pose.orientation
    set_fields(q, "xyzw", np.array([q.w, q.x, q.y, q.z]))


def upside_down(message: Imu) -> None:
    for vector in (message.angular_velocity, message.linear_acceleration):
        vector.y, vector.z = -vector.y, -vector.z


def short(message: JointState) -> None:
    message.effort = message.effort[:3]


def drops(items: list[Item], random: Any) -> list[Item]:
    return [item for item in items if random.random() > 0.05]


def jitter(items: list[Item], random: Any) -> list[Item]:
    """Every message comes up to 20 ms late, out of order."""
    return [(when + int(random.uniform(0, 0.02) * NS), name, message) for when, name, message in items]


def without(topic: str) -> Callable[[list[Item], Any], list[Item]]:
    return lambda items, random: [item for item in items if item[1] != topic]


FAULTS: dict[str, Callable[[list[Item], Any], list[Item]]] = {
    "drops": drops,
    "jitter": jitter,
    "no-mocap": without("mocap"),
    "no-imu": without("imu"),
    "no-joints": without("joint_states"),
    "mocap-zeros": of("mocap", zeros),
    "mocap-wxyz": of("mocap", wxyz),
    "nan-encoder": of("joint_states", nan_encoder),
    "wrong-name": of("joint_states", wrong_name),
    "short-effort": of("joint_states", short),
    "imu-upside-down": of("imu", upside_down),
    "no-stamp": of("joint_states", lambda message: stamped(message, 0)),
}


def faulty(items: list[Item], fault: str, begin: float, length: float) -> list[Item]:
    start = items[0][0]
    inside = [begin <= (when - start) / NS < begin + length for when, _, _ in items]
    changed = [item for item, hit in zip(items, inside, strict=True) if hit]
    rest = [item for item, hit in zip(items, inside, strict=True) if not hit]
    return sorted([*rest, *FAULTS[fault](changed, np.random.default_rng(0))], key=lambda item: item[0])


def play(items: list[Item], reliability: str, loops: int, clock: bool, listeners: int) -> None:
    """Publish in real time, in the same order; again and again with the same stamps."""
    rclpy.init()
    node = rclpy.create_node("player")
    quality = QoSProfile(depth=100, reliability=ReliabilityPolicy[reliability.upper()])
    kinds = {"joint_states": JointState, "imu": Imu, "mocap": PoseStamped}
    publishers = {name: node.create_publisher(kind, name, quality) for name, kind in kinds.items()}
    ticker = node.create_publisher(Clock, "/clock", 10)
    end = time.monotonic() + DISCOVERY
    found = False
    while not found and time.monotonic() < end:
        time.sleep(0.02)
        found = all(p.get_subscription_count() >= listeners for p in publishers.values())
    time.sleep(0.3)  # those who listen to the estimate find each other, too
    for _ in range(loops):
        begin, first, ticked = time.monotonic(), items[0][0], 0
        for when, name, message in items:
            wait = (when - first) / NS - (time.monotonic() - begin)
            if wait > 0:
                time.sleep(wait)
            if clock and when - ticked >= NS // 100:
                ticked = when
                seconds, rest = divmod(when, NS)
                tick = Clock()
                tick.clock.sec, tick.clock.nanosec = seconds, rest
                ticker.publish(tick)
            publishers[name].publish(message)
    time.sleep(0.5)
    node.destroy_node()
    rclpy.shutdown()


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--loops", type=int, default=1)
    parser.add_argument("--reliability", choices=("best_effort", "reliable"), default="best_effort")
    parser.add_argument("--listeners", type=int, default=1, help="to wait for, per topic")
    parser.add_argument("--clock", action="store_true", help="publish /clock")
    parser.add_argument("--fault", choices=sorted(FAULTS))
    parser.add_argument("--at", type=float, default=2.0)
    parser.add_argument("--for", dest="length", type=float, default=1.0)
    options = parser.parse_args()
    items = queue(read_table(options.table))
    if options.fault:
        items = faulty(items, options.fault, options.at, options.length)
    play(items, options.reliability, options.loops, options.clock, options.listeners)


if __name__ == "__main__":
    main()
