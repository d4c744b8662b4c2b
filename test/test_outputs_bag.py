# SPDX-License-Identifier: Apache-2.0
"""The bag of an estimate: other readers find in it, in the order of time, what the estimate says."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import yaml
from recordings import ROOT
from rosbags.interfaces import QosDurability
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from synthetic import assert_same_body, synthetic_estimate

from prime_ros.estimation.estimate import BodyInertia, Estimate
from prime_ros.exceptions import OutputError
from prime_ros.outputs import bag, messages, topics
from prime_ros.outputs.cdr import encode
from prime_ros.outputs.kinematics import contact_points, joint_poses
from prime_ros.robot import Contact, Robot, load_robot

URDF = b'<robot name="r"><link name="base"/></robot>'
NAMES = ("FL_foot", "FR_foot", "RL_foot", "RR_foot")
WRENCHES = [f"/prime/contacts/{name}/wrench" for name in NAMES]


@dataclass(frozen=True)
class Content:
    """A bag as its own definitions of the types decode it."""

    topics: dict[str, list[tuple[int, Any]]]
    """Stamps and messages by topic."""
    stamps: list[int]
    """Of all messages, in the order of the file [ns]."""
    types: dict[str, str]
    latched: set[str]


@pytest.fixture(scope="module")
def go2() -> Robot:
    return load_robot("go2")


def upright(estimate: Estimate) -> Estimate:
    """With quaternions of norm one."""
    quat = estimate.base_quat_xyzw
    return replace(estimate, base_quat_xyzw=quat / np.linalg.norm(quat, axis=1, keepdims=True))


@pytest.fixture(scope="module")
def estimate() -> Estimate:
    return upright(synthetic_estimate())


@pytest.fixture(scope="module")
def written(estimate: Estimate, go2: Robot, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bag") / "estimate_bag"
    bag.write_bag(estimate, go2, folder, URDF)
    return folder


@pytest.fixture(scope="module")
def content(written: Path) -> Content:
    return read(written)


def read(folder: Path) -> Content:
    topics: dict[str, list[tuple[int, Any]]] = defaultdict(list)
    stamps = []
    with Reader(folder) as reader:
        store = get_typestore(Stores.EMPTY)
        for connection in reader.connections:
            known = get_types_from_msg(connection.msgdef.data, connection.msgtype)
            store.register({name: fields for name, fields in known.items() if name not in store.types})
        for connection, stamp, data in reader.messages():
            message = store.deserialize_cdr(data, connection.msgtype)
            assert bytes(store.serialize_cdr(message, connection.msgtype)) == bytes(data)
            topics[connection.topic].append((stamp, message))
            stamps.append(stamp)
        qos = {c.topic: c.ext.offered_qos_profiles for c in reader.connections}
        types = {c.topic: c.msgtype for c in reader.connections}
    latched = {
        t for t, offered in qos.items() if any(q.durability == QosDurability.TRANSIENT_LOCAL for q in offered)
    }
    return Content(dict(topics), stamps, types, latched)


def array(vector: Any, axes: str = "xyz") -> np.ndarray:
    return np.array([getattr(vector, axis) for axis in axes])


def stamp_of(message: Any) -> int:
    return int(message.header.stamp.sec) * 1_000_000_000 + int(message.header.stamp.nanosec)


# --- the bag as a whole


def test_topics_and_their_types(content: Content) -> None:
    assert content.types == {
        "/robot_description": "std_msgs/msg/String",
        "/tf_static": "tf2_msgs/msg/TFMessage",
        "/tf": "tf2_msgs/msg/TFMessage",
        "/prime/joint_states": "sensor_msgs/msg/JointState",
        "/prime/odometry": "nav_msgs/msg/Odometry",
        "/prime/contacts": "prime_ros/msg/ContactForceArray",
        "/prime/markers": "visualization_msgs/msg/MarkerArray",
        **dict.fromkeys(WRENCHES, "geometry_msgs/msg/WrenchStamped"),
        "/prime/inertia": "prime_ros/msg/InertiaEstimate",
        "/prime/status": "prime_ros/msg/EstimatorStatus",
    }
    assert content.latched == {"/robot_description", "/tf_static", "/prime/inertia", "/prime/status"}


def test_the_documents_name_every_topic_and_its_type(content: Content) -> None:
    page = (ROOT / "docs" / "outputs.md").read_text()
    for topic, msgtype in content.types.items():
        topic = topic.replace("FL_foot", "CONTACT") if topic == WRENCHES[0] else topic
        if topic not in WRENCHES:
            assert f"| `{topic}` | `{msgtype.replace('/msg/', '/')}` |" in page


def test_types_are_those_of_ros(written: Path) -> None:
    """By the hash over their definition, with which ROS tells types of one name apart."""
    checked = []
    with Reader(written) as reader:
        for connection in reader.connections:
            package, _, name = connection.msgtype.split("/")
            definition = Path(sys.prefix) / "share" / package / "msg" / f"{name}.json"
            if definition.exists():
                hashes = json.loads(definition.read_text())["type_hashes"]
                known = {entry["type_name"]: entry["hash_string"] for entry in hashes}
                assert connection.digest == known[connection.msgtype]
                checked.append(name)
    if not checked:
        pytest.skip("no definitions of ROS here")
    assert {"JointState", "WrenchStamped", "String"} <= set(checked)


def test_messages_are_in_the_order_of_measurement_time(content: Content, estimate: Estimate) -> None:
    assert content.stamps == sorted(content.stamps)
    for topic in ("/prime/joint_states", "/prime/odometry", "/prime/contacts", *WRENCHES):
        assert [stamp for stamp, _ in content.topics[topic]] == estimate.stamp_ns.tolist()
    headed = [(s, m) for records in content.topics.values() for s, m in records if hasattr(m, "header")]
    assert len(headed) > 7 * len(estimate.stamp_ns)
    assert all(stamp == stamp_of(message) for stamp, message in headed)


@pytest.mark.parametrize("block", [1, 7])
def test_blocks_leave_no_trace(
    content: Content,
    estimate: Estimate,
    go2: Robot,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    block: int,
) -> None:
    monkeypatch.setattr(bag, "BLOCK", block)
    bag.write_bag(estimate, go2, tmp_path / "blocks", URDF)
    other = read(tmp_path / "blocks")
    assert list(other.topics) == list(content.topics)
    assert other.stamps == content.stamps
    for topic, records in content.topics.items():
        assert [stamp for stamp, _ in other.topics[topic]] == [stamp for stamp, _ in records]
    for (_, one), (_, two) in zip(content.topics["/tf"], other.topics["/tf"], strict=True):
        for first, second in zip(one.transforms, two.transforms, strict=True):
            expected, found = pose_of(first.transform), pose_of(second.transform)
            # The last bit depends on how many knots NumPy computes at once.
            np.testing.assert_allclose(found.homogeneous, expected.homogeneous, rtol=0, atol=1e-12)


def test_never_more_than_a_block_is_in_memory(
    estimate: Estimate, go2: Robot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []

    def spy(fields: Any, msgtype: str, values: Any, count: int) -> Any:
        sizes.append(count)
        return encode(fields, msgtype, values, count)

    monkeypatch.setattr(bag, "BLOCK", 8)
    monkeypatch.setattr(bag, "encode", spy)
    bag.write_bag(estimate, go2, tmp_path / "bag")
    assert max(sizes) == 8


def test_metadata_is_of_a_version_that_older_ros_reads(written: Path) -> None:
    metadata = yaml.safe_load((written / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    assert metadata["version"] == 8
    assert metadata["storage_identifier"] == "mcap"
    assert metadata["relative_file_paths"] == ["estimate_bag.mcap"]
    offered = {
        entry["topic_metadata"]["name"]: entry["topic_metadata"]["offered_qos_profiles"]
        for entry in metadata["topics_with_message_count"]
    }
    (qos,) = yaml.safe_load(offered["/robot_description"])
    assert (qos["durability"], qos["reliability"], qos["history"], qos["depth"]) == (1, 1, 1, 1)


def test_an_estimate_of_another_robot_is_refused(estimate: Estimate, go2: Robot, tmp_path: Path) -> None:
    other = replace(estimate, contact_names=("a", "b", "c", "d"))
    with pytest.raises(OutputError, match="contacts a, b, c, d; go2 has 12 and FL_foot"):
        bag.write_bag(other, go2, tmp_path / "bag")


def test_an_existing_folder_is_refused(estimate: Estimate, go2: Robot, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="exists already"):
        bag.write_bag(estimate, go2, tmp_path)


# --- trajectories


def test_joint_states_and_odometry_say_what_the_estimate_says(content: Content, estimate: Estimate) -> None:
    for knot, (_, state) in enumerate(content.topics["/prime/joint_states"]):
        assert tuple(state.name) == estimate.joint_names
        np.testing.assert_array_equal(state.position, estimate.joint_position[knot])
        np.testing.assert_array_equal(state.velocity, estimate.joint_velocity[knot])
        np.testing.assert_array_equal(state.effort, estimate.joint_torque[knot])
    for knot, (_, odometry) in enumerate(content.topics["/prime/odometry"]):
        assert (odometry.header.frame_id, odometry.child_frame_id) == ("world", "base")
        pose, twist = odometry.pose, odometry.twist
        np.testing.assert_array_equal(array(pose.pose.position), estimate.base_position_W[knot])
        np.testing.assert_array_equal(array(pose.pose.orientation, "xyzw"), estimate.base_quat_xyzw[knot])
        velocity = np.r_[array(twist.twist.linear), array(twist.twist.angular)]
        np.testing.assert_array_equal(velocity, estimate.base_velocity_B[knot])
        expected = np.diag(estimate.std["base_velocity_B"][knot] ** 2)
        np.testing.assert_array_equal(twist.covariance.reshape(6, 6), expected)
        # Rotation: stated about base axes, wanted about the axes of the world.
        turn = pin.Quaternion(estimate.base_quat_xyzw[knot]).matrix()
        expected[:3, :3] = np.diag(estimate.std["base_position_W"][knot] ** 2)
        expected[3:, 3:] = turn @ np.diag(estimate.std["base_quat_xyzw"][knot] ** 2) @ turn.T
        np.testing.assert_allclose(pose.covariance.reshape(6, 6), expected, rtol=0, atol=1e-14)


def reference(robot: Robot, estimate: Estimate) -> Iterator[tuple[int, pin.Data]]:
    """Pinocchio's own kinematics, knot by knot."""
    data = robot.model.createData()
    rows = np.hstack([estimate.base_position_W, estimate.base_quat_xyzw, estimate.joint_position])
    for knot, configuration in enumerate(rows):
        pin.framesForwardKinematics(robot.model, data, configuration)
        yield knot, data


