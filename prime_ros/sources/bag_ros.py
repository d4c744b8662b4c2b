# SPDX-License-Identifier: Apache-2.0
"""Bags opened with rosbag2_py, where ROS 2 is installed: it knows storage plugins that rosbags does not."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from prime_ros.sources.bag import BagTopic
from prime_ros.sources.kinds import BAG_FILES
from prime_ros.sources.mcap_recovery import is_cut

MODULE = "rosbag2_py"


def open_with_ros(path: Path) -> RosBag | None:
    """Open a bag with rosbag2_py.

    Returns:
        The bag; None if there is no rosbag2_py, or it cannot open this bag, as one that is damaged or without
        metadata: then rosbags has its turn, and its word on what is wrong.
    """
    files = [path] if path.is_file() else path.glob("*.mcap")
    if any(is_cut(file) for file in files if file.suffix == ".mcap"):
        return None  # it would read on to where the file ends, and then fail
    try:
        # By name: this package does not depend on ROS, and a typing or packaging tool need not find it.
        module = importlib.import_module(MODULE)
        return RosBag(module, path)
    except Exception:  # pybind raises RuntimeError and others; ImportError where there is no ROS
        return None


class RosBag:
    """`prime_ros.sources.bag.Bag` on rosbag2_py."""

    def __init__(self, module: Any, path: Path) -> None:
        """Open a rosbag2 folder, or one ``.mcap`` or ``.db3`` file.

        Raises:
            Exception: Whatever rosbag2_py raises, or if its messages would come out compressed.
        """
        self._module = module
        self._path = path
        reader = self._opened()
        metadata = _metadata(module, reader, path)
        if str(metadata.compression_mode).upper() not in ("", "NONE"):
            raise NotImplementedError("compressed files or messages are left to rosbags")
        counts = {
            info.topic_metadata.name: int(info.message_count) for info in metadata.topics_with_message_count
        }
        texts = _message_definitions(reader)
        self.storage = str(metadata.storage_identifier)
        self.topics = tuple(
            BagTopic(t.name, t.type, counts.get(t.name, 0), texts.get(t.type, ""), t.serialization_format)
            for t in sorted(reader.get_all_topics_and_types(), key=lambda topic: topic.name)
        )
        self.start_ns = _nanoseconds(metadata.starting_time)
        self.end_ns = self.start_ns + _nanoseconds(metadata.duration)
        self.notes: tuple[str, ...] = ()

    def messages(self, topics: Collection[BagTopic]) -> Iterator[tuple[BagTopic, int, bytes]]:
        """See `Bag`."""
        by_name = {topic.name: topic for topic in topics}
        reader = self._opened()
        reader.set_filter(self._module.StorageFilter(topics=sorted(by_name)))
        while reader.has_next():
            name, message, receipt = reader.read_next()[:3]
            yield by_name[name], receipt, message

    def close(self) -> None:
        """See `Bag`."""

    def _opened(self) -> Any:
        storage = BAG_FILES.get(self._path.suffix, "") if self._path.is_file() else ""
        reader = self._module.SequentialReader()
        reader.open(
            self._module.StorageOptions(uri=str(self._path), storage_id=storage),
            self._module.ConverterOptions(
                input_serialization_format="cdr", output_serialization_format="cdr"
            ),
        )
        return reader


def _metadata(module: Any, reader: Any, path: Path) -> Any:
    """Of the reader, which ROS 2 Humble has not."""
    if hasattr(reader, "get_metadata"):
        return reader.get_metadata()
    return module.Info().read_metadata(str(path), BAG_FILES.get(path.suffix, ""))


def _message_definitions(reader: Any) -> dict[str, str]:
    """Texts by type, where this version of ROS 2 hands them out."""
    if not hasattr(reader, "get_all_message_definitions"):
        return {}
    found = reader.get_all_message_definitions()
    return {d.topic_type: d.encoded_message_definition for d in found if d.encoding != "unknown"}


def _nanoseconds(time: Any) -> int:
    """Of a Time or Duration of rclpy, or a datetime or timedelta, which older versions use."""
    if hasattr(time, "nanoseconds"):
        return int(time.nanoseconds)
    seconds = time.timestamp() if hasattr(time, "timestamp") else time.total_seconds()
    return round(seconds * 1e9)
