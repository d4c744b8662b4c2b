# SPDX-License-Identifier: Apache-2.0
"""Results as a set: a kill leaves old results or new ones, and what is not ours is never touched."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from synthetic import synthetic_estimate

from prime_ros.estimation.estimate import Estimate
from prime_ros.exceptions import OutputError
from prime_ros.outputs import exchange, write
from prime_ros.outputs.write import RESULTS, check_directory, write_results
from prime_ros.robot import Robot, load_robot

BAG_FILES = ("estimate_bag/estimate_bag.mcap", "estimate_bag/metadata.yaml")
FILES = {"estimate.npz", "estimate.parquet", "inertia.yaml", "calibrated.urdf", *BAG_FILES}


@pytest.fixture(scope="module")
def go2() -> Robot:
    return load_robot("go2")


def contents(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if not path.is_dir())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def killed_at(event: int, work: Any) -> bool:
    """Run `work` in a child killed at its n-th file operation; False if it ended before."""
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    count = 0

    def audit(name: str, _: Any) -> None:
        nonlocal count
        if name == "open" or name.startswith(("os.", "ctypes.call", "ctypes.dl")):
            count += 1
            if count == event:
                os.kill(os.getpid(), signal.SIGKILL)

    try:
        sys.addaudithook(audit)
        work()
    finally:
        os._exit(0)


def small_bag(estimate: Estimate, robot: Robot, folder: Path, urdf: bytes | None) -> None:
    """The files of a bag, without the time that its content takes."""
    folder.mkdir()
    (folder / "estimate_bag.mcap").write_bytes(estimate.joint_position.tobytes())
    (folder / "metadata.yaml").write_text("metadata")


@pytest.fixture(params=["exchange", "two renames"])
def way_of_replacing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "two renames":
        monkeypatch.setattr(exchange, "_exchange", lambda first, second: False)
    return str(request.param)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(sys.platform != "linux", reason="needs fork and an atomic exchange")
def test_a_kill_leaves_old_results_or_new_ones(
    tmp_path: Path, go2: Robot, monkeypatch: pytest.MonkeyPatch, way_of_replacing: str
) -> None:
    monkeypatch.setattr(write, "write_bag", small_bag)
    out, old, new = tmp_path / "out", synthetic_estimate(1), synthetic_estimate(2)
    write_results(new, go2, out)
    wanted = contents(out)
    write_results(old, go2, out)
    kept = shutil.copytree(out, tmp_path / "kept")
    before = contents(out)
    assert set(before) == FILES
    assert before != wanted
    seen, event, killed = [], 0, True
    while killed:
        event += 1
        killed = killed_at(event, lambda: write_results(new, go2, out))
        if way_of_replacing == "two renames":
            # Without an atomic exchange the old results wait under a hidden name until the next write.
            exchange._recover(out, RESULTS)
        seen.append(contents(out))
        assert seen[-1] in (before, wanted)
        shutil.rmtree(out)
        shutil.copytree(kept, out)
    assert before in seen
    assert wanted in seen
    assert event > 25


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(sys.platform != "linux", reason="needs fork and an atomic exchange")
def test_a_kill_at_a_random_moment_leaves_old_results_or_new_ones(tmp_path: Path, go2: Robot) -> None:
    out, estimates = tmp_path / "out", [synthetic_estimate(1), synthetic_estimate(2)]
    complete = []
    for estimate in estimates:
        write_results(estimate, go2, out)
        complete.append(contents(out))
    random = np.random.default_rng(0)
    for delay in random.uniform(0.0, 0.3, size=10):
        child = os.fork()
        if not child:
            try:
                for estimate in itertools.cycle(estimates):
                    write_results(estimate, go2, out)
            finally:
                os._exit(1)
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
        assert os.WIFSIGNALED(os.waitpid(child, 0)[1]), "the writer ended by itself"
        assert contents(out) in complete


def test_leftovers_of_killed_writers_are_swept_when_old(tmp_path: Path, go2: Robot) -> None:
    stale, young = tmp_path / ".out.partial-1", tmp_path / ".out.partial-2"
    for leftover in (stale, young):
        leftover.mkdir()
        (leftover / "estimate_bag").mkdir()
        for name in ("estimate.npz", "estimate_bag/estimate_bag.mcap", "estimate_bag/metadata.yaml.tmp"):
            (leftover / name).touch()
    os.utime(stale, (0, 0))
    write_results(synthetic_estimate(), go2, tmp_path / "out")
    assert not stale.exists()
    assert young.exists()


def test_a_failing_writer_leaves_old_results_and_no_litter(
    tmp_path: Path, go2: Robot, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    write_results(synthetic_estimate(1), go2, out)
    before = contents(out)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(write, "save_inertia", full)
    with pytest.raises(OutputError, match="No space left"):
        write_results(synthetic_estimate(2), go2, out)
    assert contents(out) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_parents_are_created_and_the_set_is_replaced_as_a_whole(tmp_path: Path, go2: Robot) -> None:
    out = tmp_path / "deep" / "er" / "out"
    written = write_results(synthetic_estimate(1), go2, out)
    assert written.files == (
        "estimate.npz",
        "estimate.parquet",
        "inertia.yaml",
        "calibrated.urdf",
        "estimate_bag/",
    )
    assert set(contents(out)) == FILES
    write_results(synthetic_estimate(1, links={}), go2, out)
    assert set(contents(out)) == FILES - {"calibrated.urdf"}
    assert [path.name for path in out.parent.iterdir()] == ["out"]


@pytest.mark.parametrize("foreign", ["thesis.tex", "estimate_bag/notes.txt", "figures/x.png"])
def test_a_directory_with_other_files_is_not_replaced(tmp_path: Path, go2: Robot, foreign: str) -> None:
    out = tmp_path / "out"
    write_results(synthetic_estimate(1), go2, out)
    (out / foreign).parent.mkdir(exist_ok=True)
    (out / foreign).touch()
    before = contents(out)
    with pytest.raises(OutputError, match=re.escape(foreign.split("/x")[0])):
        write_results(synthetic_estimate(2), go2, out)
    assert contents(out) == before


def test_a_file_or_the_working_directory_is_no_place_for_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="it is a file"):
        check_directory(tmp_path / "file")
    with pytest.raises(OutputError, match="not a writable directory"):
        check_directory(tmp_path / "file" / "out")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(OutputError, match="working directory"):
        check_directory(".")


def test_a_link_to_a_directory_stays_a_link(tmp_path: Path, go2: Robot) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    write_results(synthetic_estimate(), go2, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert set(contents(tmp_path / "real")) == FILES


def test_a_link_in_place_of_the_bag_is_not_ours(tmp_path: Path, go2: Robot) -> None:
    out = tmp_path / "out"
    write_results(synthetic_estimate(1), go2, out)
    (out / "estimate_bag").rename(tmp_path / "elsewhere")
    (out / "estimate_bag").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match="estimate_bag"):
        write_results(synthetic_estimate(2), go2, out)
    exchange.discard(out, RESULTS)
    assert set(contents(tmp_path / "elsewhere")) == {"estimate_bag.mcap", "metadata.yaml"}


@pytest.mark.parametrize("error", [ValueError("no such colour"), OSError(28, "No space left on device")])
def test_a_bag_or_report_that_fails_costs_nothing_else(
    tmp_path: Path, go2: Robot, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(*arguments: Any) -> None:
        path = next(argument for argument in arguments if isinstance(argument, Path))
        if path.name == "estimate_bag":
            path.mkdir()
            path /= "estimate_bag.mcap"
        path.write_text("half")
        raise error

    monkeypatch.setattr(write, "write_bag", fails)
    monkeypatch.setattr(write, "write_report", fails)
    context: Any = SimpleNamespace(recording="walk")
    written = write_results(synthetic_estimate(1), go2, tmp_path / "out", context)
    assert set(contents(tmp_path / "out")) == FILES - set(BAG_FILES)
    assert [note.split(":")[0] for note in written.notes] == ["no estimate_bag", "no report.html"]
    assert all(str(error) in note for note in written.notes)
