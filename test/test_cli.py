# SPDX-License-Identifier: Apache-2.0
"""The `prime` command as a user meets it: help, one clear message per mistake, exit codes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from synthetic import synthetic_estimate
from typer.testing import CliRunner

import prime_ros.sources
from prime_ros import __version__
from prime_ros.cli import app
from prime_ros.estimation.estimate import Estimate
from prime_ros.estimation.progress import Progress
from prime_ros.measurements.knots import AlignmentDiagnostics
from prime_ros.outputs.write import RESULTS
from prime_ros.sources import SourceOptions, Topics

Solve = Callable[..., Estimate]


def prime(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "prime_ros.cli", *map(str, arguments)]
    # From the root folder: beside the sources, "python -m" would take the package without its compiled core.
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd="/")


def assert_refused(result: subprocess.CompletedProcess[str], *words: str) -> None:
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    assert result.stderr.startswith("prime: error: ")
    assert "Traceback" not in result.stderr
    assert all(word in result.stderr for word in words), result.stderr


def test_help_names_the_commands() -> None:
    result = prime("--help")
    assert result.returncode == 0
    assert "solve" in result.stdout
    assert "info" in result.stdout


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys, prime_ros.cli as cli\n"
        "try: cli.app(['solve', '--help'])\n"
        "except SystemExit: pass\n"
        "sys.exit(str(sorted({'numpy', 'pinocchio', 'rosbags', 'pyarrow', 'bokeh'} & set(sys.modules)) or 0))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd="/"
    )
    assert result.stderr == "0\n"


def test_help_of_solve_teaches() -> None:
    result = prime("solve", "--help")
    assert result.returncode == 0
    for word in (
        "--robot",
        "--set",
        "--no-identify",
        "--solver",
        "Examples",
        "estimate.npz",
        "Exit codes",
        "130",
    ):
        assert word in result.stdout


def test_version() -> None:
    assert prime("--version").stdout == f"prime_ros {__version__}\n"


def test_usage_mistakes_exit_2(tmp_path: Path) -> None:
    table = tmp_path / "table.npz"
    for arguments in (
        ["resolve"],
        ["solve", table, "--robot", "go2"],
        ["solve", table, "--robot", "go2", "--out", tmp_path / "out", "--solver", "newton"],
        ["solve", table, "--robot", "go2", "--out", tmp_path / "out", "--start", "-1"],
        ["solve", table, "--robot", "go2", "--out", tmp_path / "out", "--links", "base", "--no-identify"],
        ["solve", table, "--robot", "go2", "--out", tmp_path / "out", "--links", ","],
        ["solve", table, "--robot", "go2", "--out", tmp_path / "out", "--topic", "/mocap"],
        ["solve", table, "--robot", "go2", "--out", tmp_path / "out", "--topic", "pose=/mocap"],
        ["solve", table, "--robot", "go2", "--out", tmp_path / "out", "--stamps", "wall"],
        ["info"],
    ):
        result = prime(*arguments)
        assert result.returncode == 2
        assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_robot_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    result = prime("solve", tmp_path / "table.npz", "--robot", "go3", "--out", tmp_path / "out")
    assert_refused(result, "go3", "go2")


def test_a_missing_recording_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    result = prime("solve", tmp_path / "table.npz", "--robot", "go2", "--out", tmp_path / "deep" / "out")
    assert_refused(result, "table.npz")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_setting_is_refused_with_the_valid_ones(tmp_path: Path) -> None:
    common = ("solve", tmp_path / "table.npz", "--robot", "go2", "--out", tmp_path / "out")
    assert_refused(prime(*common, "--set", "solver.iterations=3"), "solver.iterations", "max_iterations")
    assert_refused(prime(*common, "--set", "dt"), "KEY=VALUE")
    (tmp_path / "mine.yaml").write_text("slak: {normal: 1}\n")
    assert_refused(prime(*common, "--config", tmp_path / "mine.yaml"), "mine.yaml", "slak", "slack")


def test_an_occupied_directory_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    result = prime("solve", tmp_path / "table.npz", "--robot", "go2", "--out", tmp_path)
    assert_refused(result, "thesis.tex")


def test_debug_adds_the_traceback(tmp_path: Path) -> None:
    result = prime("solve", "table.npz", "--robot", "go3", "--out", tmp_path / "out", "--debug")
    assert result.returncode == 2
    assert "Traceback" in result.stderr
    assert "prime: error: " in result.stderr


# --- what a solve does with its result, with a stand-in for the estimation


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run `prime solve` in this process with a given estimation; returns the result and what it was asked."""

    def run_with(estimation: Solve, *arguments: str) -> Any:
        asked: dict[str, Any] = {}
        recording = SimpleNamespace(cropped=lambda *part: asked.update(part=part))

        def load(path: Path, options: SourceOptions) -> SimpleNamespace:
            asked.update(options=options)
            return recording

        def solve(measurements: Any, robot: Any, config: Any, progress: Any = None) -> Estimate:
            asked.update(robot=robot, config=config)
            progress(Progress(2, 3, kappa=100.0, iteration=7, cost=5.0, largest_gap=1e-3, piece=4, pieces=9))
            return estimation()

        aligned = SimpleNamespace(diagnostics=AlignmentDiagnostics({}, {}))
        for name, function in (("estimation.estimators", solve), ("measurements.alignment", None)):
            module = ModuleType(f"prime_ros.{name}")
            setattr(module, "align" if function is None else "solve", function or (lambda *_: aligned))
            monkeypatch.setitem(sys.modules, f"prime_ros.{name}", module)
        monkeypatch.setattr(prime_ros.sources, "load", load)
        command = ["solve", "table.npz", "--robot", "go2", "--out", str(tmp_path / "out"), *arguments]
        return CliRunner().invoke(app, command), SimpleNamespace(**asked)

    return run_with


