# SPDX-License-Identifier: Apache-2.0
"""`prime simulate`: what it leaves, and one clear message per mistake."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner, Result

from prime_ros.robot import load_robot
from prime_ros.simulation.command import FeetName, GaitName, simulate
from prime_ros.simulation.gaits import GAITS
from prime_ros.simulation.mjcf import FEET
from prime_ros.sources import load

pytest.importorskip("mujoco")

APP = typer.Typer()
APP.command()(simulate)


def prime_simulate(*arguments: str | Path) -> Result:
    return CliRunner().invoke(APP, ["--robot", "go2", *map(str, arguments)])


def test_a_bag_has_what_the_robot_measures_and_the_truth_is_apart(tmp_path: Path) -> None:
    bag, truth = tmp_path / "bag", tmp_path / "truth.npz"
    arguments = ["--duration", "0.5", "--payload", "3", "--payload-from", "0.2", "--truth", truth]
    result = prime_simulate("--out", bag, "--gait", "stand", *arguments)
    assert result.exit_code == 0, result.output
    assert f"prime solve {bag} --robot go2" in result.output
    recording = load(bag)
    assert recording.joints.names == load_robot("go2").joint_names
    assert recording.imu is not None
    assert [len(s.stamp_ns) for s in (recording.joints, recording.imu, recording.mocap)] == [250, 250, 50]
    with np.load(truth) as table:
        np.testing.assert_array_equal(table["payload_mass"], np.repeat([0.0, 3.0], [100, 150]))
        np.testing.assert_array_equal(table["stamp_ns"], recording.joints.stamp_ns)
        assert table["contact_force_W"].shape == (250, 4, 3)
        error = table["joint_position"] - recording.joints.position
    assert 0.0015 < error.std() < 0.0025


def test_a_table_by_its_ending_without_noise_and_with_the_payload_taken_off(tmp_path: Path) -> None:
    out, truth = tmp_path / "run.parquet", tmp_path / "truth.npz"
    arguments = ["--duration", "0.2", "--noise-free", "--payload", "2@0,0,0.1", "--payload-until", "0.1"]
    result = prime_simulate("--out", out, "--truth", truth, "--gait", "hop", "--feet", "stiff", *arguments)
    assert result.exit_code == 0, result.output
    with np.load(truth) as table:
        np.testing.assert_array_equal(load(out).joints.position, table["joint_position"])
        np.testing.assert_array_equal(table["payload_mass"], np.repeat([2.0, 0.0], 50))


def test_a_seed_makes_the_recording(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.npz" for name in ("one", "again", "other")]
    for path, seed in zip(paths, ("1", "1", "2"), strict=True):
        assert prime_simulate("--out", path, "--duration", "0.1", "--seed", seed).exit_code == 0
    one, again, other = (load(path).joints.position for path in paths)
    np.testing.assert_array_equal(one, again)
    assert (one != other).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--payload", "heavy"], "payload: got 'heavy'"),
        (["--payload-from", "1"], "no payload"),
        (["--payload", "3", "--payload-from", "11"], "expected 0 <= from < until <= 10.0 s"),
        (["--payload", "3", "--payload-from", "nan"], "expected 0 <= from < until"),
        (["--duration", "0"], "duration: got 0.0 s"),
        (["--duration", "nan"], "duration: got nan s"),
        (["--duration", "inf"], "duration: got inf s"),
        (["--mocap-rate", "1000"], "mocap rate: got 1000.0 Hz"),
        (["--truth", "truth.csv"], "the truth goes to an .npz of its own"),
        (["--truth", "nowhere/truth.npz"], "there is no folder"),
        (["--robot", "go3"], "go3"),
    ],
)
def test_mistakes_are_told_and_nothing_is_written(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = prime_simulate("--out", "out", *arguments)
    assert result.exit_code == 2
    assert result.output.startswith("prime: error: ")
    assert words in result.output
    assert list(tmp_path.iterdir()) == []


def test_bags_are_not_overwritten_and_are_folders(tmp_path: Path) -> None:
    (tmp_path / "bag").mkdir()
    assert "exists already" in prime_simulate("--out", tmp_path / "bag").output
    assert "a rosbag is a folder" in prime_simulate("--out", tmp_path / "run.mcap").output


def test_a_fall_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    result = prime_simulate("--out", tmp_path / "bag", "--gait", "stand", "--payload", "80@0.3,0,0.3")
    assert result.exit_code == 2
    assert "the robot fell at" in result.output
    assert not (tmp_path / "bag").exists()


def test_choices_are_those_of_the_simulator() -> None:
    assert [name.value for name in GaitName] == list(GAITS)
    assert [name.value for name in FeetName] == list(FEET)
