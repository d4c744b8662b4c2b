# SPDX-License-Identifier: Apache-2.0
"""`prime info` and `prime solve` on a bag that real rclpy publishers and subscribers recorded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import yaml

from prime_ros.measurements import Recording
from prime_ros.outputs.write import RESULTS


def prime(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "prime_ros.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd="/")


def test_info_of_a_recorded_bag(recorded_bag: tuple[Path, Recording]) -> None:
    shown = prime("info", recorded_bag[0], "--robot", "go2")
    assert shown.returncode == 0, shown.stdout + shown.stderr
    for word in ("JointState", "Imu", "PoseStamped", "Can be estimated for go2"):
        assert word in shown.stdout
    told = json.loads(prime("info", recorded_bag[0], "--robot", "go2", "--json").stdout)
    assert told["usable"] is True
    roles = {topic["role"]: topic for topic in told["topics"] if topic["used"]}
    assert set(roles) == {"joints", "imu", "mocap"}
    assert roles["joints"]["count"] > 1400
    assert [check for check in told["checks"] if check["severity"] != "note"] == []


def test_solve_of_a_recorded_bag(recorded_bag: tuple[Path, Recording], tmp_path: Path) -> None:
    result = prime("solve", recorded_bag[0], "--robot", "go2", "--out", tmp_path / "results")
    assert result.returncode == 0, result.stderr
    assert {entry.name for entry in (tmp_path / "results").iterdir()} == set(RESULTS)
    base = yaml.safe_load((tmp_path / "results" / "inertia.yaml").read_text())["links"]["base"]
    payload = base["estimate"]["mass"] - base["nominal"]["mass"]
    np.testing.assert_allclose(payload, 3.0, atol=0.1)
