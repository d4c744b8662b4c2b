# SPDX-License-Identifier: Apache-2.0
"""The 3-D replay: what the page holds is the estimate, it needs nothing else, and it draws in a browser."""

from __future__ import annotations

import base64
import importlib
import json
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray
from recordings import BAG, ROOT
from scipy.spatial.transform import Rotation
from synthetic import synthetic_estimate
from typer.testing import CliRunner

from prime_ros.cli import app
from prime_ros.estimation.estimate import Estimate
from prime_ros.exceptions import OutputError, RobotError
from prime_ros.outputs.bag import write_bag
from prime_ros.outputs.write import write_results
from prime_ros.robot import Robot, load_robot
from prime_ros.viewing import meshes, view
from prime_ros.viewing.body_shapes import look_of
from prime_ros.viewing.page import TYPES
from prime_ros.viewing.report_link import link_from_report
from prime_ros.viewing.results import MAX_FRAMES, Results, load_directory, shown_frames
from prime_ros.viewing.scene import make_scene

KNOTS = 30
FEET = ("FL_foot", "FR_foot", "RL_foot", "RR_foot")
HOSTILE = "<b>&'</script><!--"


@pytest.fixture(scope="module")
def go2() -> Robot:
    return load_robot("go2")


@pytest.fixture(scope="module")
def estimate(go2: Robot) -> Estimate:
    made = synthetic_estimate(knots=KNOTS)
    quat = made.base_quat_xyzw / np.linalg.norm(made.base_quat_xyzw, axis=1, keepdims=True)
    return replace(made, joint_names=go2.joint_names, base_quat_xyzw=quat)


