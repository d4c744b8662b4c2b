# SPDX-License-Identifier: Apache-2.0
"""Samples as they came, each stream at its own rate: int64 nanoseconds, SI units, gaps left as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prime_ros.exceptions import MeasurementError
from prime_ros.measurements.time_order import time_order

Floats = NDArray[np.float64]
Stamps = NDArray[np.int64]
NANOSECONDS = 1_000_000_000


@dataclass(frozen=True)
class JointSamples:
    """N samples of n joints, in the order of `names`, whatever it is. NaN: not measured."""

    stamp_ns: Stamps
    """Time of each sample, shape (N,) [ns]."""
    names: tuple[str, ...]
    """Name of each joint, n different ones."""
    position: Floats
    """Shape (N, n) [rad]."""
    velocity: Floats
    """Shape (N, n) [rad/s]."""
    torque: Floats
    """Torque of the motor on the joint, shape (N, n) [Nm]."""

    def __post_init__(self) -> None:
        names = tuple(str(name) for name in self.names)
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise MeasurementError(
                f"joints: names: got {', '.join(twice)} more than once, expected different names"
            )
        _freeze(self, "names", names)
        count = _freeze_stamps(self, "joints")
        for field in ("position", "velocity", "torque"):
            _freeze_floats(self, "joints", field, (count, len(names)))


@dataclass(frozen=True)
class ImuSamples:
    """N samples of an inertial measurement unit, in its own axes. NaN: not measured."""

    stamp_ns: Stamps
    """Time of each sample, shape (N,) [ns]."""
    angular_velocity: Floats
    """Shape (N, 3) [rad/s]."""
    linear_acceleration: Floats
    """Specific force: +9.81 upwards at rest, shape (N, 3) [m/s^2]."""

    def __post_init__(self) -> None:
        count = _freeze_stamps(self, "imu")
        for field in ("angular_velocity", "linear_acceleration"):
            _freeze_floats(self, "imu", field, (count, 3))


@dataclass(frozen=True)
class MocapSamples:
    """N poses of the tracked body in the world. NaN or a zero quaternion: not tracked."""

    stamp_ns: Stamps
    """Time of each sample, shape (N,) [ns]."""
    position: Floats
    """Shape (N, 3) [m]."""
    quat_xyzw: Floats
    """Rotation from axes of the body to the world, shape (N, 4), x y z w."""

    def __post_init__(self) -> None:
        count = _freeze_stamps(self, "mocap")
        for field, width in (("position", 3), ("quat_xyzw", 4)):
            _freeze_floats(self, "mocap", field, (count, width))


Samples = TypeVar("Samples", JointSamples, ImuSamples, MocapSamples)


@dataclass(frozen=True)
class Recording:
    """What one run of a robot left: joints and motion capture, and an IMU if there was one."""

    joints: JointSamples
    """Joint encoders and torques."""
    mocap: MocapSamples
    """Motion capture."""
    imu: ImuSamples | None = None
    """IMU, or None."""
    notes: tuple[str, ...] = ()
    """What whoever reads on should know about how it was read, such as that the file ends in the middle."""

    @property
    def start_ns(self) -> int:
        """Earliest stamp of any stream, strays left out [ns]."""
        return min(int(stamps.min()) for stamps in self._stamps())

    @property
    def end_ns(self) -> int:
        """Latest stamp of any stream, strays left out [ns]."""
        return max(int(stamps.max()) for stamps in self._stamps())

    @property
    def duration(self) -> float:
        """From the earliest to the latest stamp of any stream [s]."""
        return (self.end_ns - self.start_ns) / NANOSECONDS

    def cropped(self, start: float = 0.0, duration: float | None = None) -> Recording:
        """Part of the recording.

        Args:
            start: Start of the part, from the first stamp of the recording, >= 0 [s].
            duration: Its length, positive [s]; None: to the end.

        Returns:
            The samples of that time, ends included.

        Raises:
            MeasurementError: If the part does not lie inside the recording or is empty.
        """
        length = self.duration
        if not 0 <= start < length or (duration is not None and not duration > 0):
            raise MeasurementError(
                f"got start {start} s and duration {duration} s,"
                f" expected 0 <= start < {length:.3f} s and duration > 0"
            )
        if not start and duration is None:
            return self  # with samples whose stamp lies outside: they are to be counted
        first = self.start_ns + round(start * NANOSECONDS)
        last = self.end_ns
        if duration is not None and duration < length:
            last = first + round(duration * NANOSECONDS)
        imu = None if self.imu is None else _between(self.imu, first, last)
        return Recording(
            _between(self.joints, first, last), _between(self.mocap, first, last), imu, self.notes
        )

    def _stamps(self) -> Sequence[Stamps]:
        streams = (self.joints, self.mocap, self.imu)
        stamps = [
            s.stamp_ns[time_order(s.stamp_ns).keep] for s in streams if s is not None and s.stamp_ns.size
        ]
        if not stamps:
            raise MeasurementError("the recording is empty: no stream has a sample")
        return stamps


def selected(samples: Samples, keep: NDArray[np.bool_]) -> Samples:
    """The samples where `keep`, shape (N,), is true."""
    arrays = {name: array[keep] for name, array in vars(samples).items() if isinstance(array, np.ndarray)}
    return replace(samples, **arrays)  # type: ignore[arg-type]  # `names` is no array


def _between(samples: Samples, first: int, last: int) -> Samples:
    return selected(samples, (samples.stamp_ns >= first) & (samples.stamp_ns <= last))


def _freeze(samples: Any, field: str, value: Any) -> None:
    object.__setattr__(samples, field, value)


def _freeze_stamps(samples: Any, stream: str) -> int:
    stamps = np.asarray(samples.stamp_ns)
    if stamps.ndim != 1 or stamps.dtype.kind not in "iu":
        raise MeasurementError(
            f"{stream}: stamp_ns: got {stamps.dtype} of shape {stamps.shape},"
            " expected integers [ns] of shape (N,)"
        )
    _freeze(samples, "stamp_ns", _read_only(stamps, np.int64))
    return len(stamps)


def _freeze_floats(samples: Any, stream: str, field: str, shape: tuple[int, int]) -> None:
    value: ArrayLike = getattr(samples, field)
    array = np.asarray(value)
    if array.shape != shape or array.dtype.kind not in "fiu":
        raise MeasurementError(
            f"{stream}: {field}: got {array.dtype} of shape {array.shape}, expected numbers of shape {shape}"
        )
    _freeze(samples, field, _read_only(array, np.float64))


def _read_only(array: NDArray[Any], dtype: type[Any]) -> NDArray[Any]:
    if array.dtype == dtype and array.flags.owndata and not array.flags.writeable:
        return array  # given away by whoever made it: long recordings are not copied
    copy = np.array(array, dtype=dtype)
    copy.flags.writeable = False
    return copy
