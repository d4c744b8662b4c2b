# SPDX-License-Identifier: Apache-2.0
"""Topics of every type that users record: which is chosen, and that their messages mean the same."""

from __future__ import annotations

from dataclasses import replace

import bags
import numpy as np
import pytest
from bags import GO, HG, IMU, JOINT_STATE
from recordings import EPOCH, assert_same, recording

from prime_ros.exceptions import SourceError
from prime_ros.sources import SourceOptions, Topics, describe, load

NAMES = ("hip", "knee", "ankle")
VENDOR = ("ankle", "hip", "knee")
POSE = "geometry_msgs/msg/PoseStamped"
TF = "tf2_msgs/msg/TFMessage"
TRANSFORM = "geometry_msgs/msg/TransformStamped"
MOCAP_TYPES = ("geometry_msgs/msg/PoseWithCovarianceStamped", "nav_msgs/msg/Odometry", TRANSFORM, TF)
WHOLE = recording(NAMES, 0.2)


def options(**topics: str) -> SourceOptions:
    return SourceOptions(Topics(**topics), vendor_joint_names=VENDOR)


def mocap(msgtype: str, body: str = "go2", topic: str = "/mocap"):
    return topic, msgtype, bags.poses(WHOLE.mocap, msgtype, body)


def low_state(msgtype: str = GO, topic: str = "/lowstate"):
    return topic, msgtype, bags.low_states(WHOLE, VENDOR, msgtype)


@pytest.mark.parametrize("msgtype", MOCAP_TYPES)
def test_every_type_of_motion_capture_says_the_same(tmp_path, msgtype):
    joints, _, imu = bags.streams_of(WHOLE)
    path = bags.write_bag(tmp_path / "bag", [joints, mocap(msgtype), imu])
    got = load(path)
    assert_same(got, WHOLE)
    doubtful = msgtype in ("nav_msgs/msg/Odometry", TF)
    assert ["not what the robot itself estimates" in note for note in got.notes] == [True] * doubtful
    assert load(path, options(mocap="/mocap")).notes == ()


@pytest.mark.parametrize("msgtype", [GO, HG])
def test_a_low_state_is_joints_in_the_vendors_order_and_imu(tmp_path, msgtype):
    path = bags.write_bag(tmp_path / "bag", [low_state(msgtype), mocap(TRANSFORM)])
    got = load(path, options())
    assert got.joints.names == VENDOR
    for name in NAMES:
        for field in ("position", "velocity", "torque"):
            exact = getattr(WHOLE.joints, field)[:, WHOLE.joints.names.index(name)]
            read = getattr(got.joints, field)[:, got.joints.names.index(name)]
            np.testing.assert_array_equal(read, exact.astype(np.float32))
    assert got.imu is not None
    np.testing.assert_array_equal(got.imu.angular_velocity, WHOLE.imu.angular_velocity.astype(np.float32))
    np.testing.assert_array_equal(
        got.imu.linear_acceleration, WHOLE.imu.linear_acceleration.astype(np.float32)
    )
    np.testing.assert_array_equal(got.joints.stamp_ns, WHOLE.joints.stamp_ns)
    np.testing.assert_array_equal(got.imu.stamp_ns, got.joints.stamp_ns)


def test_motors_without_names_ask_for_the_vendors_order(tmp_path):
    path = bags.write_bag(tmp_path / "bag", [low_state(), mocap(POSE)])
    with pytest.raises(SourceError, match=r"20 motors without names.*vendor_joint_order in the robot's YAML"):
        load(path)
    with pytest.raises(SourceError, match="got 20 motors, expected one for each of the 21 joints"):
        load(path, SourceOptions(vendor_joint_names=tuple(f"j{index}" for index in range(21))))
    assert load(path, SourceOptions(number_motors=True)).joints.names[:2] == ("motor_0", "motor_1")


