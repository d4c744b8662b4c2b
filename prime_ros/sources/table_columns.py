# SPDX-License-Identifier: Apache-2.0
"""Measurement tables as CSV and Parquet: a column per number, named by quantity and joint or axis.

The streams lie side by side and have their own stamps, so that each keeps its rate: a row holds a sample of
every stream whose stamp is not empty in it. Samples of different streams in one row need not belong together.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from prime_ros.exceptions import PrimeError, SourceError
from prime_ros.measurements.samples import NANOSECONDS
from prime_ros.sources.table_layout import MAX_BYTES, STAMP, STAMP_NS, STREAMS

Arrays = Mapping[str, NDArray[Any]]

_EMPTY = ["", "nan", "NaN", "NAN", "null", "NULL", "None", "NA"]
_STAMPS = {STAMP_NS, STAMP, *(f"{stream}_{kind}" for stream in STREAMS for kind in (STAMP_NS, STAMP))}
_PANDAS = "pandas keeps integers beside empty cells as dtype Int64"
_MAX_SECONDS = 9e9  # what int64 nanoseconds hold


def read_columns(path: Path) -> dict[str, NDArray[Any]]:
    """Arrays of a CSV or Parquet file, under the keys of the ``.npz`` table; not checked for completeness.

    Raises:
        SourceError: If the file cannot be read, or a cell or a column is not what it should be.
    """
    try:
        table = _csv(path) if path.suffix == ".csv" else _parquet(path)
        return _arrays(table, path)
    except PrimeError:
        raise
    except Exception as error:  # a damaged file surfaces as whatever its parser raises
        reason = str(error) or type(error).__name__
        raise SourceError(f"{path}: cannot be read as {path.suffix}: {reason}") from error


def write_columns(arrays: Arrays, path: Path) -> None:
    """Write arrays under the keys of the ``.npz`` table as CSV or Parquet."""
    rows = max(len(arrays[f"{stream}_{STAMP_NS}"]) for stream in STREAMS if f"{stream}_{STAMP_NS}" in arrays)
    columns: dict[str, pa.Array] = {}
    for stream, quantities in STREAMS.items():
        key = f"{stream}_{STAMP_NS}"
        if key not in arrays:
            continue
        columns[key] = _padded(arrays[key], rows)
        for quantity, axes in quantities.items():
            names = arrays["joint_names"].tolist() if axes is None else axes
            for index, name in enumerate(names):
                columns[f"{quantity}.{name}"] = _padded(arrays[quantity][:, index], rows)
    table = pa.table(columns)
    if path.suffix == ".csv":
        pa.csv.write_csv(table, path)
    else:
        pa.parquet.write_table(table, path, compression="zstd", write_page_checksum=True)


def _padded(values: NDArray[Any], rows: int) -> pa.Array:
    """A column with NaN and what is behind its end left empty."""
    column = pa.array(values, from_pandas=True)
    return pa.concat_arrays([column, pa.nulls(rows - len(values), column.type)])


def _arrays(table: pa.Table, path: Path) -> dict[str, NDArray[Any]]:
    prefix = "joint_position."
    joints = [name.removeprefix(prefix) for name in table.column_names if name.startswith(prefix)]
    arrays: dict[str, NDArray[Any]] = {"joint_names": np.array(joints, dtype=str)}
    for stream, quantities in STREAMS.items():
        columns = {
            quantity: [f"{quantity}.{name}" for name in (joints if axes is None else axes)]
            for quantity, axes in quantities.items()
        }
        wanted = [name for names in columns.values() for name in names]
        there = [name for name in wanted if name in table.column_names]
        if not there and stream == "imu" and f"imu_{STAMP_NS}" not in table.column_names:
            continue
        missing = [name for name in wanted if name not in there]
        if missing or not wanted:
            first = missing[0] if missing else f"{prefix}JOINT"
            raise SourceError(
                f"{path}: got no column '{first}', expected one for every joint and axis, with empty cells"
                " for what was not measured;"
                f" found: {_listed(table.column_names)}"
            )
        stamps, rows = _stamps(table, stream, wanted, path)
        arrays[f"{stream}_{STAMP_NS}"] = stamps
        for quantity, names in columns.items():
            arrays[quantity] = np.column_stack([_floats(table, name, path)[rows] for name in names])
    return arrays


def _stamps(
    table: pa.Table, stream: str, columns: Sequence[str], path: Path
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Stamps of a stream [ns], and which rows have a sample of it."""
    choices = (f"{stream}_{STAMP_NS}", f"{stream}_{STAMP}", STAMP_NS, STAMP)
    name = next((choice for choice in choices if choice in table.column_names), None)
    if name is None:
        raise SourceError(
            f"{path}: got no column '{choices[0]}', expected stamps of the stream in it [ns], or in one of"
            f" {', '.join(choices[1:])} ({STAMP} in seconds); found: {_listed(table.column_names)}"
        )
    column = table[name].combine_chunks()
    rows = np.asarray(column.is_valid())
    if name in (STAMP_NS, STAMP):  # one column for all streams: empty where the stream has no value
        values = np.array([table[other].is_valid().to_numpy() for other in columns])
        rows = rows & values.any(axis=0)
    if name.endswith(STAMP_NS):
        if not pa.types.is_integer(column.type):
            raise SourceError(
                f"{path}: {name}: got {column.type}, expected integers [ns], which fractions cannot hold;"
                f" {_PANDAS}"
            )
        return np.asarray(column.fill_null(0).cast(pa.int64()))[rows], rows
    seconds = _floats(table, name, path)[rows]
    wrong = np.flatnonzero(~(np.abs(seconds) < _MAX_SECONDS))
    if wrong.size:
        raise SourceError(
            f"{path}: {name}: got {seconds[wrong[0]]} s, expected seconds below {_MAX_SECONDS:g}"
        )
    return np.round(seconds * NANOSECONDS).astype(np.int64), rows


