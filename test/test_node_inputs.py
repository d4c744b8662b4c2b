# SPDX-License-Identifier: Apache-2.0
"""What a node says about the publishers of its inputs, and what becomes of their messages; in one process."""

from __future__ import annotations

import time

import numpy as np
import pytest

from prime_ros.nodes.settings import InputSettings
from prime_ros.robot import load_robot

live = pytest.importorskip("live_session")
inputs = pytest.importorskip("prime_ros.nodes.inputs")
qos = pytest.importorskip("rclpy.qos")
nav_msgs = pytest.importorskip("nav_msgs.msg")
sensor_msgs = pytest.importorskip("sensor_msgs.msg")


class Kept:
    """Keeps what is pushed."""

    def __init__(self):
        self.joints, self.imu, self.mocap = [], [], []

    def push_joints(self, *sample):
        self.joints.append(sample)

    def push_imu(self, *sample):
        self.imu.append(sample)

    def push_mocap(self, *sample):
        self.mocap.append(sample)


@pytest.fixture(scope="module")
def session():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        session = live.Session()
        yield session
        session.close()


@pytest.fixture
def listening(session):
    """Makes Inputs on the node of the session; closed at the end."""
    made = []

    def make(**settings):
        sink = Kept()
        made.append(inputs.Inputs(session.node, InputSettings(**settings), load_robot("go2"), sink))
        return made[-1], sink

    yield make
    for one in made:
        one.close()


def joint_state(second, **fields):
    message = sensor_msgs.JointState(name=["FL_hip_joint", "FR_hip_joint"], **fields)
    message.header.stamp.sec = second
    return message


def connected(publisher):
    live.until(publisher.get_subscription_count, "subscription")
    return publisher


def taken(topics, condition, what):
    """Take messages until a condition is met."""

    def met():
        topics.take(0.02)
        return condition()

    live.until(met, what)


def test_publishers_that_do_not_fit_are_named(session, listening):
    session.node.declare_parameter("qos_overrides./imu.subscription.reliability", "reliable")
    topics, _ = listening()
    assert topics.problems("joint_states") == ["no publisher"]
    with session.stranger() as node:
        for _ in range(2):
            node.create_publisher(sensor_msgs.JointState, "joint_states", 10)
        node.create_publisher(sensor_msgs.Imu, "imu", qos.qos_profile_sensor_data)
        node.create_publisher(nav_msgs.Odometry, "mocap", 10)
        twice = seen(topics, "joint_states", "/stranger, /stranger")
        assert twice == "2 publishers, expected one: /stranger, /stranger"
        assert "qos_overrides./imu.subscription.reliability" in seen(topics, "imu", "QoS of /stranger")
        other = seen(topics, "mocap", "/stranger publishes")
        assert other == "/stranger publishes nav_msgs/msg/Odometry, expected geometry_msgs/msg/PoseStamped"


def seen(topics, name, words):
    """The problem of a topic that has some words, once it is there."""
    found = live.until(lambda: [text for text in topics.problems(name) if words in text], words)
    return found[0]


def test_samples_arrive_as_they_were_sent(session, listening):
    topics, kept = listening()
    publisher = connected(session.node.create_publisher(sensor_msgs.JointState, "joint_states", 10))
    publisher.publish(joint_state(1, position=[0.1, 0.2], effort=[3.0, 4.0]))
    publisher.publish(joint_state(2, position=[0.1], effort=[3.0, 4.0]))
    publisher.publish(joint_state(0, position=[0.1, 0.2]))
    publisher.publish(joint_state(3, position=[0.1, 0.2]))
    taken(topics, lambda: len(kept.joints) == 2, "samples")
    stamp, names, position, velocity, torque = kept.joints[0]
    assert (stamp, list(names)) == (1_000_000_000, ["FL_hip_joint", "FR_hip_joint"])
    np.testing.assert_array_equal(position, [0.1, 0.2])
    np.testing.assert_array_equal(torque, [3.0, 4.0])
    assert np.isnan(velocity).all()
    channel = topics.channels["joint_states"]
    assert (channel.received, channel.refused) == (4, 2)
    assert "without time" in channel.complaint


def test_torque_of_its_own_topic_is_the_one_closest_in_time(session, listening):
    topics, kept = listening(torque="topic")
    torques = connected(session.node.create_publisher(sensor_msgs.JointState, "joint_torques", 10))
    joints = connected(session.node.create_publisher(sensor_msgs.JointState, "joint_states", 10))
    for offset, torque in ((0, 5.0), (4_000_000, 6.0)):
        message = joint_state(7, effort=[torque, -torque])
        message.name.reverse()
        message.header.stamp.nanosec = offset
        torques.publish(message)
    taken(topics, lambda: topics.channels["joint_torques"].received == 2, "torques")
    assert kept.joints == []
    for second, offset in ((7, 3_000_000), (9, 0)):
        message = joint_state(second, position=[0.0, 0.0], effort=[1.0, 1.0])
        message.header.stamp.nanosec = offset
        joints.publish(message)
    taken(topics, lambda: len(kept.joints) == 2, "samples")
    np.testing.assert_array_equal(kept.joints[0][4], [-6.0, 6.0])
    assert np.isnan(kept.joints[1][4]).all()  # two seconds later, that torque says nothing


def test_what_waits_is_taken_oldest_first_and_not_all_at_once(session, listening):
    topics, kept = listening()
    publisher = connected(session.node.create_publisher(sensor_msgs.JointState, "joint_states", 100))
    count = inputs.AT_ONCE + 20
    for second in range(1, count + 1):
        publisher.publish(joint_state(second, position=[0.1, 0.2]))
        time.sleep(0.001)
    time.sleep(0.3)
    topics.take(0.02)
    assert [sample[0] // 1_000_000_000 for sample in kept.joints] == list(range(1, inputs.AT_ONCE + 1))
    taken(topics, lambda: len(kept.joints) == count, "rest")
    assert topics.channels["joint_states"].disordered == 0


def test_time_of_receipt_is_that_of_the_middleware(session, listening):
    """However long the estimator is busy before it takes the message."""
    topics, kept = listening(stamps="receipt")
    publisher = connected(session.node.create_publisher(sensor_msgs.JointState, "joint_states", 10))
    before = time.time_ns()
    publisher.publish(joint_state(0, position=[0.1, 0.2]))
    after = time.time_ns()
    time.sleep(0.6)
    taken(topics, lambda: kept.joints, "sample")
    assert before <= kept.joints[0][0] < after + 300_000_000
    assert time.monotonic() - topics.channels["joint_states"].last > 0.3
