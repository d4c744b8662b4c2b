# SPDX-License-Identifier: Apache-2.0
"""Simulated logs with ground truth: reading them, making noisy recordings of them, and their truth at knots.

Sample i of a log is the state before a simulation step together with the forces of that step.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation, Slerp

from prime_ros.measurements.samples import NANOSECONDS, ImuSamples, JointSamples, MocapSamples, Recording
from prime_ros.measurements.weights import box, interpolation, triangle

Floats = NDArray[np.float64]
Stamps = NDArray[np.int64]

#: Names of the logs' feet in the robots' configurations.
CONTACT_NAMES = {leg: f"{leg}_foot" for leg in ("FL", "FR", "RL", "RR")}

#: A stamp like those of a real clock: small epochs would hide rounding of stamps held in floating point.
EPOCH_NS = 1_700_000_000 * NANOSECONDS


@dataclass(frozen=True)
class Noise:
    """Standard deviations of the noise added to one sample."""

    joint_position: float = 0.002
    """[rad]"""
    joint_velocity: float = 0.1
    """[rad/s]"""
    joint_torque: float = 0.5
    """[Nm]"""
    mocap_position: float = 0.002
    """[m]"""
    mocap_rotation: float = float(np.deg2rad(0.5))
    """[rad]"""
    angular_velocity: float = 0.02
    """[rad/s]"""
    linear_acceleration: float = 0.1
    """[m/s^2]"""


NOISE_FREE = Noise(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class SimulationLog:
    """A noise-free log of N samples, n joints and C contacts, in SI units."""

    stamp_ns: Stamps
    """Shape (N,) [ns]."""
    joint_names: tuple[str, ...]
    """In the order of the log."""
    joint_position: Floats
    """Shape (N, n) [rad]."""
    joint_velocity: Floats
    """Shape (N, n) [rad/s]."""
    joint_torque: Floats
    """Shape (N, n) [Nm]."""
    base_position_W: Floats
    """Shape (N, 3) [m]."""
    base_quat_xyzw: Floats
    """Shape (N, 4)."""
    base_velocity_B: Floats
    """Twist in base axes, linear then angular, shape (N, 6)."""
    angular_velocity: Floats
    """Gyroscope, shape (N, 3) [rad/s]."""
    linear_acceleration: Floats
    """Accelerometer, shape (N, 3) [m/s^2]."""
    contact_names: tuple[str, ...]
    """In the order of the log, named as in the robot's configuration."""
    contact_force_W: Floats
    """On the robot, shape (N, C, 3) [N]."""
    truth: dict[str, Any]
    """`nominal` and `true` inertia of the identified body, in the frame of `joint`."""


def load_log(path: str | Path) -> SimulationLog:
    """Read a log.

    Args:
        path: The ``.npz`` file.

    Returns:
        The log, stamped from `EPOCH_NS` on.
    """
    with np.load(path, allow_pickle=False) as file:
        data = {key: file[key] for key in file}
    base = data["q_base"].astype(float)
    quat = base[:, [4, 5, 6, 3]]
    return SimulationLog(
        stamp_ns=EPOCH_NS + np.round(data["t"] * NANOSECONDS).astype(np.int64),
        joint_names=tuple(str(name) for name in data["joint_names"]),
        joint_position=data["q"].astype(float),
        joint_velocity=data["dq"].astype(float),
        joint_torque=data["tau"].astype(float),
        base_position_W=base[:, :3],
        base_quat_xyzw=quat / np.linalg.norm(quat, axis=1, keepdims=True),
        base_velocity_B=np.hstack([data["v_base_body"], data["w_base_body"]]).astype(float),
        angular_velocity=data["gyro"].astype(float),
        linear_acceleration=data["acc"].astype(float),
        contact_names=tuple(CONTACT_NAMES.get(str(name), str(name)) for name in data["foot_names"]),
        contact_force_W=data["foot_force_W"].astype(float),
        truth=json.loads(str(data["truth"])),
    )


