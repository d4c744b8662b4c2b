# SPDX-License-Identifier: Apache-2.0
"""Whatever bytes a file holds: a recording or an error of this package, nothing else, and no gigabytes."""

from __future__ import annotations

import shutil
from pathlib import Path

import bags
import pytest
from confined import Confined
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recordings import recording

from prime_ros.sources import SourceOptions, write_rosbag, write_table

NAMES = ("hip", "knee")
WHOLE = recording(NAMES, 0.05, joint_rate=200.0)
OPTIONS = SourceOptions(vendor_joint_names=NAMES)
FORMATS = ("npz", "csv", "parquet", "db3", "mcap", "mcap_chunks", "low_state", "metadata")
TABLES = ("npz", "csv", "parquet")


def write_valid(kind: str, folder: Path) -> Path:
    """A small valid recording; returns the file to be damaged."""
    if kind in TABLES:
        write_table(WHOLE, folder / f"a.{kind}")
        return folder / f"a.{kind}"
    bag = folder / "bag"
    if kind == "db3":
        write_rosbag(WHOLE, bag, "sqlite3")
        return bag / "bag.db3"
    if kind == "low_state":
        streams = [("/lowstate", bags.GO, bags.low_states(WHOLE, NAMES)), bags.streams_of(WHOLE)[1]]
        return bags.write_bag(bag, streams) / "bag.mcap"
    if kind == "metadata":
        write_rosbag(WHOLE, bag, "mcap")
        return bag / "metadata.yaml"
    bags.write_bag(bag, bags.streams_of(WHOLE), "mcap", "storage" if kind == "mcap_chunks" else "none")
    return bag / "bag.mcap"


@pytest.fixture(scope="module")
def confined():
    """A process in which to read."""
    process = Confined()
    yield lambda path: process.read(path, OPTIONS)
    process.close()


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    """The bytes of a valid file of every kind."""
    return {kind: write_valid(kind, tmp_path_factory.mktemp(kind)) for kind in FORMATS}


def read_damaged(confined, original: Path, folder: Path, content: bytes) -> str:
    """Read a recording of which one file holds something else."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / original.name).write_bytes(content)
    if original.name == "metadata.yaml":
        shutil.copy(original.parent / "bag.mcap", folder)
        return confined(folder)
    return confined(folder / original.name)


every_format = pytest.mark.parametrize("kind", FORMATS)
relaxed = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@every_format
def test_the_undamaged_file_is_a_recording(confined, valid, kind):
    path = valid[kind]
    assert confined(path.parent if kind == "metadata" else path) == ""


@every_format
@relaxed
@given(content=st.binary(max_size=300), keep=st.sampled_from([0, 8, 16, 100]))
def test_random_bytes(confined, valid, tmp_path, kind, content, keep):
    """Behind a valid beginning, too, or they would hardly be looked at."""
    start = valid[kind].read_bytes()[:keep]
    read_damaged(confined, valid[kind], tmp_path / "a", start + content)


@every_format
@relaxed
@given(part=st.floats(0, 1, exclude_max=True))
def test_random_truncation(confined, valid, tmp_path, kind, part):
    whole = valid[kind].read_bytes()
    got = read_damaged(confined, valid[kind], tmp_path / "a", whole[: int(part * len(whole))])
    if kind in ("npz", "parquet"):
        assert got != ""


@every_format
@relaxed
@given(data=st.data())
def test_random_bytes_flipped(confined, valid, tmp_path, kind, data):
    whole = bytearray(valid[kind].read_bytes())
    for _ in range(data.draw(st.integers(1, 5))):
        position = data.draw(st.integers(0, len(whole) - 1))
        whole[position] = data.draw(st.sampled_from([0x00, 0x01, 0x7F, 0x80, 0xFF]))
    read_damaged(confined, valid[kind], tmp_path / "a", bytes(whole))


@every_format
@relaxed
@given(data=st.data())
def test_random_pieces_moved_or_repeated(confined, valid, tmp_path, kind, data):
    whole = valid[kind].read_bytes()
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(whole))] * 2)))
    at = data.draw(st.integers(0, len(whole)))
    read_damaged(confined, valid[kind], tmp_path / "a", whole[:at] + whole[start:stop] + whole[at:])
