# SPDX-License-Identifier: Apache-2.0
"""What is taken of live samples, and what is left out for which reason."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prime_ros.config import EstimatorConfig
from prime_ros.estimation.live_knots import Buffers
from prime_ros.estimation.live_stream import SampleBuffer
from prime_ros.measurements.masking import UNIT
from prime_ros.measurements.ranges import MAX_DISTANCE, MAX_RATE, joint_limits
from prime_ros.measurements.samples import NANOSECONDS
from prime_ros.robot import Robot

Array = NDArray[np.float64]

FROZEN = 4  # equal poses in a row that are no measurement any more, if joints move
MOVING = 0.05  # [rad/s] root mean square of the joint rates
KEEP_S = 1.5  # [s] of samples beyond the window


class Intake:
    """Buffers of the three streams behind checks of every sample."""

    def __init__(self, robot: Robot, config: EstimatorConfig) -> None:
        n = len(robot.joint_names)
        keep = round((config.horizon.steps * config.dt + KEEP_S) * NANOSECONDS)
        jump = round(config.horizon.reset_after * NANOSECONDS)
        self.buffers = Buffers(
            SampleBuffer(3 * n, keep, jump), SampleBuffer(3, keep, jump), SampleBuffer(7, keep, jump)
        )
        self._robot = robot
        self._low, self._high = joint_limits(robot)
        self._offsets = {
            stream: round(getattr(config.sampling.clock_offset, stream) * NANOSECONDS)
            for stream in ("joints", "imu", "mocap")
        }
        self._columns: dict[tuple[str, ...], NDArray[np.int64] | None] = {}
        self._missing_joints: tuple[str, ...] = ()
        self._speed = 0.0
        self._last_pose: Array | None = None
        self._repeats = 0

    @property
    def buffers_by_name(self) -> dict[str, SampleBuffer]:
        """The buffers of ``joints``, ``imu`` and ``mocap``."""
        return {"joints": self.buffers.joints, "imu": self.buffers.imu, "mocap": self.buffers.mocap}

    def joints(
        self, stamp_ns: int, names: Sequence[str], position: ArrayLike, velocity: ArrayLike, torque: ArrayLike
    ) -> None:
        """Take a sample of the joints."""
        buffer, columns = self.buffers.joints, self._order(tuple(names))
        if columns is None:
            buffer.status.received += 1
            buffer.status.drop(f"without joint {', '.join(self._missing_joints)}")
            return
        fields = [np.asarray(field, dtype=float).ravel() for field in (position, velocity, torque)]
        if any(field.size not in (0, len(names)) for field in fields) or not fields[0].size:
            buffer.status.received += 1
            buffer.status.drop("other lengths than names")
            return
        row = np.concatenate([f[columns] if f.size else np.full(len(columns), np.nan) for f in fields])
        buffer.push(stamp_ns + self._offsets["joints"], self._checked(row))
        velocities = row[len(columns) : 2 * len(columns)]
        if np.isfinite(velocities).all():
            self._speed = float(np.sqrt(np.mean(velocities**2)))

    def imu(self, stamp_ns: int, angular_velocity: ArrayLike, linear_acceleration: ArrayLike) -> None:
        """Take a sample of the IMU; its acceleration is checked, not used."""
        buffer = self.buffers.imu
        rate = np.asarray(angular_velocity, dtype=float).ravel()
        acceleration = np.asarray(linear_acceleration, dtype=float).ravel()
        reason = ""
        if rate.size != 3 or acceleration.size not in (0, 3):
            reason = "other than three axes"
        elif not np.isfinite(rate).all():
            reason = "not finite"
        elif np.abs(rate).max() > MAX_RATE:
            reason = "out of range"
        if reason:
            buffer.status.received += 1
            buffer.status.drop(reason)
            return
        buffer.push(stamp_ns + self._offsets["imu"], rate)

    def mocap(self, stamp_ns: int, position: ArrayLike, quat_xyzw: ArrayLike) -> None:
        """Take a pose, if it is one."""
        buffer = self.buffers.mocap
        place, quat = np.asarray(position, dtype=float).ravel(), np.asarray(quat_xyzw, dtype=float).ravel()
        if reason := self._pose_fault(place, quat):
            buffer.status.received += 1
            buffer.status.drop(reason)
            return
        buffer.push(stamp_ns + self._offsets["mocap"], np.concatenate([place, quat / np.linalg.norm(quat)]))

    def distrust_poses(self) -> None:
        """Forget the poses that those of now contradict."""
        self.buffers.mocap.clear()

    def missing(self) -> str:
        """What an estimate still waits for."""
        lacking = [name for name in ("joints", "mocap") if not len(self.buffers_by_name[name])]
        return f"no {' and no '.join(lacking)} yet" if lacking else "joints and mocap at one time"

    def first_knot(self, dt_ns: int) -> int | None:
        """Time of a knot with a pose in its interval and joints before and after it [ns], or None."""
        joints, pose = self.buffers.joints, self.buffers.mocap.newest_ns
        newest = joints.newest_ns
        if pose is None or newest is None:
            return None
        stamps, _ = joints.between(pose, pose + dt_ns)
        candidates = stamps[(stamps >= pose) & (stamps < pose + dt_ns)]
        if not candidates.size:
            return None
        oldest, _ = joints.between(0, 0)
        return int(candidates[0]) if oldest.size and oldest[0] < candidates[0] - 2 * dt_ns else None

    def may_complete(self, stamp_ns: int) -> bool:
        """Whether poses and rates have come that are as new as a knot."""
        newest = [buffer.newest_ns for buffer in (self.buffers.imu, self.buffers.mocap)]
        return any(stamp is not None and stamp >= stamp_ns for stamp in newest)

    def _order(self, names: tuple[str, ...]) -> NDArray[np.int64] | None:
        """Column of every joint of the robot, or None if one is missing."""
        if names not in self._columns:
            missing = tuple(name for name in self._robot.joint_names if name not in names)
            self._missing_joints = missing or self._missing_joints
            order = None if missing else np.array([names.index(name) for name in self._robot.joint_names])
            self._columns[names] = order
        return self._columns[names]

    def _checked(self, row: Array) -> Array:
        """The row with NaN for what no joint can do."""
        with np.errstate(invalid="ignore"):
            outside = (row < self._low) | (row > self._high)
        lost = ~np.isfinite(row)
        status = self.buffers.joints.status
        if lost.any():
            status.drop("not finite", int(lost.sum()))
        if outside.any():
            status.drop("out of range", int(outside.sum()))
        return np.where(outside | lost, np.nan, row)

    def _pose_fault(self, position: Array, quat: Array) -> str:
        if position.size != 3 or quat.size != 4:
            return "other than position and quaternion"
        if not (np.isfinite(position).all() and np.isfinite(quat).all()):
            return "not finite"
        if abs(np.linalg.norm(quat) - 1.0) > UNIT:
            return "lost (zeros or no unit quaternion)"
        if np.abs(position).max() > MAX_DISTANCE:
            return "out of range"
        pose = np.concatenate([position, quat])
        same = self._last_pose is not None and np.array_equal(pose, self._last_pose)
        self._last_pose, self._repeats = pose, self._repeats + 1 if same else 0
        return "frozen" if self._repeats >= FROZEN and self._speed > MOVING else ""
