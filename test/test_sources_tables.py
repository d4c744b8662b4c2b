# SPDX-License-Identifier: Apache-2.0
"""Measurement tables in columns: CSV and Parquet."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recordings import assert_same, recording

from prime_ros.exceptions import SourceError
from prime_ros.measurements import ImuSamples, JointSamples, MocapSamples, Recording
from prime_ros.sources import describe, load, write_table

NAMES = ("hip", "knee.left", "ankle, right")
WHOLE = recording(NAMES, 0.1)


def columns(path) -> dict[str, list[str]]:
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    return {name: [row[i] for row in rows] for i, name in enumerate(header)}


def write_csv(path, content: dict[str, list[str]]):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(content)
        writer.writerows(zip(*content.values(), strict=True))
    return path


@pytest.fixture
def content(tmp_path):
    """Columns of a valid CSV file, as text."""
    write_table(WHOLE, tmp_path / "valid.csv")
    return columns(tmp_path / "valid.csv")


numbers = st.floats(allow_nan=True, allow_infinity=True)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_tables_hold_every_number(tmp_path_factory, suffix, data):
    """Streams of any length, any float64 and any int64, to the last bit."""

    def stream(kind, *widths, names=()):
        count = data.draw(st.integers(1, 4))
        stamps = data.draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=count, max_size=count))
        size = [data.draw(st.lists(numbers, min_size=count * w, max_size=count * w)) for w in widths]
        arrays = [np.array(v).reshape(count, w) for v, w in zip(size, widths, strict=True)]
        return kind(np.array(stamps, dtype=np.int64), *names, *arrays)

    whole = Recording(
        stream(JointSamples, 2, 2, 2, names=(("a", "b"),)),
        stream(MocapSamples, 3, 4),
        stream(ImuSamples, 3, 3) if data.draw(st.booleans()) else None,
    )
    path = tmp_path_factory.mktemp("table") / f"a.{suffix}"
    write_table(whole, path)
    assert_same(load(path), whole)


def test_columns_are_named_after_quantity_and_joint_or_axis(content):
    assert list(content)[:3] == ["joint_stamp_ns", "joint_position.hip", "joint_position.knee.left"]
    assert "imu_angular_velocity.x" in content
    assert "mocap_quat_xyzw.w" in content
    assert content["mocap_stamp_ns"][10:12] == [str(WHOLE.mocap.stamp_ns[10]), ""]


def test_columns_and_rows_may_come_in_any_order_with_others_between(tmp_path, content):
    names = sorted(content, reverse=True)
    gap = [""] * len(content["joint_stamp_ns"])
    mixed = {"remark": ["a,b"] * len(gap), **{name: content[name] for name in names}}
    spread = {
        name: [cell for pair in zip(values, gap, strict=True) for cell in pair]
        for name, values in mixed.items()
    }
    got = load(write_csv(tmp_path / "a.csv", spread))
    assert got.joints.names == tuple(sorted(NAMES, reverse=True))
    order = [got.joints.names.index(name) for name in NAMES]
    np.testing.assert_array_equal(got.joints.position[:, order], WHOLE.joints.position)
    np.testing.assert_array_equal(got.mocap.stamp_ns, WHOLE.mocap.stamp_ns)


def test_empty_cells_are_not_measured(tmp_path, content):
    content["joint_torque.hip"][3] = ""
    content["joint_torque.hip"][4] = "nan"
    torque = load(write_csv(tmp_path / "a.csv", content)).joints.torque
    assert np.argwhere(np.isnan(torque)).tolist() == [[3, 0], [4, 0]]


def test_stamps_in_seconds_and_one_for_all_streams(tmp_path, content):
    """As from a table that was merged on time: one stamp per row, empty where a stream has no sample."""
    rows = len(content["joint_stamp_ns"])
    mocap = [name for name in content if name.startswith("mocap_") and name != "mocap_stamp_ns"]
    merged = {name: values for name, values in content.items() if not name.endswith("stamp_ns")}
    for name in mocap:
        merged[name] = [content[name][i // 5] if i % 5 == 0 else "" for i in range(rows)]
    seconds = [f"{(int(stamp) - 1_700_000_000 * 10**9) / 1e9:.3f}" for stamp in content["joint_stamp_ns"]]
    got = load(write_csv(tmp_path / "a.csv", {"stamp": seconds, **merged}))
    for samples, exact in ((got.joints, WHOLE.joints), (got.mocap, WHOLE.mocap), (got.imu, WHOLE.imu)):
        np.testing.assert_array_equal(samples.stamp_ns, exact.stamp_ns - 1_700_000_000 * 10**9)
    np.testing.assert_array_equal(got.mocap.position, WHOLE.mocap.position)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda c: c.pop("joint_torque.hip"),
            r"got no column 'joint_torque.hip', expected one for every joint",
        ),
        (lambda c: c.pop("mocap_stamp_ns"), r"got no column 'mocap_stamp_ns', expected stamps.*mocap_stamp"),
        (lambda c: c.pop("imu_angular_velocity.y"), r"got no column 'imu_angular_velocity.y'"),
        (
            lambda c: c["joint_position.hip"].__setitem__(7, "1,5"),
            r"row 8 below the header, column 'joint_position.hip': got '1,5', expected a number",
        ),
        (
            lambda c: c["joint_stamp_ns"].__setitem__(2, "1.7e+18"),
            r"row 3 below.*column 'joint_stamp_ns': got '1.7e\+18', expected an integer \[ns\].*dtype Int64",
        ),
        (lambda c: [c.pop(k) for k in list(c) if k.startswith("joint_")], "no column 'joint_position.JOINT'"),
    ],
)
def test_what_is_wrong_in_a_csv_is_named(tmp_path, content, change, words):
    change(content)
    with pytest.raises(SourceError, match=words):
        load(write_csv(tmp_path / "a.csv", content))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "got the header none"),
        ("a;b;c\n1;2;3\n", "got the header a;b;c, expected columns such as joint_stamp_ns"),
        ("stamp,stamp\n1,2\n", "got column stamp more than once"),
        ("joint_stamp_ns,joint_position.a\n1\n", "cannot be read as .csv"),
        ("joint_stamp,joint_position.a\n", "no column 'joint_velocity.a'"),
    ],
)
def test_a_csv_that_is_no_table_is_refused(tmp_path, text, words):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(SourceError, match=words):
        load(tmp_path / "a.csv")
    assert words.split(",")[0] in describe(tmp_path / "a.csv").problems[0]


def test_what_is_wrong_in_a_parquet_is_named(tmp_path):
    write_table(WHOLE, tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet")

    def written(name, values):
        pq.write_table(table.set_column(table.column_names.index(name), name, values), tmp_path / "b.parquet")
        return tmp_path / "b.parquet"

    rows = len(table)
    with pytest.raises(SourceError, match="joint_stamp_ns: got double, expected integers"):
        load(written("joint_stamp_ns", pa.array(np.arange(rows, dtype=float))))
    with pytest.raises(SourceError, match=r"joint_torque.hip: got string, expected numbers"):
        load(written("joint_torque.hip", pa.array(["a"] * rows)))
    small = load(written("joint_torque.hip", pa.array(np.arange(rows, dtype=np.int16)))).joints.torque
    np.testing.assert_array_equal(small[:, 0], np.arange(rows))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_without_imu_is_read(tmp_path, suffix):
    whole = replace(WHOLE, imu=None)
    write_table(whole, tmp_path / f"a.{suffix}")
    assert_same(load(tmp_path / f"a.{suffix}"), whole)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_is_described(tmp_path, suffix):
    write_table(WHOLE, tmp_path / f"a.{suffix}")
    told = describe(tmp_path / f"a.{suffix}")
    assert (told.format, told.problems, told.duration) == (suffix, (), pytest.approx(0.1))
    assert [(topic.name, topic.count) for topic in told.topics] == [
        ("joints", 51),
        ("mocap", 11),
        ("imu", 51),
    ]


def test_a_table_of_unknown_kind_is_not_written(tmp_path):
    with pytest.raises(SourceError, match=r"ends in '.xlsx', expected .npz, .csv or .parquet"):
        write_table(WHOLE, tmp_path / "a.xlsx")
    with pytest.raises(SourceError, match="cannot be written"):
        write_table(WHOLE, tmp_path / "no" / "a.csv")
