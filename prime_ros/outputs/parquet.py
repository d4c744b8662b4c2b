# SPDX-License-Identifier: Apache-2.0
"""estimate.parquet: the trajectories of estimate.npz as one flat table, one row per knot.

A column is named after its key in estimate.npz and, dotted, its entry: ``contact_force_W.FL_foot.z``,
``joint_position_std.FL_hip_joint``. Each states its unit in its metadata, the file what the run was.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from prime_ros.estimation.estimate import Estimate
from prime_ros.outputs.estimate_file import FEET, MEASURED, estimate_arrays
from prime_ros.robot import Robot

SCHEMA_VERSION = 1
"""Changes when a column is renamed or changes its meaning."""
METADATA_KEY = "prime_ros"
"""Of the metadata of the file: a JSON object."""
ROWS = 10_000
"""Knots per row group; bounds the memory to some tens of MB."""

_XYZ = ("x", "y", "z")
_UNITS = {
    "base_position_W": "m",
    "base_quat_xyzw": "1",
    "base_quat_xyzw_std": "rad",
    "joint_position": "rad",
    "joint_velocity": "rad/s",
    "joint_torque": "N m",
    "contact_force_W": "N",
    "contact_probability": "1",
}

Column = tuple[str, str, NDArray[Any]]


def save_parquet(estimate: Estimate, robot: Robot, path: Path) -> None:
    """Write estimate.parquet.

    Args:
        estimate: What to write.
        robot: Its name goes into the metadata.
        path: The file.

    Raises:
        OutputError: If the estimate lacks a standard deviation.
    """
    columns = list(table_columns(estimate))
    fields = [
        pa.field(name, pa.from_numpy_dtype(data.dtype), False, {"unit": unit}) for name, unit, data in columns
    ]
    schema = pa.schema(fields, {METADATA_KEY: json.dumps(_about(estimate, robot))})
    with pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=False) as writer:
        for start in range(0, len(estimate.stamp_ns), ROWS):
            rows = [pa.array(data[start : start + ROWS]) for _, _, data in columns]
            writer.write_table(pa.Table.from_arrays(rows, schema=schema))


def table_columns(estimate: Estimate) -> Iterator[Column]:
    """Name, unit and values (K,) of every column, time first.

    Raises:
        OutputError: If the estimate lacks a standard deviation.
    """
    arrays = estimate_arrays(estimate)
    stamp_ns = arrays["stamp_ns"]
    yield "stamp_ns", "ns", stamp_ns
    yield "time", "s", 1e-9 * (stamp_ns - stamp_ns[0])
    for key in (key for name in MEASURED for key in (name, f"{name}_std")):
        entries = list(product(*_axes(key, estimate)))
        for entry, values in zip(entries, arrays[key].reshape(len(stamp_ns), -1).T, strict=True):
            yield ".".join((key, *entry)), _unit(key, entry), values

    yield from _foot_columns(arrays)


def _foot_columns(arrays: Mapping[str, NDArray[Any]]) -> Iterator[Column]:
    """Of flat feet, if there are any."""
    for key in (key for key in FEET if key in arrays):
        axes: tuple[tuple[str, ...], ...] = (tuple(map(str, arrays["foot_names"])),)
        if key.startswith("foot_wrench"):
            axes += (("force", "moment"), _XYZ)
        elif key.startswith("foot_pressure"):
            axes += (("x", "y"),)
        entries = list(product(*axes))
        for entry, values in zip(entries, arrays[key].reshape(len(arrays[key]), -1).T, strict=True):
            unit = {"force": "N", "moment": "N m"}.get(entry[1]) if len(axes) == 3 else None
            yield ".".join((key, *entry)), unit or ("m" if len(axes) == 2 else "1"), values


def _axes(key: str, estimate: Estimate) -> tuple[tuple[str, ...], ...]:
    """Names along the axes of an array after the first."""
    if key == "base_quat_xyzw":
        return (("x", "y", "z", "w"),)
    if key.startswith("base_velocity_B"):
        return (("linear", "angular"), _XYZ)
    if key.startswith("base_"):
        return (_XYZ,)
    if key.startswith("joint_"):
        return (estimate.joint_names,)
    return (estimate.contact_names, _XYZ) if key.startswith("contact_force_W") else (estimate.contact_names,)


def _unit(key: str, entry: tuple[str, ...]) -> str:
    if key.startswith("base_velocity_B"):
        return "m/s" if entry[0] == "linear" else "rad/s"
    return _UNITS.get(key) or _UNITS[key.removesuffix("_std")]


def _about(estimate: Estimate, robot: Robot) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "robot": robot.name,
        "converged": bool(estimate.certificate.converged),
        "dt": float(estimate.dt),
        "joint_names": list(estimate.joint_names),
        "contact_names": list(estimate.contact_names),
        "ground_height": float(estimate.ground_height),
    }
