# SPDX-License-Identifier: Apache-2.0
"""The truth of our own simulator as a simulated log, and the hopper's recordings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin

from prime_ros.experiments.simulation_logs import SimulationLog
from prime_ros.measurements.samples import Recording
from prime_ros.robot import FREE_BASE, Robot
from prime_ros.simulation.hopping import HopController, above_ground
from prime_ros.simulation.recording import TruthTable, record
from prime_ros.simulation.simulator import Simulator

HOPPING_TIME = 2.5  # [s]


def as_log(truth: TruthTable) -> SimulationLog:
    """The truth as figures compare with it; without the IMU."""
    body = {"mass": truth.base_mass[0], "com": truth.base_com[0], "inertia_com": truth.base_inertia_com[0]}
    return SimulationLog(
        stamp_ns=truth.stamp_ns,
        joint_names=truth.joint_names,
        joint_position=truth.joint_position,
        joint_velocity=truth.joint_velocity,
        joint_torque=truth.joint_torque,
        base_position_W=truth.base_position_W,
        base_quat_xyzw=truth.base_quat_xyzw,
        base_velocity_B=truth.base_velocity_B,
        angular_velocity=np.empty((0, 3)),
        linear_acceleration=np.empty((0, 3)),
        contact_names=truth.contact_names,
        contact_force_W=truth.contact_force_W,
        truth={"true": body},
    )


def hopping(robot: Robot, seed: int, duration: float = HOPPING_TIME) -> tuple[Recording, SimulationLog]:
    """Let the hopper hop in place on a stiff foot.

    Args:
        robot: The hopper.
        seed: Of the sensor noise.
        duration: [s].

    Returns:
        What its sensors said, and the truth.

    Raises:
        SimulationError: If MuJoCo is missing or the robot is no hopper.
    """
    simulator = Simulator(
        robot, feet="stiff", seed=seed, controller=HopController(robot), initial=above_ground(robot)
    )
    recording, truth = record(simulator, duration)
    return recording, as_log(truth)


def with_biased_base(robot: Robot) -> Robot:
    """The robot with a base that is 30 % too light, 40 % too easy to turn, and off by 47 mm."""
    model = robot.model.copy()
    base = model.inertias[FREE_BASE]
    lever = base.lever + np.array([0.03, 0.02, -0.03])
    model.inertias[FREE_BASE] = pin.Inertia(0.7 * base.mass, lever, 0.6 * base.inertia)
    return replace(robot, model=model)
