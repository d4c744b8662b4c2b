# SPDX-License-Identifier: Apache-2.0
"""Results on disk: nothing is lost in the files, and a kill leaves old results or new ones."""

from __future__ import annotations

import io
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import yaml
from rich.console import Console
from synthetic import KNOTS, random_body, synthetic_estimate

from prime_ros.estimation.estimate import BodyInertia, Estimate, LinkEstimate, SensorReport
from prime_ros.exceptions import OutputError
from prime_ros.outputs import write
from prime_ros.outputs.estimate_file import KEYS, MEASURED, load_estimate
from prime_ros.outputs.summary import payload_line, print_summary
from prime_ros.outputs.urdf import body_inertia, calibrated_urdf, pseudo_inertia
from prime_ros.outputs.write import RESULT_FILES, check_directory, write_results
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


def assert_same_body(actual: BodyInertia, expected: BodyInertia, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(actual.mass, expected.mass, rtol=0, atol=tolerance)
    np.testing.assert_allclose(actual.com, expected.com, rtol=0, atol=tolerance)
    np.testing.assert_allclose(actual.inertia_com, expected.inertia_com, rtol=0, atol=tolerance)


# --- estimate.npz and inertia.yaml


def test_estimate_file_has_the_documented_keys_and_loses_nothing(tmp_path: Path, go2: Robot) -> None:
    estimate = synthetic_estimate()
    write_results(estimate, go2, tmp_path / "out")
    with np.load(tmp_path / "out" / "estimate.npz", allow_pickle=False) as archive:
        assert set(archive.files) == set(KEYS)
    loaded = load_estimate(tmp_path / "out")
    assert loaded["stamp_ns"].dtype == np.int64
    np.testing.assert_array_equal(loaded["stamp_ns"], estimate.stamp_ns)
    assert tuple(loaded["joint_names"]) == estimate.joint_names
    assert tuple(loaded["contact_names"]) == estimate.contact_names
    for name in MEASURED:
        np.testing.assert_array_equal(loaded[name], getattr(estimate, name))
        np.testing.assert_array_equal(loaded[f"{name}_std"], estimate.std[name])
    assert loaded["base_quat_xyzw_std"].shape == (KNOTS, 3)


def test_load_estimate_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="no such file"):
        load_estimate(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(OutputError, match="not a readable"):
        load_estimate(tmp_path / "text.npz")
    np.savez(tmp_path / "other.npz", stamp_ns=np.arange(3))
    with pytest.raises(OutputError, match="lacks joint_names"):
        load_estimate(tmp_path / "other.npz")


def test_inertia_file_loses_nothing_and_states_units(tmp_path: Path, go2: Robot) -> None:
    estimate = synthetic_estimate(converged=False)
    write_results(estimate, go2, tmp_path / "out")
    text = (tmp_path / "out" / "inertia.yaml").read_text()
    content = yaml.safe_load(text)
    assert content["converged"] is False
    assert content["ground_height"] == {"estimate": 0.0031, "std": 0.0004}
    assert list(content["links"]) == ["base"]
    for kind in ("nominal", "estimate", "std"):
        body = getattr(estimate.links["base"], kind)
        assert set(content["links"]["base"][kind]) == {"mass", "com", "inertia_com"}
        assert_same_body(BodyInertia(**content["links"]["base"][kind]), body, 0.0)
    assert all(unit in text for unit in ("[kg]", "[m]", "[kg m^2]"))


def test_without_identification_links_are_empty_and_no_urdf_is_written(tmp_path: Path, go2: Robot) -> None:
    written = write_results(synthetic_estimate(links={}), go2, tmp_path / "out")
    assert yaml.safe_load((tmp_path / "out" / "inertia.yaml").read_text())["links"] == {}
    assert written.files == ("estimate.npz", "inertia.yaml")
    assert "no inertia was identified" in written.notes[0]


# --- calibrated.urdf


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
        index = model.body(name).id
        axes = pin.Quaternion(np.roll(model.body_iquat[index], -1)).matrix()
        inertia = axes @ np.diag(model.body_inertia[index]) @ axes.T
        assert_same_body(BodyInertia(model.body_mass[index], model.body_ipos[index], inertia), estimate)


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


def test_an_mjcf_robot_gets_its_other_results(tmp_path: Path) -> None:
    mjcf = tmp_path / "robot.xml"
    mjcf.write_text('<mujoco model="m"/>')
    written = write_results(synthetic_estimate(), SimpleNamespace(urdf_path=mjcf), tmp_path / "out")  # type: ignore[arg-type]
    assert written.files == ("estimate.npz", "inertia.yaml")
    assert "<mujoco>" in written.notes[0]


# --- the set as a whole


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def killed_at(event: int, work: Any) -> bool:
    """Run `work` in a child killed at its n-th file operation; False if it ended before."""
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    count = 0

    def audit(name: str, _: Any) -> None:
        nonlocal count
        if name == "open" or name.startswith(("os.", "ctypes.call", "ctypes.dl")):
            count += 1
            if count == event:
                os.kill(os.getpid(), signal.SIGKILL)

    try:
        sys.addaudithook(audit)
        work()
    finally:
        os._exit(0)


@pytest.fixture(params=["exchange", "two renames"])
def way_of_replacing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "two renames":
        monkeypatch.setattr(write, "_exchange", lambda first, second: False)
    return str(request.param)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(sys.platform != "linux", reason="needs fork and an atomic exchange")
def test_a_kill_leaves_old_results_or_new_ones(tmp_path: Path, go2: Robot, way_of_replacing: str) -> None:
    out, old, new = tmp_path / "out", synthetic_estimate(1), synthetic_estimate(2)
    write_results(new, go2, out)
    wanted = contents(out)
    write_results(old, go2, out)
    before = contents(out)
    assert before != wanted
    seen, event, killed = [], 0, True
    while killed:
        event += 1
        killed = killed_at(event, lambda: write_results(new, go2, out))
        if way_of_replacing == "two renames":
            # Without an atomic exchange the old results wait under a hidden name until the next write.
            write._recover(out)
        seen.append(contents(out))
        assert seen[-1] in (before, wanted)
        write_results(old, go2, out)
    assert before in seen
    assert wanted in seen
    assert event > 15


def test_leftovers_of_killed_writers_are_swept_when_old(tmp_path: Path, go2: Robot) -> None:
    stale, young = tmp_path / ".out.partial-1", tmp_path / ".out.partial-2"
    for leftover in (stale, young):
        leftover.mkdir()
        (leftover / "estimate.npz").touch()
    os.utime(stale, (0, 0))
    write_results(synthetic_estimate(), go2, tmp_path / "out")
    assert not stale.exists()
    assert young.exists()


def test_a_failing_writer_leaves_old_results_and_no_litter(
    tmp_path: Path, go2: Robot, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    write_results(synthetic_estimate(1), go2, out)
    before = contents(out)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(write, "save_inertia", full)
    with pytest.raises(OutputError, match="No space left"):
        write_results(synthetic_estimate(2), go2, out)
    assert contents(out) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_parents_are_created_and_the_set_is_replaced_as_a_whole(tmp_path: Path, go2: Robot) -> None:
    out = tmp_path / "deep" / "er" / "out"
    assert set(write_results(synthetic_estimate(1), go2, out).files) == RESULT_FILES
    write_results(synthetic_estimate(1, links={}), go2, out)
    assert set(contents(out)) == {"estimate.npz", "inertia.yaml"}
    assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_a_directory_with_other_files_is_not_replaced(tmp_path: Path, go2: Robot) -> None:
    out = tmp_path / "out"
    write_results(synthetic_estimate(1), go2, out)
    (out / "thesis.tex").touch()
    before = contents(out)
    with pytest.raises(OutputError, match=r"thesis\.tex"):
        write_results(synthetic_estimate(2), go2, out)
    assert contents(out) == before


def test_a_file_or_the_working_directory_is_no_place_for_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="it is a file"):
        check_directory(tmp_path / "file")
    with pytest.raises(OutputError, match="not a writable directory"):
        check_directory(tmp_path / "file" / "out")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(OutputError, match="working directory"):
        check_directory(".")


def test_a_link_to_a_directory_stays_a_link(tmp_path: Path, go2: Robot) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    write_results(synthetic_estimate(), go2, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert set(contents(tmp_path / "real")) == RESULT_FILES


# --- summary


def summary_of(estimate: Estimate) -> str:
    console = Console(file=io.StringIO(), width=100)
    print_summary(estimate, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_payload_line_shows_as_many_digits_as_are_known() -> None:
    nominal, estimate, std = (BodyInertia(m, np.zeros(3), np.eye(3)) for m in (7.277, 10.2803, 0.012))
    line = payload_line("base", LinkEstimate(nominal, estimate, std))
    assert line == "base: 7.277 -> 10.28 +- 0.01 kg (payload +3.00 kg)"


def test_summary_of_a_converged_estimate() -> None:
    text = summary_of(synthetic_estimate())
    assert "Converged in 14 iterations: the [reason]" in text
    assert "base: 7.277 -> 10.28 +- 0.01 kg (payload +3.00 kg)" in text
    assert "ground height: +3.1 +- 0.4 mm" in text
    assert all(name in text for name in ("FL_foot", "duty factor", "chi-square/dof"))
    assert "mocap_position: residuals exceed" in text
    assert "multiply its noise std by 1.41" in text
    assert "gyroscope: residuals are below" in text
    assert "joint_position: residuals" not in text
    assert "0.15 s for 0.29 s of recording, 0.52 x its length" in text


def test_summary_of_an_estimate_that_did_not_converge_says_so_first() -> None:
    text = summary_of(synthetic_estimate(converged=False))
    assert text.strip().startswith("NOT CONVERGED after 14 iterations")
    assert "Do not use" in text
    assert "Stages" in text


def test_summary_copes_with_an_unused_sensor_and_no_links() -> None:
    unused = {"imu": SensorReport(0, 0.0, 0.0, float("nan"), "rad/s")}
    text = summary_of(replace(synthetic_estimate(links={}), sensors=unused))
    assert "not used" in text
    assert "Inertia not identified" in text
