# SPDX-License-Identifier: Apache-2.0
"""Bags of every kind that users bring, written with rosbags: other types of messages, split, compressed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from rosbags.interfaces import Nodetype
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from prime_ros.measurements import MocapSamples, Recording
from prime_ros.sources import rosbag_writer as ours

JOINT_STATE = "sensor_msgs/msg/JointState"
IMU = "sensor_msgs/msg/Imu"
GO = "unitree_go/msg/LowState"
HG = "unitree_hg/msg/LowState"
SEPARATOR = "\n" + "=" * 80 + "\n"

# Public formats of the vendor's messages; the reader knows nothing of them but the fields that it needs.
_MOTOR = "uint8 mode\nfloat32 q\nfloat32 dq\nfloat32 ddq\nfloat32 tau_est\n"
_INERTIAL = "float32[4] quaternion\nfloat32[3] gyroscope\nfloat32[3] accelerometer\nfloat32[3] rpy\n"
LOW_STATES = {
    GO: SEPARATOR.join(
        [
            "uint8[2] head\nuint8 level_flag\nuint8 frame_reserve\nuint32[2] sn\nuint32[2] version\n"
            "uint16 bandwidth\nIMUState imu_state\nMotorState[20] motor_state\nBmsState bms_state\n"
            "int16[4] foot_force\nint16[4] foot_force_est\nuint32 tick\nuint8[40] wireless_remote\n"
            "uint8 bit_flag\nfloat32 adc_reel\nint8 temperature_ntc1\nint8 temperature_ntc2\n"
            "float32 power_v\nfloat32 power_a\nuint16[4] fan_frequency\nuint32 reserve\nuint32 crc",
            f"MSG: unitree_go/IMUState\n{_INERTIAL}int8 temperature",
            f"MSG: unitree_go/MotorState\n{_MOTOR}float32 q_raw\nfloat32 dq_raw\nfloat32 ddq_raw\n"
            "int8 temperature\nuint32 lost\nuint32[2] reserve",
            "MSG: unitree_go/BmsState\nuint8 version_high\nuint8 version_low\nuint8 status\nuint8 soc\n"
            "int32 current\nuint16 cycle\nint8[2] bq_ntc\nint8[2] mcu_ntc\nuint16[15] cell_vol",
        ]
    ),
    HG: SEPARATOR.join(
        [
            "uint32[2] version\nuint8 mode_pr\nuint8 mode_machine\nuint32 tick\nIMUState imu_state\n"
            "MotorState[35] motor_state\nuint8[40] wireless_remote\nuint32[4] reserve\nuint32 crc",
            f"MSG: unitree_hg/IMUState\n{_INERTIAL}int16 temperature",
            f"MSG: unitree_hg/MotorState\n{_MOTOR}int16[2] temperature\nfloat32 vol\nuint32[2] sensor\n"
            "uint32 motorstate\nuint32[4] reserve",
        ]
    ),
}


Messages = Iterable[tuple[int, Any]]
"""Receipt [ns], and a message or its serialised form."""


def types() -> Typestore:
    """Standard messages and those of the vendor."""
    store = get_typestore(Stores.LATEST)
    for name, text in LOW_STATES.items():
        store.register(get_types_from_msg(text, name))
    return store


TYPES = types()


def new(msgtype: str, *values: Any) -> Any:
    return TYPES.types[msgtype](*values)


def blank(msgtype: str) -> Any:
    """A message without strings and sequences, zeros everywhere."""
    return new(msgtype, *(_zero(*kind) for _, kind in TYPES.fielddefs[msgtype][1]))


def _zero(node: Nodetype, detail: Any) -> Any:
    if node == Nodetype.NAME:
        return blank(detail)
    if node == Nodetype.BASE:
        return 0.0 if detail[0].startswith("float") else 0
    (kind, name), count = detail
    return [blank(name) for _ in range(count)] if kind == Nodetype.NAME else np.zeros(count, name[0])


def serialised(message: Any, msgtype: str) -> bytes | memoryview:
    """A message, unless it is serialised already, as bytes."""
    return message if isinstance(message, bytes | memoryview) else TYPES.serialize_cdr(message, msgtype)


def write_bag(
    path: Path,
    streams: Sequence[tuple[str, str, Messages]],
    storage: str = "mcap",
    compression: str = "none",
) -> Path:
    """A bag of (topic, type, messages); `compression`: none, message, file, or storage (chunks of mcap)."""
    writer = Writer(path, version=9, storage_plugin=StoragePlugin[storage.upper()])
    writer.set_compression(CompressionMode[compression.upper()], CompressionFormat.ZSTD)
    queue = []
    with writer:
        for topic, msgtype, messages in streams:
            connection = writer.add_connection(topic, msgtype, typestore=TYPES)
            queue += [(stamp, connection, message) for stamp, message in messages]
        for stamp, connection, message in sorted(queue, key=lambda item: item[0]):
            writer.write(connection, stamp, serialised(message, connection.msgtype))
    return path


def write_split(path: Path, parts: Sequence[Recording], storage: str) -> Path:
    """One bag of several files, as a recorder leaves that splits by duration."""
    path.mkdir()
    whole: dict[str, Any] = {}
    for index, part in enumerate(parts):
        piece = path / "piece"
        ours.write_rosbag(part, piece, storage)
        suffix = {"mcap": ".mcap", "sqlite3": ".db3"}[storage]
        name = f"{path.name}_{index}{suffix}"
        (piece / f"piece{suffix}").rename(path / name)
        content = yaml.safe_load((piece / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
        (piece / "metadata.yaml").unlink()
        piece.rmdir()
        content["relative_file_paths"] = [name]
        content["files"][0]["path"] = name
        if not whole:
            whole = content
            continue
        for key in ("relative_file_paths", "files"):
            whole[key] += content[key]
        whole["message_count"] += content["message_count"]
        for topic, more in zip(
            whole["topics_with_message_count"], content["topics_with_message_count"], strict=True
        ):
            topic["message_count"] += more["message_count"]
    (path / "metadata.yaml").write_text(yaml.safe_dump({"rosbag2_bagfile_information": whole}))
    return path


def streams_of(recording: Recording) -> list[tuple[str, str, Messages]]:
    """JointState, PoseStamped and Imu of a recording."""
    streams = [
        ("/joint_states", JOINT_STATE, ours._joint_messages(recording.joints)),
        ("/mocap", ours.POSE_STAMPED, ours._mocap_messages(recording.mocap)),
    ]
    if recording.imu is not None:
        streams.append(("/imu", IMU, ours._imu_messages(recording.imu)))
    return streams


def low_states(
    recording: Recording, order: Sequence[str], msgtype: str = GO, tick0: int = 0, delay: Any = 0
) -> Iterator[tuple[int, Any]]:
    """Joints and IMU, sampled together, as the vendor's messages with motors in its `order` and a counter.

    `delay`: from sampling to receipt [ns], a number or one per message.
    """
    joints, imu = recording.joints, recording.imu
    assert imu is not None
    np.testing.assert_array_equal(joints.stamp_ns, imu.stamp_ns)
    columns = [joints.names.index(name) for name in order]
    message = blank(msgtype)
    ticks = tick0 + np.round((joints.stamp_ns - joints.stamp_ns[0]) / 1e6).astype(np.int64)
    receipt = joints.stamp_ns + np.broadcast_to(np.asarray(delay, np.int64), joints.stamp_ns.shape)
    for i in range(len(ticks)):
        for motor, column in zip(message.motor_state, columns, strict=False):
            motor.q, motor.dq, motor.tau_est = (
                float(table[i, column]) for table in (joints.position, joints.velocity, joints.torque)
            )
        message.imu_state.gyroscope = imu.angular_velocity[i].astype(np.float32)
        message.imu_state.accelerometer = imu.linear_acceleration[i].astype(np.float32)
        message.tick = int(ticks[i] % 2**32)
        yield int(receipt[i]), TYPES.serialize_cdr(message, msgtype)


def poses(samples: MocapSamples, msgtype: str, body: str = "go2") -> Iterator[tuple[int, Any]]:
    """Motion capture as messages of another type."""
    covariance = np.zeros(36)
    for stamp, pose in ours._mocap_messages(samples):
        geometry = "geometry_msgs/msg"
        if msgtype == "geometry_msgs/msg/PoseWithCovarianceStamped":
            yield (
                stamp,
                new(msgtype, pose.header, new(f"{geometry}/PoseWithCovariance", pose.pose, covariance)),
            )
        elif msgtype == "nav_msgs/msg/Odometry":
            zero = new(f"{geometry}/Vector3", 0.0, 0.0, 0.0)
            twist = new(f"{geometry}/TwistWithCovariance", new(f"{geometry}/Twist", zero, zero), covariance)
            whole = new(f"{geometry}/PoseWithCovariance", pose.pose, covariance)
            yield stamp, new(msgtype, pose.header, body, whole, twist)
        elif msgtype == ours.POSE_STAMPED:
            yield stamp, pose
        else:
            at, turn = pose.pose.position, pose.pose.orientation
            moved = new(f"{geometry}/Transform", new(f"{geometry}/Vector3", at.x, at.y, at.z), turn)
            transform = new(f"{geometry}/TransformStamped", pose.header, body, moved)
            yield stamp, transform if msgtype.endswith("TransformStamped") else new(msgtype, [transform])