@pytest.fixture(scope="module")
def directory(estimate: Estimate, go2: Robot, tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = write_results(estimate, go2, tmp_path_factory.mktemp("results") / "DIR")
    return written.directory


class Page(HTMLParser):
    """What a browser would read: references, tags, the description and the arrays."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.references: list[str] = []
        self.tags: list[str] = []
        self.scripts: list[str] = []
        self.words = ""
        self.feed(self.source)
        self.about: dict[str, Any] = json.loads(self.scripts[0])
        self.content = base64.b64decode(self.scripts[1])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.references += [value or "" for key, value in attrs if key in ("src", "href")]
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            self.scripts[-1] += data
        elif self.cdata_elem != "style":
            self.words += data

    def array(self, name: str) -> NDArray[Any]:
        place = self.about["arrays"][name]
        kind = next(name for name, javascript in TYPES.items() if javascript == place["type"])
        count = int(np.prod(place["shape"]))
        return np.frombuffer(self.content, np.dtype(kind), count, place["offset"]).reshape(place["shape"])


@pytest.fixture(scope="module")
def page(directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Page:
    return Page(written(directory, tmp_path_factory.mktemp("page") / "replay.html"))


def written(path: Path, html: Path, robot: str | Path | None = None) -> Path:
    view(path, robot, html, announce=lambda _: None, warn=lambda _: None)
    return html


# --- what the page holds


def test_poses_and_centre_of_mass_are_those_of_pinocchio(page: Page, estimate: Estimate, go2: Robot) -> None:
    position, quat = page.array("body_position"), page.array("body_quat_xyzw")
    time = page.array("time")
    np.testing.assert_allclose(time, 0.02 * np.arange(KNOTS // 2), atol=1e-6)
    models = {"com_nominal": go2.model.copy(), "com": go2.model.copy()}
    link = estimate.links["base"]
    for name, body in (("com_nominal", link.nominal), ("com", link.estimate)):
        models[name].inertias[1] = pin.Inertia(body.mass, body.com, body.inertia_com)
    for frame, knot in ((0, 0), (7, 14), (KNOTS // 2 - 1, KNOTS - 2)):
        q = np.r_[
            estimate.base_position_W[knot], estimate.base_quat_xyzw[knot], estimate.joint_position[knot]
        ]
        for name, model in models.items():
            com = pin.centerOfMass(model, model.createData(), q)
            np.testing.assert_allclose(page.array(name)[frame], com, atol=1e-5)
        data = go2.model.createData()
        pin.forwardKinematics(go2.model, data, q)
        for joint in range(1, go2.model.njoints):
            np.testing.assert_allclose(position[frame, joint - 1], data.oMi[joint].translation, atol=1e-5)
            rotation = Rotation.from_quat(quat[frame, joint - 1]).as_matrix()
            np.testing.assert_allclose(rotation, data.oMi[joint].rotation, atol=1e-5)
        for index, contact in enumerate(go2.contacts):
            point = data.oMi[contact.joint_id].act(contact.offset) - [0.0, 0.0, contact.radius]
            np.testing.assert_allclose(page.array("contact_point")[frame, index], point, atol=1e-5)


def test_forces_are_those_of_the_estimate(page: Page, estimate: Estimate) -> None:
    shown = slice(None, None, 2)
    for name, values in (
        ("contact_force", estimate.contact_force_W),
        ("contact_force_std", estimate.std["contact_force_W"]),
        ("contact_probability", estimate.contact_probability),
    ):
        np.testing.assert_allclose(page.array(name), values[shown], rtol=1e-6)


def test_every_link_and_foot_is_there(page: Page, go2: Robot) -> None:
    about = page.about
    assert [contact["name"] for contact in about["contacts"]] == list(FEET)
    assert len({contact["colour"] for contact in about["contacts"]}) == len(FEET)
    assert all(foot in page.words for foot in FEET)
    assert {shape["body"] for shape in about["shapes"]} == set(range(go2.model.njoints - 1))
    assert about["bodies"][0] == "base"
    assert {"FL_hip", "RR_calf"} <= set(about["bodies"])
    faces = [name for name in about["arrays"] if name.startswith("faces_")]
    assert {shape["mesh"] for shape in about["shapes"]} == set(range(len(faces)))
    for index in range(len(faces)):
        assert page.array(f"faces_{index}").max() < len(page.array(f"vertices_{index}"))


def test_inertia_boxes_have_the_inertia(page: Page, estimate: Estimate) -> None:
    (entry,) = page.about["inertia"]
    for kind in ("nominal", "estimate"):
        box, body = entry[kind], getattr(estimate.links["base"], kind)
        x, y, z = np.square(box["size"])
        axes = Rotation.from_quat(box["quat_xyzw"]).as_matrix()
        inertia = axes @ np.diag([y + z, x + z, x + y]) @ axes.T * box["mass"] / 12.0
        np.testing.assert_allclose(inertia, body.inertia_com, atol=1e-9)
        np.testing.assert_allclose(box["com"], body.com)
    assert entry["link"] == "base"
    assert page.about["ground"] == estimate.ground_height


def test_nothing_is_loaded_from_elsewhere(page: Page) -> None:
    assert all(link.startswith("data:") for link in page.references), page.references
    assert not {"iframe", "img", "object", "embed", "base"} & set(page.tags)
    assert not re.search(r"https?://|@import|url\(|\bimport\b|\bfetch\(|XMLHttpRequest", page.source)
    assert len(page.source) < 15e6


def test_no_name_breaks_out_of_the_page(directory: Path, tmp_path: Path, go2: Robot) -> None:
    results = load_directory(directory)
    scene = make_scene(results, replace(go2, name=HOSTILE), HOSTILE)
    scene.about["contacts"][0]["name"] = HOSTILE
    (tmp_path / "page.html").write_text(importlib.import_module("prime_ros.viewing.page").render_page(scene))
    hostile = Page(tmp_path / "page.html")
    assert len(hostile.scripts) == 3
    assert hostile.about["title"] == HOSTILE
    assert "b" not in hostile.tags[: hostile.tags.index("section")]
    assert hostile.words.count(HOSTILE) >= 3


def test_bag_shows_the_same(page: Page, estimate: Estimate, go2: Robot, tmp_path: Path) -> None:
    write_bag(estimate, go2, tmp_path / "bag")
    (file,) = (tmp_path / "bag").glob("*.mcap")
    for path in (tmp_path / "bag", file):
        other = Page(written(path, tmp_path / "bag.html", "go2"))
        for name in page.about["arrays"]:
            np.testing.assert_allclose(other.array(name), page.array(name), atol=1e-6)
        same = {key: value for key, value in page.about.items() if key != "title"}
        assert {key: other.about[key] for key in same} == same


def test_bag_beside_the_results_knows_its_robot(directory: Path, tmp_path: Path) -> None:
    assert Page(written(directory / "estimate_bag", tmp_path / "bag.html")).about["robot"] == "go2"
    assert Page(written(directory / "estimate.npz", tmp_path / "npz.html")).about["robot"] == "go2"


def test_not_converged_is_said(estimate: Estimate, go2: Robot, tmp_path: Path) -> None:
    wrong = replace(estimate, certificate=replace(estimate.certificate, converged=False))
    write_results(wrong, go2, tmp_path / "DIR")
    assert "NOT CONVERGED" in Page(written(tmp_path / "DIR", tmp_path / "page.html")).words


def test_estimate_without_identified_links_is_shown(estimate: Estimate, go2: Robot, tmp_path: Path) -> None:
    write_results(replace(estimate, links={}), go2, tmp_path / "DIR")
    shown = Page(written(tmp_path / "DIR", tmp_path / "page.html"))
    assert shown.about["inertia"] == []
    np.testing.assert_array_equal(shown.array("com"), shown.array("com_nominal"))


# --- frames


def test_frames_are_as_often_as_a_screen_shows_them() -> None:
    assert shown_frames(np.array([5])).tolist() == [0]
    assert shown_frames(10_000_000 * np.arange(5)).tolist() == [0, 2, 4]
    assert shown_frames(20_000_000 * np.arange(5)).tolist() == [0, 1, 2, 3, 4]
    jittery = 20_000_000 * np.arange(5) + np.array([0, -200_000, 200_000, -100_000, 0])
    assert shown_frames(jittery).tolist() == [0, 1, 2, 3, 4]
    after_a_gap = np.array([0, 1, 2, 100, 101, 102]) * 10_000_000
    assert shown_frames(after_a_gap).tolist() == [0, 2, 3, 5]


def test_long_recordings_have_rarer_frames() -> None:
    stamps = 10_000_000 * np.arange(60_000)  # ten minutes
    shown = shown_frames(stamps)
    assert 0.9 * MAX_FRAMES < len(shown) <= MAX_FRAMES + 1
    assert np.diff(shown).max() - np.diff(shown).min() <= 1


# --- meshes


def test_shapes_lie_where_pinocchio_has_them(go2: Robot) -> None:
    pytest.importorskip("trimesh")
    share = go2.urdf_path.parents[3]
    geometry = pin.buildGeomFromUrdf(
        go2.model, str(go2.urdf_path), pin.GeometryType.VISUAL, package_dirs=[str(share), str(share.parent)]
    )
    look = look_of(go2)
    assert look.notes == []
    for expected in geometry.geometryObjects:
        corners = np.asarray(expected.geometry.vertices())
        parts = [
            look.meshes[shape.mesh].vertices
            for shape in look.shapes
            if shape.joint == expected.parentJoint and shape.placement.isApprox(expected.placement, 1e-9)
        ]
        found = np.concatenate(parts)
        # What is fixed to a body at the same place may reach further; nothing may be missing.
        assert (found.min(axis=0) <= corners.min(axis=0) + 1e-3).all(), expected.name
        assert (found.max(axis=0) >= corners.max(axis=0) - 1e-3).all(), expected.name


def test_colours_of_the_mesh_files_are_kept(go2: Robot) -> None:
    pytest.importorskip("collada")
    colours = {shape.colour for shape in look_of(go2).shapes}
    assert min(min(colour) for colour in colours) == pytest.approx(meshes.DARKEST)  # the feet
    assert max(min(colour) for colour in colours) > 0.9  # the thighs


def test_without_mesh_libraries_bodies_are_rods(go2: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trimesh", None)
    look = look_of(go2)
    assert {shape.joint for shape in look.shapes} == set(range(1, go2.model.njoints))
    assert look.notes == ["meshes need trimesh: pip install 'prime_ros[view]'"]
    calf = go2.model.getJointId("FL_calf_joint")
    (rod,) = (look.meshes[shape.mesh] for shape in look.shapes if shape.joint == calf)
    (foot,) = (contact for contact in go2.contacts if contact.joint_id == calf)
    assert np.linalg.norm(rod.vertices - foot.offset, axis=1).min() < 0.02


def test_robot_from_another_format_is_rods(go2: Robot, tmp_path: Path) -> None:
    (tmp_path / "go2.xml").write_text("<mujoco/>")
    look = look_of(replace(go2, urdf_path=tmp_path / "go2.xml"))
    assert {shape.joint for shape in look.shapes} == set(range(1, go2.model.njoints))
    assert look.notes == ["go2.xml is no URDF, drawn without its shapes"]


URDF = """<robot name="small">
<material name="red"><color rgba="1 0 0 1"/></material>
<link name="base">
  <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  <visual><origin xyz="1 2 3" rpy="0 0 1.5707963"/><geometry><box size="0.2 0.4 0.6"/></geometry>
    <material name="red"/></visual>
  <visual><geometry><sphere radius="0.1"/></geometry></visual>
  <visual><geometry><cylinder radius="0.1" length="1"/></geometry></visual>
  <visual><geometry><mesh filename="{mesh}" scale="2 -1 1"/></geometry></visual>
  <visual><geometry><mesh filename="lost.stl"/></geometry></visual>
  <visual><geometry><mesh filename="broken.obj"/></geometry></visual>
  <visual><geometry><box size="1 2"/></geometry></visual>
</link></robot>"""


@pytest.mark.parametrize("named", ["part.obj", "file://{folder}/part.obj"])
def test_shapes_of_every_kind_and_what_is_wrong_with_some(go2: Robot, tmp_path: Path, named: str) -> None:
    pytest.importorskip("trimesh")
    (tmp_path / "part.obj").write_text(
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    )
    (tmp_path / "broken.obj").write_bytes(b"\x00\xff")
    urdf = tmp_path / "small.urdf"
    urdf.write_text(URDF.format(mesh=named.format(folder=tmp_path)))
    look = look_of(replace(go2, urdf_path=urdf))
    on_base = [shape for shape in look.shapes if shape.joint == 1]
    assert len(on_base) == 4
    extents = [np.ptp(look.meshes[shape.mesh].vertices, axis=0) for shape in on_base]
    expected = [(0.2, 0.4, 0.6), (0.2, 0.2, 0.2), (0.2, 0.2, 1.0), (2.0, 1.0, 1.0)]
    np.testing.assert_allclose(extents, expected, atol=5e-3)
    assert on_base[0].colour == pytest.approx((1.0, meshes.DARKEST, meshes.DARKEST))
    np.testing.assert_allclose(on_base[0].placement.translation, [1, 2, 3])
    np.testing.assert_allclose(on_base[0].placement.rotation[:, 0], [0, 1, 0], atol=1e-6)
    for words in ("lost.stl", "broken.obj", "expected 3 numbers, got '1 2'"):
        assert sum(words in note for note in look.notes) == 1, (words, look.notes)
    for shape in on_base:
        assert volume(look.meshes[shape.mesh]) > 0.0  # not inside out, the mirrored one neither


def volume(mesh: meshes.Mesh) -> float:
    a, b, c = (mesh.vertices[mesh.faces[:, i]] for i in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6.0)


def test_solids_are_closed() -> None:
    assert volume(meshes.box(np.array([1.0, 2.0, 3.0]))) == pytest.approx(6.0)
    assert volume(meshes.sphere(1.0)) == pytest.approx(4.0 / 3.0 * np.pi, rel=0.05)
    assert volume(meshes.cylinder(0.5, 2.0)) == pytest.approx(0.5 * np.pi, rel=0.05)
    rod = meshes.rod(np.array([1.0, 0.0, 0.0]), np.array([1.0, 3.0, 0.0]), 0.1)
    assert volume(rod) == pytest.approx(0.03 * np.pi, rel=0.1)
    np.testing.assert_allclose(
        [rod.vertices.min(axis=0), rod.vertices.max(axis=0)], [[0.9, -0.1, -0.1], [1.1, 3.1, 0.1]], atol=2e-3
    )


def test_thinning_keeps_shape_and_number_of_triangles() -> None:
    ball = meshes.sphere(0.5)
    fine = meshes.thinned([ball], 10_000)[0]
    coarse = meshes.thinned([ball, ball], 300)
    assert volume(fine) == pytest.approx(volume(ball), rel=1e-3)
    assert sum(len(mesh.faces) for mesh in coarse) <= 300
    assert volume(coarse[0]) > 0.5 * volume(ball)


# --- what cannot be shown


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("absent", "no such file or folder; expected DIR of `prime solve`"),
        ("empty", "an empty folder"),
        ("recording.csv", "got a recording, expected an estimate; run `prime solve"),
        ("without_inertia", "inertia.yaml: no such file"),
        ("other_inertia", "not the inertia.yaml of `prime solve`"),
        ("nameless", "does not say which robot it is of; name it by --robot"),
    ],
)
def test_what_cannot_be_shown_says_why(name: str, words: str, directory: Path, tmp_path: Path) -> None:
    path = tmp_path / name
    if name == "empty":
        path.mkdir()
    elif name == "recording.csv":
        path.write_text("time\n")
    elif name != "absent":
        path.mkdir()
        for file in ("estimate.npz", "inertia.yaml", "estimate.parquet"):
            (path / file).write_bytes((directory / file).read_bytes())
        if name == "without_inertia":
            (path / "inertia.yaml").unlink()
        elif name == "other_inertia":
            (path / "inertia.yaml").write_text("links: [1]\n")
        else:
            (path / "estimate.parquet").unlink()
    with pytest.raises(OutputError) as caught:
        view(path, html=tmp_path / "page.html")
    assert words in str(caught.value)
    assert not (tmp_path / "page.html").exists()


def test_recording_is_told_from_an_estimate(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="a recording, not an estimate; run `prime solve"):
        view(BAG, "go2", tmp_path / "page.html")


def test_another_robot_is_refused(directory: Path, go2: Robot) -> None:
    results = load_directory(directory)
    with pytest.raises(OutputError, match="name the robot it was made with by --robot"):
        make_scene(replace(results, joint_names=results.joint_names[::-1]), go2, "")
    with pytest.raises(RobotError, match="tail"):
        make_scene(replace(results, links={"tail": results.links["base"]}), go2, "")


@pytest.mark.parametrize("name", ["base_position_W", "contact_force_W", "contact_probability"])
def test_values_that_are_not_finite_are_refused(name: str, directory: Path, go2: Robot) -> None:
    results: Results = load_directory(directory)
    wrong = np.array(getattr(results, name))
    wrong.flat[0] = np.nan
    with pytest.raises(OutputError, match="not finite"):
        make_scene(replace(results, **{name: wrong}), go2, "")


def test_page_that_cannot_be_written_says_why(directory: Path, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"cannot write .*absent/page\.html"):
        view(directory, html=tmp_path / "absent" / "page.html", warn=lambda _: None)


# --- beside the report, and served


def test_report_links_to_the_replay_beside_it(tmp_path: Path) -> None:
    template = ROOT / "prime_ros" / "outputs" / "report" / "template" / "page.jinja"
    (tmp_path / "report.html").write_text(template.read_text(encoding="utf-8"), encoding="utf-8")
    assert link_from_report(tmp_path / "a b.html")
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert report.count('<a id="replay" href="a%20b.html">') == 1
    assert link_from_report(tmp_path / "view.html")
    assert report.replace("a%20b.html", "view.html") == (tmp_path / "report.html").read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert not link_from_report(tmp_path / "elsewhere" / "view.html")


def test_new_results_replace_the_replay_of_the_old(estimate: Estimate, go2: Robot, tmp_path: Path) -> None:
    written = write_results(estimate, go2, tmp_path / "DIR")
    (tmp_path / "DIR" / "view.html").write_text("old")
    assert write_results(estimate, go2, tmp_path / "DIR").files == written.files
    assert not (tmp_path / "DIR" / "view.html").exists()


def test_command_serves_the_page_until_interrupted(directory: Path) -> None:
    command = [sys.executable, "-m", "prime_ros.cli", "view", str(directory), "--no-browser", "--port", "0"]
    server = subprocess.Popen(command, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split()[0]
        with urllib.request.urlopen(address, timeout=20) as answer:
            assert answer.headers.get_content_type() == "text/html"
            assert b"<title>go2: DIR" in answer.read()
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(address + "other", timeout=20)
        server.send_signal(signal.SIGINT)
        assert server.wait(20) == 0
    finally:
        server.kill()
        server.communicate()


def test_command_writes_the_page_or_says_what_is_wrong(directory: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["view", str(directory), "--html", str(tmp_path / "page.html")])
    assert result.exit_code == 0
    assert "page.html: " in result.stdout
    assert Page(tmp_path / "page.html").about["title"] == "DIR"
    result = CliRunner().invoke(app, ["view", str(tmp_path / "absent")])
    assert result.exit_code == 2
    assert result.stderr.startswith("prime: error: ")


# --- in a browser

PROBE = """
<script type="module">
window.addEventListener("error", (event) => console.log("FAILED " + event.message));
(function wait() {
  if (!document.documentElement.dataset.drawn) return setTimeout(wait, 50);
  const state = window.replay.at(0.05);
  console.log("PROBE " + JSON.stringify({
    target: window.replay.camera.target, bodies: state.bodies, contacts: state.contacts, com: state.com,
    overflow: document.documentElement.scrollWidth - window.innerWidth,
    forces: [0, 1, 2, 3].map((i) => document.getElementById("force-" + i).textContent),
  }) + " END");
})();
</script>
"""


def test_page_draws_in_a_browser(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = pytest.importorskip("PIL.Image")
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    screenshots = importlib.import_module("make_screenshots")
    program = screenshots.browser()
    if program is None:
        pytest.skip("no Chromium")
    path = written(directory, tmp_path / "view.html")
    page = Page(path)
    path.write_text(page.source + PROBE, encoding="utf-8")
    console = screenshots.picture(program, f"{path.as_uri()}#t=0.06&cones=1", tmp_path / "page.png", 900, 700)
    assert len(console) == 1, console
    found = json.loads(re.search(r"PROBE (.*) END", console[0].replace('\\"', '"'))[1])  # type: ignore[index]
    assert found["overflow"] <= 0
    com, feet = page.array("com")[3], page.array("contact_point")[3]
    assert np.linalg.norm(found["target"] - com) < 0.2 * np.linalg.norm(feet - com, axis=1).max()
    assert found["forces"] == [str(round(float(force))) for force in page.array("contact_force")[3, :, 2]]
    # 0.05 s lies halfway between frames 2 and 3.
    for index, body in enumerate(found["bodies"]):
        np.testing.assert_allclose(
            body["position"], page.array("body_position")[2:4, index].mean(axis=0), atol=1e-5
        )
        ends = Rotation.from_quat(page.array("body_quat_xyzw")[2:4, index])
        middle = ends[0] * Rotation.from_rotvec(0.5 * (ends[0].inv() * ends[1]).as_rotvec())
        assert (Rotation.from_quat(body["q"]).inv() * middle).magnitude() < 1e-4
    for index, contact in enumerate(found["contacts"]):
        expected = page.array("contact_force")[2:4, index].mean(axis=0)
        np.testing.assert_allclose(contact["force"], expected, atol=1e-5)
    picture = np.asarray(image.open(tmp_path / "page.png").convert("RGB"))
    middle = picture[150:450, 200:700].reshape(-1, 3)
    assert len(np.unique(middle, axis=0)) > 500  # shaded surfaces, not an empty canvas
