# SPDX-License-Identifier: Apache-2.0
"""Bad input as a user meets it: refused with one message and nothing written, or coped with and counted."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import bags
import numpy as np
import pytest
from perturbed import bundled, jumping, lost, scaled_imu, turned_imu, with_joints, with_poses
from recordings import NS
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

from prime_ros.cli import app
from prime_ros.measurements import JointSamples, Recording
from prime_ros.sources import write_rosbag, write_table

Change = Callable[[Recording], Recording]
Words = list[str]
DEGREES = 180.0 / np.pi
PAYLOAD = re.compile(r"payload \+([\d.]+) kg")


@cache
def piece(duration: float = 2.0) -> Recording:
    """Two seconds in which the robot walks; 1001 samples of joints and IMU, 200 of motion capture."""
    return bundled().cropped(1.0, duration)


def prime(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def solve(recording: Path, out: Path, *options: object) -> Any:
    return prime("solve", recording, "--robot", "go2", "--out", out, *options)


def table(recording: Recording, folder: Path) -> Path:
    write_table(recording, folder / "recording.npz")
    return folder / "recording.npz"


def bag(recording: Recording, folder: Path, storage: str = "mcap") -> Path:
    write_rosbag(recording, folder / "bag", storage)
    return folder / "bag"


def assert_refused(result: Any, words: Words, out: Path) -> None:
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert result.stderr.splitlines()[0].startswith("prime: error: ")
    assert "Traceback" not in result.stderr
    assert [word for word in words if word not in result.stderr] == [], result.stderr
    assert not list(out.parent.glob(f"*{out.name}*")), "something was written"


def assert_found(result: Any, words: Words) -> None:
    """`prime info` says the same, on whatever stream, lines broken anywhere."""
    text = "".join(result.output.split())
    assert result.exit_code == 2, result.output
    assert [word for word in words if "".join(word.split()) not in text] == [], result.output


# --- recordings that are refused ---------------------------------------------------------------------------


def restamped(stream: str, change: Callable[[np.ndarray], np.ndarray]) -> Change:
    def changed(whole: Recording) -> Recording:
        samples = getattr(whole, stream)
        return replace(whole, **{stream: replace(samples, stamp_ns=change(samples.stamp_ns.copy()))})

    return changed


def constant(stamp_ns: np.ndarray) -> np.ndarray:
    return np.full_like(stamp_ns, stamp_ns[0])


def joints_named(*names: str) -> Change:
    return lambda whole: replace(whole, joints=replace(whole.joints, names=names + whole.joints.names[1:]))


def without_last_joint(whole: Recording) -> Recording:
    joints = whole.joints
    values = (joints.position[:, :-1], joints.velocity[:, :-1], joints.torque[:, :-1])
    return replace(whole, joints=JointSamples(joints.stamp_ns, joints.names[:-1], *values))


def in_degrees(whole: Recording) -> Recording:
    joints = whole.joints
    return with_joints(whole, position=DEGREES * joints.position, velocity=DEGREES * joints.velocity)


def in_the_air(whole: Recording) -> Recording:
    noise = np.random.default_rng(0).standard_normal(whole.joints.torque.shape)
    return with_joints(whole, torque=0.3 * noise)


def never_measured(channel: str) -> Change:
    return lambda whole: with_joints(whole, **{channel: np.full_like(getattr(whole.joints, channel), np.nan)})


REFUSED: dict[str, tuple[Change, Words]] = {
    "a joint is missing": (
        without_last_joint,
        [
            "joints missing in the recording: RR_calf_joint",
            "it has: FL_hip_joint",
            "by the names of the model",
        ],
    ),
    "a joint has another name": (
        joints_named("FL_hip"),
        ["missing in the recording: FL_hip_joint", "Is 'FL_hip' meant to be 'FL_hip_joint'?"],
    ),
    "a quaternion in the order w x y z": (
        lambda whole: with_poses(whole, quat_xyzw=whole.mocap.quat_xyzw[:, [3, 0, 1, 2]]),
        ["mocap: gravity is", "w x y z read as x y z w", "write the quaternion", "in the order x y z w"],
    ),
    "quaternions of zero norm": (
        lambda whole: with_poses(whole, quat_xyzw=0.0 * whole.mocap.quat_xyzw),
        ["got no valid sample of mocap", "200 lost"],
    ),
    "an IMU upside down": (
        lambda whole: turned_imu(whole, Rotation.from_euler("x", 180, degrees=True)),
        ["gravity, seen by the accelerometer, points along +z", "imu.quat_xyzw", "expected along -z"],
    ),
    "joint stamps that stand still": (
        restamped("joints", constant),
        ["joints: all 1001 samples have the stamp", "set header.stamp", "--stamps receipt"],
    ),
    "mocap stamps that stand still": (
        restamped("mocap", constant),
        ["mocap: all 200 samples have the stamp"],
    ),
    "IMU stamps that stand still": (restamped("imu", constant), ["imu: all 1001 samples have the stamp"]),
    "stamps that run backwards": (
        restamped("joints", lambda stamp_ns: stamp_ns[::-1]),
        ["joints: the stamps of 999 of 1001 samples go back", "in the order in which they were taken"],
    ),
    "streams that do not overlap": (
        restamped("mocap", lambda stamp_ns: stamp_ns + 10 * NS),
        ["got 0 knots", "at least 3", "too little time in common", "mocap 10.", "sampling.clock_offset"],
    ),
    "shorter than three knots": (
        lambda whole: whole.cropped(0.0, 0.035),
        ["knots of 0.01 s, expected at least 3: the recording is too short"],
    ),
    "degrees for radians": (
        in_degrees,
        ["position of FL_hip_joint", "out of range", "expected -", "degrees for radians; record radians"],
    ),
    "a gyroscope in deg/s": (
        lambda whole: scaled_imu(whole, rate=DEGREES),
        ["imu: the gyroscope turns", "it is in deg/s: divide by 57.3"],
    ),
    "motion capture in millimetres": (
        lambda whole: with_poses(whole, 1e3 * whole.mocap.position),
        ["mocap: positions are", "expected metres", "millimetres: publish metres"],
    ),
    "a robot that never touches the ground": (
        in_the_air,
        ["carry", "% of the robot's weight, expected about 100 %", "hangs or never touches the ground"],
    ),
    "no torque": (
        never_measured("torque"),
        ["too few joint torques: FL_hip_joint (100% missing)", "JointState.effort"],
    ),
    "no joint position": (
        never_measured("position"),
        ["too few joint positions: FL_hip_joint (100% missing)", "JointState.position"],
    ),
    "no finite pose": (
        lambda whole: with_poses(whole, np.full_like(whole.mocap.position, np.nan)),
        ["got no valid sample of mocap", "200 not finite"],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_recording_is_refused(case: str, tmp_path: Path) -> None:
    change, words = REFUSED[case]
    recording = table(change(piece()), tmp_path)
    assert_refused(solve(recording, tmp_path / "results"), words, tmp_path / "results")
    assert_found(prime("info", recording, "--robot", "go2"), words)


def test_the_json_of_a_refused_recording_says_so(tmp_path: Path) -> None:
    recording = table(restamped("joints", constant)(piece()), tmp_path)
    result = prime("info", recording, "--robot", "go2", "--json")
    assert result.exit_code == 2
    document = json.loads(result.stdout)
    assert document["usable"] is False
    assert "all 1001 samples have the stamp" in json.dumps(document)


def test_earlier_results_survive_a_refused_recording(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "inertia.yaml").write_text("converged: true\n")
    assert solve(table(in_degrees(piece()), tmp_path), tmp_path / "results").exit_code == 2
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["inertia.yaml"]


# --- bags and files that are refused -----------------------------------------------------------------------


def cut(path: Path, part: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(part * len(content))])


def bag_of_topics(*kept: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        streams = [stream for stream in bags.streams_of(piece(0.5)) if stream[0] in kept]
        return bags.write_bag(folder / "bag", streams)

    return write


def two_markers(folder: Path) -> Path:
    streams = bags.streams_of(piece(0.5))
    other = bags.poses(piece(0.5).mocap, "geometry_msgs/msg/PoseStamped")
    return bags.write_bag(folder / "bag", [*streams, ("/vrpn/other", "geometry_msgs/msg/PoseStamped", other)])


def cut_mcap(folder: Path) -> Path:
    path = bag(piece(0.5), folder)
    cut(path / "bag.mcap", 0.1)
    return path


def cut_db3(folder: Path) -> Path:
    path = bag(piece(0.5), folder, "sqlite3")
    cut(path / "bag.db3", 0.5)
    return path


def empty_file(folder: Path) -> Path:
    (folder / "walk.mcap").touch()
    return folder / "walk.mcap"


def folder_of_notes(folder: Path) -> Path:
    (folder / "walk").mkdir()
    (folder / "walk" / "notes.txt").write_text("a walk\n")
    return folder / "walk"


UNREADABLE: dict[str, tuple[Callable[[Path], Path], Words, Words]] = {
    "no motion capture": (
        bag_of_topics("/joint_states", "/imu"),
        [],
        [
            "mocap: expected a topic of type geometry_msgs/msg/PoseStamped",
            "got none; the bag has",
            "/joint_states",
        ],
    ),
    "no joints": (
        bag_of_topics("/mocap", "/imu"),
        [],
        ["joints: expected a topic of type sensor_msgs/msg/JointState", "got none; the bag has", "/mocap"],
    ),
    "two bodies": (
        two_markers,
        [],
        ["mocap: got 2 topics that fit", "/vrpn/other", "--topic mocap="],
    ),
    "a topic that is not there": (
        bag_of_topics("/joint_states", "/mocap", "/imu"),
        ["--topic", "mocap=/vrpn/go2"],
        ["mocap: expected a topic '/vrpn/go2'", "got none; the bag has", "/mocap"],
    ),
    "a body that is not there": (
        bag_of_topics("/joint_states", "/mocap", "/imu"),
        ["--body", "go2"],
        ["mocap: expected a topic of type", "tf2_msgs/msg/TFMessage with the body 'go2', got none"],
    ),
    "a counter that is not there": (
        bag_of_topics("/joint_states", "/mocap", "/imu"),
        ["--stamps", "tick"],
        ["stamps: got tick, expected a LowState"],
    ),
    "an mcap without a complete chunk": (cut_mcap, [], ["bag.mcap: cannot be read", "mcap recover"]),
    "a truncated db3": (cut_db3, [], ["bag.db3: cannot be read", "malformed", "sqlite3 FILE .recover"]),
    "an empty file": (empty_file, [], ["walk.mcap: cannot be read: the file is empty"]),
    "a folder that is no bag": (folder_of_notes, [], ["walk: got a folder without metadata.yaml", ".csv"]),
    "a file that is not there": (lambda folder: folder / "walk.mcap", [], ["walk.mcap: no such file"]),
    "a start behind the end": (
        bag_of_topics("/joint_states", "/mocap", "/imu"),
        ["--start", "100"],
        ["got start 100.0 s", "expected 0 <= start < 0.5"],
    ),
    "a piece of no length": (
        bag_of_topics("/joint_states", "/mocap", "/imu"),
        ["--duration", "0"],
        ["duration 0.0 s", "duration > 0"],
    ),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_cannot_be_read_is_refused(case: str, tmp_path: Path) -> None:
    write, options, words = UNREADABLE[case]
    recording = write(tmp_path)
    assert_refused(solve(recording, tmp_path / "results", *options), words, tmp_path / "results")
    assert_found(prime("info", recording, *options), words)


# --- robots that are refused -------------------------------------------------------------------------------

LEG = (
    '<joint name="knee" type="revolute"><parent link="base"/><child link="shank"/><axis xyz="0 1 0"/>'
    '<limit lower="-1" upper="1" effort="9" velocity="9"/></joint>'
)
WITHOUT_INERTIA = f'<robot name="r"><link name="base"/><link name="shank"/>{LEG}</robot>'
XACRO = (
    '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'
    '<xacro:include filename="leg.xacro"/></robot>'
)

MODELS: dict[str, tuple[str, str, Words]] = {
    "xacro by its name": (
        "robot.urdf.xacro",
        XACRO,
        ["got xacro, expected plain URDF", "expand it first: xacro "],
    ),
    "xacro by what it says": ("robot.urdf", XACRO, ["robot.urdf: got xacro, expected plain URDF"]),
    "no inertia": (
        "robot.urdf",
        WITHOUT_INERTIA,
        ["got no inertia, expected <inertial>", "root_joint, knee"],
    ),
    "no XML": ("robot.urdf", "walk.mcap", ["robot.urdf: cannot be read as XML"]),
    "no robot": ("robot.urdf", "<sdf/>", ["root <sdf>, expected <robot> (URDF) or <mujoco> (MJCF)"]),
}


@pytest.mark.parametrize("case", MODELS)
def test_a_model_is_refused(case: str, tmp_path: Path) -> None:
    name, text, words = MODELS[case]
    (tmp_path / name).write_text(text)
    recording, out = table(piece(0.5), tmp_path), tmp_path / "results"
    assert_refused(solve(recording, out, "--urdf", tmp_path / name), words, out)
    assert_refused(prime("info", recording, "--robot", "go2", "--urdf", tmp_path / name), words, out)


def test_a_link_that_the_robot_lacks_is_refused(tmp_path: Path) -> None:
    result = solve(table(piece(0.5), tmp_path), tmp_path / "results", "--links", "FL_caf")
    assert result.exit_code == 2
    assert "has no link 'FL_caf' (did you mean 'FL_calf'?)" in result.stderr
    assert not (tmp_path / "results").exists()


# --- recordings that are coped with ------------------------------------------------------------------------


def permuted(whole: Recording) -> Recording:
    joints, order = whole.joints, np.random.default_rng(1).permutation(12)
    values = (channel[:, order] for channel in (joints.position, joints.velocity, joints.torque))
    return replace(whole, joints=JointSamples(joints.stamp_ns, tuple(np.array(joints.names)[order]), *values))


def broken_encoder(whole: Recording) -> Recording:
    position = whole.joints.position.copy()
    position[200:300, 3] = np.nan
    return with_joints(whole, position=position)


def infinite_rates(whole: Recording) -> Recording:
    assert whole.imu is not None
    rate = whole.imu.angular_velocity.copy()
    rate[100:110] = np.inf
    return replace(whole, imu=replace(whole.imu, angular_velocity=rate))


def every_tenth_repeated(stamp_ns: np.ndarray) -> np.ndarray:
    stamp_ns[9::10] = stamp_ns[8::10]
    return stamp_ns


def ten_set_back(stamp_ns: np.ndarray) -> np.ndarray:
    stamp_ns[300:310] -= NS // 2
    return stamp_ns


def one_far_ahead(stamp_ns: np.ndarray) -> np.ndarray:
    stamp_ns[-1] = np.iinfo(np.int64).max
    return stamp_ns


COPED: dict[str, tuple[Change, str]] = {
    "joints in another order": (permuted, ""),
    "an encoder NaN": (broken_encoder, "joints: left out of 1001 samples: 100 not finite"),
    "infinite rates": (infinite_rates, "imu: left out of 1001 samples: 30 not finite"),
    "duplicate stamps": (
        restamped("joints", every_tenth_repeated),
        "joints: left out of 1001 samples: 100 duplicate stamps",
    ),
    "backward stamps": (
        restamped("joints", ten_set_back),
        "joints: left out of 1001 samples: 10 backward stamps",
    ),
    "a stamp far ahead": (
        restamped("joints", one_far_ahead),
        "joints: left out of 1001 samples: 1 stray stamps",
    ),
    "occlusion as zeros": (lambda whole: lost(whole, 0.5, 0.3)[0], "mocap: left out of 200 samples: 29 lost"),
    "jumping poses": (
        lambda whole: jumping(whole, 0.02, 5)[0],
        "mocap: left out of 200 samples: {} jumps",
    ),
}


@pytest.fixture
def no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report takes longer than the solve and has tests of its own."""
    monkeypatch.setattr("prime_ros.outputs.write.write_report", lambda *arguments: arguments[-1].touch())


