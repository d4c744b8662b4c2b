# SPDX-License-Identifier: Apache-2.0
"""Replace a directory of results as a whole, in one step, and never touch what is not ours.

The new content is written into a hidden sibling of the directory, flushed to disk, and exchanged with it.
A process killed at any moment leaves the old results or the new ones under the directory's name, never a
mixture.
"""

from __future__ import annotations

import ctypes
import glob
import os
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from prime_ros.exceptions import OutputError

Entries: TypeAlias = "Mapping[str, Entries]"
"""What a directory of results may hold by name: files, and folders with what they may hold."""
FILE: Entries = MappingProxyType({})

_STALE_SECONDS = 3600.0
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2

Filled = TypeVar("Filled")


def replace_directory(target: Path, entries: Entries, fill: Callable[[Path], Filled]) -> Filled:
    """Fill a directory anew; earlier results are replaced as a set.

    Args:
        target: As `check_directory` returned it; created with its parents if absent.
        entries: What it may hold.
        fill: Writes the new content into the empty directory it is given.

    Returns:
        What `fill` returns.

    Raises:
        OSError: If the directory cannot be written; it is unchanged then.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    _recover(target, entries)
    _sweep(target, entries)
    staging = _sibling(target, f"partial-{uuid.uuid4().hex[:12]}")
    staging.mkdir(mode=target.stat().st_mode & 0o777 if target.exists() else 0o777)
    try:
        filled = fill(staging)
        _flush_tree(staging)
        _put_in_place(staging, target, entries)
        _flush(target.parent)
    finally:
        discard(staging, entries)
    return filled


def check_directory(directory: str | Path, entries: Entries) -> Path:
    """Check that results may be written to a directory, before the work that leads to them.

    Args:
        directory: The directory; need not exist.
        entries: What it may hold.

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
        foreign = sorted(_foreign(target, entries))
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


def _foreign(directory: Path, entries: Entries) -> list[str]:
    """Paths below a directory that are no results. What a link leads to is not ours."""
    foreign = []
    for entry in directory.iterdir():
        inner = entries.get(entry.name)
        if inner and entry.is_dir() and not entry.is_symlink():
            foreign += [f"{entry.name}/{name}" for name in _foreign(entry, inner)]
        elif inner is None or inner or not entry.is_file():
            foreign.append(entry.name)
    return foreign


def _put_in_place(staging: Path, target: Path, entries: Entries) -> None:
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
        discard(previous, entries)


def _exchange(first: Path, second: Path) -> bool:
    """Swap two directories atomically (Linux); False where the system or the file system cannot."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    names = (_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second))
    return int(rename(*names, ctypes.c_uint(_RENAME_EXCHANGE))) == 0


def _recover(target: Path, entries: Entries) -> None:
    """Undo a replacement that was killed between its two renames where no atomic exchange exists."""
    previous = _sibling(target, "previous")
    if not previous.exists():
        return
    if target.exists():
        discard(previous, entries)
    else:
        os.rename(previous, target)


def _sweep(target: Path, entries: Entries) -> None:
    """Remove what killed writers left, but nothing young enough to belong to a living one."""
    for leftover in target.parent.glob(glob.escape(_sibling(target, "partial-").name) + "*"):
        if leftover.is_dir() and time.time() - leftover.stat().st_mtime > _STALE_SECONDS:
            discard(leftover, entries)


def discard(directory: Path, entries: Entries) -> None:
    """Remove a directory of results; anything else that got into it stays, and the directory with it."""
    try:
        if directory.is_symlink():
            return
        for name, inner in entries.items():
            if inner:
                discard(directory / name, inner)
            else:
                (directory / name).unlink(missing_ok=True)
        directory.rmdir()
    except OSError:
        pass


def _sibling(target: Path, suffix: str) -> Path:
    return target.parent / f".{target.name}.{suffix}"


def _flush_tree(directory: Path) -> None:
    for entry in directory.iterdir():
        if entry.is_dir():
            _flush_tree(entry)
        else:
            _flush(entry)
    _flush(directory)


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
