# SPDX-License-Identifier: Apache-2.0
"""A controller that walks a quadruped: balance by the forces of the standing feet, swing by springs.

It sees the true state, not the noisy sensors, and knows nothing of the payload: what it carries it finds by
integrating the error of height and attitude.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from prime_ros.robot import BASE_NV, Robot
from prime_ros.simulation.balance import share_out
from prime_ros.simulation.engine import State
from prime_ros.simulation.gaits import Gait, Reference
from prime_ros.simulation.legs import LEGS, Legs, Posture, cross

Array = NDArray[np.float64]

# Gains are per kilogram or kilogram square metre of the robot: one robot is like another.
POSITION = np.array([60.0, 60.0, 160.0])  # [1/s^2] of the base
VELOCITY = np.array([12.0, 12.0, 20.0])  # [1/s]
HEIGHT_INTEGRAL = 120.0  # [1/s^3]
ROTATION = np.array([220.0, 220.0, 80.0])  # [1/s^2]
RATE = np.array([24.0, 24.0, 14.0])  # [1/s]
TILT_INTEGRAL = 250.0  # [1/s^3]
LARGEST_LIFT, LARGEST_TURN = 6.0, 60.0  # accelerations that the integrals may give [m/s^2, rad/s^2]
SWING_STIFFNESS, SWING_DAMPING = 700.0, 20.0  # of a swinging foot [N/m, N s/m] for a robot of 16 kg
SWING_MASS = 16.0
PLACEMENT = 0.16  # how far a foot goes for an error of velocity [s]
STRIDE = 0.12  # farthest step from below the hip [m]
TOUCH = 5.0  # normal force that a foot feels as ground [N]
LEASH = 0.05  # how far the wanted position runs ahead of the true one [m]


class Controller(Protocol):
    """Whatever turns states into torques; asked once a step."""

    def torque(self, time: float, state: State, contact_force_W: Array) -> Array:
        """Torque of the motors.

        Args:
            time: Since the start [s].
            state: Of the robot.
            contact_force_W: Felt in the last step, shape (C, 3) [N].

        Returns:
            Shape (n,) [Nm].
        """
        ...


class LegController:
    """The controller of this package."""

    def __init__(self, robot: Robot, gait: Gait, timestep: float) -> None:
        """Make it.

        Args:
            robot: A quadruped.
            gait: What to do with it.
            timestep: Between calls [s].

        Raises:
            SimulationError: If the robot is no quadruped.
        """
        self.gait, self._since = gait, 0.0
        self._coming: Gait | None = None
        self._robot, self._dt = robot, timestep
        self._legs = Legs(robot)
        self.stance, self._height = self._legs.stance()
        self._mass = float(pin.computeTotalMass(robot.model))
        data = robot.model.createData()
        com = pin.centerOfMass(robot.model, data, self.stance) - self.stance[:3]
        pin.ccrba(robot.model, data, self.stance, np.zeros(robot.model.nv))
        self._inertia, self._com = np.diag(data.Ig.inertia).copy(), np.array(com)
        feet = self._legs.posture(State(self.stance, np.zeros(robot.model.nv))).foot_W
        self._home_W = np.array(self.stance[:2])
        self._below_hip = feet - self.stance[:3]  # (4, 3), axes of the heading
        self._damping = robot.joint_damping[self._legs.drive]
        self._friction = float(min(contact.friction.min() for contact in robot.contacts))
        self._largest = 1.5 * self._mass * 9.81
        scale = self._mass / SWING_MASS
        self._stiffness, self._swing_damping = scale * SWING_STIFFNESS, scale * SWING_DAMPING
        self._lifted, self._lifted_from = feet.copy(), np.zeros((LEGS, 3))  # foot and base at lift-off
        self._swinging = np.zeros(LEGS, dtype=bool)
        self._integral, self._tilt_integral = 0.0, np.zeros(3)
        self._place: Array | None = None
        self._heading = 0.0

    def change(self, gait: Gait) -> None:
        """Go on with another, new gait as soon as all feet touch the ground."""
        self._coming = gait

    def torque(self, time: float, state: State, contact_force_W: Array) -> Array:
        """Torque of the motors, see `Controller`."""
        posture = self._legs.posture(state)
        heading = float(np.arctan2(posture.R_WB[1, 0], posture.R_WB[0, 0]))
        R_heading = _about_z(heading)
        wanted = self._wanted(time, state, contact_force_W, R_heading)
        swinging = wanted.swing >= 0.0
        leaving = swinging & ~self._swinging
        self._lifted[leaving], self._lifted_from[leaving] = posture.foot_W[leaving], state.q[:3]
        self._swinging = swinging
        velocity_W = R_heading @ [wanted.velocity.forward, wanted.velocity.left, 0.0]
        push = np.zeros((LEGS, 3))  # of the robot on each foot
        standing = ~swinging
        if standing.any():
            force, moment = self._base_wrench(state, posture, wanted, standing, velocity_W, heading)
            from_com = posture.foot_W[standing] - state.q[:3] - posture.R_WB @ self._com
            push[standing] = -share_out(from_com, force, moment, self._friction, self._largest)
        if swinging.any():
            push[swinging] = self._swing(state, posture, wanted, R_heading, velocity_W)[swinging]
        legs = (posture.jacobian_W.transpose(0, 2, 1) @ push[:, :, None])[:, :, 0] + posture.bias
        legs[swinging] += (self._damping * state.v[BASE_NV + self._legs.drive])[swinging]
        torque = np.empty(len(self._robot.joint_names))
        torque[self._legs.drive] = legs
        return torque

    def _wanted(self, time: float, state: State, contact_force_W: Array, R_heading: Array) -> Reference:
        """What the gait wants now; the coming one, if all feet touch the ground."""
        touching = contact_force_W[self._legs.contact, 2] > TOUCH
        if self._coming is not None and touching.all():
            self._coming.commanded = self.gait.commanded
            self.gait, self._since, self._coming, self._place = self._coming, time, None, None
        home = (self._home_W - state.q[:2]) @ R_heading[:2, :2]
        return self.gait.reference(time - self._since, touching, home)

    def _base_wrench(
        self,
        state: State,
        posture: Posture,
        wanted: Reference,
        standing: NDArray[np.bool_],
        velocity_W: Array,
        heading: float,
    ) -> tuple[Array, Array]:
        """Force and moment about the centre of mass that the standing feet should give, world axes."""
        below = posture.foot_W[standing]
        R_heading = _about_z(self._heading)
        if wanted.anchored:
            centre = below.mean(axis=0) - R_heading @ self._below_hip[standing].mean(axis=0)
            self._place = centre[:2].copy()
        elif self._place is None:
            self._place = state.q[:2].copy()
        else:
            self._place += velocity_W[:2] * self._dt
        self._place = state.q[:2] + np.clip(self._place - state.q[:2], -LEASH, LEASH)
        self._heading += wanted.velocity.turn * self._dt
        self._heading = heading + float(np.clip(_wrapped(self._heading - heading), -0.3, 0.3))
        offset, rate = R_heading @ wanted.offset, R_heading @ wanted.offset_rate
        height = self._height + below[:, 2].mean()
        position = np.array([self._place[0], self._place[1], height]) + offset
        error = position - state.q[:3]
        velocity_error = velocity_W + rate - posture.base_velocity_W
        self._integral += HEIGHT_INTEGRAL * error[2] * self._dt
        self._integral = min(max(self._integral, -LARGEST_LIFT), LARGEST_LIFT)
        acceleration = POSITION * error + VELOCITY * velocity_error
        acceleration[2] += 9.81 + wanted.lift + self._integral
        R_wanted = _attitude(wanted.angles, self._heading)
        turn = pin.log3(R_wanted @ posture.R_WB.T)
        turn_rate = R_heading @ wanted.angle_rates + [0.0, 0.0, wanted.velocity.turn]
        self._tilt_integral += TILT_INTEGRAL * turn * self._dt * [1.0, 1.0, 0.0]
        self._tilt_integral = np.clip(self._tilt_integral, -LARGEST_TURN, LARGEST_TURN)
        turning = ROTATION * turn + RATE * (turn_rate - posture.base_rate_W) + self._tilt_integral
        return self._mass * acceleration, self._inertia * turning

    def _swing(
        self, state: State, posture: Posture, wanted: Reference, R_heading: Array, velocity_W: Array
    ) -> Array:
        """Forces that pull the swinging feet along their way, for all feet, world axes."""
        turned = cross(np.array([[0.0, 0.0, wanted.velocity.turn]]), self._below_hip)
        speed = posture.base_velocity_W * [1.0, 1.0, 0.0]
        stride = 0.5 * wanted.stance_duration * (speed + turned @ R_heading.T)
        stride = stride + PLACEMENT * (speed - velocity_W)
        stride[:, 2] = 0.0
        length = np.sqrt((stride**2).sum(axis=1, keepdims=True))
        stride *= np.minimum(1.0, STRIDE / np.maximum(length, 1e-9))
        below = self._below_hip @ R_heading.T + stride
        if wanted.airborne:  # relative to the base, which flies
            target, velocity = self._along(self._lifted - self._lifted_from, below, wanted)
            target, velocity = target + state.q[:3], velocity + posture.base_velocity_W
        else:
            landing = below + state.q[:3]
            landing[:, 2] = self._lifted[:, 2]
            target, velocity = self._along(self._lifted, landing, wanted)
        pull = self._stiffness * (target - posture.foot_W)
        return pull + self._swing_damping * (velocity - posture.foot_velocity_W)

    def _along(self, start: Array, landing: Array, wanted: Reference) -> tuple[Array, Array]:
        """Where swinging feet should be on their way from lift-off to landing, and how fast."""
        s = np.clip(wanted.swing, 0.0, 1.0)[:, None]
        way, rate = s**3 * (10 - 15 * s + 6 * s * s), 30 * s * s * (1 - s) ** 2 / wanted.swing_duration
        target, velocity = start + way * (landing - start), rate * (landing - start)
        arc, arc_rate = 16 * (s * (1 - s)) ** 2, 32 * s * (1 - s) * (1 - 2 * s) / wanted.swing_duration
        target[:, 2] += wanted.step_height * arc[:, 0]
        velocity[:, 2] += wanted.step_height * arc_rate[:, 0]
        return target, velocity


def _about_z(angle: float) -> Array:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def _attitude(angles: Array, heading: float) -> Array:
    """Rotation of the base: heading, then yaw, pitch and roll."""
    return np.asarray(pin.rpy.rpyToMatrix(angles[0], angles[1], angles[2] + heading))


def _wrapped(angle: float) -> float:
    return float((angle + np.pi) % (2 * np.pi) - np.pi)
