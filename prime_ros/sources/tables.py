# SPDX-License-Identifier: Apache-2.0
"""Measurement tables in SI units: ``.npz`` with an array per quantity, or CSV and Parquet."""

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prime_ros.exceptions import MeasurementError, SourceError
from prime_ros.measurements.samples import ImuSamples, JointSamples, MocapSamples, Recording
from prime_ros.sources.kinds import COLUMN_FILES, TABLE_FILES
from prime_ros.sources.table_layout import MAX_BYTES, STREAMS

Table = Mapping[str, NDArray[Any]]


def read_table(path: str | Path) -> Recording:
    """Read a table.

    Keys of an ``.npz``: `joint_stamp_ns` (N,), `joint_names` (n,), `joint_position`, `joint_velocity`,
    `joint_torque` (N, n); `mocap_stamp_ns` (m,), `mocap_position` (m, 3), `mocap_quat_xyzw` (m, 4), the base
    in the world; optional: `imu_stamp_ns` (k,), `imu_angular_velocity` (k, 3), `imu_linear_acceleration` (k,
    3). CSV and Parquet have a column for each of their columns, see `table_columns`.

    Args:
        path: The ``.npz``, ``.csv`` or ``.parquet`` file.

    Returns:
        The samples.

    Raises:
        SourceError: If the file cannot be read, or a key or column is missing or of wrong shape or type.
    """
    path = Path(path)
    table = _column_arrays(path) if path.suffix in COLUMN_FILES else _arrays(path)
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
        path: The ``.npz``, ``.csv`` or ``.parquet`` file, overwritten.

    Raises:
        SourceError: If the name of the file ends otherwise, or it cannot be written.
    """
    path = Path(path)
    if path.suffix not in TABLE_FILES:
        raise SourceError(f"{path}: got a name that ends in '{path.suffix}', expected .npz, .csv or .parquet")
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
    try:
        if path.suffix in COLUMN_FILES:
            from prime_ros.sources.table_columns import write_columns  # pyarrow takes its time to import

            write_columns(table, path)
        else:
            np.savez_compressed(path, **table)
    except OSError as error:
        raise SourceError(f"{path}: cannot be written: {error}") from error


def _column_arrays(path: Path) -> dict[str, NDArray[Any]]:
    from prime_ros.sources.table_columns import read_columns  # pyarrow takes its time to import

    return read_columns(path)


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    keys = {f"{stream}_stamp_ns" for stream in STREAMS} | {"joint_names"}
    keys = keys.union(*STREAMS.values())
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > MAX_BYTES:
            raise ValueError(f"got arrays of {size / 2**30:.1f} GiB, expected at most 4 GiB")
        with np.load(path, allow_pickle=False) as file:
            return {key: file[key] for key in keys if key in file}
    except Exception as error:  # a damaged file surfaces as whatever zip, zlib and NumPy raise
        reason = str(error) or type(error).__name__
        raise SourceError(f"{path}: cannot be read as .npz of plain arrays: {reason}") from error


def _has_imu(table: Table) -> bool:
    """Whether there is any key of it; one without samples is none."""
    return any(key.startswith("imu_") for key in table) and table.get("imu_stamp_ns", np.zeros(1)).size > 0


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
    if not stamps.size:
        raise SourceError(f"{path}: {stamp_key}: got no samples, expected some")
    for key, axes in STREAMS[stream].items():
        shape = (len(stamps), joints if axes is None else len(axes))
        array = _get(table, key, path)
        if array.shape != shape or array.dtype.kind not in "fiu":
            why = f"a row per {stamp_key}" + (" and a column per joint_names" if axes is None else "")
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
