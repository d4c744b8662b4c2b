# SPDX-License-Identifier: Apache-2.0
"""The calibrated URDF: other tools load exactly the estimated inertia, and nothing else changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from synthetic import assert_same_body, random_body, synthetic_estimate

from prime_ros.estimation.estimate import BodyInertia
from prime_ros.exceptions import OutputError
from prime_ros.outputs.urdf import body_inertia, calibrated_urdf, pseudo_inertia, shown_urdf
from prime_ros.outputs.write import write_results
from prime_ros.robot import Robot, load_robot

NO_INERTIAL = '<robot name="r"><link name="base"/></robot>'


@pytest.fixture(scope="module")
def go2() -> Robot:
    return load_robot("go2")


def model_body(model: pin.Model, joint: int) -> BodyInertia:
    inertia = model.inertias[joint]
    return BodyInertia(inertia.mass, inertia.lever.copy(), inertia.inertia.copy())


def calibrated(robot: Any, bodies: dict[str, BodyInertia], directory: Path) -> Path:
    path = directory / "calibrated.urdf"
    path.write_bytes(calibrated_urdf(robot.urdf_path.read_bytes(), bodies, robot.urdf_path.parent))
    return path


@pytest.mark.parametrize(
    ("link", "mass"),
    [
        pytest.param("base", 10.28, id="base-with-payload"),
        pytest.param("FL_calf", 0.4, id="leg-link"),
        pytest.param("RR_hip", 0.9, id="hip"),
        pytest.param("FL_foot", 0.5, id="named-by-a-fixed-child"),
        pytest.param("base", 0.2, id="lighter-than-what-is-fixed-to-it"),
        pytest.param("FL_calf", 0.01, id="leg-lighter-than-its-foot"),
    ],
)
def test_pinocchio_loads_exactly_the_estimated_inertia(
    tmp_path: Path, go2: Robot, link: str, mass: float
) -> None:
    estimate = random_body(np.random.default_rng(3), mass)
    model = pin.buildModelFromUrdf(
        str(calibrated(go2, {link: estimate}, tmp_path)), pin.JointModelFreeFlyer()
    )
    changed = go2.joint_of_link(link)
    assert_same_body(model_body(model, changed), estimate)
    for joint in set(range(1, model.njoints)) - {changed}:
        assert_same_body(model_body(model, joint), model_body(go2.model, joint), 1e-12)


@pytest.mark.parametrize("mass", [10.28, 0.2])
def test_every_link_stays_physical(tmp_path: Path, go2: Robot, mass: float) -> None:
    path = calibrated(go2, {"base": random_body(np.random.default_rng(4), mass)}, tmp_path)
    single = pin.buildModelFromUrdf(str(freed(path)), pin.JointModelFreeFlyer())
    for joint in range(1, single.njoints):
        body = model_body(single, joint)
        if body.mass:
            assert np.linalg.eigvalsh(pseudo_inertia(body))[0] > 0.0


def freed(path: Path) -> Path:
    """The URDF with every fixed joint turned into a revolute one, so that each link is a body of its own."""
    limits = '<axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
    text = path.read_text()
    pieces = text.split('type="fixed"')
    text = pieces[0] + "".join(
        'type="revolute"' + piece.replace("</joint>", limits, 1) for piece in pieces[1:]
    )
    free = path.with_name("freed.urdf")
    free.write_text(text)
    return free


@pytest.mark.parametrize("mass", [10.28, 0.2])
def test_mujoco_loads_exactly_the_estimated_inertia(tmp_path: Path, mass: float) -> None:
    mujoco = pytest.importorskip("mujoco")
    urdf = tmp_path / "robot.urdf"
    urdf.write_text(SMALL_URDF)
    estimate = random_body(np.random.default_rng(5), mass)
    path = calibrated(SimpleNamespace(urdf_path=urdf), {"base": estimate, "leg": estimate}, tmp_path)
    spec = mujoco.MjSpec.from_file(str(path))
    spec.body("base").add_freejoint()
    model = spec.compile()
    for name in ("base", "leg"):
        assert_same_body(mujoco_body(model, name), estimate)


def mujoco_body(model: Any, name: str) -> BodyInertia:
    """Inertia of a body with all that MuJoCo fused into it, axes of the body."""
    index = model.body(name).id
    axes = pin.Quaternion(np.roll(model.body_iquat[index], -1)).matrix()
    inertia = axes @ np.diag(model.body_inertia[index]) @ axes.T
    return BodyInertia(model.body_mass[index], model.body_ipos[index], inertia)


def test_mujoco_loads_the_whole_calibrated_robot(tmp_path: Path, go2: Robot) -> None:
    mujoco = pytest.importorskip("mujoco")
    estimates = {
        "base": random_body(np.random.default_rng(9), 10.28),
        "FL_calf": random_body(np.random.default_rng(10), 0.4),
    }
    text = calibrated(go2, estimates, tmp_path).read_text()
    # MuJoCo knows no package://.
    spec = mujoco.MjSpec.from_string(
        text.replace("package://example-robot-data", str(go2.urdf_path.parents[3]))
    )
    spec.body("base").add_freejoint()
    model = spec.compile()
    assert model.nbody - 1 == go2.model.njoints - 1
    for body in range(1, model.nbody):
        name = model.body(body).name
        nominal = model_body(go2.model, go2.joint_of_link(name))
        assert_same_body(mujoco_body(model, name), estimates.get(name, nominal))


SMALL_URDF = """<?xml version='1.0'?>
<!-- a comment with <link name="base"> in it -->
<robot name="small">
\t<link name="base"><inertial><mass value="2"/>
\t\t<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
\t<link name="box"><collision><geometry><box size="1 1 1"/></geometry></collision></link>
\t<link name='camera'><inertial><origin xyz="0.1 0 0.3" rpy="0.3 -0.2 1.1"/><mass value="0.5"/>
\t\t<inertia ixx="0.01" iyy="0.02" izz="0.015" ixy="0.001" ixz="0" iyz="0"/></inertial></link>
\t<joint name="to_box" type="fixed"><parent link="base"/><child link="box"/><origin xyz="1 0 0"/></joint>
\t<joint name="to_camera" type="fixed"><parent link="box"/><child link="camera"/>
\t\t<origin xyz="-0.9 0.1 0" rpy="0.1 0.2 -0.4"/></joint>
\t<link name="leg"/>
\t<joint name="hip" type="continuous"><axis xyz="0 0 1"/><parent link="base"/><child link="leg"/></joint>
</robot>
"""


def test_every_byte_but_the_inertials_and_relative_paths_is_kept(tmp_path: Path) -> None:
    original = SMALL_URDF.replace("\n", "\r\n").replace(
        '<box size="1 1 1"/>',
        "<mesh scale='1 1 1'\r\n filename = '../meshes/a&amp;b.stl' /><mesh filename=\"package://p/c.stl\"/>",
    )
    estimate = random_body(np.random.default_rng(6), 0.3)
    text = calibrated_urdf(original.encode(), {"leg": estimate}, tmp_path / "urdf").decode()
    assert text.count("estimated by prime_ros") == 1
    resolved = original.replace(
        "filename = '../meshes/a&amp;b.stl'", f'filename="{tmp_path}/meshes/a&amp;b.stl"'
    )
    head, tail = resolved.split('<link name="leg"/>')
    assert text.startswith(head + '<link name="leg">\r\n\t  <inertial>')
    assert text.endswith("</inertial>\r\n\t</link>" + tail)
    assert 'filename="package://p/c.stl"' in text


def test_calibrating_with_the_nominal_inertia_changes_nothing_that_is_loaded(
    tmp_path: Path, go2: Robot
) -> None:
    bodies = {
        name: model_body(go2.model, go2.joint_of_link(name)) for name in ("base", "FL_calf", "RR_thigh")
    }
    path = calibrated(go2, bodies, tmp_path)
    assert "scaled" not in path.read_text()
    model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    for joint in range(1, model.njoints):
        assert_same_body(model_body(model, joint), model_body(go2.model, joint), 1e-12)


def test_pseudo_inertia_round_trip() -> None:
    body = random_body(np.random.default_rng(7), 3.0)
    assert_same_body(body_inertia(pseudo_inertia(body)), body, 1e-14)


@pytest.mark.parametrize(
    ("urdf", "link", "message"),
    [
        pytest.param(b"<mujoco/>", "base", "<mujoco>", id="mjcf"),
        pytest.param(b"<robot><link", "base", "not well-formed", id="truncated"),
        pytest.param(NO_INERTIAL.encode(), "torso", "no link 'torso'; its links are base", id="unknown-link"),
        pytest.param(NO_INERTIAL.encode("utf-16"), "base", "UTF-8", id="utf-16"),
    ],
)
def test_a_urdf_that_cannot_be_calibrated_says_why(urdf: bytes, link: str, message: str) -> None:
    with pytest.raises(OutputError, match=message):
        calibrated_urdf(urdf, {link: random_body(np.random.default_rng(8), 1.0)}, Path("."))


def test_an_unphysical_inertia_is_refused() -> None:
    body = BodyInertia(1.0, np.zeros(3), np.diag([1.0, 1.0, 3.0]))
    with pytest.raises(OutputError, match="not physical"):
        calibrated_urdf(NO_INERTIAL.encode(), {"base": body}, Path("."))


def test_an_mjcf_robot_gets_its_other_results(tmp_path: Path, go2: Robot) -> None:
    mjcf = tmp_path / "robot.xml"
    mjcf.write_text('<mujoco model="m"/>')
    written = write_results(synthetic_estimate(), replace(go2, urdf_path=mjcf), tmp_path / "out")
    assert written.files == ("estimate.npz", "estimate.parquet", "inertia.yaml", "estimate_bag/")
    assert "<mujoco>" in written.notes[0]


def test_viewers_get_addresses_of_meshes() -> None:
    urdf = (
        b'<robot name="r"><link name="a"><visual><geometry>'
        b"<mesh filename='/a b/c.stl'/><mesh filename=\"package://p/d.stl\"/></geometry></visual></link></robot>"
    )
    expected = urdf.replace(b"'/a b/c.stl'", b'"file:///a%20b/c.stl"')
    assert shown_urdf(urdf) == expected
    assert shown_urdf(expected) == expected


def test_base_stands_for_the_base_link_of_any_robot(tmp_path: Path) -> None:
    (tmp_path / "solo12.yaml").write_text(
        "name: solo12\nmodel: example-robot-data:solo_description/robots/solo12.urdf\n"
        "contacts: [{name: FL_FOOT}]\n"
    )
    solo, estimate = load_robot(tmp_path / "solo12.yaml"), synthetic_estimate()
    assert solo.base_link == "base_link"
    written = write_results(estimate, solo, tmp_path / "out")
    assert "calibrated.urdf" in written.files, written.notes
    model = pin.buildModelFromUrdf(str(tmp_path / "out" / "calibrated.urdf"), pin.JointModelFreeFlyer())
    found = model.inertias[solo.joint_of_link("base")]
    assert_same_body(
        BodyInertia(found.mass, found.lever, found.inertia), estimate.links["base"].estimate, 1e-6
    )
