# SPDX-License-Identifier: Apache-2.0
"""Live samples kept until they are asked for as a recording."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

import numpy as np

from prime_ros.exceptions import MeasurementError
from prime_ros.measurements import ImuSamples, JointSamples, MocapSamples, Recording
from prime_ros.measurements.samples import NANOSECONDS, Floats, Stamps

Sample = tuple[int, tuple[Floats, ...]]
JointSample = tuple[int, tuple[str, ...], tuple[Floats, ...]]


class SampleStore:
    """`prime_ros.nodes.inputs.Sink` that keeps the last samples; may be used from any thread."""

    def __init__(self, keep: float) -> None:
        """Keep samples of the last `keep` seconds of each stream's own time."""
        self._keep_ns = round(keep * NANOSECONDS)
        self._joints: deque[JointSample] = deque()
        self._imu: deque[Sample] = deque()
        self._mocap: deque[Sample] = deque()
        self._lock = threading.Lock()

    def push_joints(
        self, stamp_ns: int, names: Sequence[str], position: Floats, velocity: Floats, torque: Floats
    ) -> None:
        """See `Sink`."""
        with self._lock:
            self._joints.append((stamp_ns, tuple(names), (position, velocity, torque)))
            while self._joints[0][0] < stamp_ns - self._keep_ns:
                self._joints.popleft()

    def push_imu(self, stamp_ns: int, angular_velocity: Floats, linear_acceleration: Floats) -> None:
        """See `Sink`."""
        self._push(self._imu, stamp_ns, angular_velocity, linear_acceleration)

    def push_mocap(self, stamp_ns: int, position: Floats, quat_xyzw: Floats) -> None:
        """See `Sink`."""
        self._push(self._mocap, stamp_ns, position, quat_xyzw)

    def forget(self) -> None:
        """Drop everything, as when the clock goes back."""
        with self._lock:
            for stream in (self._joints, self._imu, self._mocap):
                stream.clear()

    def recording(self) -> Recording:
        """What is kept, in the order of arrival.

        Raises:
            MeasurementError: If there are no joints or no motion capture.
        """
        with self._lock:
            joints, imu, mocap = list(self._joints), list(self._imu), list(self._mocap)
        if not joints or not mocap:
            raise MeasurementError(
                f"got {len(joints)} samples of the joints and {len(mocap)} of motion capture so far,"
                " expected both; see which topics have a publisher"
            )
        return Recording(
            _joint_samples(joints),
            MocapSamples(*_columns(mocap)),
            ImuSamples(*_columns(imu)) if imu else None,
        )

    def _push(self, stream: deque[Sample], stamp_ns: int, *values: Floats) -> None:
        with self._lock:
            stream.append((stamp_ns, values))
            while stream[0][0] < stamp_ns - self._keep_ns:
                stream.popleft()


def _columns(samples: list[Sample]) -> tuple[Stamps, Floats, Floats]:
    stamps = np.array([stamp for stamp, _ in samples], dtype=np.int64)
    first, second = (np.array([values[k] for _, values in samples]) for k in (0, 1))
    return stamps, first, second


def _joint_samples(samples: list[JointSample]) -> JointSamples:
    """All joints that were named, NaN where a message did not name one."""
    names = tuple(dict.fromkeys(name for named in dict.fromkeys(s[1] for s in samples) for name in named))
    column = {name: index for index, name in enumerate(names)}
    tables = np.full((3, len(samples), len(names)), np.nan)
    for row, (_, named, values) in enumerate(samples):
        tables[:, row, [column[name] for name in named]] = values
    stamps = np.array([stamp for stamp, _, _ in samples], dtype=np.int64)
    return JointSamples(stamps, names, *tables)
