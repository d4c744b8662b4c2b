# SPDX-License-Identifier: Apache-2.0
"""The experiments: the hopper from end to end, the page, the command, and what it says of missing data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from prime_ros.cli import app
from prime_ros.exceptions import SimulationError, SourceError
from prime_ros.experiments.command import ExperimentName
from prime_ros.experiments.data import LogFolder
from prime_ros.experiments.force_errors import ForceErrors
from prime_ros.experiments.inertia import NAMES, parameters
from prime_ros.experiments.section import Plot, Section, Table
from prime_ros.experiments.target import Target
from prime_ros.robot import FREE_BASE, load_robot
from prime_ros.simulation.hopping import HopController

FLIGHTS = 5  # at least, in 2.5 s


def test_hopper_hops() -> None:
    pytest.importorskip("mujoco")
    from prime_ros.experiments.simulated import hopping

    robot = load_robot("hopper")
    recording, log = hopping(robot, seed=0)
    normal = log.contact_force_W[:, 0, 2]
    landings = np.count_nonzero(np.diff((normal > 5.0).astype(int)) == 1)
    assert landings >= FLIGHTS
    assert 0.3 < np.mean(normal > 5.0) < 0.7
    mass = sum(inertia.mass for inertia in robot.model.inertias)
    assert normal.mean() == pytest.approx(9.81 * mass, rel=0.1)
    assert recording.joints.names == robot.joint_names


def test_other_robots_do_not_hop() -> None:
    with pytest.raises(SimulationError, match="expected those of the hopper"):
        HopController(load_robot("go2"))


def test_hopper_is_identified_from_a_biased_start() -> None:
    pytest.importorskip("mujoco")
    from prime_ros.experiments.hopper import CONTACT_LIMIT, LIMIT, hop

    found = hop(seed=7, with_history=False)
    assert found.estimate.certificate.converged
    assert np.abs(found.percent).max() <= LIMIT
    assert found.forces.agreement >= CONTACT_LIMIT
    start, end = np.abs(found.history - found.truth)
    assert (end < 0.2 * start)[:7].all()


def test_bias_of_the_hopper_is_what_it_says() -> None:
    pytest.importorskip("mujoco")
    from prime_ros.experiments.simulated import with_biased_base

    robot = load_robot("hopper")
    true, biased = robot.model.inertias[FREE_BASE], with_biased_base(robot).model.inertias[FREE_BASE]
    assert biased.mass == pytest.approx(0.7 * true.mass)
    np.testing.assert_allclose(biased.inertia, 0.6 * true.inertia)
    assert np.linalg.norm(biased.lever - true.lever) == pytest.approx(0.0469, abs=1e-4)


def test_command_writes_page_figures_and_pictures(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    pytest.importorskip("matplotlib")
    arguments = ["experiments", "hopper", "--out", str(tmp_path), "--seeds", "0,1"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "PASS  hopper: worst parameter, worst seed" in done.output
    page = (tmp_path / "results.md").read_text()
    for name in NAMES:
        assert f"| {name} |" in page
    assert "`prime experiments hopper --seeds 0,1 --out DIR`" in page
    figures = json.loads((tmp_path / "results.json").read_text())["hopper"]
    assert [Target(**target).passed for target in figures["targets"]] == [True, True, True]
    pictures = sorted(path.name for path in (tmp_path / "images").iterdir())
    assert pictures == ["experiment_hopper_contact.svg", "experiment_hopper_convergence.svg"]
    assert all(f"(images/{name})" in page for name in pictures)


@pytest.mark.parametrize("options", [[], ["--data", "."]], ids=["no folder", "empty folder"])
def test_missing_logs_are_named_before_anything_runs(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["experiments", "all", "--out", "results", *options])
    assert done.exit_code == 2
    assert "--data DIR" in done.output
    assert "go2_payload_3kg" in done.output
    assert list(tmp_path.iterdir()) == []


def test_log_folder_names_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "other.npz").touch()
    with pytest.raises(SourceError, match=r"go2_walk\.npz: no such simulated log; .* has other"):
        LogFolder(tmp_path).log("go2_walk")


def test_seeds_must_be_numbers() -> None:
    done = CliRunner().invoke(app, ["experiments", "hopper", "--out", "x", "--seeds", "0,one"])
    assert done.exit_code == 2
    assert "expected whole numbers separated by commas" in done.output


def test_every_experiment_can_be_named() -> None:
    pytest.importorskip("mujoco")
    from prime_ros.experiments.runner import EXPERIMENTS

    assert {name.value for name in ExperimentName} == {"all", *EXPERIMENTS}


def test_section_reads_as_markdown() -> None:
    table = Table(("log", "error | [N]"), (("walk", "1.0"),))
    section = Section("name", "Title", "Text.", "prime experiments name", (table, Plot("a.svg", "Picture")))
    lines = section.markdown().splitlines()
    assert lines[0] == "## Title"
    assert "| log | error / [N] |" in lines
    assert "| walk | 1.0 |" in lines
    assert "![Picture](a.svg)" in lines


@pytest.mark.parametrize(("value", "passed"), [(1.9, True), (2.0, True), (2.1, False), (np.nan, False)])
def test_target_judges(value: float, passed: bool) -> None:
    assert Target("group", "name", value, "%", highest=2.0).passed is passed


def test_force_errors_are_of_the_sum_of_a_foot() -> None:
    true = np.zeros((60, 2, 3))
    estimated = true.copy()
    estimated[:, 1] = [3.0, 4.0, 0.0]
    standing = np.ones((60, 2), dtype=bool)
    wrong = standing.copy()
    wrong[30:40, 0] = False
    errors = ForceErrors(("a", "b"), estimated, true, standing, wrong)
    np.testing.assert_allclose(errors.rmse, [0.0, 5.0])
    np.testing.assert_allclose(errors.rmse_by_axis, [3.0 / np.sqrt(2.0), 4.0 / np.sqrt(2.0), 0.0])
    assert errors.worst == 5.0
    assert errors.agreement == pytest.approx(0.75)  # 10 of the 20 knots that count, one of two feet


def test_parameters_are_in_their_units() -> None:
    tensor = np.array([[1.0, 4.0, 5.0], [4.0, 2.0, 6.0], [5.0, 6.0, 3.0]]) / 1e3
    found = parameters(2.0, [0.01, 0.02, 0.03], tensor)
    np.testing.assert_allclose(found, [2.0, 10.0, 20.0, 30.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
