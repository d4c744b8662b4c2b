# SPDX-License-Identifier: Apache-2.0
"""A bag recorded with real rclpy: one process publishes a recording, another one receives and writes it.

    python record_bag.py TABLE BAG [--storage mcap]

Topics: /joint_states, /imu, /mocap/pose. Every message goes through the middleware, reliably. The recorder
takes serialised messages as they come, as `ros2 bag record` does, and writes them with rosbags: the wheels of
ROS 2 that the tests use have no rosbag2_py.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from prime_ros.measurements import Recording
from prime_ros.sources import read_table, write_table

TOPICS = {
    "/joint_states": "sensor_msgs/msg/JointState",
    "/imu": "sensor_msgs/msg/Imu",
    "/mocap/pose": "geometry_msgs/msg/PoseStamped",
}
TIMEOUT = 30.0
"""For everything together [s]."""


def record_bag(recording: Recording, bag: Path, storage: str = "mcap") -> Path:
    """Publish a recording and record it; the bag's folder must not exist."""
    table = bag.with_name(f"{bag.name}.npz")
    write_table(recording, table)
    environment = {
        **os.environ,
        "ROS_DOMAIN_ID": str(1 + os.getpid() % 100),  # apart from whatever else runs here
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    command = [sys.executable, str(Path(__file__).resolve()), str(table), str(bag), "--storage", storage]
    recorder = subprocess.Popen([*command, "--part", "record"], env=environment, cwd="/")
    try:
        subprocess.run([*command, "--part", "publish"], env=environment, cwd="/", check=True, timeout=TIMEOUT)
        if recorder.wait(TIMEOUT) != 0:
            raise RuntimeError(f"the recorder exited with {recorder.returncode}")
    finally:
        recorder.kill()
    return bag


def _quality() -> Any:
    from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy

    return QoSProfile(history=HistoryPolicy.KEEP_ALL, reliability=ReliabilityPolicy.RELIABLE)


def _type(name: str) -> Any:
    import geometry_msgs.msg
    import sensor_msgs.msg

    package, _, message = name.split("/")
    return getattr({"sensor_msgs": sensor_msgs.msg, "geometry_msgs": geometry_msgs.msg}[package], message)


def _counts(recording: Recording) -> dict[str, int]:
    streams = dict(zip(TOPICS, (recording.joints, recording.imu, recording.mocap), strict=True))
    return {topic: len(samples.stamp_ns) for topic, samples in streams.items() if samples is not None}


def publish(recording: Recording) -> None:
    """Publish all messages in the order of their stamps, once the recorder is there."""
    import rclpy
    from rclpy.duration import Duration
    from rclpy.serialization import deserialize_message
    from rosbags.typesys import Stores, get_typestore

    from prime_ros.sources import rosbag_writer as ours

    rclpy.init()
    node = rclpy.create_node("publisher")
    publishers = {name: node.create_publisher(_type(kind), name, _quality()) for name, kind in TOPICS.items()}
    types = get_typestore(Stores.ROS2_HUMBLE)
    imu = () if recording.imu is None else ours._imu_messages(recording.imu)
    streams = (ours._joint_messages(recording.joints), imu, ours._mocap_messages(recording.mocap))
    queue = [
        (stamp, name, bytes(types.serialize_cdr(message, TOPICS[name])))
        for name, messages in zip(TOPICS, streams, strict=True)
        for stamp, message in messages
    ]
    while not all(publisher.get_subscription_count() for publisher in publishers.values()):
        time.sleep(0.01)
    for _, name, raw in sorted(queue):
        publishers[name].publish(deserialize_message(raw, _type(TOPICS[name])))
    for publisher in publishers.values():
        publisher.wait_for_all_acked(Duration(seconds=TIMEOUT))
    node.destroy_node()
    rclpy.shutdown()


def record(recording: Recording, bag: Path, storage: str) -> None:
    """Receive as many messages as there are, and write them with the time of their receipt."""
    import rclpy
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    rclpy.init()
    node = rclpy.create_node("recorder")
    received: list[tuple[int, str, bytes]] = []
    for name, kind in TOPICS.items():
        node.create_subscription(
            _type(kind),
            name,
            lambda raw, name=name: received.append((time.time_ns(), name, bytes(raw))),
            _quality(),
            raw=True,
        )
    expected = sum(_counts(recording).values())
    end = time.monotonic() + TIMEOUT
    while len(received) < expected and time.monotonic() < end:
        rclpy.spin_once(node, timeout_sec=0.1)
    node.destroy_node()
    rclpy.shutdown()
    if len(received) < expected:
        sys.exit(f"received {len(received)} of {expected} messages")
    types = get_typestore(Stores.ROS2_HUMBLE)
    with Writer(bag, version=9, storage_plugin=StoragePlugin[storage.upper()]) as writer:
        connections = {
            name: writer.add_connection(name, kind, typestore=types) for name, kind in TOPICS.items()
        }
        for stamp, name, raw in received:
            writer.write(connections[name], stamp, raw)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", type=Path)
    parser.add_argument("bag", type=Path)
    parser.add_argument("--storage", choices=("mcap", "sqlite3"), default="mcap")
    parser.add_argument("--part", choices=("publish", "record"), help="only this process")
    options = parser.parse_args()
    recording = read_table(options.table)
    if options.part == "publish":
        publish(recording)
    elif options.part == "record":
        record(recording, options.bag, options.storage)
    else:
        record_bag(recording, options.bag, options.storage)


if __name__ == "__main__":
    main()
