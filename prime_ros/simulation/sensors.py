# SPDX-License-Identifier: Apache-2.0
"""What the sensors of a simulated robot say: its true state and forces with the robot's own noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from prime_ros.robot import BASE_NV, Robot
from prime_ros.simulation.engine import BASE_NQ, State, StepForces

Array = NDArray[np.float64]


@dataclass(frozen=True)
class MocapPose:
    """Pose of the tracked body in the world."""

    position: Array
    """Shape (3,) [m]."""
    quat_xyzw: Array
    """Rotation from axes of the body to the world, shape (4,)."""


@dataclass(frozen=True)
class SensorSample:
    """One sample of every sensor; n joints in the order of the robot."""

    stamp_ns: int
    """Time of measurement [ns]."""
    joint_position: Array
    """Shape (n,) [rad]."""
    joint_velocity: Array
    """Shape (n,) [rad/s]."""
    joint_torque: Array
    """Of the motors, from this time to the next sample, shape (n,) [Nm]."""
    angular_velocity: Array
    """Gyroscope in axes of the IMU, shape (3,) [rad/s]."""
    linear_acceleration: Array
    """Accelerometer in axes of the IMU, +9.81 upwards at rest, shape (3,) [m/s^2]."""
    mocap: MocapPose | None
    """None between the samples of motion capture."""


class Sensors:
    """Sensors of a robot, with white noise from a seed."""

    def __init__(self, robot: Robot, seed: int, noise_free: bool, mocap_rate: float) -> None:
        """Make them.

        Args:
            robot: Its mounts and noise are used.
            seed: Of the noise.
            noise_free: Leave out the noise.
            mocap_rate: Of motion capture, which samples at the first step after each of its times [Hz].
        """
        self._robot, self._noise_free, self._mocap_rate = robot, noise_free, mocap_rate
        self._random = np.random.default_rng(seed)
        self._mocap_count = 0
        noise, n = robot.noise, len(robot.joint_names)
        std = [noise.joint_position, noise.joint_velocity, noise.joint_torque]
        std += [np.full(3, noise.angular_velocity), np.full(3, noise.linear_acceleration)]
        std += [np.full(3, noise.mocap_position), np.full(3, noise.mocap_rotation)]
        self._std = np.concatenate(std)
        self._cuts = np.cumsum([n, n, n, 3, 3, 3])

    def sample(
        self, stamp_ns: int, time: float, state: State, torque: Array, forces: StepForces
    ) -> SensorSample:
        """The sample of one step.

        Args:
            stamp_ns: Its stamp [ns].
            time: Since the start [s].
            state: Before the step.
            torque: Of the motors in the step, shape (n,) [Nm].
            forces: Felt in the step.
        """
        # Drawn for every sensor in every step: the noise of one does not depend on the rate of another.
        noise = self._random.standard_normal(len(self._std)) * self._std
        if self._noise_free:
            noise = np.zeros_like(noise)
        position, rate, effort, gyro, accelerometer, place, turn = np.split(noise, self._cuts)
        return SensorSample(
            stamp_ns,
            state.q[BASE_NQ:] + position,
            state.v[BASE_NV:] + rate,
            torque + effort,
            forces.angular_velocity + gyro,
            forces.specific_force + accelerometer,
            self._mocap(state, place, turn) if self._is_due(time) else None,
        )

    def _is_due(self, time: float) -> bool:
        due = int(time * self._mocap_rate + 1e-6) + 1
        new, self._mocap_count = due > self._mocap_count, due
        return new

    def _mocap(self, state: State, place: Array, turn: Array) -> MocapPose:
        pose = pin.XYZQUATToSE3(state.q[:BASE_NQ]) * self._robot.T_BM
        # Not by pin.Quaternion(matrix): eigenpy 3.13 leaks the copy it makes of a row-major matrix.
        measured = pin.SE3(pose.rotation @ pin.exp3(turn), pose.translation + place)
        row = np.asarray(pin.SE3ToXYZQUAT(measured))
        return MocapPose(row[:3], row[3:])
