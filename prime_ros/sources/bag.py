# SPDX-License-Identifier: Apache-2.0
"""A bag as the reader needs it, whatever opens it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class BagTopic:
    """A topic of a bag."""

    name: str
    """With its slash."""
    msgtype: str
    """Such as ``sensor_msgs/msg/Imu``."""
    count: int
    """Messages."""
    definition: str = ""
    """Text of the message's definition, ros2msg or ros2idl; empty if the bag carries none."""
    encoding: str = "cdr"
    """Serialisation of the messages."""

    def __str__(self) -> str:
        return f"{self.name} ({self.msgtype}, {self.count} messages)"


class Bag(Protocol):
    """An opened bag. Its methods raise whatever the storage raises; `read_rosbag` makes one error of it."""

    storage: str
    """``mcap`` or ``sqlite3``."""
    topics: tuple[BagTopic, ...]
    """All topics."""
    start_ns: int
    """Earliest receipt [ns]."""
    end_ns: int
    """Latest receipt [ns]."""
    notes: tuple[str, ...]
    """What is wrong with it, though it can be read."""

    def messages(self, topics: Collection[BagTopic]) -> Iterator[tuple[BagTopic, int, bytes]]:
        """Topic, time of receipt [ns] and serialised message of some topics, in the order of receipt."""
        ...

    def close(self) -> None:
        """Let go of the files."""
        ...
