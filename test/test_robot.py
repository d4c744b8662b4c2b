# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import yaml

from prime_ros.config import RobotConfig, load_robot_config
from prime_ros.exceptions import PrimeError, RobotError
from prime_ros.model_file import find_model_file, read_model
from prime_ros.robot import Robot, load_robot

INERTIAL = (
    '<inertial><mass value="{mass}"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
)
LEG = (
    '<joint name="hip" type="{kind}"><parent link="base"/><child link="leg"/>'
    '<axis xyz="0 1 0"/><origin xyz="0.1 0 0"/>'
    '<limit lower="-1" upper="1" effort="9" velocity="9"/><dynamics damping="0.3" friction="0.2"/></joint>'
)
MJCF = """<mujoco><compiler angle="radian"/><worldbody><body name="trunk" pos="0 0 1">{root}
<inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>
<body name="leg" pos="0.1 0 0"><joint name="hip" axis="0 1 0" armature="0.01" damping="0.3"/>
<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></body></worldbody></mujoco>"""


def link(name: str, mass: float | None = None) -> str:
    return f'<link name="{name}">{"" if mass is None else INERTIAL.format(mass=mass)}</link>'


def urdf(folder: Path, kind: str = "revolute", base_mass: float | None = 2.0, world: str = "") -> Path:
    path = folder / "test.urdf"
    links = link("base", base_mass) + link("leg", 1.0)
    path.write_text(f'<robot name="test">{world}{links}{LEG.format(kind=kind)}</robot>')
    return path


def config(model: Path, **changes: object) -> RobotConfig:
    content = {"name": "test", "model": str(model), "contacts": [{"name": "foot", "frame": "leg"}]}
    return RobotConfig.model_validate({**content, **changes})


@pytest.fixture(scope="module")
def go2() -> Robot:
    return load_robot("go2")


def test_go2_is_what_its_yaml_says(go2):
    assert pin.computeTotalMass(go2.model) == pytest.approx(16.085)
    assert go2.joint_names == tuple(go2.model.names)[2:]
    assert go2.contact_names == ("FL_foot", "FR_foot", "RL_foot", "RR_foot")
    np.testing.assert_array_equal(go2.model.armature, [0] * 6 + [0.00712] * 12)
    np.testing.assert_array_equal(go2.joint_damping, [0.285] * 12)
    np.testing.assert_array_equal(go2.joint_friction, [0.365] * 12)
    np.testing.assert_array_equal(go2.p_BI, [-0.02557, 0.0, 0.04232])
    np.testing.assert_array_equal(go2.R_BI, np.eye(3))
    assert go2.T_BM.isIdentity()
    assert go2.vendor_joint_names[0] == "FR_hip_joint"


def test_a_contact_moves_with_its_calf(go2):
    for contact in go2.contacts:
        assert go2.model.names[contact.joint_id] == contact.name.replace("foot", "calf_joint")
        np.testing.assert_allclose(contact.offset, [0, 0, -0.213])
        np.testing.assert_array_equal(contact.friction, [0.8, 0.8])


def test_a_link_is_moved_by_the_joint_above_it(go2):
    assert go2.joint_of_link("base") == 1
    assert go2.joint_of_link("imu") == 1
    assert go2.joint_of_link("FL_foot") == go2.joint_of_link("FL_calf") == go2.contacts[0].joint_id


def test_an_unknown_link_is_answered_with_the_names_there_are(go2):
    with pytest.raises(RobotError, match=r"no link 'FL_fot' \(did you mean 'FL_foot'\?\).*base, FL_hip"):
        go2.joint_of_link("FL_fot")


def test_per_joint_values_follow_names_not_order(tmp_path, go2):
    armature = {name: 0.001 * index for index, name in enumerate(go2.vendor_joint_names)}
    content = load_robot_config("go2").model_dump()
    content["joints"]["armature"] = armature
    robot = Robot.from_config(RobotConfig.model_validate(content))
    np.testing.assert_allclose(robot.model.armature[6:], [armature[name] for name in robot.joint_names])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"joints": {"armature": {"hap": 0.1}}}, ["joints.armature", "'hap'", "did you mean 'hip'"]),
        ({"noise": {"joint_torque": {}}}, ["noise.joint_torque", "missing: hip"]),
        ({"vendor_joint_order": ["hip", "hip"]}, ["vendor_joint_order", "each joint once"]),
        ({"contacts": [{"name": "foot"}]}, ["contact 'foot'", "no frame 'foot'", "leg"]),
    ],
)
def test_names_that_the_model_lacks_are_refused(tmp_path, changes, words):
    with pytest.raises(RobotError) as error:
        Robot.from_config(config(urdf(tmp_path), **changes))
    assert [word for word in words if word not in str(error.value)] == []


def test_drives_default_to_the_model_file(tmp_path):
    robot = Robot.from_config(config(urdf(tmp_path)))
    assert (robot.joint_damping, robot.joint_friction, robot.model.armature[6]) == ([0.3], [0.2], 0.0)


