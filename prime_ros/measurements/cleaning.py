# SPDX-License-Identifier: Apache-2.0
"""Streams as recorded, made usable: increasing stamps, clocks shifted, joints in the order of the model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from prime_ros.exceptions import MeasurementError
from prime_ros.measurements.samples import NANOSECONDS, JointSamples, MocapSamples, Samples, Stamps, selected


@dataclass(frozen=True)
class StreamDiagnostics:
    """What became of the samples of one stream."""

    read: int
    """Samples in the recording."""
    used: int
    """Samples left."""
    duplicate_stamps: int = 0
    """Samples dropped because an earlier one has the same stamp."""
    backward_stamps: int = 0
    """Samples dropped because an earlier one has a later stamp, as in a looped bag."""
    non_finite: int = 0
    """Values (joints, IMU) or poses (mocap) left out: NaN, infinite, or a quaternion without unit length."""


def in_time_order(samples: Samples, clock_offset: float) -> tuple[Samples, StreamDiagnostics]:
    """Drop samples whose stamp does not increase and shift the clock.

    Args:
        samples: A stream as recorded.
        clock_offset: Added to the stamps [s].

    Returns:
        The samples with strictly increasing stamps, and the counts.
    """
    keep, duplicates, backward = _increasing(samples.stamp_ns)
    kept = selected(samples, keep)
    shifted = replace(kept, stamp_ns=kept.stamp_ns + round(clock_offset * NANOSECONDS))
    return shifted, StreamDiagnostics(len(keep), int(keep.sum()), duplicates, backward)


def _increasing(stamp_ns: Stamps) -> tuple[NDArray[np.bool_], int, int]:
    """Which samples are later than all before them; how many repeat the latest stamp, how many go back."""
    latest = np.maximum.accumulate(stamp_ns)[:-1]
    later = stamp_ns[1:] > latest
    keep = np.concatenate([np.ones(min(1, len(stamp_ns)), dtype=bool), later])
    duplicates = int(np.sum(stamp_ns[1:] == latest))
    return keep, duplicates, int(np.sum(~later)) - duplicates


def tracked(samples: MocapSamples) -> NDArray[np.bool_]:
    """Which poses, shape (N,), are finite with a unit quaternion: a lost body is often published as zeros."""
    norm = np.linalg.norm(samples.quat_xyzw, axis=1)
    return np.isfinite(samples.position).all(axis=1) & (np.abs(norm - 1) < 0.05)


def in_model_order(samples: JointSamples, joint_names: Sequence[str]) -> tuple[JointSamples, tuple[str, ...]]:
    """Select the joints of a robot by name.

    Args:
        samples: Joints in any order, possibly more than the robot has.
        joint_names: Joints of the robot in the order of the model.

    Returns:
        The samples in that order, and the names left out.

    Raises:
        MeasurementError: If a joint of the robot is not in the samples.
    """
    missing = [name for name in joint_names if name not in samples.names]
    if missing:
        raise MeasurementError(
            f"joints missing in the recording: {', '.join(missing)};"
            f" it has: {', '.join(samples.names) or 'none'}"
        )
    order = [samples.names.index(name) for name in joint_names]
    extra = tuple(name for name in samples.names if name not in joint_names)
    ordered = JointSamples(
        samples.stamp_ns,
        tuple(joint_names),
        samples.position[:, order],
        samples.velocity[:, order],
        samples.torque[:, order],
    )
    return ordered, extra