def contact_point(data: pin.Data, contact: Contact) -> np.ndarray:
    return np.asarray(data.oMi[contact.joint_id].act(contact.offset) - [0.0, 0.0, contact.radius])


def test_forces_say_what_the_estimate_says(content: Content, estimate: Estimate, go2: Robot) -> None:
    for knot, data in reference(go2, estimate):
        forces = content.topics["/prime/contacts"][knot][1]
        assert (forces.header.frame_id, forces.window) == ("world", estimate.dt)
        assert tuple(force.contact for force in forces.contacts) == NAMES
        for index, force in enumerate(forces.contacts):
            wrench = content.topics[WRENCHES[index]][knot][1]
            assert wrench.header.frame_id == f"{NAMES[index]}_contact"
            np.testing.assert_array_equal(array(wrench.wrench.force), estimate.contact_force_W[knot, index])
            np.testing.assert_array_equal(array(wrench.wrench.torque), 0.0)
            np.testing.assert_array_equal(array(force.force), estimate.contact_force_W[knot, index])
            np.testing.assert_array_equal(
                array(force.force_std), estimate.std["contact_force_W"][knot, index]
            )
            assert force.probability == estimate.contact_probability[knot, index]
            assert force.probability_std == estimate.std["contact_probability"][knot, index]
            point = contact_point(data, go2.contacts[index])
            np.testing.assert_allclose(array(force.position), point, rtol=0, atol=1e-12)


