# SPDX-License-Identifier: Apache-2.0
"""Bags opened with rosbags, which needs no ROS: whole, without metadata, or as far as they go."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import yaml
from rosbags.interfaces import Connection
from rosbags.rosbag2 import Reader

from prime_ros.exceptions import SourceError
from prime_ros.sources.bag import BagTopic
from prime_ros.sources.kinds import BAG_FILES
from prime_ros.sources.mcap_recovery import CutMcapReader, is_cut

REPAIR = {
    ".mcap": "copy it again, or repair it with 'mcap recover'",
    ".db3": "copy it again, or repair it with 'sqlite3 FILE .recover | sqlite3 NEW.db3'",
}
MAX_METADATA = 50_000_000  # bytes; what is longer is no metadata.yaml


class RosbagsBag:
    """`prime_ros.sources.bag.Bag` of one or more files."""

    def __init__(self, path: Path) -> None:
        """Open a rosbag2 folder, or one ``.mcap`` or ``.db3`` file.

        Raises:
            SourceError: If a file is missing, empty or damaged.
        """
        self._stack = ExitStack()
        self._notes: list[str] = []
        try:
            self._readers = self._open(path)
        except BaseException:
            self._stack.close()
            raise
        storages = {_storage(reader) for reader in self._readers}
        self.storage = " and ".join(sorted(storages))
        self.topics = _topics(connection for reader in self._readers for connection in reader.connections)
        with_messages = [reader for reader in self._readers if _metadata(reader).message_count]
        self.start_ns = min((_metadata(reader).start_time for reader in with_messages), default=0)
        self.end_ns = max((_metadata(reader).end_time - 1 for reader in with_messages), default=0)
        self.notes = tuple(self._notes)

    def messages(self, topics: Collection[BagTopic]) -> Iterator[tuple[BagTopic, int, bytes]]:
        """See `Bag`."""
        wanted = {(topic.name, topic.msgtype): topic for topic in topics}
        streams = [_messages(reader, wanted) for reader in self._readers]
        return streams[0] if len(streams) == 1 else heapq.merge(*streams, key=lambda message: message[1])

    def close(self) -> None:
        """See `Bag`."""
        self._stack.close()

    def _open(self, path: Path) -> list[Any]:
        if path.is_file():
            return [self._file(path)]
        if not (path / "metadata.yaml").is_file():
            self._notes.append(
                "no metadata.yaml, read from the files beside it: 'ros2 bag reindex' makes one"
            )
        elif self._complete(path):
            try:
                return [self._entered(Reader(path))]
            except Exception as error:  # a damaged file is looked at by itself
                self._notes.append(f"metadata.yaml left aside: {error}")
        files = sorted(file for file in path.iterdir() if file.suffix in BAG_FILES)
        if not files:
            raise SourceError(f"{path}: got no .mcap or .db3 file in it, expected a rosbag2 folder")
        return [self._file(file) for file in files]

    def _complete(self, path: Path) -> bool:
        """Whether metadata.yaml can be trusted to name the files.

        Raises:
            SourceError: If a file that it names is missing.
        """
        try:
            names = _named_files(path / "metadata.yaml")
        except Exception as error:  # whatever the parser stumbles over
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            self._notes.append(f"metadata.yaml cannot be understood ({reason}), read without it")
            return False
        missing = [name for name in names if not (path / name).is_file()]
        if missing:
            raise SourceError(
                f"{path}: metadata.yaml lists {', '.join(missing)}, not found; copy the missing files, or"
                " remove metadata.yaml to read those that are there"
            )
        return True

    def _file(self, path: Path) -> Any:
        if path.stat().st_size == 0:
            raise SourceError(f"{path}: cannot be read: the file is empty (0 bytes), expected a recording")
        log = path.with_name(path.name + "-wal")
        if path.suffix == ".db3" and log.is_file() and log.stat().st_size:
            raise SourceError(
                f"{path}: got messages in {log.name} that are not in the file yet: the recorder was killed;"
                f" merge them with: sqlite3 {path.name} 'PRAGMA wal_checkpoint(TRUNCATE)'"
            )
        try:
            if path.suffix == ".mcap" and is_cut(path):
                return self._cut(path)
            return self._entered(Reader(path))
        except Exception as error:
            raise SourceError(f"{path}: cannot be read: {error}; {REPAIR[path.suffix]}") from error

    def _cut(self, path: Path) -> CutMcapReader:
        reader = CutMcapReader(path)
        reader.open()
        self._stack.callback(reader.close)
        if not reader.metadata.message_count:
            raise SourceError("got the beginning of a recording without a complete chunk of messages")
        self._notes.append(
            f"{path.name} ends in the middle, as the recorder was killed or the copy cut: read the"
            f" {reader.metadata.message_count} messages before that, what follows is lost"
        )
        return reader

    def _entered(self, reader: Reader) -> Reader:
        return self._stack.enter_context(reader)


def _named_files(metadata: Path) -> list[str]:
    if metadata.stat().st_size > MAX_METADATA:
        raise ValueError(f"{metadata.stat().st_size} bytes")
    content = yaml.safe_load(metadata.read_text(encoding="utf-8"))
    return [Path(name).name for name in content["rosbag2_bagfile_information"]["relative_file_paths"]]


def _messages(reader: Any, wanted: dict[tuple[str, str], BagTopic]) -> Iterator[tuple[BagTopic, int, bytes]]:
    chosen = [c for c in reader.connections if (c.topic, c.msgtype) in wanted]
    if chosen:
        for connection, receipt, message in reader.messages(chosen):
            yield wanted[connection.topic, connection.msgtype], receipt, message


def _metadata(reader: Any) -> Any:
    return reader.storage.metadata if isinstance(reader, Reader) else reader.metadata


def _storage(reader: Any) -> str:
    if isinstance(reader, Reader) and reader.path.is_dir():
        names = (storage.path.suffix for storage in reader.storage.storages)  # type: ignore[attr-defined]
        return BAG_FILES.get(next(names, ""), "of no file")
    return BAG_FILES[reader.path.suffix]


def _topics(connections: Iterable[Connection]) -> tuple[BagTopic, ...]:
    """One topic for all connections of its name and type."""
    topics: dict[tuple[str, str], BagTopic] = {}
    for connection in connections:
        key = (connection.topic, connection.msgtype)
        earlier = topics.get(key)
        topics[key] = BagTopic(
            *key,
            connection.msgcount + (earlier.count if earlier else 0),
            connection.msgdef.data or (earlier.definition if earlier else ""),
            getattr(connection.ext, "serialization_format", "cdr"),
        )
    return tuple(topics[key] for key in sorted(topics))