def assert_solved(result: Any, warning: str, out: Path) -> None:
    assert result.exit_code == 0, result.output
    assert "Converged" in result.stdout
    found = PAYLOAD.search(result.stdout)
    assert found is not None
    assert float(found[1]) == pytest.approx(3.0, abs=0.15)
    told = [line.removeprefix("warning: ") for line in result.stderr.splitlines()]
    assert not warning or any(line.startswith(warning) for line in told), result.stderr
    rest = [
        line for line in told if not (warning and line.startswith(warning)) and "not measured at" not in line
    ]
    assert rest == []
    assert (out / "inertia.yaml").is_file()


@pytest.mark.usefixtures("no_page")
@pytest.mark.parametrize("case", COPED)
def test_a_recording_is_coped_with_and_the_user_told(case: str, tmp_path: Path) -> None:
    change, warning = COPED[case]
    result = solve(table(change(piece()), tmp_path), tmp_path / "results")
    assert_solved(result, warning.format(jumping(piece(), 0.02, 5)[1].sum()), tmp_path / "results")


@pytest.mark.usefixtures("no_page")
def test_a_bag_without_metadata_is_read_and_the_user_told(tmp_path: Path) -> None:
    path = bag(piece(), tmp_path)
    (path / "metadata.yaml").unlink()
    result = solve(path, tmp_path / "results")
    assert_solved(result, f"{path}: no metadata.yaml, read from the files beside it", tmp_path / "results")


