# SPDX-License-Identifier: Apache-2.0
"""Layouts of RViz and Foxglove name what there is: topics, namespaces of markers, contacts, the base."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from recordings import ROOT
from synthetic import synthetic_estimate

from prime_ros.outputs.kinematics import contact_points, joint_poses
from prime_ros.outputs.markers import markers
from prime_ros.outputs.messages import frame_names
from prime_ros.outputs.topics import NAMESPACE, TYPES, wrench_topics
from prime_ros.robot import load_robot

RVIZ, FOXGLOVE = (sorted((ROOT / "config" / name).iterdir()) for name in ("rviz", "foxglove"))
OTHER_TOPICS = {"/robot_description", "/diagnostics"}


@pytest.fixture(scope="module")
def namespaces() -> set[str]:
    """Of the markers of a Go2."""
    robot, estimate = load_robot("go2"), synthetic_estimate()
    poses = joint_poses(robot, estimate)
    points = contact_points(robot, estimate, poses)
    shown = markers(estimate, robot, frame_names(robot), poses, points)["markers"]
    return {marker["ns"] for marker in shown}


def test_every_robot_with_a_launch_file_has_layouts() -> None:
    robots = {path.name.split("_")[0] for path in (ROOT / "launch").glob("*.launch.py")}
    assert robots == {path.stem for path in RVIZ} == {path.stem for path in FOXGLOVE}


@pytest.mark.parametrize("path", RVIZ, ids=lambda path: path.stem)
def test_rviz_shows_what_there_is(path: Path, namespaces: set[str]) -> None:
    manager = yaml.safe_load(path.read_text())["Visualization Manager"]
    displays = {display["Class"].split("/")[1]: display for display in manager["Displays"]}
    array = displays["MarkerArray"]
    assert set(array["Namespaces"]) == namespaces
    for display in displays.values():
        topic = display.get("Topic") or display.get("Description Topic")
        if topic is not None:
            name = topic["Value"]
            assert name in OTHER_TOPICS or name.removeprefix("prime/") in TYPES
    assert manager["Views"]["Current"]["Target Frame"] == load_robot(path.stem).base_link


@pytest.mark.parametrize("path", FOXGLOVE, ids=lambda path: path.stem)
def test_foxglove_shows_what_there_is(path: Path, namespaces: set[str]) -> None:
    layout = json.loads(path.read_text())
    contacts = load_robot(path.stem).contact_names
    known = OTHER_TOPICS | {f"{NAMESPACE}/{name}" for name in (*TYPES, *wrench_topics(contacts))}
    panels: dict[str, Any] = layout["configById"]
    scene = panels["3D!robot"]["topics"]
    assert set(scene) <= known
    assert set(scene["/prime/markers"]["namespaces"]) == namespaces
    for name in ("forces", "states"):
        values = [line["value"] for line in panels[f"Plot!{name}"]["paths"]]
        assert [re.findall(r'contact=="(.*?)"', value) for value in values] == [[c] for c in contacts]
    paths = [line["value"] for panel in panels.values() for line in panel.get("paths", ())]
    assert {path.split(".")[0] for path in paths} <= known
    assert np.unique(paths).size == len(paths)
    assert re.findall(r'"(?:first|second)": "(.*?)"', path.read_text()) == [
        "3D!robot", "Plot!forces", "Plot!states", "Plot!mass", "DiagnosticSummary!health"
    ]  # fmt: skip