def noisy_recording(
    log: SimulationLog,
    seed: int,
    mocap_rate: float = 100.0,
    mocap_jitter: float = 0.0,
    noise: Noise | None = None,
) -> Recording:
    """What sensors with white noise would have recorded.

    Args:
        log: The log.
        seed: Seed of the noise.
        mocap_rate: Rate of motion capture [Hz].
        mocap_jitter: Standard deviation of the times at which motion capture samples; its stamps are true
            [s].
        noise: Standard deviations of the noise; default: `Noise()`.

    Returns:
        Joints and IMU at the rate of the log, motion capture at its own.
    """
    std = noise or Noise()
    random = np.random.default_rng(seed)

    def noisy(values: Floats, sigma: float) -> Floats:
        return values + sigma * random.standard_normal(values.shape)

    joints = JointSamples(
        log.stamp_ns,
        log.joint_names,
        noisy(log.joint_position, std.joint_position),
        noisy(log.joint_velocity, std.joint_velocity),
        noisy(log.joint_torque, std.joint_torque),
    )
    imu = ImuSamples(
        log.stamp_ns,
        noisy(log.angular_velocity, std.angular_velocity),
        noisy(log.linear_acceleration, std.linear_acceleration),
    )
    stamps = _mocap_stamps(log, mocap_rate, mocap_jitter, random)
    position, rotation = pose_at(log, stamps)
    error = Rotation.from_rotvec(noisy(np.zeros((len(stamps), 3)), std.mocap_rotation))
    mocap = MocapSamples(stamps, noisy(position, std.mocap_position), (rotation * error).as_quat())
    return Recording(joints, mocap, imu)


def pose_at(log: SimulationLog, stamp_ns: Stamps) -> tuple[Floats, Rotation]:
    """Pose of the base between the samples of the log, by interpolation.

    Args:
        log: The log.
        stamp_ns: Times inside the log, shape (m,) [ns].

    Returns:
        Position in the world, shape (m, 3) [m], and m rotations from base to world.
    """
    start = log.stamp_ns[0]
    time, sampled = (stamp_ns - start) / NANOSECONDS, (log.stamp_ns - start) / NANOSECONDS
    position = np.column_stack([np.interp(time, sampled, axis) for axis in log.base_position_W.T])
    return position, Slerp(sampled, Rotation.from_quat(log.base_quat_xyzw))(time)


def _mocap_stamps(log: SimulationLog, rate: float, jitter: float, random: np.random.Generator) -> Stamps:
    duration = (log.stamp_ns[-1] - log.stamp_ns[0]) / NANOSECONDS
    times = np.arange(int(duration * rate + 1e-9) + 1) / rate
    times = times + jitter * random.standard_normal(times.shape)
    return log.stamp_ns[0] + np.round(np.clip(times, 0.0, duration) * NANOSECONDS).astype(np.int64)


def truth_at(log: SimulationLog, stamp_ns: Stamps, dt: float) -> dict[str, Any]:
    """True motion and forces at knots, seen through the windows that an estimate states.

    Args:
        log: The log.
        stamp_ns: Knots inside the log, shape (K,) [ns].
        dt: Spacing of the knots [s].

    Returns:
        `joint_position` (K, n) and `base_position_W` (K, 3), `base_quat_xyzw` (K, 4) at the knots;
        `joint_velocity` (K, n) and `base_velocity_B` (K, 6), means over (knot - dt, knot]; `contact_force_W`
        (K, C, 3) and `joint_torque` (K, n), means over knot +- dt weighted by a triangle; `covered` (K,),
        whether the log covers all windows; `joint_names`, `contact_names`, in the order of the log.
    """
    dt_ns = round(dt * NANOSECONDS)
    at = interpolation(log.stamp_ns, stamp_ns, dt_ns)
    past, around = (window(log.stamp_ns, stamp_ns, dt_ns, dt_ns) for window in (box, triangle))
    position, rotation = pose_at(log, np.clip(stamp_ns, log.stamp_ns[0], log.stamp_ns[-1]))
    forces = around.of(log.contact_force_W.reshape(len(log.stamp_ns), -1))
    return {
        "joint_names": log.joint_names,
        "contact_names": log.contact_names,
        "joint_position": at.of(log.joint_position),
        "joint_velocity": past.of(log.joint_velocity),
        "joint_torque": around.of(log.joint_torque),
        "base_position_W": position,
        "base_quat_xyzw": rotation.as_quat(),
        "base_velocity_B": past.of(log.base_velocity_B),
        "contact_force_W": forces.reshape(len(stamp_ns), -1, 3),
        "covered": at.covered & past.covered & around.covered,
    }
