# SPDX-License-Identifier: Apache-2.0
"""`prime solve --joint` and `prime fuse`: files, numbers, and one clear message per mistake."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import yaml
from recordings import BAG
from typer.testing import CliRunner, Result

from prime_ros import sources
from prime_ros.cli import app
from prime_ros.outputs.posterior_file import load_posterior
from prime_ros.outputs.write import RESULTS
from prime_ros.sources.tables import write_table

DURATION = 1.5  # [s]


def prime(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def assert_refused(result: Result, *words: str) -> None:
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("prime: error: ")
    assert all(word in result.stderr for word in words), result.stderr


def document(folder: Path) -> Any:
    return yaml.safe_load((folder / "inertia.yaml").read_text())


@dataclass(frozen=True)
class Results:
    folder: Path
    joint: Result
    fused: Result

    def recording(self, name: str) -> Path:
        return self.folder / f"{name}.npz"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Two parts of the bundled recording, together, each alone, and what was alone fused."""
    folder = tmp_path_factory.mktemp("joint")
    whole = sources.load(BAG)
    for name, start in (("first", 2.0), ("second", 4.0)):
        write_table(whole.cropped(start, DURATION), folder / f"{name}.npz")
        alone = prime("solve", folder / f"{name}.npz", "--robot", "go2", "--out", folder / "alone" / name)
        assert alone.exit_code == 0, alone.output
    both = [folder / "first.npz", folder / "second.npz"]
    joint = prime("solve", *both, "--joint", "--robot", "go2", "--out", folder / "joint")
    alone = [folder / "alone" / "first", folder / "alone" / "second" / "inertia.yaml"]
    fused = prime("fuse", *alone, "--robot", "go2", "--out", folder / "fused")
    return Results(folder, joint, fused)


def test_joint_solve_leaves_a_folder_for_each_recording_and_what_they_share(results: Results) -> None:
    assert results.joint.exit_code == 0, results.joint.output
    out = results.folder / "joint"
    shared = {"report.html", "inertia.yaml", "calibrated.urdf"}
    assert {entry.name for entry in out.iterdir()} == shared | {"first", "second"}
    for name in ("first", "second"):
        assert {entry.name for entry in (out / name).iterdir()} == set(RESULTS)
        assert document(out / name)["links"] == document(out)["links"]
        assert document(out / name)["parameters"] == document(out)["parameters"]
    heights = [document(out / name)["ground_height"]["estimate"] for name in ("first", "second")]
    assert heights[0] != heights[1]


def test_joint_knows_more_than_each_alone(results: Results) -> None:
    joint = document(results.folder / "joint")["links"]["base"]
    for name in ("first", "second"):
        alone = document(results.folder / "alone" / name)["links"]["base"]
        for key in ("mass", "com", "inertia_com"):
            assert np.all(np.array(joint["std"][key]) < np.array(alone["std"][key])), key
    assert joint["estimate"]["mass"] - joint["nominal"]["mass"] == pytest.approx(3.0, abs=0.1)


def test_joint_says_what_came_of_it(results: Results) -> None:
    text = results.joint.stdout
    assert "Converged in" in text
    assert "each of 2 recordings" in re.sub(r"\s+", " ", text)
    for word in ("first", "second", "together", "ratio", "mass", "Izz"):
        assert word in text


def test_report_links_to_those_of_the_recordings_and_back(results: Results) -> None:
    out = results.folder / "joint"
    page = (out / "report.html").read_text()
    targets = re.findall(r'href="([^"#]+\.html)"', page)
    assert targets == ["first/report.html", "second/report.html"]
    for target in targets:
        assert 'href="../report.html"' in (out / target).read_text()
    assert page.count('<svg class="bars"') == 10
    assert "NOT CONVERGED" not in page


def test_calibrated_urdf_has_the_shared_inertia(results: Results) -> None:
    out = results.folder / "joint"
    model = pin.buildModelFromUrdf(str(out / "calibrated.urdf"), pin.JointModelFreeFlyer())
    assert model.inertias[1].mass == pytest.approx(document(out)["links"]["base"]["estimate"]["mass"])


def test_view_names_a_recording_to_show(results: Results, tmp_path: Path) -> None:
    out = results.folder / "joint"
    assert_refused(prime("view", out), "several recordings", f"prime view {out / 'first'}")
    shown = prime("view", out / "first", "--html", tmp_path / "view.html")
    assert shown.exit_code == 0, shown.output


