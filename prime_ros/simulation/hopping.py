# SPDX-License-Identifier: Apache-2.0
"""A controller that hops on one leg: the three loops of Raibert (Legged Robots That Balance, 1986).

Thrust keeps the height, the hip turns the body while the foot stands, and the place of the next step keeps
the speed. A rotor on the body swings about the vertical.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from prime_ros.exceptions import SimulationError
from prime_ros.robot import BASE_NV, Robot
from prime_ros.simulation.engine import BASE_NQ, State

Array = NDArray[np.float64]

JOINTS = ("hip_roll_joint", "hip_pitch_joint", "knee_joint", "rotor_joint")
ROLL, PITCH, KNEE, ROTOR = range(4)
REACH = 0.40  # [m] from the hip to the foot with the knee at zero
TOUCH = 20.0  # [N] that the foot feels as ground
LEG_STIFFNESS, LEG_DAMPING = 4500.0, 25.0  # [N/m, N s/m]
THRUST = 0.028  # [m] by which the leg extends once it has been compressed
STANCE_TIME = 0.17  # [s]
ATTITUDE, ATTITUDE_RATE = 40.0, 4.0  # [Nm/rad, Nm s/rad] of the body while the foot stands
SWING, SWING_RATE = 60.0, 3.0  # [Nm/rad, Nm s/rad] of the leg in the air
SPEED_GAIN, PLACE_GAIN = 0.03, 0.05  # [s] and [-] of the place of the next step
LARGEST_STEP = 0.15  # [m]
ROTOR_STIFFNESS, ROTOR_DAMPING = 8.0, 0.3  # [Nm/rad, Nm s/rad]


@dataclass(frozen=True)
class Wobble:
    """How the body and the rotor swing: the motion that tells inertia."""

    angle: tuple[float, float, float] = (0.15, 0.15, 0.9)
    """Amplitudes of roll and pitch of the body and of the rotor [rad]."""
    frequency: tuple[float, float, float] = (2.0, 2.4, 2.3)
    """[Hz]"""

    def at(self, time: float) -> Array:
        """The three angles, shape (3,) [rad]."""
        return np.array(self.angle) * np.sin(2.0 * np.pi * np.array(self.frequency) * time)


class HopController:
    """Hops in place, see `prime_ros.simulation.controller.Controller`."""

    def __init__(self, robot: Robot, wobble: Wobble | None = None) -> None:
        """Make it.

        Raises:
            SimulationError: If the joints are not those of the hopper.
        """
        if robot.joint_names != JOINTS:
            raise SimulationError(
                f"robot '{robot.name}': got joints {', '.join(robot.joint_names)}, expected those of the"
                f" hopper: {', '.join(JOINTS)}"
            )
        self._wobble = wobble or Wobble()

    def torque(self, time: float, state: State, contact_force_W: Array) -> Array:
        """Torque of the motors, shape (4,) [Nm, N for the knee]."""
        q, rate = state.q[BASE_NQ:], state.v[BASE_NV:]
        R_WB = pin.Quaternion(state.q[3:BASE_NQ]).toRotationMatrix()
        roll, pitch, yaw = pin.rpy.matrixToRpy(R_WB)
        roll_wanted, pitch_wanted, rotor_wanted = self._wobble.at(time)
        torque = np.empty(4)
        torque[ROTOR] = ROTOR_STIFFNESS * (rotor_wanted - q[ROTOR]) - ROTOR_DAMPING * rate[ROTOR]
        if contact_force_W[0, 2] > TOUCH:
            extended = THRUST if rate[KNEE] < 0.0 else 0.0
            torque[ROLL] = ATTITUDE * (roll - roll_wanted) + ATTITUDE_RATE * state.v[3]
            torque[PITCH] = ATTITUDE * (pitch - pitch_wanted) + ATTITUDE_RATE * state.v[4]
        else:
            extended = 0.0
            across, along = self._leg_angles(state, R_WB, yaw)
            torque[ROLL] = SWING * (across - roll - q[ROLL]) - SWING_RATE * rate[ROLL]
            torque[PITCH] = SWING * (along - pitch - q[PITCH]) - SWING_RATE * rate[PITCH]
        torque[KNEE] = -LEG_STIFFNESS * (q[KNEE] + extended) - LEG_DAMPING * rate[KNEE]
        return torque

    def _leg_angles(self, state: State, R_WB: Array, yaw: float) -> tuple[float, float]:
        """Roll and pitch in the world that the leg should have when it lands [rad]."""
        to_heading = np.array([[np.cos(yaw), np.sin(yaw)], [-np.sin(yaw), np.cos(yaw)]])
        velocity = to_heading @ (R_WB @ state.v[:3])[:2]
        place = to_heading @ state.q[:2]
        step = (0.5 * STANCE_TIME + SPEED_GAIN) * velocity + PLACE_GAIN * place
        x, y = np.clip(step, -LARGEST_STEP, LARGEST_STEP) / REACH
        return float(np.arcsin(y)), float(-np.arcsin(x))


def above_ground(robot: Robot, drop: float = 0.08) -> State:
    """Upright, with the foot `drop` [m] above the ground."""
    q = pin.neutral(robot.model)
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q)
    foot = robot.contacts[0]
    q[2] = drop + foot.radius - data.oMi[foot.joint_id].act(foot.offset)[2]
    return State(q, np.zeros(robot.model.nv))
