# SPDX-License-Identifier: Apache-2.0
"""Bags in every form of storage, complete and damaged, through both ways of opening them."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from dataclasses import replace

import bags
import fake_rosbag2_py
import numpy as np
import pytest
import yaml
from bags import GO
from recordings import assert_same, recording

from prime_ros.exceptions import SourceError
from prime_ros.sources import SourceOptions, describe, load, write_rosbag
from prime_ros.sources.bag_ros import RosBag
from prime_ros.sources.bag_rosbags import RosbagsBag
from prime_ros.sources.rosbag import opened

NAMES = ("hip", "knee", "ankle")
WHOLE = recording(NAMES, 0.5)
SUFFIX = {"mcap": "mcap", "sqlite3": "db3"}


@pytest.fixture(params=["rosbags", "rosbag2_py"])
def backend(request, monkeypatch):
    """Both ways of opening a bag; rosbag2_py is a fake, see there."""
    if request.param == "rosbag2_py":
        monkeypatch.setitem(sys.modules, "rosbag2_py", fake_rosbag2_py.module())
        return RosBag
    monkeypatch.setitem(sys.modules, "rosbag2_py", None)  # not even where ROS is installed
    return RosbagsBag


@pytest.fixture(params=["mcap", "sqlite3"])
def storage(request):
    return request.param


# --- the contract of an opened bag -------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["folder", "file"])
def test_an_open_bag_tells_its_topics_and_gives_their_messages_in_order(tmp_path, backend, storage, form):
    low_states = ("/lowstate", GO, bags.low_states(WHOLE, NAMES))
    path = bags.write_bag(tmp_path / "bag", [*bags.streams_of(WHOLE), low_states], storage)
    with opened(path if form == "folder" else path / f"bag.{SUFFIX[storage]}") as bag:
        assert isinstance(bag, backend)
        assert (bag.storage, bag.notes) == (storage, ())
        assert (bag.start_ns, bag.end_ns) == (WHOLE.start_ns, WHOLE.end_ns)
        counts = {(topic.name, topic.msgtype): topic.count for topic in bag.topics}
        assert list(counts.values()) == [251, 251, 251, 51]
        assert list(counts)[2] == ("/lowstate", GO)
        assert "MotorState[20] motor_state" in bag.topics[2].definition
        wanted = [topic for topic in bag.topics if topic.name in ("/lowstate", "/mocap")]
        got = list(bag.messages(wanted))
        assert len(got) == 302
        assert {topic for topic, _, _ in got} == set(wanted)
        receipts = [receipt for _, receipt, _ in got]
        assert receipts == sorted(receipts)
        expected = [(stamp, bytes(raw)) for stamp, raw in bags.low_states(WHOLE, NAMES)]
        assert [(receipt, bytes(raw)) for topic, receipt, raw in got if topic is wanted[0]] == expected


def test_a_bag_is_read_back_as_written(tmp_path, backend, storage):
    write_rosbag(WHOLE, tmp_path / "bag", storage)
    assert_same(load(tmp_path / "bag"), WHOLE)


def test_rosbag2_py_of_humble_has_neither_metadata_nor_definitions(tmp_path, monkeypatch, storage):
    monkeypatch.setitem(sys.modules, "rosbag2_py", fake_rosbag2_py.module(humble=True))
    write_rosbag(WHOLE, tmp_path / "bag", storage)
    with opened(tmp_path / "bag") as bag:
        assert isinstance(bag, RosBag)
        assert {topic.definition for topic in bag.topics} == {""}
    assert_same(load(tmp_path / "bag"), WHOLE)
    assert describe(tmp_path / "bag").duration == pytest.approx(0.5)


def test_what_rosbag2_py_cannot_open_is_left_to_rosbags(tmp_path, monkeypatch, storage):
    monkeypatch.setitem(sys.modules, "rosbag2_py", fake_rosbag2_py.module())
    write_rosbag(WHOLE, tmp_path / "bag", storage)
    (tmp_path / "bag" / "metadata.yaml").unlink()
    with opened(tmp_path / "bag") as bag:
        assert isinstance(bag, RosbagsBag)
    assert_same(replace(load(tmp_path / "bag"), notes=()), WHOLE)


# --- forms of storage --------------------------------------------------------------------------------------


def test_a_split_bag_is_one_recording(tmp_path, backend, storage):
    parts = [WHOLE.cropped(0.0, 0.1999), WHOLE.cropped(0.2, 0.0999), WHOLE.cropped(0.3)]
    path = bags.write_split(tmp_path / "bag", parts, storage)
    assert_same(load(path), WHOLE)
    assert describe(path).files == (*(f"bag_{i}.{SUFFIX[storage]}" for i in range(3)), "metadata.yaml")
    (path / "metadata.yaml").unlink()
    got = load(path)
    assert_same(got, WHOLE)
    assert "ros2 bag reindex" in got.notes[0]


def test_many_parts_without_metadata_come_in_the_order_of_time_not_of_names(tmp_path, storage):
    parts = [WHOLE.cropped(0.04 * i, 0.0399 if i < 11 else None) for i in range(12)]
    path = bags.write_split(tmp_path / "bag", parts, storage)  # bag_10 sorts before bag_2
    (path / "metadata.yaml").unlink()
    assert_same(load(path), WHOLE)


@pytest.mark.parametrize(
    ("storage", "compression"),
    [("mcap", "storage"), ("mcap", "message"), ("mcap", "file"), ("sqlite3", "message"), ("sqlite3", "file")],
)
def test_compressed_bags_are_read(tmp_path, backend, storage, compression):
    path = bags.write_bag(tmp_path / "bag", bags.streams_of(WHOLE), storage, compression)
    assert_same(load(path), WHOLE)


def test_compressed_messages_need_their_metadata(tmp_path, storage):
    path = bags.write_bag(tmp_path / "bag", bags.streams_of(WHOLE), storage, "message")
    (path / "metadata.yaml").unlink()
    with pytest.raises(SourceError, match=r"message 0: got a compressed message: metadata.yaml says how"):
        load(path)


def test_chunks_of_mcap_in_lz4_are_read(tmp_path, monkeypatch):
    from lz4.frame import compress
    from rosbags.rosbag2 import storage_mcap

    def lz4_close(writer, close=storage_mcap.McapWriter.close_chunk):
        writer.compression, writer.compressor = "lz4", compress
        close(writer)

    monkeypatch.setattr(storage_mcap.McapWriter, "close_chunk", lz4_close)
    path = bags.write_bag(tmp_path / "bag", bags.streams_of(WHOLE))
    assert b"lz4" in (path / "bag.mcap").read_bytes()
    assert_same(load(path), WHOLE)


def without_definitions(path):
    """Make a sqlite3 bag one of ROS 2 Humble or older."""
    (path / "metadata.yaml").unlink()
    with sqlite3.connect(path / "bag.db3") as database:
        database.execute("DROP TABLE message_definitions")
        database.execute("UPDATE schema SET schema_version = 3")
    database.close()
    return path / "bag.db3"


def test_an_old_bag_without_definitions_has_standard_messages(tmp_path):
    path = without_definitions(bags.write_bag(tmp_path / "bag", bags.streams_of(WHOLE), "sqlite3"))
    assert_same(load(path), WHOLE)


def test_an_old_bag_without_definitions_of_the_vendor_is_refused(tmp_path):
    streams = [("/lowstate", GO, bags.low_states(WHOLE, NAMES)), bags.streams_of(WHOLE)[1]]
    path = without_definitions(bags.write_bag(tmp_path / "bag", streams, "sqlite3"))
    with pytest.raises(
        SourceError, match=r"got unitree_go/msg/LowState without a definition.*ros2 bag convert"
    ):
        load(path, SourceOptions(vendor_joint_names=NAMES))


def test_messages_of_either_byte_order_are_read(tmp_path):
    streams = [
        (
            topic,
            kind,
            [
                (stamp, bags.TYPES.serialize_cdr(m, kind, little_endian=i % 2 == 0))
                for i, (stamp, m) in enumerate(messages)
            ],
        )
        for topic, kind, messages in bags.streams_of(WHOLE)
    ]
    assert_same(load(bags.write_bag(tmp_path / "bag", streams)), WHOLE)


# --- damage ------------------------------------------------------------------------------------------------


def long_bag(path, storage):
    """A bag of several chunks."""
    return bags.write_bag(
        path, bags.streams_of(recording(NAMES, 20.0)), storage, "storage" if storage == "mcap" else "none"
    )


def test_an_mcap_cut_off_is_read_as_far_as_it_goes(tmp_path):
    path = long_bag(tmp_path / "bag", "mcap")
    whole = load(path)
    file = path / "bag.mcap"
    file.write_bytes(file.read_bytes()[: file.stat().st_size * 2 // 3])
    for form in (path, file):
        got = load(form)
        assert "bag.mcap ends in the middle" in " ".join(got.notes)
        count = len(got.joints.stamp_ns)
        assert 0.3 < count / len(whole.joints.stamp_ns) < 0.9
        np.testing.assert_array_equal(got.joints.position, whole.joints.position[:count])
        assert got.cropped(0.1).notes == got.notes
    told = describe(file)
    assert told.problems == ()
    assert "ends in the middle" in told.notes[0]


def test_an_mcap_of_which_nothing_complete_is_left_is_refused(tmp_path):
    file = bags.write_bag(tmp_path / "bag", bags.streams_of(WHOLE)) / "bag.mcap"
    file.write_bytes(file.read_bytes()[:500])
    with pytest.raises(SourceError, match=r"bag.mcap: cannot be read: got the beginning.*mcap recover"):
        load(file)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.95])
def test_a_db3_cut_off_is_refused(tmp_path, part):
    file = long_bag(tmp_path / "bag", "sqlite3") / "bag.db3"
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * part)])
    for path in (file, file.parent):
        with pytest.raises(SourceError, match=r"cannot be read.*sqlite3 FILE .recover"):
            load(path)


def test_a_db3_with_messages_beside_it_is_refused(tmp_path):
    file = bags.write_bag(tmp_path / "bag", bags.streams_of(WHOLE), "sqlite3") / "bag.db3"
    (tmp_path / "bag" / "bag.db3-wal").write_bytes(b"messages")
    with pytest.raises(SourceError, match=r"messages in bag.db3-wal.*PRAGMA wal_checkpoint"):
        load(file)


@pytest.mark.parametrize("content", [b"", b"\0" * 5000, b"SQLite format 3\0" + b"\0" * 100])
def test_what_is_no_bag_inside_is_refused(tmp_path, storage, content):
    file = tmp_path / f"a.{SUFFIX[storage]}"
    file.write_bytes(content)
    with pytest.raises(SourceError, match=r"cannot be read" if content else r"the file is empty \(0 bytes\)"):
        load(file)


def test_missing_parts_are_named(tmp_path, storage):
    parts = [WHOLE.cropped(0.0, 0.1999), WHOLE.cropped(0.2)]
    path = bags.write_split(tmp_path / "bag", parts, storage)
    (path / f"bag_1.{SUFFIX[storage]}").unlink()
    with pytest.raises(SourceError, match=rf"metadata.yaml lists bag_1.{SUFFIX[storage]}, not found"):
        load(path)
    (path / "metadata.yaml").unlink()
    assert_same(load(path), parts[0])


@pytest.mark.parametrize("content", ["", "[1, 2", "a: 1", "rosbag2_bagfile_information: {version: 9}", "\0"])
def test_metadata_that_makes_no_sense_is_left_aside(tmp_path, storage, content):
    write_rosbag(WHOLE, tmp_path / "bag", storage)
    (tmp_path / "bag" / "metadata.yaml").write_text(content)
    got = load(tmp_path / "bag")
    assert_same(got, WHOLE)
    assert "metadata.yaml cannot be understood" in got.notes[0]


def test_metadata_of_a_newer_version_is_left_aside(tmp_path, storage):
    write_rosbag(WHOLE, tmp_path / "bag", storage)
    metadata = tmp_path / "bag" / "metadata.yaml"
    content = yaml.safe_load(metadata.read_text())
    content["rosbag2_bagfile_information"]["version"] = 99
    metadata.write_text(yaml.safe_dump(content))
    got = load(tmp_path / "bag")
    assert_same(got, WHOLE)
    assert "metadata.yaml left aside" in got.notes[0]


def test_a_folder_of_nothing_is_refused(tmp_path):
    write_rosbag(WHOLE, tmp_path / "bag")
    shutil.copytree(tmp_path / "bag", tmp_path / "copy", ignore=shutil.ignore_patterns("*.db3"))
    with pytest.raises(SourceError, match=r"lists bag.db3, not found"):
        load(tmp_path / "copy")
