# SPDX-License-Identifier: Apache-2.0
"""A fake of rosbag2_py, which exists only inside ROS installations and never in these tests.

It has the calls, arguments and kinds of values of the real module (Jazzy and later), as far as they are used,
on top of rosbags. What it cannot show is that the real one behaves so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

from rosbags.interfaces import MessageDefinitionFormat
from rosbags.rosbag2 import Reader


@dataclass
class StorageOptions:
    uri: str
    storage_id: str = ""
    max_bagfile_size: int = 0


@dataclass
class ConverterOptions:
    input_serialization_format: str
    output_serialization_format: str


@dataclass
class StorageFilter:
    topics: list[str] = field(default_factory=list)


@dataclass
class Time:
    """rclpy.time.Time and rclpy.duration.Duration have this."""

    nanoseconds: int


@dataclass
class TopicMetadata:
    name: str
    type: str
    serialization_format: str


@dataclass
class TopicInformation:
    topic_metadata: TopicMetadata
    message_count: int


@dataclass
class MessageDefinition:
    topic_type: str
    encoding: str
    encoded_message_definition: str
    type_hash: str


@dataclass
class BagMetadata:
    storage_identifier: str
    starting_time: Time
    duration: Time
    message_count: int
    topics_with_message_count: list[TopicInformation]
    compression_format: str
    compression_mode: str


class SequentialReader:
    """Of rosbag2_py: filters by topic, then hands out (topic, message, receipt) until there are no more."""

    def open(self, storage_options: StorageOptions, converter_options: ConverterOptions) -> None:
        assert converter_options.output_serialization_format == "cdr"
        path = Path(storage_options.uri)
        if path.is_file() and not storage_options.storage_id:
            raise RuntimeError("No storage id specified, and it cannot be detected")
        try:
            self._reader = Reader(path)
            self._reader.open()
        except Exception as error:
            raise RuntimeError(f"No storage could be initialized from {path}") from error
        self._filter: set[str] = set()
        self._next: Any = None

    def get_metadata(self) -> BagMetadata:
        reader = self._reader
        path = reader.path
        files = [path] if path.is_file() else list(path.iterdir())
        return BagMetadata(
            "mcap" if any(file.suffix == ".mcap" for file in files) else "sqlite3",
            Time(reader.start_time),
            Time(reader.end_time - 1 - reader.start_time),
            reader.message_count,
            [
                TopicInformation(TopicMetadata(c.topic, c.msgtype, "cdr"), c.msgcount)
                for c in reader.connections
            ],
            reader.compression_format or "",
            reader.compression_mode or "",
        )

    def get_all_topics_and_types(self) -> list[TopicMetadata]:
        return [info.topic_metadata for info in self.get_metadata().topics_with_message_count]

    def get_all_message_definitions(self) -> list[MessageDefinition]:
        names = {MessageDefinitionFormat.MSG: "ros2msg", MessageDefinitionFormat.IDL: "ros2idl"}
        return [
            MessageDefinition(c.msgtype, names.get(c.msgdef.format, "unknown"), c.msgdef.data, c.digest)
            for c in self._reader.connections
        ]

    def set_filter(self, storage_filter: StorageFilter) -> None:
        self._filter = set(storage_filter.topics)
        self._messages = self._reader.messages(
            [c for c in self._reader.connections if c.topic in self._filter]
        )

    def has_next(self) -> bool:
        if self._next is None:
            self._next = next(self._messages, None)
        return self._next is not None

    def read_next(self) -> tuple[str, bytes, int]:
        assert self.has_next()
        (connection, receipt, message), self._next = self._next, None
        return connection.topic, bytes(message), receipt


class HumbleReader(SequentialReader):
    """As in ROS 2 Humble, which hands out neither metadata nor definitions."""

    get_metadata = property()  # type: ignore[assignment]
    get_all_message_definitions = property()  # type: ignore[assignment]

    def get_all_topics_and_types(self) -> list[TopicMetadata]:
        return [info.topic_metadata for info in SequentialReader.get_metadata(self).topics_with_message_count]


class Info:
    """Metadata without a reader."""

    def read_metadata(self, uri: str, storage_id: str) -> BagMetadata:
        reader = SequentialReader()
        reader.open(StorageOptions(uri, storage_id), ConverterOptions("cdr", "cdr"))
        metadata = reader.get_metadata()
        start, length = metadata.starting_time.nanoseconds, metadata.duration.nanoseconds
        metadata.starting_time = datetime.fromtimestamp(start / 1e9)  # type: ignore[assignment]
        metadata.duration = timedelta(seconds=length / 1e9)  # type: ignore[assignment]
        return metadata


def module(humble: bool = False) -> ModuleType:
    """The module, to be put into sys.modules."""
    made = ModuleType("rosbag2_py")
    for part in (StorageOptions, ConverterOptions, StorageFilter, SequentialReader, Info):
        setattr(made, part.__name__, part)
    if humble:
        made.SequentialReader = HumbleReader  # type: ignore[attr-defined]
    return made