def test_fused_is_near_the_joint_solve_and_as_sure(results: Results) -> None:
    assert results.fused.exit_code == 0, results.fused.output
    joint, fused = (load_posterior(results.folder / name).parameters for name in ("joint", "fused"))
    std = np.sqrt(np.diag(joint.covariance))
    np.testing.assert_allclose(np.sqrt(np.diag(fused.covariance)) / std, 1.0, atol=0.25)
    assert np.all(np.abs(fused.mean - joint.mean) < std)
    assert {path.name for path in (results.folder / "fused").iterdir()} == {
        "report.html",
        "inertia.yaml",
        "calibrated.urdf",
    }
    assert [entry["recording"] for entry in document(results.folder / "fused")["recordings"]] == [
        str(results.recording(name)) for name in ("first", "second")
    ]


def test_posterior_in_the_file_is_that_of_the_table(results: Results) -> None:
    file = load_posterior(results.folder / "alone" / "first")
    base = document(results.folder / "alone" / "first")["links"]["base"]
    assert file.robot == "go2"
    assert file.parameters.links == ("base",)
    # alpha is half the logarithm of the mass.
    assert np.exp(2.0 * file.parameters.mean[0]) == pytest.approx(base["estimate"]["mass"])
    std = 2.0 * base["estimate"]["mass"] * np.sqrt(file.parameters.covariance[0, 0])
    assert std == pytest.approx(base["std"]["mass"])
    np.testing.assert_allclose(file.parameters.mean[7:], base["estimate"]["com"])
    np.testing.assert_allclose(np.sqrt(np.diag(file.parameters.prior_covariance))[7:], 0.1)


def test_fusing_one_recording_twice_is_warned_of(results: Results, tmp_path: Path) -> None:
    alone = results.folder / "alone" / "first"
    done = prime("fuse", alone, results.folder / "joint", "--out", tmp_path / "out")
    assert done.exit_code == 0
    assert "data count twice" in done.stderr
    assert "no calibrated.urdf" in done.stdout  # without --robot


def test_not_converged_is_flagged_everywhere(results: Results, tmp_path: Path) -> None:
    both, out = (results.recording("first"), results.recording("second")), tmp_path / "out"
    limit = ("--set", "solver.max_iterations=3")
    done = prime("solve", *both, "--joint", "--robot", "go2", "--out", out, *limit)
    assert done.exit_code == 3, done.output
    assert "NOT CONVERGED" in done.stdout
    assert "NOT CONVERGED" in (out / "report.html").read_text()
    assert "NOT CONVERGED" in (out / "calibrated.urdf").read_text()
    assert [document(folder)["converged"] for folder in (out, out / "first", out / "second")] == 3 * [False]
    fused = prime("fuse", out, results.folder / "alone" / "first", "--out", tmp_path / "fused")
    assert_refused(fused, "did not converge")


# Mistakes


def test_several_recordings_need_joint(results: Results, tmp_path: Path) -> None:
    both = (results.recording("first"), results.recording("second"))
    done = prime("solve", *both, "--robot", "go2", "--out", tmp_path / "out")
    assert_refused(done, "got 2 recordings", "first.npz", "second.npz", "add --joint", "one by one")
    assert not (tmp_path / "out").exists()


def test_joint_needs_several_different_recordings(results: Results, tmp_path: Path) -> None:
    one = results.recording("first")
    options = ("--joint", "--robot", "go2", "--out", tmp_path / "out")
    assert_refused(prime("solve", one, *options), "got one recording", "leave --joint out")
    assert_refused(prime("solve", one, one, *options), "first.npz twice", "count twice")
    two = (one, results.recording("second"))
    assert_refused(prime("solve", *two, "--no-identify", *options), "no link to identify")
    assert_refused(prime("solve", one, tmp_path / "absent.npz", *options), "absent.npz")
    assert not (tmp_path / "out").exists()


def test_a_bad_recording_is_named(results: Results, tmp_path: Path) -> None:
    options = ("--joint", "--robot", "go2", "--out", tmp_path / "out")
    still = sources.load(results.recording("second")).cropped(0.0, 0.02)
    write_table(still, tmp_path / "short.npz")
    done = prime("solve", results.recording("first"), tmp_path / "short.npz", *options)
    assert_refused(done, "short.npz")
    assert not (tmp_path / "out").exists()