def test_the_offset_of_a_contact_is_in_the_axes_of_its_frame(tmp_path):
    contacts = [{"name": "toe", "frame": "leg", "offset": [0.1, 0.2, 0.3], "friction": [0.5, 0.6]}]
    contact = Robot.from_config(config(urdf(tmp_path), contacts=contacts)).contacts[0]
    np.testing.assert_allclose(contact.offset, [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(contact.friction, [0.5, 0.6])


@pytest.mark.parametrize("kind", ["fixed", "floating"])
@pytest.mark.parametrize("name", ["world", "odom"])
def test_a_root_that_stands_for_the_world_costs_no_mass(tmp_path, kind, name):
    ends = f'<parent link="{name}"/><child link="base"/><origin xyz="0 0 1"/>'
    joint = f'<joint name="root" type="{kind}">{ends}</joint>'
    robot = Robot.from_config(config(urdf(tmp_path, world=link(name) + joint)))
    assert robot.joint_names == ("hip",)
    assert robot.base_link == "base"
    assert robot.model.inertias[1].mass == 2.0
    np.testing.assert_array_equal(robot.model.jointPlacements[2].translation, [0.1, 0, 0])


def test_mjcf_is_read_with_its_drives(tmp_path):
    path = tmp_path / "robot.xml"
    path.write_text(MJCF.format(root="<freejoint/>"))
    robot = Robot.from_config(config(path))
    assert robot.joint_names == ("hip",)
    assert (robot.model.nq, robot.model.nv) == (8, 7)
    assert robot.model.inertias[robot.joint_of_link("trunk")].mass == 2.0
    assert robot.model.armature[6] == 0.01
    assert robot.joint_damping == [0.3]


def test_mjcf_on_a_fixed_base_is_refused(tmp_path):
    path = tmp_path / "robot.xml"
    path.write_text(MJCF.format(root=""))
    with pytest.raises(RobotError, match=r"fixed base.*freejoint"):
        read_model(path)


@pytest.mark.parametrize("kind", ["continuous", "planar"])
def test_joints_of_other_kinds_are_refused_by_name(tmp_path, kind):
    with pytest.raises(RobotError, match=r"revolute or prismatic.*hip"):
        read_model(urdf(tmp_path, kind=kind))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.urdf.xacro", "<robot/>", "xacro"),
        (
            "a.urdf",
            '<robot name="a" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:include/></robot>',
            "xacro",
        ),
        ("a.urdf", '<robot name="a"><link name="${prefix}base"/></robot>', "xacro"),
        ("a.urdf", "<sdf/>", "got an XML file with root <sdf>"),
        ("a.urdf", "solid", "cannot be read as XML"),
        ("a.urdf", '<robot name="a"><link name="base"/></robot>', "no inertia"),
        ("a.xml", "<mujoco><worldbody/></mujoco>", "a.xml"),
    ],
)
def test_what_is_no_robot_is_refused(tmp_path, name, text, words):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(RobotError, match=words):
        read_model(path)


def test_a_leg_without_inertia_is_named(tmp_path):
    path = urdf(tmp_path)
    path.write_text(path.read_text().replace(INERTIAL.format(mass=1.0), ""))
    with pytest.raises(RobotError, match=r"no inertia.*hip"):
        read_model(path)


def test_the_three_ways_to_name_a_file_agree(monkeypatch):
    path = find_model_file("example-robot-data:go2_description/urdf/go2.urdf")
    assert find_model_file("package://example-robot-data/robots/go2_description/urdf/go2.urdf") == path
    assert find_model_file(path) == path
    monkeypatch.chdir(path.parent)
    assert find_model_file("go2.urdf") == path.resolve()


def test_packages_of_a_sourced_ros_are_found(tmp_path, monkeypatch):
    folder = tmp_path / "share" / "my_robot" / "urdf"
    folder.mkdir(parents=True)
    path = urdf(folder)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    assert find_model_file("package://my_robot/urdf/test.urdf") == path


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("none.urdf", "no such file"),
        ("package://no_such_package/a.urdf", "package 'no_such_package' is not installed"),
        ("example-robot-data:go2_description/none.urdf", "has no file 'go2_description/none.urdf'"),
    ],
)
def test_a_model_that_does_not_exist_is_refused(spec, words):
    with pytest.raises(RobotError, match=words):
        find_model_file(spec)


def test_another_model_can_be_given(tmp_path):
    go2 = find_model_file("example-robot-data:go2_description/urdf/go2.urdf")
    heavier = tmp_path / "heavier.urdf"
    heavier.write_text(go2.read_text().replace('value="6.921"', 'value="9.921"'))
    robot = load_robot("go2", heavier)
    assert robot.urdf_path == heavier
    with pytest.raises(PrimeError):
        load_robot("go2", urdf(tmp_path))


def test_mounts_are_read_as_poses_in_the_base(tmp_path):
    half = np.sqrt(0.5)
    mount = {"position": [1, 2, 3], "quat_xyzw": [0, 0, half, half]}
    robot = Robot.from_config(config(urdf(tmp_path), imu=mount, mocap=mount))
    np.testing.assert_allclose(robot.R_BI @ [1, 0, 0], [0, 1, 0], atol=1e-15)
    np.testing.assert_allclose(robot.T_BM.act(np.array([1.0, 0, 0])), [1, 3, 3], atol=1e-15)


def test_a_robot_of_ones_own_needs_one_yaml(tmp_path):
    urdf(tmp_path)
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({"name": "mine", "model": "test.urdf", "contacts": [{"name": "leg"}]}))
    assert load_robot(path).contact_names == ("leg",)
