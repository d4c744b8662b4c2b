# SPDX-License-Identifier: Apache-2.0
import shutil
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recordings import BAG, LOGS, TRUTH, assert_same, recording
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from prime_ros.config import load_estimator_config
from prime_ros.exceptions import SourceError
from prime_ros.measurements import align
from prime_ros.robot import load_robot
from prime_ros.sources import SourceOptions, Topics, load, write_rosbag, write_table
from prime_ros.sources import rosbag_writer as ours

NAMES = ("hip", "knee", "ankle")
TYPES = get_typestore(Stores.ROS2_HUMBLE)
JOINT_STATE = "sensor_msgs/msg/JointState"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "recording.npz"
    write_table(recording(NAMES), path)
    with np.load(path) as file:
        return dict(file)


def joint_state(stamp_ns: int, names: list[str], **fields: list[float]):
    values = {"position": [], "velocity": [], "effort": [], **fields}
    stamp = TYPES.types["builtin_interfaces/msg/Time"](*divmod(stamp_ns, 10**9))
    header = TYPES.types["std_msgs/msg/Header"](stamp, "")
    return TYPES.types[JOINT_STATE](header, names, *(np.array(values[k], dtype=float) for k in values))


def write_joint_states(path, messages, topic="/joint_states"):
    """A bag with these joint states, and motion capture and IMU beside them."""
    whole = recording(NAMES)
    with Writer(path, version=9, storage_plugin=StoragePlugin.SQLITE3) as writer:
        connection = writer.add_connection(topic, JOINT_STATE, typestore=TYPES)
        for index, message in enumerate(messages):
            writer.write(connection, index, TYPES.serialize_cdr(message, JOINT_STATE))
        mocap = writer.add_connection("/mocap", ours.POSE_STAMPED, typestore=TYPES)
        for stamp, message in ours._mocap_messages(whole.mocap):
            writer.write(mocap, stamp, TYPES.serialize_cdr(message, ours.POSE_STAMPED))


# --- tables ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_imu", [True, False])
def test_a_table_is_read_back_as_written(tmp_path, with_imu):
    whole = recording(NAMES)
    whole = whole if with_imu else replace(whole, imu=None)
    write_table(whole, tmp_path / "a.npz")
    assert_same(load(tmp_path / "a.npz"), whole)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"joint_torque": None}, "key 'joint_torque' is missing; found: imu_angular_velocity"),
        ({"imu_stamp_ns": None}, "key 'imu_stamp_ns' is missing"),
        (
            {"joint_position": np.zeros((251, 2))},
            r"joint_position: got float64 of shape \(251, 2\), expected.*\(251, 3\)",
        ),
        ({"mocap_quat_xyzw": np.zeros((51, 3))}, r"mocap_quat_xyzw.*\(51, 3\).*\(51, 4\)"),
        ({"joint_stamp_ns": np.arange(251.0)}, "joint_stamp_ns: got float64.*integers"),
        ({"joint_names": np.array([1, 2, 3])}, "joint_names: got int64.*strings"),
        ({"joint_names": np.array(["hip", "hip", "knee"])}, "hip more than once"),
        ({"joint_position": np.array(["a"])}, "joint_position: got <U1"),
    ],
)
def test_a_wrong_table_is_refused_by_key(tmp_path, table, changes, words):
    content = {key: value for key, value in {**table, **changes}.items() if value is not None}
    np.savez(tmp_path / "a.npz", **content)
    with pytest.raises(SourceError, match=words):
        load(tmp_path / "a.npz")


def test_pickled_objects_are_never_loaded(tmp_path, table):
    np.savez(tmp_path / "a.npz", **{**table, "joint_names": np.array(NAMES, dtype=object)})
    with pytest.raises(SourceError, match=r"cannot be read as \.npz of plain arrays"):
        load(tmp_path / "a.npz")


# --- bags --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", ["sqlite3", "mcap"])
@pytest.mark.parametrize("with_imu", [True, False])
def test_a_bag_is_read_back_as_written(tmp_path, storage, with_imu):
    whole = recording(NAMES)
    whole = whole if with_imu else replace(whole, imu=None)
    write_rosbag(whole, tmp_path / "bag", storage=storage)
    assert_same(load(tmp_path / "bag"), whole)


@pytest.mark.parametrize(("storage", "suffix"), [("sqlite3", "db3"), ("mcap", "mcap")])
def test_a_bag_is_read_without_its_metadata(tmp_path, storage, suffix):
    write_rosbag(recording(NAMES), tmp_path / "bag", storage=storage)
    assert_same(load(tmp_path / "bag" / f"bag.{suffix}"), recording(NAMES))
    (tmp_path / "bag" / "metadata.yaml").unlink()
    assert_same(load(tmp_path / "bag"), recording(NAMES))


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.permutations(NAMES), min_size=2, max_size=8))
def test_joints_are_told_apart_by_name_in_every_message(tmp_path, orders):
    values = {name: 10.0 * index for index, name in enumerate(NAMES)}
    messages = [
        joint_state(1 + i, order, position=[values[name] + i for name in order], effort=[0.0] * 3)
        for i, order in enumerate(orders)
    ]
    shutil.rmtree(tmp_path / "bag", ignore_errors=True)
    write_joint_states(tmp_path / "bag", messages)
    joints = load(tmp_path / "bag").joints
    assert set(joints.names) == set(NAMES)
    for column, name in enumerate(joints.names):
        np.testing.assert_array_equal(joints.position[:, column], values[name] + np.arange(len(orders)))


