# SPDX-License-Identifier: Apache-2.0
"""Kinematics of a quadruped's legs: three joints and one foot each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from prime_ros.exceptions import SimulationError
from prime_ros.robot import BASE_NV, FREE_BASE, Contact, Robot
from prime_ros.simulation.engine import BASE_NQ, State

Array = NDArray[np.float64]

LEGS = 4
JOINTS = 3
BENT = np.array([0.0, 0.7, -1.4])  # joints of a bent leg [rad], where there are no limits to go by
CROUCH = 0.72  # height of the hip joints above the feet, as a share of the length of the stretched leg


@dataclass(frozen=True)
class Posture:
    """Feet and what moves them at one state, in world axes."""

    R_WB: Array
    """Rotation from base to world, shape (3, 3)."""
    foot_W: Array
    """Positions of the centres of the feet, shape (4, 3) [m]."""
    foot_velocity_W: Array
    """Shape (4, 3) [m/s]."""
    jacobian_W: Array
    """Of the foot with respect to the joints of its leg, shape (4, 3, 3) [m]."""
    bias: Array
    """Gravity, Coriolis and centrifugal torque on the joints, shape (4, 3) [Nm]."""
    base_velocity_W: Array
    """Shape (3,) [m/s]."""
    base_rate_W: Array
    """Shape (3,) [rad/s]."""


class Legs:
    """The legs of a robot, in the order front left, front right, rear left, rear right."""

    def __init__(self, robot: Robot) -> None:
        """Find them.

        Raises:
            SimulationError: If the robot is no quadruped with three joints and one contact a leg.
        """
        self._name, self._model, self._data = robot.name, robot.model, robot.model.createData()
        chains = [
            [j for j in robot.model.supports[contact.joint_id] if j > FREE_BASE] for contact in robot.contacts
        ]
        joints = [joint for chain in chains for joint in chain]
        if len(chains) != LEGS or any(len(c) != JOINTS for c in chains) or len(set(joints)) != LEGS * JOINTS:
            raise SimulationError(
                f"robot '{robot.name}': the gaits walk on four legs of three joints and one contact each;"
                f" got {len(chains)} contacts behind {', '.join(str(len(chain)) for chain in chains)} joints;"
                " give Simulator a controller of your own"
            )
        self.contact = self._in_order(robot.contacts)
        """Which of the robot's contacts is the foot of each leg, shape (4,)."""
        self._chains = [chains[i] for i in self.contact]
        self._columns = np.array([[robot.model.joints[j].idx_v for j in chain] for chain in self._chains])
        self._ends = [robot.contacts[i].joint_id for i in self.contact]
        self._offsets = [robot.contacts[i].offset for i in self.contact]
        self.drive = self._columns - BASE_NV
        """Which of the robot's joints are those of each leg, shape (4, 3)."""

    def _in_order(self, contacts: Sequence[Contact]) -> NDArray[np.intp]:
        pin.forwardKinematics(self._model, self._data, pin.neutral(self._model))
        feet = np.array([self._data.oMi[contact.joint_id].act(contact.offset) for contact in contacts])
        behind, right = (feet[:, axis] < feet[:, axis].mean() for axis in (0, 1))
        return np.lexsort((right, behind))

    def posture(self, state: State) -> Posture:
        """Feet at a state."""
        model, data = self._model, self._data
        bias = pin.nonLinearEffects(model, data, state.q, state.v)
        jacobian = pin.computeJointJacobians(model, data, state.q)  # of world twists at the origin
        R_WB = data.oMi[FREE_BASE].rotation
        feet = np.array([data.oMi[j].act(p) for j, p in zip(self._ends, self._offsets, strict=True)])
        legs = jacobian[:, self._columns].transpose(1, 0, 2)  # (4, 6, 3)
        by_leg = legs[:, :3] + cross(legs[:, 3:].transpose(0, 2, 1), feet[:, None]).transpose(0, 2, 1)
        base_rate, base_velocity = R_WB @ state.v[3:6], R_WB @ state.v[:3]
        carried = base_velocity + cross(base_rate[None], feet - state.q[:3])
        swung = (by_leg @ state.v[self._columns][:, :, None])[:, :, 0]
        return Posture(
            np.array(R_WB), feet, carried + swung, by_leg, bias[self._columns], base_velocity, base_rate
        )

    def stance(self) -> tuple[Array, float]:
        """Configuration that stands with the feet below the hips, and the height of the base in it.

        Returns:
            Configuration of shape (nq,), feet at height 0, base level at x = y = 0, and the height of the
            base above the centres of the feet [m].
        """
        pin.forwardKinematics(self._model, self._data, pin.neutral(self._model))
        targets = np.array([self._below_hip(leg) for leg in range(LEGS)])
        height = -float(targets[:, 2].mean())
        for start in self._starts():
            q = self._reach(targets, start)
            if q is not None:
                q[2] = height
                return q, height
        raise SimulationError(
            f"robot '{self._name}': found no posture with the feet below the hips;"
            " give Simulator a controller of your own"
        )

    def _starts(self) -> Iterator[Array]:
        """Joint positions to look for the stance from: in the middle of the limits, else with bent knees."""
        low, high = self._model.lowerPositionLimit[BASE_NQ:], self._model.upperPositionLimit[BASE_NQ:]
        if (high - low < 2 * np.pi).all():
            yield 0.5 * (low + high)
        for bend in (BENT, -BENT):
            joints = np.zeros(self._model.nv - BASE_NV)
            joints[self.drive] = bend
            yield joints

    def _reach(self, targets: Array, joints: Array) -> Array | None:
        """Configuration with the feet at targets and the base at the origin, by damped least squares."""
        q, at_rest = pin.neutral(self._model), np.zeros(self._model.nv)
        q[BASE_NQ:] = joints
        for _ in range(200):
            posture = self.posture(State(q, at_rest))
            error = targets - posture.foot_W
            if np.abs(error).max() < 1e-6:
                return np.array(q)
            transposed = posture.jacobian_W.transpose(0, 2, 1)
            system = posture.jacobian_W @ transposed + 1e-5 * np.eye(3)
            step = (transposed @ np.linalg.solve(system, error[:, :, None]))[:, :, 0]
            q[BASE_NQ + self.drive] += np.clip(step, -0.2, 0.2)
        return None

    def _below_hip(self, leg: int) -> Array:
        """Where the foot of a leg should be with the base at the origin, from the stretched leg."""
        hip, knee = (self._data.oMi[j].translation for j in self._chains[leg][1:])
        foot = self._data.oMi[self._ends[leg]].act(self._offsets[leg])
        length = np.linalg.norm(knee - hip) + np.linalg.norm(foot - knee)
        return np.array([hip[0], foot[1], hip[2] - CROUCH * length])


def cross(one: Array, other: Array) -> Array:
    """Cross products along the last axis; for few vectors much faster than NumPy's."""
    a, b, c = one[..., 0], one[..., 1], one[..., 2]
    x, y, z = other[..., 0], other[..., 1], other[..., 2]
    return np.stack([b * z - c * y, c * x - a * z, a * y - b * x], axis=-1)