def test_foreign_files_are_left_alone_and_earlier_results_replaced(results: Results, tmp_path: Path) -> None:
    from prime_ros.exceptions import OutputError
    from prime_ros.outputs.write_joint import check_joint_directory, earlier_folders

    out = results.folder / "joint"
    assert earlier_folders(out) == ("first", "second")
    assert check_joint_directory(out, ("first", "third")) == out
    stranger = out / "first" / "notes.txt"
    stranger.write_text("mine")
    with pytest.raises(OutputError, match=r"notes\.txt"):
        check_joint_directory(out, ("first", "second"))
    stranger.unlink()
    beside = tmp_path / "solved" / "walk"
    beside.mkdir(parents=True)
    (beside / "inertia.yaml").write_text("links: {}\n")
    # Results of somebody who keeps several in one folder are not those of an earlier joint solve.
    with pytest.raises(OutputError, match="walk"):
        check_joint_directory(tmp_path / "solved", ("walk", "trot"))


@pytest.mark.parametrize("folder", ["..", ".", "", "a/b", "/etc", ".hidden"])
def test_a_written_folder_name_leads_nowhere_else(tmp_path: Path, folder: str) -> None:
    from prime_ros.outputs.write_joint import earlier_folders

    text = yaml.safe_dump({"recordings": [{"folder": folder}]})
    (tmp_path / "inertia.yaml").write_text(text)
    assert earlier_folders(tmp_path) == ()


def test_folders_are_named_like_recordings_and_told_apart() -> None:
    from prime_ros.outputs.write_joint import folder_names

    paths = [Path("/a/walk.mcap"), Path("/b/walk"), Path("/c/my walk.csv"), Path("/d/report.html")]
    assert folder_names(paths) == ("walk", "walk_2", "my_walk", "report")
    assert folder_names([Path("/a/estimate_bag"), Path("/b/.x")]) == ("estimate_bag_recording", "x")


def changed(results: Results, path: Path, **values: Any) -> Path:
    content = document(results.folder / "alone" / "first")
    for key, value in values.items():
        if value is None:
            del content[key]
        else:
            content[key] = value
    path.write_text(yaml.safe_dump(content))
    return path


def other_prior(results: Results) -> Any:
    parameters = document(results.folder / "alone" / "first")["parameters"]
    parameters["prior_mean"][0] += 0.1
    return parameters


def indefinite(results: Results) -> Any:
    parameters = document(results.folder / "alone" / "first")["parameters"]
    parameters["covariance"][0][0] *= -1.0
    return parameters


def renamed(results: Results) -> Any:
    parameters = document(results.folder / "alone" / "first")["parameters"]
    parameters["names"][3] = "base.size"
    return parameters


CASES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "of an earlier version": (lambda _: {"parameters": None}, ("earlier version", "prime solve")),
    "not converged": (lambda _: {"converged": False}, ("did not converge",)),
    "of another robot": (lambda _: {"robot": "g1"}, ("g1", "go2", "expected one robot")),
    "without inertia": (lambda _: {"links": {}}, ("no inertia was identified",)),
    "with another prior": (lambda r: {"parameters": other_prior(r)}, ("priors differ", "same settings")),
    "with a bad covariance": (lambda r: {"parameters": indefinite(r)}, ("positive definite",)),
    "with unknown names": (lambda r: {"parameters": renamed(r)}, ("base.size", "base.log_size_z")),
    "that is no inertia": (lambda _: {"links": None}, ("not the inertia.yaml",)),
}


@pytest.mark.parametrize("case", CASES)
def test_a_file_that_cannot_be_fused_is_refused(results: Results, tmp_path: Path, case: str) -> None:
    values, words = CASES[case]
    file = changed(results, tmp_path / "other.yaml", **values(results))
    done = prime("fuse", results.folder / "alone" / "first", file, "--out", tmp_path / "out")
    assert_refused(done, *words)
    assert not (tmp_path / "out").exists()


def test_fuse_needs_two_files_that_are_there(results: Results, tmp_path: Path) -> None:
    alone, out = results.folder / "alone" / "first", ("--out", tmp_path / "out")
    assert_refused(prime("fuse", alone, *out), "got 1 file", "at least two")
    assert_refused(prime("fuse", alone, tmp_path / "absent", *out), "absent", "no such file")
    garbage = tmp_path / "garbage.yaml"
    garbage.write_bytes(b"\xff\xfe: [")
    assert_refused(prime("fuse", alone, garbage, *out), "cannot be read")
