# SPDX-License-Identifier: Apache-2.0
"""Measurement tables: one ``.npz`` with an array per quantity, SI units, int64 nanoseconds."""

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prime_ros.exceptions import MeasurementError, SourceError
from prime_ros.measurements.samples import ImuSamples, JointSamples, MocapSamples, Recording

Table = Mapping[str, NDArray[Any]]

#: Keys of every stream with the width of their rows; None: one column per joint.
STREAMS: dict[str, dict[str, int | None]] = {
    "joint": {"joint_position": None, "joint_velocity": None, "joint_torque": None},
    "imu": {"imu_angular_velocity": 3, "imu_linear_acceleration": 3},
    "mocap": {"mocap_position": 3, "mocap_quat_xyzw": 4},
}


def read_table(path: str | Path) -> Recording:
    """Read a table.

    Keys: `joint_stamp_ns` (N,), `joint_names` (n,), `joint_position`, `joint_velocity`, `joint_torque` (N,
    n); `mocap_stamp_ns` (m,), `mocap_position` (m, 3), `mocap_quat_xyzw` (m, 4), the base in the world;
    optional: `imu_stamp_ns` (k,), `imu_angular_velocity` (k, 3), `imu_linear_acceleration` (k, 3).

    Args:
        path: The ``.npz`` file.

    Returns:
        The samples.

    Raises:
        SourceError: If the file cannot be read, or a key is missing or has the wrong shape.
    """
    path = Path(path)
    table = _arrays(path)
    names = _names(table, path)
    for stream in ("joint", "mocap", "imu") if _has_imu(table) else ("joint", "mocap"):
        _check(table, stream, len(names), path)
    try:
        return Recording(
            JointSamples(table["joint_stamp_ns"], names, *_columns(table, "joint")),
            MocapSamples(table["mocap_stamp_ns"], *_columns(table, "mocap")),
            ImuSamples(table["imu_stamp_ns"], *_columns(table, "imu")) if _has_imu(table) else None,
        )
    except MeasurementError as error:
        raise SourceError(f"{path}: {error}") from error


def write_table(recording: Recording, path: str | Path) -> None:
    """Write a table that `read_table` reads back.

    Args:
        recording: The samples.
        path: The ``.npz`` file, overwritten.
    """
    joints, mocap, imu = recording.joints, recording.mocap, recording.imu
    table: dict[str, Any] = {
        "joint_stamp_ns": joints.stamp_ns,
        "joint_names": np.array(joints.names, dtype=str),
        "joint_position": joints.position,
        "joint_velocity": joints.velocity,
        "joint_torque": joints.torque,
        "mocap_stamp_ns": mocap.stamp_ns,
        "mocap_position": mocap.position,
        "mocap_quat_xyzw": mocap.quat_xyzw,
    }
    if imu is not None:
        table["imu_stamp_ns"] = imu.stamp_ns
        table["imu_angular_velocity"] = imu.angular_velocity
        table["imu_linear_acceleration"] = imu.linear_acceleration
    np.savez_compressed(path, **table)


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    keys = {f"{stream}_stamp_ns" for stream in STREAMS} | {"joint_names"}
    keys = keys.union(*STREAMS.values())
    try:
        with np.load(path, allow_pickle=False) as file:
            return {key: file[key] for key in keys if key in file}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise SourceError(f"{path}: cannot be read as .npz of plain arrays: {error}") from error


def _has_imu(table: Table) -> bool:
    return any(key.startswith("imu_") for key in table)


def _columns(table: Table, stream: str) -> list[NDArray[Any]]:
    return [table[key] for key in STREAMS[stream]]


def _names(table: Table, path: Path) -> tuple[str, ...]:
    names = _get(table, "joint_names", path)
    if names.ndim != 1 or names.dtype.kind != "U":
        raise SourceError(f"{path}: joint_names: got {_kind(names)}, expected strings of shape (n,)")
    return tuple(str(name) for name in names)


def _check(table: Table, stream: str, joints: int, path: Path) -> None:
    stamp_key = f"{stream}_stamp_ns"
    stamps = _get(table, stamp_key, path)
    if stamps.ndim != 1 or stamps.dtype.kind not in "iu":
        raise SourceError(f"{path}: {stamp_key}: got {_kind(stamps)}, expected integers [ns] of shape (N,)")
    for key, width in STREAMS[stream].items():
        shape = (len(stamps), joints if width is None else width)
        array = _get(table, key, path)
        if array.shape != shape or array.dtype.kind not in "fiu":
            why = f"a row per {stamp_key}" + (" and a column per joint_names" if width is None else "")
            raise SourceError(f"{path}: {key}: got {_kind(array)}, expected numbers of shape {shape}: {why}")


def _get(table: Table, key: str, path: Path) -> NDArray[Any]:
    if key not in table:
        raise SourceError(
            f"{path}: key '{key}' is missing;"
            f" found: {', '.join(sorted(table)) or 'none of the keys of a table'}"
        )
    return table[key]


def _kind(array: NDArray[Any]) -> str:
    return f"{array.dtype} of shape {array.shape}"
