# SPDX-License-Identifier: Apache-2.0
"""A Go2 that trots in place with a payload by the core's own contact step, and what its sensors say of it.

All that is random is drawn from the standard deviations that the estimator assumes: it should be right
about its own uncertainty.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pinocchio as pin
import recordings  # noqa: F401  # finds the benchmarks
import trot as simulator
from numpy.typing import NDArray
from trot import EPOCH_NS, Truth

from prime_ros.config import EstimatorConfig, load_estimator_config
from prime_ros.measurements.knots import AlignmentDiagnostics, KnotMeasurements
from prime_ros.robot import Robot, load_robot

Array = NDArray[np.float64]

PAYLOAD = pin.Inertia(3.0, np.array([0.04, -0.03, 0.12]), 3.0 * np.diag([0.002, 0.003, 0.004]))
GROUND_HEIGHT = 0.03  # [m]
SAMPLES_PER_KNOT = 5  # joints and IMU at 500 Hz


def config(*overrides: str) -> EstimatorConfig:
    """The shipped estimator with less contact slack, which here is white noise and would shake the robot."""
    return load_estimator_config("pfie", ["slack={tangential: 0.02, normal: 0.04}", *overrides])


@cache
def go2() -> Robot:
    """The shipped Go2, without the payload."""
    return load_robot("go2")


def loaded(robot: Robot, link: str = "base", payload: pin.Inertia = PAYLOAD) -> Robot:
    """The robot with a payload on a link."""
    return simulator.loaded(robot, payload, link)


def trot(steps: int, seed: int, robot: Robot | None = None, settings: EstimatorConfig | None = None) -> Truth:
    """Trot in place; disturbance and slack are drawn from the standard deviations of the settings."""
    robot, settings = robot or loaded(go2()), settings or config()
    shaking = simulator.Shaking(
        force=settings.disturbance.force,
        moment=settings.disturbance.moment,
        slack_tangential=settings.slack.tangential,
        slack_normal=settings.slack.normal,
    )
    return simulator.trot(robot, settings, steps, GROUND_HEIGHT, shaking, seed)


def measure(truth: Truth, seed: int, settings: EstimatorConfig | None = None) -> KnotMeasurements:
    """Noisy measurements at the knots; motion capture sees every knot up to dt before its time."""
    settings, noise = settings or config(), go2().noise
    random = np.random.default_rng(seed)
    knots, dt, n = len(truth.configuration), settings.dt, truth.torque.shape[1]
    q, v = truth.configuration, truth.velocity
    averaged = 1.0 / np.sqrt(SAMPLES_PER_KNOT)
    triangle = np.sqrt(2.0 / 3.0) * averaged  # gain of white noise through triangular weights
    std = {
        "joint_position": noise.joint_position,
        "joint_velocity": averaged * noise.joint_velocity,
        "joint_torque": triangle * noise.joint_torque,
    }
    noisy = {name: sigma * random.standard_normal((knots, n)) for name, sigma in std.items()}
    # The torque sensors do not see what disturbs the joints.
    unseen = settings.disturbance.joint_torque * random.standard_normal((knots, n))
    offset = -dt * random.uniform(size=knots)
    poses = [_seen(q[k], v[k], offset[k], random) for k in range(knots)]
    rate = averaged * noise.angular_velocity
    return KnotMeasurements(
        stamp_ns=EPOCH_NS + round(dt * 1e9) * np.arange(knots),
        dt=dt,
        base_position_W=np.array([pose[:3] for pose in poses]),
        base_quat_xyzw=np.array([pose[3:] for pose in poses]),
        base_time_offset=offset,
        std_base_position=np.full(knots, noise.mocap_position),
        std_base_rotation=np.full(knots, noise.mocap_rotation),
        joint_position=q[:, 7:] + noisy["joint_position"],
        std_joint_position=np.tile(std["joint_position"], (knots, 1)),
        base_angular_velocity_B=v[:, 3:6] + rate * random.standard_normal((knots, 3)),
        std_base_angular_velocity=np.full(knots, rate),
        joint_velocity=v[:, 6:] + noisy["joint_velocity"],
        std_joint_velocity=np.tile(std["joint_velocity"], (knots, 1)),
        joint_torque=np.vstack([truth.torque, truth.torque[-1:]]) + noisy["joint_torque"] + unseen,
        std_joint_torque=np.tile(std["joint_torque"], (knots, 1)),
        diagnostics=AlignmentDiagnostics({}, {}),
    )


def _seen(q: Array, v: Array, offset: float, random: np.random.Generator) -> Array:
    """Noisy pose of the base, position and quaternion, at `offset` from the knot."""
    noise = go2().noise
    pose = pin.XYZQUATToSE3(q[:7]) * pin.exp6(pin.Motion(offset * v[:6]))
    pose.translation = pose.translation + noise.mocap_position * random.standard_normal(3)
    pose.rotation = pose.rotation @ pin.exp3(noise.mocap_rotation * random.standard_normal(3))
    return np.asarray(pin.SE3ToXYZQUAT(pose))
