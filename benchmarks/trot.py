# SPDX-License-Identifier: Apache-2.0
"""A Go2 that trots in place, for as long as one likes, by the core's own contact step; and its sensors."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from prime_ros import _core
from prime_ros.config import EstimatorConfig
from prime_ros.estimation.problem import contact_step
from prime_ros.measurements import ImuSamples, JointSamples, MocapSamples, Recording
from prime_ros.robot import Robot

Array = NDArray[np.float64]

EPOCH_NS = 1_700_000_000_000_000_000
STANCE = np.tile([0.0, 0.8, -1.5], 4)  # joint positions of a stance [rad]
FREQUENCY = 2.0  # [Hz] of the trot
STIFFNESS, DAMPING = 80.0, 4.0  # of the joints' drives [Nm/rad, Nm s/rad]
SWING = (0.0, 0.15, 0.3)  # amplitude of hip, thigh and calf [rad]


@dataclass(frozen=True)
class Truth:
    """What really happened at K + 1 knots and in the K steps between them."""

    configuration: Array
    """Shape (K + 1, nq)."""
    velocity: Array
    """Shape (K + 1, nv)."""
    torque: Array
    """On the joints, without damping and friction, shape (K, n) [Nm]."""
    force_W: Array
    """Contact forces, shape (K, C, 3) [N]."""
    base: pin.Inertia
    """Of the base with its payload."""


@dataclass(frozen=True)
class Shaking:
    """Standard deviations of what disturbs the robot in every step; 0: nothing."""

    force: float = 0.0
    """On the base, per axis [N]."""
    moment: float = 0.0
    """On the base, per axis [Nm]."""
    slack_tangential: float = 0.0
    """[m/s]"""
    slack_normal: float = 0.0
    """[m/s]"""


def loaded(robot: Robot, payload: pin.Inertia, link: str = "base") -> Robot:
    """The robot with a payload on a link."""
    model = robot.model.copy()
    model.inertias[robot.joint_of_link(link)] += payload
    return replace(robot, model=model)


def trot(
    robot: Robot, config: EstimatorConfig, steps: int, ground_height: float, shaking: Shaking, seed: int
) -> Truth:
    """Trot in place.

    Args:
        robot: A Go2.
        config: Its `dt` is that of the simulation; its last kappa the sharpness of the contact.
        steps: Number of steps.
        ground_height: Of the ground [m].
        shaking: Random disturbance.
        seed: Of the disturbance.

    Returns:
        The motion.
    """
    random, n, dt = np.random.default_rng(seed), len(robot.joint_names), config.dt
    implicit = DAMPING + dt * STIFFNESS
    step = contact_step(replace(robot, joint_damping=robot.joint_damping + 2.0 * implicit), config)
    step.kappa = config.contact.kappa_stages[-1]
    data, theta = _core.ContactStepData(step), step.nominal_theta(ground_height)
    disturbance = np.repeat([shaking.force, shaking.moment], 3)
    slack = np.tile([shaking.slack_tangential] * 2 + [shaking.slack_normal], len(robot.contacts))
    q, v = standing(robot, ground_height), np.zeros(robot.model.nv)
    configuration, velocity = np.empty((steps + 1, len(q))), np.empty((steps + 1, len(v)))
    configuration[0], velocity[0] = q, v
    torque, force_W = np.empty((steps, n)), np.empty((steps, len(robot.contacts), 3))
    for k in range(steps):
        spring = STIFFNESS * (reference(k * dt, n) - q[7:])
        # The damping of the new velocity from that of the mean, which is what the step damps.
        force = np.concatenate([disturbance * random.standard_normal(6), spring + implicit * v[6:]])
        step.solve(data, q, v, force, slack * random.standard_normal(slack.size), theta)
        if not data.converged:
            raise RuntimeError(f"the contact step {k} did not converge")
        v = data.v_next
        torque[k] = spring - implicit * v[6:]
        q = pin.integrate(robot.model, q, dt * v)
        configuration[k + 1], velocity[k + 1] = q, v
        force_W[k] = np.reshape(data.impulse, (-1, 3)) / dt
    return Truth(configuration, velocity, torque, force_W, robot.model.inertias[1])


def standing(robot: Robot, ground_height: float) -> Array:
    """Configuration that stands a millimetre above the ground."""
    q = np.concatenate([[0.3, -0.2, 0.0, 0.0, 0.0, 0.0, 1.0], STANCE])
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q)
    lowest = min(data.oMi[c.joint_id].act(c.offset)[2] - c.radius for c in robot.contacts)
    q[2] += ground_height + 1e-3 - lowest
    return q


def reference(time: float, n: int) -> Array:
    """Joint positions of the trot: diagonal legs swing together, the calf a quarter of a cycle ahead."""
    phase = np.repeat([0.0, 0.5, 0.5, 0.0], 3) + np.tile([0.0, 0.0, 0.25], n // 3)
    swing = np.tile(SWING, n // 3) * np.sin(2.0 * np.pi * (FREQUENCY * time + phase))
    return STANCE + swing


def noisy_sensors(truth: Truth, robot: Robot, dt: float, seed: int, every: int = 5) -> Recording:
    """What the sensors of the robot would have recorded: one sample a step, motion capture `every` steps.

    Noise is that of the robot's configuration. A torque acts in the step that starts at its stamp.
    """
    random, noise = np.random.default_rng(seed), robot.noise

    def noisy(values: Array, sigma: Array | float) -> Array:
        return values + sigma * random.standard_normal(values.shape)

    q, v = truth.configuration[1:], truth.velocity[1:]
    stamp_ns = EPOCH_NS + round(dt * 1e9) * np.arange(1, len(q) + 1)
    joints = JointSamples(
        stamp_ns,
        robot.joint_names,
        noisy(q[:, 7:], noise.joint_position),
        noisy(v[:, 6:], noise.joint_velocity),
        noisy(np.vstack([truth.torque[1:], truth.torque[-1:]]), noise.joint_torque),
    )
    R_WB = Rotation.from_quat(q[:, 3:7])
    velocity_W = R_WB.apply(v[:, :3])
    acceleration_W = np.gradient(velocity_W, dt, axis=0) + np.array([0.0, 0.0, 9.81])
    imu = ImuSamples(
        stamp_ns,
        noisy(v[:, 3:6] @ robot.R_BI, noise.angular_velocity),
        noisy(R_WB.inv().apply(acceleration_W) @ robot.R_BI, noise.linear_acceleration),
    )
    seen = slice(every - 1, None, every)
    error = Rotation.from_rotvec(noisy(np.zeros_like(q[seen, :3]), noise.mocap_rotation))
    quat = (R_WB[seen] * error).as_quat()
    return Recording(
        joints, MocapSamples(stamp_ns[seen], noisy(q[seen, :3], noise.mocap_position), quat), imu
    )
