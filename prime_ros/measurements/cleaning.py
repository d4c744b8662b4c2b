# SPDX-License-Identifier: Apache-2.0
"""Streams as recorded, made usable: increasing stamps, clocks shifted, joints in the order of the model."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from prime_ros.exceptions import MeasurementError
from prime_ros.measurements.samples import NANOSECONDS, JointSamples, Samples, selected
from prime_ros.measurements.time_order import time_order


@dataclass(frozen=True)
class StreamDiagnostics:
    """What became of the samples of one stream."""

    read: int
    """Samples in the recording."""
    used: int
    """Samples left."""
    duplicate_stamps: int = 0
    """Samples dropped because the one before has the same stamp."""
    backward_stamps: int = 0
    """Samples dropped because one before has a later stamp, as in a looped bag."""
    stray_stamps: int = 0
    """Samples dropped because their stamp is later than those after them, or minutes from all others."""
    non_finite: int = 0
    """Values (joints, IMU) or poses (mocap) left out: NaN or infinite."""
    out_of_range: int = 0
    """Values (joints, IMU) or poses (mocap) left out: beyond what the joint or sensor can be at."""
    lost: int = 0
    """Poses left out: zeros, or a quaternion without unit length, which stand for a body that is not seen."""
    frozen: int = 0
    """Poses left out: exact repeats while the robot moved."""
    jumps: int = 0
    """Poses left out: away from those before and after them by more than the robot can move."""

    def left_out(self) -> Iterator[tuple[str, int]]:
        """What was left out for each reason, where there was any."""
        reasons = {
            "duplicate stamps": self.duplicate_stamps,
            "backward stamps": self.backward_stamps,
            "stray stamps": self.stray_stamps,
            "not finite": self.non_finite,
            "out of range": self.out_of_range,
            "lost (zeros or no unit quaternion)": self.lost,
            "frozen": self.frozen,
            "jumps": self.jumps,
        }
        return ((reason, count) for reason, count in reasons.items() if count)


def in_time_order(samples: Samples, clock_offset: float) -> tuple[Samples, StreamDiagnostics]:
    """Drop samples whose stamp does not increase and shift the clock.

    Args:
        samples: A stream as recorded.
        clock_offset: Added to the stamps [s].

    Returns:
        The samples with strictly increasing stamps, and the counts.
    """
    order = time_order(samples.stamp_ns)
    counts = StreamDiagnostics(
        len(order.keep), int(order.keep.sum()), order.duplicates, order.backward, order.stray
    )
    kept = samples if order.keep.all() else selected(samples, order.keep)
    return shifted(kept, clock_offset), counts


def shifted(samples: Samples, seconds: float) -> Samples:
    """The samples with `seconds` added to their stamps."""
    if not seconds:
        return samples
    return replace(samples, stamp_ns=samples.stamp_ns + round(seconds * NANOSECONDS))


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
    extra = tuple(name for name in samples.names if name not in joint_names)
    missing = [name for name in joint_names if name not in samples.names]
    if missing:
        raise MeasurementError(
            f"joints missing in the recording: {', '.join(missing)};"
            f" it has: {', '.join(samples.names) or 'none'}{_close(missing, extra)}"
        )
    order = [samples.names.index(name) for name in joint_names]
    if samples.names == tuple(joint_names):
        return samples, extra
    ordered = JointSamples(
        samples.stamp_ns,
        tuple(joint_names),
        samples.position[:, order],
        samples.velocity[:, order],
        samples.torque[:, order],
    )
    return ordered, extra


def _close(missing: Sequence[str], names: Sequence[str]) -> str:
    """A missing joint with the name of no joint of the model that looks most like it, as a hint."""
    for name in missing:
        if close := difflib.get_close_matches(name, names, n=1):
            return f". Is '{close[0]}' meant to be '{name}'? Joints are found by the names of the model"
    return ". Joints are found by the names of the model"
