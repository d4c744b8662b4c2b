# SPDX-License-Identifier: Apache-2.0
"""`prime solve` by process on the bundled recording: exit codes, files, and what is in them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import yaml
from recordings import BAG

from prime_ros import sources
from prime_ros.outputs.write import RESULTS
from prime_ros.sources.tables import write_table

DURATION = 3.0
K, N, C = 298, 12, 4  # knots after the first window of 10 ms, with one more knot for the last step
SHAPES = {
    "base_position_W": (K, 3),
    "base_quat_xyzw": (K, 4),
    "base_velocity_B": (K, 6),
    "joint_position": (K, N),
    "joint_velocity": (K, N),
    "joint_torque": (K, N),
    "contact_force_W": (K, C, 3),
    "contact_probability": (K, C),
}
NOT_CONVERGED = 3
INTERRUPTED = 130


def command(recording: Path, out: Path, *options: str) -> list[str]:
    arguments = ["solve", str(recording), "--robot", "go2", "--out", str(out), *options]
    return [sys.executable, "-m", "prime_ros.cli", *arguments]


def prime_solve(recording: Path, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    # From the root folder: beside the sources, "python -m" would take the package without its compiled core.
    return subprocess.run(
        command(recording, out, *options), capture_output=True, text=True, timeout=120, check=False, cwd="/"
    )


def arrays(out: Path) -> dict[str, np.ndarray]:
    with np.load(out / "estimate.npz", allow_pickle=False) as file:
        return {key: file[key] for key in file}


def inertia(out: Path) -> Any:
    return yaml.safe_load((out / "inertia.yaml").read_text())


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    out = tmp_path_factory.mktemp("solve") / "results"
    return prime_solve(BAG, out, "--duration", str(DURATION)), out


def test_solve_of_a_bag_converges_and_leaves_all_files(solved: Any) -> None:
    result, out = solved
    assert result.returncode == 0, result.stderr
    assert {entry.name for entry in out.iterdir()} == set(RESULTS)
    assert "Converged" in result.stdout
    assert "payload +" in result.stdout
    assert result.stderr == ""


def test_estimate_has_every_array_in_its_shape(solved: Any) -> None:
    table = arrays(solved[1])
    labels = {"stamp_ns", "joint_names", "contact_names"}
    assert set(table) == labels | set(SHAPES) | {f"{name}_std" for name in SHAPES}
    for name, shape in SHAPES.items():
        assert table[name].shape == shape, name
        assert table[f"{name}_std"].shape == ((K, 3) if name == "base_quat_xyzw" else shape), name
        assert np.all(np.isfinite(table[name])), name
        assert np.all(table[f"{name}_std"] >= 0.0), name
    assert table["stamp_ns"].dtype == np.int64
    assert table["stamp_ns"].shape == (K,)
    np.testing.assert_array_equal(np.diff(table["stamp_ns"]), 10_000_000)
    assert list(table["contact_names"]) == ["FL_foot", "FR_foot", "RL_foot", "RR_foot"]
    assert table["joint_names"].shape == (N,)
    np.testing.assert_allclose(np.linalg.norm(table["base_quat_xyzw"], axis=1), 1.0, atol=1e-9)
    assert 0.0 <= table["contact_probability"].min() <= table["contact_probability"].max() <= 1.0


def test_inertia_file_has_nominal_estimate_and_std(solved: Any) -> None:
    document = inertia(solved[1])
    shared = {"robot", "links", "parameters", "recordings"}
    assert set(document) == {"converged", "ground_height", *shared}
    assert document["converged"] is True
    assert set(document["ground_height"]) == {"estimate", "std"}
    assert set(document["links"]) == {"base"}
    bodies = dict(document["links"]["base"])
    assert bodies.pop("prior_dominated") == []
    assert set(bodies) == {"nominal", "estimate", "std", "prior_std"}
    for body in bodies.values():
        assert set(body) == {"mass", "com", "inertia_com"}
        assert np.shape(body["com"]) == (3,)
        assert np.shape(body["inertia_com"]) == (3, 3)
    base = document["links"]["base"]
    assert base["estimate"]["mass"] - base["nominal"]["mass"] == pytest.approx(3.0, abs=0.15)


def test_calibrated_urdf_is_a_robot_of_the_estimated_inertia(solved: Any) -> None:
    model = pin.buildModelFromUrdf(str(solved[1] / "calibrated.urdf"), pin.JointModelFreeFlyer())
    estimate = inertia(solved[1])["links"]["base"]["estimate"]
    assert model.inertias[1].mass == pytest.approx(estimate["mass"], rel=1e-6)
    np.testing.assert_allclose(model.inertias[1].lever, estimate["com"], atol=1e-6)
    np.testing.assert_allclose(model.inertias[1].inertia, estimate["inertia_com"], atol=1e-6)


def test_table_of_the_same_recording_gives_the_same_estimate(solved: Any, tmp_path: Path) -> None:
    table = tmp_path / "recording.npz"
    write_table(sources.load(BAG).cropped(0.0, DURATION), table)
    result = prime_solve(table, tmp_path / "results")
    assert result.returncode == 0, result.stderr
    of_bag, of_table = arrays(solved[1]), arrays(tmp_path / "results")
    np.testing.assert_array_equal(of_bag["stamp_ns"], of_table["stamp_ns"])
    for name in SHAPES:
        np.testing.assert_allclose(of_bag[name], of_table[name], rtol=1e-6, atol=1e-6, err_msg=name)


def test_nothing_is_identified_on_request(tmp_path: Path) -> None:
    result = prime_solve(BAG, tmp_path / "results", "--duration", "1", "--no-identify")
    assert result.returncode in (0, NOT_CONVERGED), result.stderr
    assert inertia(tmp_path / "results")["links"] == {}
    assert arrays(tmp_path / "results")["contact_force_W"].shape[1:] == (C, 3)


def test_solve_cut_short_exits_3_with_flagged_results(tmp_path: Path) -> None:
    result = prime_solve(BAG, tmp_path / "results", "--duration", "1", "--set", "solver.max_iterations=3")
    assert result.returncode == NOT_CONVERGED, result.stderr
    assert "NOT CONVERGED" in result.stdout
    assert "solver.max_iterations" in result.stdout.replace("\n", " ")
    assert inertia(tmp_path / "results")["converged"] is False
    assert set(SHAPES) < set(arrays(tmp_path / "results"))
    assert "NOT CONVERGED" in (tmp_path / "results" / "calibrated.urdf").read_text()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_interrupted_solve_exits_130_and_leaves_nothing(tmp_path: Path) -> None:
    # Progress, which a terminal shows, tells when the solver is at work. It has so many stages that it still
    # is when the signal comes, on a busy machine too.
    ours, theirs = os.openpty()
    stages = f"contact.kappa_stages={list(range(20, 500, 4))}"
    slow = ("--set", "dt=0.004", "--set", "solver.threads=1", "--set", stages)
    solving = subprocess.Popen(
        command(BAG, tmp_path / "results", *slow), stdout=subprocess.DEVNULL, stderr=theirs, cwd="/"
    )
    os.close(theirs)
    try:
        shown = read_until(ours, "stage 1 of 120", timeout=60.0)
        solving.send_signal(signal.SIGINT)
        shown = read_until(ours, "prime: interrupted", timeout=60.0)
        assert solving.wait(timeout=60) == INTERRUPTED, shown
    finally:
        solving.kill()
        os.close(ours)
    assert "Traceback" not in shown
    assert list(tmp_path.iterdir()) == []


def read_until(terminal: int, text: str, timeout: float) -> str:
    """What a terminal shows up to and including a text."""
    shown, deadline = "", time.monotonic() + timeout
    while text not in shown:
        ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"no '{text}' within {timeout} s: {shown}"
        shown += os.read(terminal, 4096).decode(errors="replace")
    return shown
