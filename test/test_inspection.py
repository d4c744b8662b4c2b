# SPDX-License-Identifier: Apache-2.0
"""What `prime info` shows: everything that an estimation would find, and no exception for a bad recording."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from perturbed import bundled, late, lost, scaled, with_joints, with_poses
from recordings import BAG, NS
from rich.console import Console
from simulation import go2

from prime_ros.config import load_estimator_config
from prime_ros.exceptions import SourceError
from prime_ros.inspection import Inspection, inspect, print_inspection
from prime_ros.measurements import Recording, align
from prime_ros.sources import SourceOptions, Topics, write_table

CONFIG = load_estimator_config("pfie")


def inspected(whole: Recording, folder: Path, checked: bool = True) -> Inspection:
    path = folder / "table.npz"
    write_table(whole, path)
    return inspect(path, None, go2() if checked else None, CONFIG)


def printed(inspection: Inspection) -> str:
    console = Console(file=io.StringIO(), width=80)
    print_inspection(inspection, console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines()[1:])) <= 80  # the first is the path, which is not broken
    assert "\x1b" not in text
    return str(text)


def words(text: str) -> str:
    """Without line breaks, which depend on the width."""
    return " ".join(text.split())


@pytest.fixture(scope="module")
def good() -> Inspection:
    return inspect(BAG, None, go2(), CONFIG)


def test_a_good_recording_is_usable_and_as_long_as_its_alignment(good: Inspection) -> None:
    assert good.usable
    assert good.knots == len(align(bundled(), go2(), CONFIG).stamp_ns)
    assert good.findings == ()
    assert good.problems == ()
    assert {role: use.source for role, use in good.uses.items()} == {
        "joints": "/joint_states",
        "mocap": "/mocap",
        "imu": "/imu",
    }


def test_streams_are_described(good: Inspection) -> None:
    assert {role: round(stream.rate) for role, stream in good.streams.items()} == {
        "joints": 500,
        "mocap": 100,
        "imu": 500,
    }
    assert 1e-4 < good.streams["mocap"].jitter < 5e-4
    assert good.streams["joints"].jitter == 0.0
    assert good.streams["joints"].duration == pytest.approx(9.998)


def test_the_print_names_what_is_used_for_what(good: Inspection) -> None:
    text = printed(good)
    assert "sensor_msgs/JointState" in text
    assert "clock of motion capture: +0.2 +- 0.8 ms, not added" in text
    assert "Can be estimated for go2: 998 knots." in text


def test_the_dictionary_is_json_with_the_documented_keys(good: Inspection) -> None:
    text = json.dumps(good.to_dict(), allow_nan=False)
    document = Inspection.to_dict.__doc__
    assert document is not None
    for key in json.loads(text):
        assert f"``{key}``" in document, key
    assert json.loads(text)["usable"] is True


def test_without_a_robot_only_source_and_stamps_are_looked_at() -> None:
    found = inspect(BAG)
    assert found.usable
    assert found.knots is None
    assert found.joints == bundled().joints.names or set(found.joints) == set(bundled().joints.names)
    assert "with --robot" in printed(found)


def test_gaps_are_listed_with_their_time(tmp_path: Path) -> None:
    whole = bundled()
    time = (whole.joints.stamp_ns - whole.start_ns) / NS
    keep: NDArray[np.bool_] = ~((time > 3.0) & (time < 3.25)) & ~((time > 6.0) & (time < 6.1))
    joints = replace(
        whole.joints, **{name: array[keep] for name, array in vars(whole.joints).items() if name != "names"}
    )
    found = inspected(replace(whole, joints=joints), tmp_path)
    assert found.streams["joints"].gaps == 2
    assert [round(gap.start, 2) for gap in found.streams["joints"].longest_gaps] == [3.0, 6.0]
    assert "joints: gaps: 250 ms at 3.00 s, 100 ms at 6.00 s" in printed(found)


def test_what_is_left_out_and_corrected_is_told(tmp_path: Path) -> None:
    found = inspected(late(lost(bundled(), 4.0, 0.5)[0], 0.03), tmp_path)
    assert found.usable
    text = words(printed(found))
    assert "mocap: left out: 50 lost (zeros or no unit quaternion)" in text
    assert "base_pose: not measured at 50 of 998 knots" in text
    assert "warning clock-offset: the stamps of motion capture are late" in text


def test_all_errors_are_listed_and_the_recording_is_not_usable(tmp_path: Path) -> None:
    whole = with_poses(bundled(), quat_xyzw=bundled().mocap.quat_xyzw[:, [3, 0, 1, 2]])
    found = inspected(with_joints(whole, velocity=scaled(whole.joints.velocity, 4, -1.0)), tmp_path)
    assert not found.usable
    assert found.knots is None
    text = words(printed(found))
    assert "error quaternion-order:" in text
    assert "error joint-velocity:" in text
    assert "Cannot be estimated as it is." in text


@pytest.mark.parametrize("checked", [True, False])
def test_streams_without_common_time_are_a_problem(tmp_path: Path, checked: bool) -> None:
    found = inspected(late(bundled(), 20.0), tmp_path, checked)
    assert not found.usable
    text = words(printed(found))
    assert ("got 0 knots" in text) if checked else ("no time in common" in text)
    assert "sampling.clock_offset" in text


def test_a_recording_that_is_too_short_is_a_problem(tmp_path: Path) -> None:
    found = inspected(bundled().cropped(0.0, 0.02), tmp_path)
    assert found.problems
    assert "expected at least 3: the recording is too short" in found.problems[0]


def test_a_missing_joint_is_a_problem(tmp_path: Path) -> None:
    whole = bundled()
    names = (*whole.joints.names[:-1], "tail")
    found = inspected(replace(whole, joints=replace(whole.joints, names=names)), tmp_path)
    assert not found.usable
    assert "joints missing in the recording: RR_calf_joint" in found.problems[0]


def test_a_missing_topic_is_a_problem_and_the_others_are_listed() -> None:
    found = inspect(BAG, SourceOptions(topics=Topics(mocap="/vrpn/base")), go2(), CONFIG)
    assert not found.usable
    text = words(printed(found))
    assert "/vrpn/base" in text
    assert "/joint_states" in text
    assert "missing: mocap (pose of the base)" in text


def test_a_part_of_a_recording_is_looked_at_alone() -> None:
    found = inspect(BAG, None, go2(), CONFIG, start=4.0, duration=2.0)
    assert found.streams["joints"].duration == pytest.approx(2.0)
    assert not inspect(BAG, None, go2(), CONFIG, start=400.0).usable


def test_what_cannot_be_opened_raises(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such file"):
        inspect(tmp_path / "nothing.mcap")