def test_joint_states_beside_low_states_need_a_choice(tmp_path):
    path = bags.write_bag(tmp_path / "bag", [*bags.streams_of(WHOLE), low_state()])
    with pytest.raises(SourceError) as caught:
        load(path, options())
    lines = str(caught.value).splitlines()
    assert len(lines) == 2
    assert "joints: got 2 topics that fit" in lines[0]
    assert "--topic joints=/joint_states" in lines[0]
    assert "imu: got 2 topics that fit" in lines[1]
    assert load(path, options(joints="/joint_states", imu="imu")).joints.names == NAMES
    assert load(path, options(joints="/lowstate", imu="/lowstate")).joints.names == VENDOR


def test_a_topic_without_messages_is_no_choice(tmp_path):
    streams = [*bags.streams_of(WHOLE), ("/lf/lowstate", GO, ()), ("/tracker", POSE, ())]
    assert_same(load(bags.write_bag(tmp_path / "bag", streams)), WHOLE)


def test_a_needed_topic_without_messages_is_named(tmp_path):
    joints, poses, _ = bags.streams_of(WHOLE)
    path = bags.write_bag(tmp_path / "bag", [(*joints[:2], ()), poses])
    with pytest.raises(SourceError, match="joints: got no messages on /joint_states"):
        load(path)
    with pytest.raises(SourceError, match="imu: expected a topic 'imu'"):
        load(path, options(imu="imu"))


def test_an_imu_topic_without_messages_is_no_imu(tmp_path):
    joints, poses, _ = bags.streams_of(WHOLE)
    assert load(bags.write_bag(tmp_path / "bag", [joints, poses, ("/imu", IMU, ())])).imu is None


def test_what_an_imu_marks_as_not_measured_is_nan(tmp_path):
    messages = []
    for stamp, message in bags.ours._imu_messages(WHOLE.imu):
        message.linear_acceleration_covariance = np.array([-1.0, *np.zeros(8)])
        messages.append((stamp, message))
    path = bags.write_bag(tmp_path / "bag", [*bags.streams_of(WHOLE)[:2], ("/imu", IMU, messages)])
    imu = load(path).imu
    np.testing.assert_array_equal(imu.angular_velocity, WHOLE.imu.angular_velocity)
    assert np.isnan(imu.linear_acceleration).all()


# --- transforms --------------------------------------------------------------------------------------------


def transforms(bodies: dict[str, float]):
    """One TFMessage with several bodies at a time, apart by these distances along x."""
    streams = {
        name: bags.poses(
            replace(WHOLE.mocap, position=WHOLE.mocap.position + np.array([shift, 0, 0])), TF, name
        )
        for name, shift in bodies.items()
    }
    for parts in zip(*streams.values(), strict=True):
        yield parts[0][0], bags.new(TF, [part[1].transforms[0] for part in parts])


def test_one_body_of_many_on_tf(tmp_path):
    joints, _, imu = bags.streams_of(WHOLE)
    stream = ("/tf", TF, list(transforms({"arm": 3.0, "go2": 0.0, "table": 5.0})))
    path = bags.write_bag(
        tmp_path / "bag", [joints, stream, imu, ("/tf_static", TF, transforms({"map": 1.0}))]
    )
    assert_same(load(path, SourceOptions(body="go2")), WHOLE)
    with pytest.raises(
        SourceError, match=r"3 frames, expected one.*--body; found arm \(21\), go2 \(21\), table"
    ):
        load(path)
    with pytest.raises(SourceError, match=r"got --body dog.*found arm"):
        load(path, SourceOptions(body="dog"))
    problems = describe(path).problems
    assert len(problems) == 1
    assert "say which with --body" in problems[0]
    assert describe(path, SourceOptions(body="go2")).problems == ()


def test_tf_gives_way_to_a_topic_of_poses_unless_a_body_is_asked_for(tmp_path):
    shifted = ("/tf", TF, list(transforms({"base": 1.0, "FL_foot": 2.0})))
    path = bags.write_bag(tmp_path / "bag", [*bags.streams_of(WHOLE), shifted])
    assert_same(load(path), WHOLE)
    assert load(path, SourceOptions(body="base")).mocap.position[0, 0] == WHOLE.mocap.position[0, 0] + 1
    assert load(path, SourceOptions(Topics(mocap="/tf"), body="base")).mocap.position.shape == (21, 3)


