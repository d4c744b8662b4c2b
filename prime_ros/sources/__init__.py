# SPDX-License-Identifier: Apache-2.0
"""Where recordings come from: rosbag2 folders and files, and measurement tables."""

from pathlib import Path

from prime_ros.exceptions import SourceError
from prime_ros.measurements.samples import Recording
from prime_ros.sources.rosbag import Topics, read_rosbag
from prime_ros.sources.rosbag_writer import write_rosbag
from prime_ros.sources.tables import read_table, write_table

__all__ = ["Topics", "load", "read_rosbag", "read_table", "write_rosbag", "write_table"]

BAG_FILES = (".mcap", ".db3")


def load(path: str | Path, topics: Topics | None = None) -> Recording:
    """Read a recording, whatever its format.

    Args:
        path: A rosbag2 folder, an ``.mcap`` or ``.db3`` file, or an ``.npz`` table.
        topics: Topics of a bag to read; default: found by their type.

    Returns:
        The samples.

    Raises:
        SourceError: If there is no such file, or it is not what it should be.
    """
    path = Path(path).expanduser()
    if not path.exists():
        raise SourceError(f"{path}: no such file or folder")
    if path.suffix == ".npz":
        if topics is not None:
            raise SourceError(f"{path}: got topics {topics}, expected none: a table has no topics")
        return read_table(path)
    if path.suffix in BAG_FILES or _is_bag_folder(path):
        return read_rosbag(path, topics)
    what = "a folder without metadata.yaml" if path.is_dir() else f"a file that ends in '{path.suffix}'"
    raise SourceError(
        f"{path}: got {what}, expected a rosbag2 folder, an .mcap or .db3 file, or an .npz table"
    )


def _is_bag_folder(path: Path) -> bool:
    return path.is_dir() and (
        (path / "metadata.yaml").is_file() or any(f.suffix in BAG_FILES for f in path.iterdir())
    )
