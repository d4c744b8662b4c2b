# SPDX-License-Identifier: Apache-2.0
"""One knot at a time from live samples, by the same averages as for a recording."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from prime_ros.config import EstimatorConfig
from prime_ros.estimation.live_stream import SampleBuffer
from prime_ros.exceptions import MeasurementError
from prime_ros.measurements.knots import AlignmentDiagnostics, KnotMeasurements
from prime_ros.measurements.poses import at_knots
from prime_ros.measurements.samples import NANOSECONDS, MocapSamples
from prime_ros.measurements.weights import Average, box, interpolation, triangle
from prime_ros.robot import Robot

Array = NDArray[np.float64]

NOTHING = AlignmentDiagnostics({}, {})


@dataclass(frozen=True)
class Buffers:
    """What a knot is made of; rows (position, velocity, torque), (rate) and (position, quaternion)."""

    joints: SampleBuffer
    imu: SampleBuffer
    mocap: SampleBuffer


class KnotBuilder:
    """Averages of live samples at one knot."""

    def __init__(self, robot: Robot, config: EstimatorConfig, buffers: Buffers) -> None:
        self._robot, self._buffers = robot, buffers
        self._dt_ns = round(config.dt * NANOSECONDS)
        self._gap_ns = round(config.sampling.max_gap * NANOSECONDS)
        lever = float(np.linalg.norm(robot.T_BM.translation))
        self._std_position = float(np.hypot(robot.noise.mocap_position, lever * robot.noise.mocap_rotation))

    def build(self, stamp_ns: int, fallback: Array) -> KnotMeasurements:
        """Measurements of the knot at a time, M = 1.

        Args:
            stamp_ns: Time of the knot [ns].
            fallback: Values (q, v) where nothing is measured, shape (nq + nv,).

        Returns:
            The measurements; the torque is that of the step that leads to the knot.
        """
        knot = np.array([stamp_ns], dtype=np.int64)
        nq, n = self._robot.model.nq, len(self._robot.joint_names)
        stamps, rows = self._buffers.joints.between(
            stamp_ns - 2 * self._dt_ns - self._gap_ns, stamp_ns + self._gap_ns
        )
        noise = self._robot.noise
        position, std_position = self._joint_average(
            interpolation(stamps, knot, self._gap_ns),
            stamps,
            rows[:, :n],
            noise.joint_position,
            fallback[7:nq],
        )
        velocity, std_velocity = self._joint_average(
            box(stamps, knot, self._dt_ns, self._gap_ns),
            stamps,
            rows[:, n : 2 * n],
            noise.joint_velocity,
            fallback[nq + 6 :],
        )
        torque, std_torque = self._joint_average(
            triangle(stamps, knot - self._dt_ns, self._dt_ns, self._gap_ns),
            stamps,
            rows[:, 2 * n :],
            noise.joint_torque,
            np.zeros(n),
        )
        rate, std_rate = self._rate(knot, fallback[nq + 3 : nq + 6])
        base, std_base_position, std_base_rotation, offset = self._pose(knot, fallback[:7])
        return KnotMeasurements(
            stamp_ns=knot,
            dt=self._dt_ns / NANOSECONDS,
            base_position_W=base[None, :3],
            base_quat_xyzw=base[None, 3:],
            base_time_offset=np.array([offset]),
            std_base_position=np.array([std_base_position]),
            std_base_rotation=np.array([std_base_rotation]),
            joint_position=position[None],
            std_joint_position=std_position[None],
            base_angular_velocity_B=rate[None],
            std_base_angular_velocity=np.array([std_rate]),
            joint_velocity=velocity[None],
            std_joint_velocity=std_velocity[None],
            joint_torque=torque[None],
            std_joint_torque=std_torque[None],
            diagnostics=NOTHING,
        )

    def completed(self, m: KnotMeasurements, fallback: Array) -> KnotMeasurements:
        """A knot built before, with the poses and rates that have come since; `fallback` as for `build`."""
        nq = self._robot.model.nq
        rate, std_rate = self._rate(m.stamp_ns, fallback[nq + 3 : nq + 6])
        base, std_position, std_rotation, offset = self._pose(m.stamp_ns, fallback[:7])
        return replace(
            m,
            base_position_W=base[None, :3],
            base_quat_xyzw=base[None, 3:],
            base_time_offset=np.array([offset]),
            std_base_position=np.array([std_position]),
            std_base_rotation=np.array([std_rotation]),
            base_angular_velocity_B=rate[None],
            std_base_angular_velocity=np.array([std_rate]),
        )

    def _joint_average(
        self,
        average: Average,
        stamps: NDArray[np.int64],
        values: Array,
        noise: Array,
        fallback: Array,
    ) -> tuple[Array, Array]:
        """Average (n,) of every joint and its std; infinite where a sample in the window is not finite."""
        if not average.covered[0]:
            return fallback, np.full(len(fallback), np.inf)
        chosen = values[average.columns]
        whole = np.isfinite(chosen).all(axis=0)
        mean = average.weights @ (chosen if whole.all() else np.nan_to_num(chosen))
        std = np.where(whole, average.noise_gain[0] * noise, np.inf)
        return np.where(whole, mean, fallback), std

    def _rate(self, knot: NDArray[np.int64], fallback: Array) -> tuple[Array, float]:
        stamps, rows = self._buffers.imu.between(int(knot[0]) - self._dt_ns - self._gap_ns, int(knot[0]))
        average = box(stamps, knot, self._dt_ns, self._gap_ns)
        if not average.covered[0]:
            return fallback, np.inf
        rate = self._robot.R_BI @ average.of(rows)[0]
        return rate, float(average.noise_gain[0] * self._robot.noise.angular_velocity)

    def _pose(self, knot: NDArray[np.int64], fallback: Array) -> tuple[Array, float, float, float]:
        """Pose of the base, its standard deviations, and its time minus that of the knot [s]."""
        stamps, rows = self._buffers.mocap.between(int(knot[0]) - self._dt_ns, int(knot[0]))
        try:
            samples = MocapSamples(stamps, rows[:, :3], rows[:, 3:])
            pose = at_knots(samples, self._robot.T_BM, knot, self._dt_ns)
        except MeasurementError:
            return fallback, np.inf, np.inf, 0.0
        shrink = 1.0 / np.sqrt(pose.count[0])
        base = np.concatenate([pose.position[0], pose.quat_xyzw[0]])
        std = self._std_position * shrink, self._robot.noise.mocap_rotation * shrink
        return base, *std, float(pose.time_offset[0])