def test_fields_and_joints_that_a_message_leaves_out_become_nan(tmp_path):
    messages = [
        joint_state(1, ["hip", "knee"], position=[1.0, 2.0], velocity=[3.0, 4.0]),
        joint_state(2, ["ankle"], position=[5.0], effort=[6.0]),
    ]
    write_joint_states(tmp_path / "bag", messages)
    joints = load(tmp_path / "bag").joints
    nan = np.nan
    assert joints.names == ("hip", "knee", "ankle")
    np.testing.assert_array_equal(joints.position, [[1, 2, nan], [nan, nan, 5]])
    np.testing.assert_array_equal(joints.velocity, [[3, 4, nan], [nan, nan, nan]])
    np.testing.assert_array_equal(joints.torque, [[nan, nan, nan], [nan, nan, 6]])


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([joint_state(1, ["hip"], position=[1.0, 2.0])], "message 0: position: got 2 values, expected 1"),
        ([joint_state(0, ["hip"], position=[1.0])] * 3, "headers without time"),
        ([joint_state(1, ["hip", "hip"], position=[1.0, 2.0])], "message 0: name: got hip, hip"),
    ],
)
def test_messages_that_make_no_sense_are_refused(tmp_path, messages, words):
    write_joint_states(tmp_path / "bag", messages)
    with pytest.raises(SourceError, match=words):
        load(tmp_path / "bag")


def test_a_bag_without_a_needed_topic_lists_what_it_has(tmp_path):
    write_joint_states(tmp_path / "bag", [], topic="/joints")
    with pytest.raises(
        SourceError,
        match=r"joints: expected a topic '/arm' of type sensor_msgs/msg/JointState.*got none.*/joints",
    ):
        load(tmp_path / "bag", SourceOptions(Topics(joints="/arm")))
    with pytest.raises(
        SourceError, match=r"imu: expected a topic 'imu' of type sensor_msgs/msg/Imu.*got none"
    ):
        load(tmp_path / "bag", SourceOptions(Topics(imu="imu")))


def test_two_topics_of_a_type_need_a_choice(tmp_path):
    path = tmp_path / "bag"
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        for topic in ("/left", "/right"):
            writer.add_connection(topic, JOINT_STATE, typestore=TYPES)
    with pytest.raises(
        SourceError, match=r"joints: got 2 topics that fit: /left .*, /right .*--topic joints=/left"
    ):
        load(path)


def test_topics_can_be_named(tmp_path):
    topics = Topics(joints="/go2/joints", imu="/go2/imu", mocap="/vicon/go2")
    write_rosbag(recording(NAMES), tmp_path / "bag", topics=topics)
    assert_same(load(tmp_path / "bag", SourceOptions(replace(topics, joints="go2/joints"))), recording(NAMES))


@pytest.mark.parametrize("damage", [b"", b"\x89MCAP0\r\n", b"no bag at all" * 100])
def test_a_damaged_bag_is_a_source_error(tmp_path, damage):
    write_rosbag(recording(NAMES), tmp_path / "bag", storage="mcap")
    (tmp_path / "bag" / "bag.mcap").write_bytes(damage)
    with pytest.raises(SourceError, match="cannot be read"):
        load(tmp_path / "bag")


def test_a_bag_is_never_overwritten(tmp_path):
    write_rosbag(recording(NAMES), tmp_path / "bag")
    with pytest.raises(SourceError, match="cannot be written"):
        write_rosbag(recording(NAMES), tmp_path / "bag")


@pytest.mark.parametrize(
    ("name", "words"),
    [("none", "no such file"), ("a.txt", "ends in '.txt'"), ("folder", "a folder without metadata.yaml")],
)
def test_what_is_no_recording_is_refused(tmp_path, name, words):
    (tmp_path / "a.txt").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(SourceError, match=words):
        load(tmp_path / name)


# --- the bundled recording ---------------------------------------------------------------------------------


def test_the_bundled_recording_is_complete_and_small():
    whole = load(BAG)
    knots = align(whole, load_robot("go2"), load_estimator_config("pfie"))
    assert whole.duration == pytest.approx(9.998)
    assert set(knots.diagnostics.knots_without.values()) == {0}
    assert sum(file.stat().st_size for file in BAG.iterdir()) < 4_000_000


def test_the_truth_beside_the_bundled_recording_belongs_to_it():
    knots = align(load(BAG), load_robot("go2"), load_estimator_config("pfie"))
    with np.load(TRUTH, allow_pickle=False) as truth:
        np.testing.assert_array_equal(truth["stamp_ns"], knots.stamp_ns)
        assert truth["mass"] - truth["nominal_mass"] == pytest.approx(3.0)
        error = knots.base_position_W - truth["base_position_W"]
        lag = np.abs(knots.base_time_offset).max()
    assert np.sqrt(np.mean(error**2)) < 0.002 + lag * 1.0


@pytest.mark.skipif(not (LOGS / "go2_payload_3kg.npz").exists(), reason="needs the simulated log")
def test_the_bundled_recording_can_be_made_again():
    import make_go2_recording

    from prime_ros.experiments.simulation_logs import load_log

    again = make_go2_recording.make_recording(load_log(LOGS / "go2_payload_3kg.npz"), duration=10.0)
    assert_same(load(BAG), again)


def test_a_name_that_no_file_can_have_is_refused() -> None:
    with pytest.raises(SourceError, match="cannot be looked up: File name too long"):
        load("x" * 5000)
