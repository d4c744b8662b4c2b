# SPDX-License-Identifier: Apache-2.0
"""Parts of the nodes that need the messages of ROS 2, but no other process."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from recordings import ROOT, assert_same
from synthetic import synthetic_estimate

from prime_ros.config import EstimatorConfig
from prime_ros.exceptions import MeasurementError
from prime_ros.measurements import ImuSamples, JointSamples, MocapSamples, Recording
from prime_ros.nodes import settings
from prime_ros.outputs import topics
from prime_ros.outputs.bag import rows, typestore
from prime_ros.outputs.cdr import encode
from prime_ros.outputs.kinematics import contact_points, joint_poses
from prime_ros.outputs.messages import frame_names, row
from prime_ros.robot import load_robot

sensor_msgs = pytest.importorskip("sensor_msgs.msg")
geometry_msgs = pytest.importorskip("geometry_msgs.msg")
nav_msgs = pytest.importorskip("nav_msgs.msg")
pytest.importorskip("prime_ros.msg")
pytest.importorskip("visualization_msgs.msg")
serialization = pytest.importorskip("rclpy.serialization")
conversion = pytest.importorskip("prime_ros.nodes.conversion")
parameters = pytest.importorskip("prime_ros.nodes.parameters")
buffering = pytest.importorskip("prime_ros.nodes.buffering")


@pytest.fixture(scope="module")
def told():
    """All topics of one knot, as the nodes publish them."""
    robot = load_robot("go2")
    estimate = rows(synthetic_estimate(), np.array([3]))
    estimate = replace(estimate, joint_names=robot.joint_names, contact_names=robot.contact_names)
    frames, poses = frame_names(robot), joint_poses(robot, estimate)
    points = contact_points(robot, estimate, poses)
    return [
        *topics.motion(estimate, frames, poses, points),
        topics.markers(estimate, robot, frames, poses, points),
        *topics.knowledge(estimate, frames),
    ]


def test_live_messages_are_those_of_the_bag(told):
    types = typestore().fielddefs
    assert {topic.name for topic in told} >= set(topics.TYPES)
    for topic in told:
        kind = conversion.message_type(topic.msgtype)
        encoded = encode(types, topic.msgtype, topic.values, 1)[0].tobytes()
        message = conversion.fill(kind(), row(topic.values, 0))
        sent = serialization.deserialize_message(serialization.serialize_message(message), kind)
        assert sent == serialization.deserialize_message(encoded, kind), topic.name


def test_joints_without_a_field_are_not_measured():
    message = sensor_msgs.JointState(name=["a", "b"], position=[1.0, 2.0], velocity=[], effort=[3.0, 4.0])
    names, position, velocity, torque = conversion.joints(message)
    assert list(names) == ["a", "b"]
    np.testing.assert_array_equal(position, [1.0, 2.0])
    np.testing.assert_array_equal(velocity, [np.nan, np.nan])
    np.testing.assert_array_equal(torque, [3.0, 4.0])


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"name": ["a", "b"], "position": [1.0]}, "position: got 1 values, expected 2"),
        ({"name": ["a", "a"], "position": [1.0, 2.0]}, "expected different names"),
    ],
)
def test_joints_that_make_no_sense_are_refused(fields, told):
    with pytest.raises(MeasurementError, match=told):
        conversion.joints(sensor_msgs.JointState(**fields))


def test_header_without_time_is_refused_with_advice():
    with pytest.raises(MeasurementError, match="stamps to receipt"):
        conversion.header_stamp(sensor_msgs.Imu())


def test_imu_may_say_that_it_has_no_sensor():
    message = sensor_msgs.Imu()
    message.angular_velocity.z = 1.5
    message.linear_acceleration_covariance[0] = conversion.NO_ESTIMATE
    rate, acceleration = conversion.imu(message)
    np.testing.assert_array_equal(rate, [0.0, 0.0, 1.5])
    assert np.isnan(acceleration).all()


@pytest.mark.parametrize("kind", ["PoseStamped", "PoseWithCovarianceStamped", "Odometry"])
def test_every_type_of_pose(kind):
    message = getattr(nav_msgs if kind == "Odometry" else geometry_msgs, kind)()
    pose = message.pose if kind == "PoseStamped" else message.pose.pose
    pose.position.x, pose.orientation.w, pose.orientation.z = 1.0, 0.8, 0.6
    position, quat = conversion.pose(message)
    np.testing.assert_array_equal(position, [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(quat, [0.0, 0.0, 0.6, 0.8])


def test_motors_of_a_lowstate_are_the_first_ones():
    motor = SimpleNamespace(q=1.0, dq=2.0, tau_est=3.0)
    message = SimpleNamespace(motor_state=[motor] * 20)
    position, velocity, torque = conversion.motors(message, 12)
    assert (position.shape, velocity[5], torque[11]) == ((12,), 2.0, 3.0)
    with pytest.raises(MeasurementError, match="got 20 motors, expected one for each of the 29"):
        conversion.motors(message, 29)


def test_motors_of_a_g1_are_legs_waist_and_arms():
    message = SimpleNamespace(motor_state=[SimpleNamespace(q=k, dq=-k, tau_est=2 * k) for k in range(35)])
    names = load_robot("g1").vendor_joint_names
    position, velocity, torque = conversion.motors(message, len(names))
    motor = dict(zip(names, position.tolist(), strict=True))
    firsts = {
        "left_hip_pitch": 0,
        "left_ankle_roll": 5,
        "right_hip_pitch": 6,
        "waist_yaw": 12,
        "waist_roll": 13,
        "waist_pitch": 14,
        "left_shoulder_pitch": 15,
        "right_shoulder_pitch": 22,
        "right_wrist_yaw": 28,
    }
    assert {name: motor[f"{name}_joint"] for name in firsts} == firsts
    assert set(names) == set(load_robot("g1").joint_names)
    np.testing.assert_array_equal([velocity, torque], [-position, 2 * position])


def test_every_setting_of_the_estimator_is_a_parameter_and_back():
    config = EstimatorConfig()
    for name, field in parameters._fields(EstimatorConfig):
        value = parameters._get(config, name)
        back = parameters.from_ros(parameters.to_ros(value))
        assert (tuple(back) if isinstance(value, tuple) else back) == value
        assert parameters._descriptor(field, False).description, name


def test_settings_of_the_nodes_are_documented():
    text = (ROOT / "docs" / "live.md").read_text()
    sections = (settings.MheSettings, settings.PfieSettings, settings.BridgeSettings)
    for name in {name for section in sections for name in section.model_fields}:
        assert f"`{name}`" in text, name


def recorded(streams: Recording, keep: float):
    store = buffering.SampleStore(keep)
    for stamp, *values in zip(
        streams.joints.stamp_ns.tolist(),
        streams.joints.position,
        streams.joints.velocity,
        streams.joints.torque,
        strict=True,
    ):
        store.push_joints(stamp, streams.joints.names, *values)
    for samples, push in ((streams.imu, store.push_imu), (streams.mocap, store.push_mocap)):
        fields = [value for name, value in vars(samples).items() if name != "stamp_ns"]
        for stamp, *values in zip(samples.stamp_ns.tolist(), *fields, strict=True):
            push(stamp, *values)
    return store.recording()


def random_recording(count: int) -> Recording:
    random, stamps = np.random.default_rng(1), 1_000_000 * np.arange(count)
    joints = JointSamples(stamps, ("a", "b"), *random.normal(size=(3, count, 2)))
    imu = ImuSamples(stamps, *random.normal(size=(2, count, 3)))
    return Recording(
        joints, MocapSamples(stamps, random.normal(size=(count, 3)), random.normal(size=(count, 4))), imu
    )


def test_live_samples_become_the_recording_they_are():
    streams = random_recording(50)
    assert_same(recorded(streams, keep=1.0), streams)


def test_only_the_last_seconds_are_kept():
    streams = random_recording(50)
    assert_same(recorded(streams, keep=0.01), streams.cropped(0.039))


def test_nothing_received_is_said():
    with pytest.raises(MeasurementError, match="0 samples of the joints and 0 of motion capture"):
        buffering.SampleStore(1.0).recording()


def test_joints_of_several_messages_are_put_together():
    store = buffering.SampleStore(1.0)
    one, other = np.array([1.0]), np.array([2.0])
    store.push_joints(0, ["a"], one, one, one)
    store.push_joints(1, ["b"], other, other, other)
    store.push_mocap(0, np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]))
    joints = store.recording().joints
    assert joints.names == ("a", "b")
    np.testing.assert_array_equal(joints.torque, [[1.0, np.nan], [np.nan, 2.0]])
