# SPDX-License-Identifier: Apache-2.0
"""estimate.npz: the estimated trajectories with their standard deviations, readable without this package.

The keys are `stamp_ns`, `joint_names`, `contact_names`, and the fields of
`prime_ros.estimation.estimate.Estimate` that `MEASURED` names, one row per knot, each with its standard
deviation under `<key>_std`.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prime_ros.estimation.estimate import Estimate
from prime_ros.exceptions import OutputError

MEASURED = (
    "base_position_W",
    "base_quat_xyzw",
    "base_velocity_B",
    "joint_position",
    "joint_velocity",
    "joint_torque",
    "contact_force_W",
    "contact_probability",
)
FEET = {
    "foot_wrench_W": "wrench_W",
    "foot_wrench_W_std": "std_wrench_W",
    "foot_pressure_centre_F": "pressure_centre_F",
    "foot_pressure_centre_F_std": "std_pressure_centre_F",
    "foot_roll": "roll",
}
"""Keys that only robots with flat feet have, by field of `FootLoads`."""
LABELS = ("stamp_ns", "joint_names", "contact_names")
KEYS = LABELS + MEASURED + tuple(f"{name}_std" for name in MEASURED)


def estimate_arrays(estimate: Estimate) -> dict[str, NDArray[Any]]:
    """Arrays of an estimate by the names they carry in estimate.npz.

    Args:
        estimate: K knots, n joints, C contacts.

    Returns:
        By key:

        - `stamp_ns` (K,) int64 [ns]; `joint_names` (n,) and `contact_names` (C,), strings;
        - `base_position_W` (K, 3) [m];
        - `base_quat_xyzw` (K, 4), base to world;
        - `base_velocity_B` (K, 6), linear then angular, base axes [m/s, rad/s];
        - `joint_position` [rad], `joint_velocity` [rad/s], `joint_torque` [Nm], each (K, n);
        - `contact_force_W` (K, C, 3), on the robot, world axes [N];
        - `contact_probability` (K, C) [-];
        - for each of these but the labels `<key>_std`, of the same shape and unit; only
          `base_quat_xyzw_std` is (K, 3), that of the rotation vector in base axes [rad];
        - of F flat feet, if there are any: `foot_names` (F,); `foot_wrench_W` (K, F, 6), force and moment
          about the middle of the sole, world axes [N, Nm]; `foot_pressure_centre_F` (K, F, 2), along and
          across the sole [m]; both with `_std`; `foot_roll` (K, F), 0 heel to 1 toe [-]. The last three are
          NaN while a foot carries less than the contact threshold.

    Raises:
        OutputError: If the estimate lacks a standard deviation.
    """
    missing = [name for name in MEASURED if name not in estimate.std]
    if missing:
        raise OutputError(f"the estimate has no standard deviation of {', '.join(missing)}")
    arrays: dict[str, NDArray[Any]] = {
        "stamp_ns": np.asarray(estimate.stamp_ns, dtype=np.int64),
        "joint_names": np.array(estimate.joint_names, dtype=np.str_),
        "contact_names": np.array(estimate.contact_names, dtype=np.str_),
    }
    for name in MEASURED:
        arrays[name] = np.asarray(getattr(estimate, name), dtype=np.float64)
        arrays[f"{name}_std"] = np.asarray(estimate.std[name], dtype=np.float64)
    if estimate.feet is not None:
        arrays["foot_names"] = np.array(estimate.feet.names, dtype=np.str_)
        arrays |= {key: np.asarray(getattr(estimate.feet, field), float) for key, field in FEET.items()}
    return arrays


def save_estimate(estimate: Estimate, path: Path) -> None:
    """Write estimate.npz with the keys of `estimate_arrays`.

    The arrays are stored uncompressed: noise does not compress, and loading is a plain copy.
    """
    with open(path, "wb") as stream:
        np.savez(stream, **estimate_arrays(estimate))  # type: ignore[arg-type]


def load_estimate(path: str | Path) -> dict[str, NDArray[Any]]:
    """Read an estimate.npz.

    Args:
        path: The file, or the directory that `prime solve --out` named.

    Returns:
        Arrays by key, as described in `estimate_arrays`.

    Raises:
        OutputError: If the file is absent, is no estimate.npz, or lacks a key.
    """
    path = Path(path)
    if path.is_dir():
        path = path / "estimate.npz"
    try:
        with np.load(path, allow_pickle=False) as archive:
            missing = [key for key in KEYS if key not in archive.files]
            if missing:
                raise OutputError(f"{path}: lacks {', '.join(missing)}; expected {', '.join(KEYS)}")
            return {key: archive[key] for key in archive.files if key in (*KEYS, "foot_names", *FEET)}
    except FileNotFoundError as error:
        raise OutputError(f"{path}: no such file; write it with `prime solve INPUT --out DIR`") from error
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise OutputError(f"{path}: not a readable estimate.npz ({error})") from error