def test_frames_are_a_tree_below_the_world_and_lie_where_pinocchio_has_them(
    content: Content, estimate: Estimate, go2: Robot
) -> None:
    (static,) = content.topics["/tf_static"]
    links = {frame.name for frame in go2.model.frames if frame.type == pin.FrameType.BODY}
    for knot, data in reference(go2, estimate):
        edges = [*content.topics["/tf"][knot][1].transforms, *static[1].transforms]
        parents = {edge.child_frame_id: edge.header.frame_id for edge in edges}
        assert len(parents) == len(edges)
        assert set(parents) == links | {f"{name}_contact" for name in NAMES}
        poses = {edge.child_frame_id: pose_of(edge.transform) for edge in edges}
        for frame in parents:
            pose, outer = pin.SE3.Identity(), frame
            while outer != "world":
                pose, outer = poses[outer] * pose, parents[outer]
            expected = expected_pose(go2, data, frame)
            np.testing.assert_allclose(pose.homogeneous, expected.homogeneous, rtol=0, atol=1e-11)


def expected_pose(robot: Robot, data: pin.Data, frame: str) -> pin.SE3:
    if frame.endswith("_contact"):
        contact = robot.contacts[NAMES.index(frame.removesuffix("_contact"))]
        return pin.SE3(np.eye(3), contact_point(data, contact))
    return data.oMf[robot.model.getFrameId(frame, pin.FrameType.BODY)]