def test_a_converged_solve_exits_0_and_says_what_it_found(run: Any, tmp_path: Path) -> None:
    result, _ = run(synthetic_estimate)
    assert result.exit_code == 0, result.output
    assert "payload +3.00 kg" in result.output
    assert "calibrated.urdf" in result.output
    assert {p.name for p in (tmp_path / "out").iterdir()} == set(RESULTS)


def test_a_solve_that_did_not_converge_exits_3_and_flags_the_results(run: Any, tmp_path: Path) -> None:
    result, _ = run(lambda: synthetic_estimate(converged=False))
    assert result.exit_code == 3
    assert "NOT CONVERGED" in result.output
    assert "converged: false" in (tmp_path / "out" / "inertia.yaml").read_text()
    assert "NOT CONVERGED" in (tmp_path / "out" / "calibrated.urdf").read_text()


def test_an_interrupted_solve_says_where_and_keeps_the_old_results(run: Any, tmp_path: Path) -> None:
    def interrupted() -> Estimate:
        raise KeyboardInterrupt

    run(synthetic_estimate)
    before = (tmp_path / "out" / "estimate.npz").read_bytes()
    result, _ = run(interrupted)
    assert result.exit_code == 130
    assert "interrupted during solve, piece 4 of 9, stage 2 of 3, iteration 7" in result.output
    assert (tmp_path / "out" / "estimate.npz").read_bytes() == before


def test_options_reach_the_estimation(run: Any) -> None:
    options = ["--set", "dt=0.02", "--set", "solver.max_iterations=5", "--links", "base, FL_calf"]
    _, asked = run(synthetic_estimate, *options, "--solver", "fddp", "--start", "1.5", "--duration", "2")
    assert asked.part == (1.5, 2.0)
    assert asked.config.dt == 0.02
    assert asked.config.solver.max_iterations == 5
    assert asked.config.links == ("base", "FL_calf")
    assert asked.config.solver.name == "fddp"
    assert np.isclose(sum(inertia.mass for inertia in asked.robot.model.inertias), 16.085, atol=1e-3)
    assert asked.options.topics == Topics()
    assert asked.options.stamps == "auto"
    assert asked.options.vendor_joint_names == asked.robot.vendor_joint_names
    topics = ("--topic", "mocap=/vrpn/pose", "--topic", "joints=/js", "--stamps", "receipt", "--body", "go2")
    _, asked = run(synthetic_estimate, "--no-identify", *topics)
    assert asked.config.links == ()
    assert asked.part == (0.0, None)
    assert asked.options.topics == Topics(joints="/js", mocap="/vrpn/pose")
    assert (asked.options.stamps, asked.options.body) == ("receipt", "go2")
