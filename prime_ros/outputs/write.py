# SPDX-License-Identifier: Apache-2.0
"""Write all results of an estimation into a directory, as one atomic change.

The files are written into a hidden sibling of the directory, flushed to disk, and exchanged with it in one
step. A process killed at any moment leaves the old results or the new ones under the directory's name, never
a mixture.
"""

from __future__ import annotations

import ctypes
import glob
import os
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prime_ros.estimation.estimate import Estimate
from prime_ros.exceptions import OutputError
from prime_ros.outputs.estimate_file import save_estimate
from prime_ros.outputs.inertia_file import save_inertia
from prime_ros.outputs.urdf import calibrated_urdf

if TYPE_CHECKING:
    from prime_ros.robot import Robot

ESTIMATE_FILE = "estimate.npz"
INERTIA_FILE = "inertia.yaml"
URDF_FILE = "calibrated.urdf"
RESULT_FILES = frozenset({ESTIMATE_FILE, INERTIA_FILE, URDF_FILE})
"""Names that a results directory may hold; a directory with any other is not replaced."""

_STALE_SECONDS = 3600.0
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


@dataclass(frozen=True)
class WrittenResults:
    """Where the results are."""

    directory: Path
    files: tuple[str, ...]
    notes: tuple[str, ...]
    """Results that could not be written, and why."""


def write_results(estimate: Estimate, robot: Robot, directory: str | Path) -> WrittenResults:
    """Write estimate.npz, inertia.yaml and calibrated.urdf, replacing earlier results as a set.

    Args:
        estimate: What to write.
        robot: The robot it was estimated with; its URDF is the one that is calibrated.
        directory: Created with its parents if absent; otherwise may hold only earlier results.

    Returns:
        The files written, and notes on those that could not be (a robot from MJCF has no URDF to calibrate).

    Raises:
        OutputError: If the directory holds other files or cannot be written; it is unchanged then.
    """
    target = check_directory(directory)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _recover(target)
        _sweep(target)
        return _write_set(estimate, robot, target)
    except OSError as error:
        raise OutputError(f"cannot write results to {directory}: {error}") from error


def check_directory(directory: str | Path) -> Path:
    """Check that results may be written to a directory, before the work that leads to them.

    Returns:
        The directory, absolute, symbolic links resolved.

    Raises:
        OutputError: If it is a file, holds files that are not results, or cannot be exchanged as a whole.
    """
    path = Path(directory)
    try:
        target = path.resolve()
        if not target.exists():
            _check_parent(path, target)
            return target
        if not target.is_dir():
            raise OutputError(f"cannot write results to {path}: it is a file; name a directory")
        foreign = sorted(entry.name for entry in target.iterdir() if not _is_result(entry))
    except (OSError, RuntimeError) as error:
        raise OutputError(f"cannot write results to {path}: {error}") from error
    if foreign:
        shown = ", ".join(foreign[:5]) + (f" and {len(foreign) - 5} more" if len(foreign) > 5 else "")
        raise OutputError(
            f"{path} holds files that are not results ({shown}) and is not replaced; name a new directory"
        )
    if os.path.ismount(target) or Path.cwd().is_relative_to(target):
        raise OutputError(
            f"{path} is a mount point or holds the working directory and cannot be replaced as a whole; "
            f"name a directory inside it, such as {path / 'results'}"
        )
    _check_parent(path, target)
    return target


def _check_parent(path: Path, target: Path) -> None:
    """The set is prepared beside the target: its parent, or the first that exists, must be writable."""
    parent = next(folder for folder in target.parents if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise OutputError(f"cannot write results to {path}: {parent} is not a writable directory")


def _is_result(entry: Path) -> bool:
    return entry.name in RESULT_FILES and entry.is_file()


def _write_set(estimate: Estimate, robot: Robot, target: Path) -> WrittenResults:
    writers: dict[str, Callable[[Path], object]] = {
        ESTIMATE_FILE: lambda path: save_estimate(estimate, path),
        INERTIA_FILE: lambda path: save_inertia(estimate, path),
    }
    notes = []
    urdf, note = _calibrate(estimate, Path(robot.urdf_path))
    if urdf is None:
        notes.append(note)
    else:
        content = urdf
        writers[URDF_FILE] = lambda path: path.write_bytes(content)
    staging = _sibling(target, f"partial-{uuid.uuid4().hex[:12]}")
    staging.mkdir(mode=target.stat().st_mode & 0o777 if target.exists() else 0o777)
    try:
        for name, write in writers.items():
            write(staging / name)
            _flush(staging / name)
        _flush(staging)
        _put_in_place(staging, target)
        _flush(target.parent)
    finally:
        _discard(staging)
    return WrittenResults(target, tuple(writers), tuple(notes))


def _calibrate(estimate: Estimate, path: Path) -> tuple[bytes | None, str]:
    """Calibrated URDF, or why there is none: trouble with the model must not cost the user the estimate."""
    if not estimate.links:
        return None, f"no {URDF_FILE}: no inertia was identified"
    bodies = {name: link.estimate for name, link in estimate.links.items()}
    try:
        data = path.read_bytes()
        return calibrated_urdf(data, bodies, path.resolve().parent, estimate.certificate.converged), ""
    except (OSError, OutputError) as error:
        return None, f"no {URDF_FILE} from {path}: {error}"


def _put_in_place(staging: Path, target: Path) -> None:
    """Give the staged directory the target's name; old results get the staged name or are removed."""
    if not target.exists():
        os.rename(staging, target)
    elif not _exchange(staging, target):
        previous = _sibling(target, "previous")
        os.rename(target, previous)
        try:
            os.rename(staging, target)
        except BaseException:
            os.rename(previous, target)
            raise
        _discard(previous)


def _exchange(first: Path, second: Path) -> bool:
    """Swap two directories atomically (Linux); False where the system or the file system cannot."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    names = (_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second))
    return int(rename(*names, ctypes.c_uint(_RENAME_EXCHANGE))) == 0


def _recover(target: Path) -> None:
    """Undo a replacement that was killed between its two renames where no atomic exchange exists."""
    previous = _sibling(target, "previous")
    if not previous.exists():
        return
    if target.exists():
        _discard(previous)
    else:
        os.rename(previous, target)


def _sweep(target: Path) -> None:
    """Remove what killed writers left, but nothing young enough to belong to a living one."""
    for leftover in target.parent.glob(glob.escape(_sibling(target, "partial-").name) + "*"):
        if leftover.is_dir() and time.time() - leftover.stat().st_mtime > _STALE_SECONDS:
            _discard(leftover)


def _discard(directory: Path) -> None:
    """Remove a directory of results; anything else that got into it stays, and the directory with it."""
    try:
        for name in RESULT_FILES:
            (directory / name).unlink(missing_ok=True)
        directory.rmdir()
    except OSError:
        pass


def _sibling(target: Path, suffix: str) -> Path:
    return target.parent / f".{target.name}.{suffix}"


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        # Some network file systems cannot sync a directory; a power cut may then undo the exchange.
        if not path.is_dir():
            raise
    finally:
        os.close(descriptor)
