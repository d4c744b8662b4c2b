# SPDX-License-Identifier: Apache-2.0
"""A bag recorded with real rclpy: messages as ROS 2 serialises them, in the order in which they arrive."""

from __future__ import annotations

import numpy as np
from recordings import assert_same

from prime_ros.sources import SourceOptions, describe, load


def test_what_was_published_is_read(recorded_bag):
    path, published = recorded_bag
    assert_same(load(path), published)


def test_time_of_receipt_is_that_of_the_recorder(recorded_bag):
    path, published = recorded_bag
    told = describe(path)
    received = load(path, SourceOptions(stamps="receipt"))
    assert (received.start_ns, received.duration) == (told.start_ns, told.duration)
    assert (np.diff(received.joints.stamp_ns) >= 0).all()
    np.testing.assert_array_equal(received.joints.position, published.joints.position)


def test_it_is_described(recorded_bag):
    path, published = recorded_bag
    told = describe(path)
    assert (told.problems, told.notes) == ((), ())
    assert {topic.name: (topic.role, topic.count, topic.used) for topic in told.topics} == {
        "/joint_states": ("joints", len(published.joints.stamp_ns), True),
        "/imu": ("imu", len(published.imu.stamp_ns), True),
        "/mocap/pose": ("mocap", len(published.mocap.stamp_ns), True),
    }