def pose_of(transform: Any) -> pin.SE3:
    turn = pin.Quaternion(array(transform.rotation, "xyzw"))
    assert abs(turn.norm() - 1.0) < 1e-12
    return pin.SE3(turn, array(transform.translation))


def test_moving_edges_are_those_of_the_joints_in_the_urdf(content: Content, go2: Robot) -> None:
    """A state publisher of the robot, if one runs beside the bag, gives every link the same parent."""
    edges = {(e.header.frame_id, e.child_frame_id) for e in content.topics["/tf"][0][1].transforms}
    legs = {
        (f"{leg}_{a}", f"{leg}_{b}")
        for leg in ("FL", "FR", "RL", "RR")
        for a, b in (("hip", "thigh"), ("thigh", "calf"))
    }
    hips = {("base", f"{leg}_hip") for leg in ("FL", "FR", "RL", "RR")}
    assert edges == legs | hips | {("world", "base")} | {("world", f"{name}_contact") for name in NAMES}


def test_markers_show_force_and_state_as_often_as_a_screen(content: Content, estimate: Estimate) -> None:
    records = content.topics["/prime/markers"]
    assert [stamp for stamp, _ in records] == estimate.stamp_ns[::2].tolist()
    markers = records[3][1].markers
    assert len({(marker.ns, marker.id) for marker in markers}) == len(markers) == 14
    weight = 16.085 * 9.81
    for index in range(4):
        arrow, sphere = markers[3 * index], markers[3 * index + 1]
        assert (arrow.type, sphere.type) == (0, 2)
        tail, tip = map(array, arrow.points)
        force = estimate.contact_force_W[6, index]
        np.testing.assert_allclose(tip - tail, 0.5 * force / weight, rtol=1e-3)
        np.testing.assert_array_equal(array(sphere.pose.position), tail)
        chance = estimate.contact_probability[6, index]
        assert sphere.color.a == pytest.approx(0.35 + 0.65 * chance, abs=1e-6)
        assert arrow.pose.orientation.w == sphere.pose.orientation.w == 1.0


@pytest.mark.parametrize(("dt", "every"), [(0.002, 10), (0.01, 2), (0.03, 1)])
def test_markers_are_thinned_by_time(
    go2: Robot, estimate: Estimate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dt: float, every: int
) -> None:
    monkeypatch.setattr(bag, "BLOCK", 4)
    stamps = estimate.stamp_ns[0] + round(1e9 * dt) * np.arange(len(estimate.stamp_ns))
    bag.write_bag(replace(estimate, stamp_ns=stamps), go2, tmp_path / "bag")
    shown = [stamp for stamp, _ in read(tmp_path / "bag").topics["/prime/markers"]]
    assert shown == stamps[::every].tolist()


# --- what is said once


def test_inertia_and_status_say_what_the_estimate_says(content: Content, estimate: Estimate) -> None:
    ((stamp, inertia),) = content.topics["/prime/inertia"]
    assert stamp == estimate.stamp_ns[-1]
    assert (inertia.ground_height, inertia.ground_height_std) == (0.0031, 0.0004)
    assert list(inertia.links) == ["base"]
    for kind in ("nominal", "estimate", "std"):
        (body,) = getattr(inertia, kind)
        found = BodyInertia(body.mass, array(body.com), body.inertia_com.reshape(3, 3))
        assert_same_body(found, getattr(estimate.links["base"], kind), 0.0)
    ((stamp, status),) = content.topics["/prime/status"]
    assert stamp == estimate.stamp_ns[-1]
    assert (status.converged, status.reason, status.iterations) == (True, "the [reason]", 14)
    assert (status.cost, status.largest_gap, status.gradient) == (10.0, 1e-9, 1e-8)
    assert list(status.sensors) == ["joint_position", "mocap_position", "gyroscope"]
    assert status.count.tolist() == [360, 90, 90]
    assert status.degrees_of_freedom.tolist() == [300.0, 80.0, 80.0]
    assert status.chi_square.tolist() == [310.0, 160.0, 20.0]
    assert status.solve_time == pytest.approx(0.15)


def test_description_is_the_urdf_and_is_left_out_without_one(
    content: Content, estimate: Estimate, go2: Robot, tmp_path: Path
) -> None:
    ((_, description),) = content.topics["/robot_description"]
    assert description.data == URDF.decode()
    bag.write_bag(replace(estimate, links={}, sensors={}), go2, tmp_path / "bag")
    without = read(tmp_path / "bag")
    assert "/robot_description" not in without.topics
    assert list(without.topics["/prime/inertia"][0][1].links) == []


# --- ROS


