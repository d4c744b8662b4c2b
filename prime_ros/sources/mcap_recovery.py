# SPDX-License-Identifier: Apache-2.0
"""An mcap file that ends in the middle: a recorder that was killed leaves no index behind its messages."""

from __future__ import annotations

from collections.abc import Collection, Generator
from pathlib import Path
from typing import BinaryIO

from rosbags.interfaces import Connection
from rosbags.rosbag2.storage_mcap import McapReader

MAGIC = b"\x89MCAP0\r\n"
HEADER, FOOTER, DATA_END = 0x01, 0x02, 0x0F


def is_cut(path: Path) -> bool:
    """Whether a file begins as mcap but does not end as such."""
    with path.open("rb") as file:
        begins = file.read(len(MAGIC)) == MAGIC
        file.seek(-min(len(MAGIC), path.stat().st_size), 2)
        return begins and path.stat().st_size > len(MAGIC) and file.read() != MAGIC


class CutMcapReader(McapReader):
    """Reads the complete records of such a file, one after the other."""

    def _open(self) -> None:
        assert self.bio is not None
        self.data_start, self.data_end = _complete_records(self.bio, self.path.stat().st_size)
        self.meta_scan()
        assert self.statistics is not None
        counts = self.statistics.channel_message_counts
        self.connections = [c._replace(msgcount=counts.get(c.id, 0)) for c in self.connections]
        self.metadata = self.metadata._replace(
            start_time=self.statistics.start_time,
            end_time=self.statistics.end_time + 1,
            message_count=self.statistics.message_count,
        )

    def messages(
        self, connections: Collection[Connection], start: int | None = None, stop: int | None = None
    ) -> Generator[tuple[Connection, int, bytes], None, None]:
        """Messages in the order of the file."""
        return self.messages_scan(connections, start, stop)


def _complete_records(file: BinaryIO, size: int) -> tuple[int, int]:
    """Positions of the first record behind the header and of the end of the last complete one."""
    at = len(MAGIC)
    start = size
    while True:
        file.seek(at)
        head = file.read(9)
        length = int.from_bytes(head[1:], "little")
        if len(head) < 9 or at + 9 + length > size or head[0] in (FOOTER, DATA_END):
            return min(start, at), at
        at += 9 + length
        if head[0] == HEADER:
            start = at
