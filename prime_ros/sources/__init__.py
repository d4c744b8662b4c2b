# SPDX-License-Identifier: Apache-2.0
"""Where recordings come from: rosbag2 folders and files, and measurement tables."""

from pathlib import Path

from prime_ros.measurements.samples import Recording
from prime_ros.sources.description import SourceDescription, TopicInfo, describe
from prime_ros.sources.kinds import kind_of
from prime_ros.sources.options import SourceOptions, Topics
from prime_ros.sources.rosbag import read_rosbag
from prime_ros.sources.rosbag_writer import write_rosbag
from prime_ros.sources.tables import read_table, write_table

__all__ = [
    "SourceDescription",
    "SourceOptions",
    "TopicInfo",
    "Topics",
    "describe",
    "load",
    "read_rosbag",
    "read_table",
    "write_rosbag",
    "write_table",
]


def load(path: str | Path, options: SourceOptions | None = None) -> Recording:
    """Read a recording, whatever its format.

    Args:
        path: A rosbag2 folder, an ``.mcap`` or ``.db3`` file, or an ``.npz``, ``.csv`` or ``.parquet`` table.
        options: What to read of a bag, default: topics found by their type. A table leaves no choice.

    Returns:
        The samples.

    Raises:
        SourceError: If there is no such file, or it is not what it should be.
    """
    path = Path(path).expanduser()
    return read_table(path) if kind_of(path) == "table" else read_rosbag(path, options)
