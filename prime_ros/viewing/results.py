# SPDX-License-Identifier: Apache-2.0
"""What a replay shows of an estimate, read from the directory of `prime solve`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from prime_ros.estimation.estimate import BodyInertia, LinkEstimate
from prime_ros.exceptions import OutputError
from prime_ros.outputs.estimate_file import load_estimate
from prime_ros.outputs.parquet import METADATA_KEY
from prime_ros.outputs.write import BAG_FOLDER, ESTIMATE_FILE, INERTIA_FILE, TABLE_FILE

Array = NDArray[np.float64]

RATE_HZ = 50.0
"""Most frames per second: as often as a screen shows them."""
MAX_FRAMES = 15_000
"""Beyond five minutes frames get rarer, so that the page stays small; it interpolates between them."""
_GRANTED = 5e-4  # [s] rounding of stamps


@dataclass(frozen=True)
class Results:
    """Trajectories at K frames, n joints, C contacts; the inertia of the identified links."""

    stamp_ns: NDArray[np.int64]
    """Shape (K,) [ns]."""
    base_position_W: Array
    """Shape (K, 3) [m]."""
    base_quat_xyzw: Array
    """Base to world, shape (K, 4)."""
    joint_names: tuple[str, ...]
    joint_position: Array
    """Shape (K, n) [rad, m]."""
    contact_names: tuple[str, ...]
    contact_force_W: Array
    """On the robot, shape (K, C, 3) [N]."""
    contact_force_W_std: Array
    """Per axis, shape (K, C, 3) [N]."""
    contact_probability: Array
    """Shape (K, C) [-]."""
    links: Mapping[str, LinkEstimate]
    """Identified links by name."""
    ground_height: float
    """Of the ground plane in the world [m]."""
    std_ground_height: float
    """[m]"""
    converged: bool

    def thinned(self) -> Results:
        """The same with as many frames as a replay needs."""
        shown = shown_frames(self.stamp_ns)
        arrays = (field.name for field in fields(self) if isinstance(getattr(self, field.name), np.ndarray))
        return replace(self, **{name: getattr(self, name)[shown] for name in arrays})


def shown_frames(stamp_ns: NDArray[np.int64]) -> NDArray[np.intp]:
    """Indices of the frames that a replay shows, the first and those a period after the one before."""
    length = 1e-9 * float(stamp_ns[-1] - stamp_ns[0])
    period = max(1.0 / RATE_HZ, length / MAX_FRAMES)
    step = round(1e9 * (period - _GRANTED))
    shown = [0]
    for index, stamp in enumerate(stamp_ns.tolist()):
        if stamp - int(stamp_ns[shown[-1]]) >= step:
            shown.append(index)
    return np.array(shown)


def results_directory(path: Path) -> Path | None:
    """The directory of `prime solve` that a path means, or None: itself, or that of its estimate.npz."""
    if path.name == ESTIMATE_FILE and path.is_file():
        return path.parent
    return path if (path / ESTIMATE_FILE).is_file() else None


def load_directory(directory: Path) -> Results:
    """Read what `prime solve` left in a directory.

    Raises:
        OutputError: If estimate.npz or inertia.yaml is missing or no such file.
    """
    arrays = load_estimate(directory)
    document = _inertia_document(directory / INERTIA_FILE)
    trajectories = {
        name: arrays[name]
        for name in ("stamp_ns", "base_position_W", "base_quat_xyzw", "joint_position", "contact_force_W")
    }
    try:
        return Results(
            **trajectories,
            joint_names=tuple(arrays["joint_names"].tolist()),
            contact_names=tuple(arrays["contact_names"].tolist()),
            contact_force_W_std=arrays["contact_force_W_std"],
            contact_probability=arrays["contact_probability"],
            links={name: _link(link) for name, link in document["links"].items()},
            ground_height=float(document["ground_height"]["estimate"]),
            std_ground_height=float(document["ground_height"]["std"]),
            converged=bool(document["converged"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        file = directory / INERTIA_FILE
        raise OutputError(f"{file}: not the inertia.yaml of `prime solve` ({error!r})") from error


def robot_name(path: Path) -> str | None:
    """Name of the robot of a results directory, of its estimate.npz or of its bag; None if not known."""
    for directory in (path, path.parent, path.parent.parent):
        table = directory / TABLE_FILE
        beside = directory == path or path.name == ESTIMATE_FILE or BAG_FOLDER in path.parts
        if beside and table.is_file():
            return _name_in_table(table)
    return None


def _name_in_table(table: Path) -> str | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_schema(table).metadata or {}
        return str(json.loads(metadata[METADATA_KEY.encode()])["robot"])
    except (OSError, pa.ArrowException, KeyError, ValueError, TypeError):
        return None


def _inertia_document(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise OutputError(
            f"{path}: no such file; a replay needs the ground height in it: copy it too, or run"
            " `prime solve` again"
        ) from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise OutputError(f"{path}: cannot be read: {error}") from error


def _link(entry: Mapping[str, Any]) -> LinkEstimate:
    return LinkEstimate(_body(entry["nominal"]), _body(entry["estimate"]), _body(entry["std"]))


def _body(entry: Mapping[str, Any]) -> BodyInertia:
    com, inertia = np.array(entry["com"], dtype=float), np.array(entry["inertia_com"], dtype=float)
    return BodyInertia(float(entry["mass"]), com.reshape(3), inertia.reshape(3, 3))
