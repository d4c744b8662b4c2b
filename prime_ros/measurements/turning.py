# SPDX-License-Identifier: Apache-2.0
"""How motion capture and the IMU see the robot turn: what the checks of clocks and frames start from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

from prime_ros.measurements.clocks import Fit, fit
from prime_ros.measurements.rates import GRID, Correlation, Rates, gyro_rates, pose_rates
from prime_ros.measurements.samples import NANOSECONDS, Floats, ImuSamples, MocapSamples
from prime_ros.robot import Robot

MIN_SECONDS = 1.0  # of overlap; less says nothing about a clock
SPARSE = 1.0  # [s] per sample; more is a wrong stamp, not a slow stream
POSE_GAP = 0.1  # [s] longest pause of motion capture that a rate is taken over
SURE = 0.1  # standard deviation of the gain below which rates can tell right from wrong
MIN_RATE = 0.03  # [rad/s] root mean square of the rate that is more than bias and vibration
NEAR = 0.05  # of the trace of a rotation: 13 deg
RIVAL = 0.8  # share of the best correlation at which a lag is tried too


@dataclass(frozen=True)
class Turning:
    """Both sensors over the time they have in common, in seconds from its start."""

    time: Floats
    """Of the poses, shape (N,) [s]."""
    quat_xyzw: Floats
    """Tracked body to world, shape (N, 4)."""
    imu_time: Floats
    """Of the IMU, shape (K,) [s]."""
    rate: Floats
    """Shape (K, 3) [rad/s]."""
    force: Floats
    """Specific force at those times, NaN where unknown, shape (K, 3) [m/s^2]."""
    R_MI: Floats
    """Configured rotation from axes of the IMU to axes of the tracked body, shape (3, 3)."""
    gyro: Rates
    """The rate on a grid."""
    max_gap: float
    """Longest pause of the IMU that counts as measured [s]."""
    search: float
    """Largest clock offset looked for [s]."""

    def correlation(
        self, reading: Callable[[Floats], Floats] | None = None, search: float | None = None
    ) -> Correlation:
        """Correlation of the rates, the quaternions read in another way, over lags up to `search` [s]."""
        quat = self.quat_xyzw if reading is None else reading(self.quat_xyzw)
        grid = self.gyro.start + np.arange(len(self.gyro.rate), dtype=np.float64) * GRID
        return Correlation.of(pose_rates(self.time, quat, grid, POSE_GAP), self.gyro, search or self.search)

    def informative(self, correlation: Correlation) -> bool:
        """Whether the robot turned enough for rates to tell right from wrong."""
        free = correlation.free(1)
        if not len(free.gain) or correlation.points < MIN_SECONDS / GRID:
            return False
        size = np.sqrt(np.array(correlation.power) / correlation.points)
        noise = np.sqrt(max(size[0] ** 2 - (free.gain[0] * size[1]) ** 2, 0.0))
        # A rate is taken over several points of the grid: so many fewer are independent.
        independent = correlation.points * GRID / 0.06
        return bool(size[1] > MIN_RATE and noise < SURE * size[1] * np.sqrt(independent))

    def fitted(self, correlation: Correlation) -> Fit | None:
        """Least squares for offset and rotation from the best lags."""
        free, fixed = correlation.free(), correlation.turned(self.R_MI)
        starts = [
            (float(lag), rotation)
            for lag, value, rotation in zip(free.lag, free.correlation, free.rotation, strict=True)
            if value > RIVAL * free.correlation[0]
        ]
        # Motion about one axis leaves the rotation open: then the configured one is the better start.
        near = [
            abs(np.trace(rotation.T @ self.R_MI) - 3.0) < NEAR and lag in fixed.lag
            for lag, rotation in starts
        ]
        starts += [] if any(near) else [(float(lag), self.R_MI) for lag in fixed.lag]
        return fit(self.time, self.quat_xyzw, self.imu_time, self.rate, starts, self.max_gap)

    def gravity(
        self, offset: float, R_MI: Floats, reading: Callable[[Floats], Floats] | None = None
    ) -> Floats:
        """Mean specific force in the world: (0, 0, 9.81) if everything is as it should be, shape (3,)."""
        quat = self.quat_xyzw if reading is None else reading(self.quat_xyzw)
        force = self._force_at(offset)
        known = np.isfinite(force).all(axis=1)
        if not known.any():
            return np.full(3, np.nan)
        return np.asarray(
            (Rotation.from_quat(quat[known]) * Rotation.from_matrix(R_MI)).apply(force[known]).mean(axis=0)
        )

    def _force_at(self, offset: float) -> Floats:
        return np.column_stack([np.interp(self.time + offset, self.imu_time, axis) for axis in self.force.T])


def turning(
    mocap: MocapSamples, imu: ImuSamples | None, robot: Robot, max_gap: float, search: float
) -> Turning | None:
    """What both sensors saw while both were recorded.

    Args:
        mocap: Valid poses in time order.
        imu: IMU in time order, or None.
        robot: Its mounts state the rotation to expect.
        max_gap: Longest pause of the IMU that counts as measured [s].
        search: Largest clock offset looked for [s].

    Returns:
        None if there is no IMU, or too little in common to say anything.
    """
    if imu is None or len(mocap.stamp_ns) < 2:
        return None
    known = np.isfinite(imu.angular_velocity).all(axis=1)
    if known.sum() < 2:
        return None
    stamp_ns = imu.stamp_ns[known]
    start = max(int(mocap.stamp_ns[0]), int(stamp_ns[0]))
    end = min(int(mocap.stamp_ns[-1]), int(stamp_ns[-1]))
    if end - start < MIN_SECONDS * NANOSECONDS or end - start > SPARSE * NANOSECONDS * len(stamp_ns):
        return None
    margin = round(search * NANOSECONDS)
    near = (mocap.stamp_ns >= start - margin) & (mocap.stamp_ns <= end + margin)
    if near.sum() < 2:
        return None
    time, imu_time = (mocap.stamp_ns[near] - start) / NANOSECONDS, (stamp_ns - start) / NANOSECONDS
    rate = imu.angular_velocity[known]
    grid = np.arange(0.0, (end - start) / NANOSECONDS, GRID)
    return Turning(
        time,
        mocap.quat_xyzw[near],
        imu_time,
        rate,
        imu.linear_acceleration[known],
        np.asarray(robot.T_BM.rotation.T @ robot.R_BI),
        gyro_rates(imu_time, rate, grid, max_gap),
        max_gap,
        search,
    )


def quaternion_xyzw(rotation: Floats) -> list[float]:
    """Quaternion of a rotation matrix as one would write it into a file: four decimals, w not negative."""
    quat = np.asarray(pin.Quaternion(rotation).coeffs())
    quat = quat if quat[3] >= 0 else -quat
    return [float(round(value, 4)) + 0.0 for value in quat]