def test_a_body_in_two_worlds_is_refused(tmp_path):
    messages = list(transforms({"go2": 0.0}))
    messages[3][1].transforms[0].header.frame_id = "odom"
    path = bags.write_bag(tmp_path / "bag", [bags.streams_of(WHOLE)[0], ("/tf", TF, messages)])
    with pytest.raises(SourceError, match="got go2 in frames odom, world, expected one world"):
        load(path)


def test_messages_of_tf_without_the_body_are_passed_over(tmp_path):
    messages = [
        (stamp, bags.new(TF, message.transforms[: index % 2]))
        for index, (stamp, message) in enumerate(transforms({"go2": 0.0}))
    ]
    path = bags.write_bag(tmp_path / "bag", [bags.streams_of(WHOLE)[0], ("/tf", TF, messages)])
    got = load(path).mocap
    np.testing.assert_array_equal(got.stamp_ns, WHOLE.mocap.stamp_ns[1::2])
    np.testing.assert_array_equal(got.position, WHOLE.mocap.position[1::2])


# --- what is in it -----------------------------------------------------------------------------------------


def test_a_bag_is_described(tmp_path):
    extra = ("/camera", JOINT_STATE.replace("JointState", "Temperature"), ())
    path = bags.write_bag(tmp_path / "bag", [low_state(), mocap(POSE), extra], storage="sqlite3")
    told = describe(path, options())
    assert (told.format, told.files) == ("rosbag2 sqlite3", ("bag.db3", "metadata.yaml"))
    assert told.duration == pytest.approx(0.2)
    assert told.problems == ()
    topics = {topic.name: topic for topic in told.topics}
    assert (topics["/lowstate"].role, topics["/lowstate"].used, topics["/lowstate"].count) == (
        "joints",
        True,
        101,
    )
    assert "read as joints and imu" in topics["/lowstate"].note
    assert (topics["/mocap"].role, topics["/mocap"].used) == ("mocap", True)
    assert (topics["/camera"].role, topics["/camera"].used, topics["/camera"].note) == (
        None,
        False,
        "no messages",
    )


def test_what_the_first_messages_show_is_described(tmp_path):
    path = bags.write_bag(tmp_path / "bag", [low_state(), mocap(TF)])
    told = describe(path)
    assert len(told.problems) == 1
    assert "vendor_joint_order" in told.problems[0]
    assert {topic.name: topic.note for topic in told.topics}["/mocap"] == "frames go2"
    with pytest.raises(SourceError, match="vendor_joint_order"):
        load(path)
    assert describe(path, SourceOptions(number_motors=True)).problems == ()


def test_stamps_that_stand_still_at_first_are_no_problem_yet(tmp_path):
    """A description looks at the first messages only; a short recording has no others."""
    for count, problems in ((400, 1), (1000, 0)):
        whole = recording(NAMES, 2.0)
        stuck = whole.joints.stamp_ns.copy()
        stuck[:count] = stuck[0]
        joints = replace(whole.joints, stamp_ns=stuck)
        part = [
            m
            for m, _ in zip(
                bags.ours._joint_messages(joints), range(count + 100 * (problems == 0)), strict=False
            )
        ]
        stream = [(EPOCH + index, message) for index, (_, message) in enumerate(part)]
        path = bags.write_bag(tmp_path / f"bag{count}", [("/joint_states", JOINT_STATE, stream), mocap(POSE)])
        assert len(describe(path).problems) == problems


def test_what_is_missing_or_ambiguous_is_described_not_raised(tmp_path):
    joints = bags.streams_of(WHOLE)[0]
    told = describe(
        bags.write_bag(tmp_path / "bag", [joints, ("/other", JOINT_STATE, bags.streams_of(WHOLE)[0][2])])
    )
    assert [problem.split(":")[0] for problem in told.problems] == ["joints", "mocap"]
    assert not any(topic.used for topic in told.topics)