def _floats(table: pa.Table, name: str, path: Path) -> NDArray[np.float64]:
    """A column as numbers, NaN where it is empty."""
    column = table[name]
    kinds = (pa.types.is_floating, pa.types.is_integer, pa.types.is_null)
    if not any(is_kind(column.type) for is_kind in kinds):
        raise SourceError(f"{path}: {name}: got {column.type}, expected numbers")
    return np.asarray(pc.cast(column, pa.float64(), safe=False).to_numpy(), dtype=float)


def _wanted(name: str) -> bool:
    quantity = name.partition(".")[0]
    return name in _STAMPS or any(quantity in quantities for quantities in STREAMS.values())


def _checked_header(names: Sequence[str], path: Path) -> list[str]:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SourceError(f"{path}: got column {_listed(twice)} more than once, expected different names")
    return [name for name in names if _wanted(name)]


def _csv(path: Path) -> pa.Table:
    with path.open(newline="", encoding="utf-8-sig") as file:
        names = next(csv.reader(file), [])
    types = {
        name: pa.int64() if name.endswith(STAMP_NS) else pa.float64() for name in _checked_header(names, path)
    }
    if not types:
        raise SourceError(
            f"{path}: got the header {_listed(names)}, expected columns such as joint_{STAMP_NS}"
            " and joint_position.NAME, separated by commas"
        )
    try:
        return _csv_of(path, types)
    except pa.ArrowInvalid as error:
        raise SourceError(_wrong_cell(path, types) or f"{path}: cannot be read as .csv: {error}") from error


def _csv_of(path: Path, types: Mapping[str, pa.DataType]) -> pa.Table:
    convert = pa.csv.ConvertOptions(
        column_types=types, include_columns=list(types), null_values=_EMPTY, strings_can_be_null=True
    )
    return pa.csv.read_csv(path, convert_options=convert)


def _wrong_cell(path: Path, types: Mapping[str, pa.DataType]) -> str:
    """Which cell cannot be read; empty if it is something else."""
    table = _csv_of(path, dict.fromkeys(types, pa.string()))
    for name, kind in types.items():
        column = pc.utf8_trim_whitespace(table[name])
        if _fits(column, kind):
            continue
        first, last = 0, len(column)  # the first wrong cell is between
        while last - first > 1:
            middle = (first + last) // 2
            if _fits(column[first:middle], kind):
                first = middle
            else:
                last = middle
        expected = f"an integer [ns]; {_PANDAS}" if kind == pa.int64() else "a number"
        where = f"{path}: row {first + 1} below the header, column '{name}'"
        return f"{where}: got '{column[first].as_py()[:50]}', expected {expected}"
    return ""


def _fits(column: pa.ChunkedArray, kind: pa.DataType) -> bool:
    try:
        pc.cast(column, kind)
    except pa.ArrowInvalid:
        return False
    return True


def _parquet(path: Path) -> pa.Table:
    file = pa.parquet.ParquetFile(
        path,
        page_checksum_verification=True,
        thrift_string_size_limit=100_000_000,
        thrift_container_size_limit=1_000_000,
    )
    with file:
        names = _checked_header(file.schema_arrow.names, path)
        groups = [file.metadata.row_group(index) for index in range(file.metadata.num_row_groups)]
        size = max(file.metadata.num_rows * len(names) * 8, sum(group.total_byte_size for group in groups))
        if not 0 <= size <= MAX_BYTES:
            raise SourceError(f"{path}: got a table of {size / 2**30:.1f} GiB, expected at most 4 GiB")
        return file.read(columns=names)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(str(name)[:50] for name in names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown or "none"