@pytest.mark.usefixtures("no_page")
def test_a_truncated_mcap_is_read_as_far_as_it_goes_and_the_user_told(tmp_path: Path) -> None:
    whole = bundled().cropped(2.0, 5.0)
    path = bags.write_bag(tmp_path / "bag", bags.streams_of(whole), "mcap", "storage")
    (path / "metadata.yaml").unlink()
    cut(path / "bag.mcap", 0.7)
    result = solve(path / "bag.mcap", tmp_path / "results", "--duration", "2")
    assert_solved(result, f"{path / 'bag.mcap'}: bag.mcap ends in the middle", tmp_path / "results")


def test_a_piece_longer_than_the_recording_is_all_of_it(tmp_path: Path) -> None:
    recording = table(piece(), tmp_path)
    for duration in ("1e9", "inf"):
        result = prime("info", recording, "--robot", "go2", "--duration", duration, "--json")
        assert json.loads(result.stdout)["knots"] == 198


# --- measurements that pass the checks and are absurd all the same -----------------------------------------


def test_an_estimation_that_cannot_start_is_an_error(tmp_path: Path) -> None:
    recording = table(scaled_imu(piece(0.5), rate=1e200), tmp_path)
    result = solve(recording, tmp_path / "results", "--set", "sampling.skip_checks=[sensor-range]")
    assert result.exit_code == 2, result.output
    assert (
        "prime: error: the estimation cannot start (GaussNewton: the cost of the start is not finite)"
        in result.stderr
    )
    assert "prime info INPUT --robot ROBOT" in result.stderr
    assert not (tmp_path / "results").exists()


# --- the real process --------------------------------------------------------------------------------------


def test_a_process_that_refuses_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    recording, out = table(in_degrees(piece(0.5)), tmp_path), tmp_path / "results"
    command = [sys.executable, "-m", "prime_ros.cli", "solve", recording, "--robot", "go2", "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd="/")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("prime: error: joints: position of FL_hip_joint")
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["recording.npz"]