@pytest.mark.parametrize("package", ["sensor_msgs", "geometry_msgs", "std_msgs"])
def test_ros_itself_reads_the_messages(written: Path, estimate: Estimate, package: str) -> None:
    serialization = pytest.importorskip("rclpy.serialization")
    module = pytest.importorskip(f"{package}.msg")
    seen = set()
    with Reader(written) as reader:
        connections = [c for c in reader.connections if c.msgtype.startswith(f"{package}/")]
        for connection, stamp, data in reader.messages(connections):
            message = serialization.deserialize_message(
                bytes(data), getattr(module, connection.msgtype.split("/")[-1])
            )
            knot = int(np.searchsorted(estimate.stamp_ns, stamp))
            seen.add(connection.topic)
            if package == "sensor_msgs":
                assert list(message.effort) == estimate.joint_torque[knot].tolist()
            elif package == "geometry_msgs":
                index = WRENCHES.index(connection.topic)
                assert array(message.wrench.force).tolist() == estimate.contact_force_W[knot, index].tolist()
            else:
                assert message.data == URDF.decode()
    assert seen == {c.topic for c in connections}
    assert seen


# --- the pieces


SKEW = """<robot name="skew">
<link name="base"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="arm"/><link name="rod"/><link name="foot"/>
<joint name="turn" type="revolute"><origin xyz="0.1 0.2 -0.3" rpy="0.4 -0.5 0.6"/><axis xyz="0.6 0 0.8"/>
  <parent link="base"/><child link="arm"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
<joint name="slide" type="prismatic"><origin xyz="0 0.1 0" rpy="-1 0.2 0.1"/><axis xyz="0 -0.6 0.8"/>
  <parent link="arm"/><child link="rod"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
<joint name="spin" type="revolute"><origin xyz="0 0 0.3" rpy="0 1 0"/><axis xyz="0 0 -1"/>
  <parent link="rod"/><child link="foot"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
</robot>"""


def skewed(go2: Robot, estimate: Estimate) -> tuple[Robot, Estimate]:
    """A robot of three joints about skew axes, and an estimate of it."""
    contact = Contact("toe", 4, np.array([0.1, -0.2, 0.3]), 0.05, np.ones(2), "toe")
    robot = replace(
        go2,
        model=pin.buildModelFromXML(SKEW, pin.JointModelFreeFlyer()),
        joint_names=("turn", "slide", "spin"),
        contacts=(contact,),
    )
    short = replace(
        estimate,
        joint_names=robot.joint_names,
        joint_position=estimate.joint_position[:, :3],
        contact_names=("toe",),
    )
    return robot, short


def test_kinematics_are_those_of_pinocchio_for_joints_of_any_axis(go2: Robot, estimate: Estimate) -> None:
    robot, short = skewed(go2, estimate)
    poses, points = joint_poses(robot, short), contact_points(robot, short)
    for knot, data in reference(robot, short):
        for joint in range(1, robot.model.njoints):
            np.testing.assert_allclose(poses[joint].position[knot], data.oMi[joint].translation, atol=1e-12)
            turn = poses[joint].rotation[knot].as_matrix()
            np.testing.assert_allclose(turn, data.oMi[joint].rotation, rtol=0, atol=1e-12)
        np.testing.assert_allclose(
            points[knot, 0], contact_point(data, robot.contacts[0]), rtol=0, atol=1e-12
        )


def test_a_robot_without_fixed_links_or_urdf_has_its_bag(
    go2: Robot, estimate: Estimate, tmp_path: Path
) -> None:
    robot, short = skewed(go2, estimate)
    bag.write_bag(short, robot, tmp_path / "bag")
    topics = read(tmp_path / "bag").topics
    assert {"/robot_description", "/tf_static"}.isdisjoint(topics)
    assert len(topics["/tf"][0][1].transforms) == 5
    assert len(topics["/prime/contacts/toe/wrench"]) == len(estimate.stamp_ns)


def test_names_of_topics_and_frames_are_valid_and_differ(go2: Robot) -> None:
    names = ("left-toe", "left toe", "2nd", "FL_hip")
    assert topics.wrench_topics(names) == [
        "contacts/left_toe/wrench",
        "contacts/left_toe_/wrench",
        "contacts/_2nd/wrench",
        "contacts/FL_hip/wrench",
    ]
    model = go2.model.copy()
    model.addFrame(pin.Frame("FL_foot_contact", 4, 0, pin.SE3.Identity(), pin.FrameType.OP_FRAME))
    frames = messages.frame_names(replace(go2, model=model))
    assert frames.contacts == ("FL_foot_contact_", "FR_foot_contact", "RL_foot_contact", "RR_foot_contact")
    assert frames.base == "base"
