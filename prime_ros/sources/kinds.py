# SPDX-License-Identifier: Apache-2.0
"""What kind of recording a path is."""

from pathlib import Path
from typing import Literal

from prime_ros.exceptions import SourceError

BAG_FILES = {".mcap": "mcap", ".db3": "sqlite3"}
"""Endings of the files of a bag, with their storage."""
COLUMN_FILES = (".csv", ".parquet")
TABLE_FILES = (".npz", *COLUMN_FILES)


def kind_of(path: Path) -> Literal["bag", "table"]:
    """Whether a path is a bag or a table, by its name; of a folder, by the names in it.

    Raises:
        SourceError: If there is no such path, or it is neither.
    """
    try:
        exists = path.exists()
    except OSError as error:  # a name that no file can have, a folder that nobody may enter
        raise SourceError(f"{str(path)[:200]}: cannot be looked up: {error.strerror}") from error
    if not exists:
        raise SourceError(f"{path}: no such file or folder")
    if path.is_file() and path.suffix in TABLE_FILES:
        return "table"
    if path.suffix in BAG_FILES or _is_bag_folder(path):
        return "bag"
    what = "a folder without metadata.yaml" if path.is_dir() else f"a file that ends in '{path.suffix}'"
    raise SourceError(
        f"{path}: got {what}, expected a rosbag2 folder, an .mcap or .db3 file, or a table:"
        " .npz, .csv or .parquet"
    )


def _is_bag_folder(path: Path) -> bool:
    return path.is_dir() and (
        (path / "metadata.yaml").is_file() or any(file.suffix in BAG_FILES for file in path.iterdir())
    )
