# SPDX-License-Identifier: Apache-2.0
"""The rigid-body simulation: MuJoCo behind the conventions of this package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from prime_ros.exceptions import SimulationError
from prime_ros.robot import BASE_NV, Robot
from prime_ros.simulation.mjcf import Feet, mjcf

Array = NDArray[np.float64]

BASE_NQ = 7
XYZW = [4, 5, 6, 3]  # from a configuration of MuJoCo, whose quaternion begins with w
WXYZ = [6, 3, 4, 5]  # from one of Pinocchio


def load_mujoco() -> Any:
    """The module `mujoco`, which is optional.

    Raises:
        SimulationError: If it is not installed.
    """
    try:
        import mujoco
    except ImportError as error:
        raise SimulationError(
            "simulation needs MuJoCo, which is not installed; install it: pip install 'prime_ros[simulation]'"
        ) from error
    return mujoco


@dataclass(frozen=True)
class State:
    """Configuration and velocity of a robot, in Pinocchio's layout."""

    q: Array
    """Base position in the world, quaternion x y z w, joints in model order, shape (nq,)."""
    v: Array
    """Base twist in base axes, linear then angular, joint rates, shape (nv,)."""


@dataclass(frozen=True)
class StepForces:
    """What acted and was felt in one step, at the state before it."""

    contact_force_W: Array
    """On the robot, shape (C, 3) [N]."""
    angular_velocity: Array
    """Of the IMU in its axes, shape (3,) [rad/s]."""
    specific_force: Array
    """At the IMU in its axes: acceleration minus gravity, shape (3,) [m/s^2]."""


class Engine:
    """A robot on flat ground at height 0, driven by joint torques."""

    def __init__(self, robot: Robot, base_inertia: pin.Inertia, feet: Feet, timestep: float) -> None:
        """Build it.

        Args:
            robot: The robot.
            base_inertia: Inertia of the base in its frame, with what it carries.
            feet: How contacts give way.
            timestep: Of the simulation [s].

        Raises:
            SimulationError: If MuJoCo is missing or refuses the robot.
        """
        self._mujoco = load_mujoco()
        self._robot, self._feet, self.timestep = robot, feet, timestep
        self._model, self._data = self._compile(base_inertia)
        geoms = [self._model.geom(f"contact_{i}").id for i in range(len(robot.contacts))]
        self._contact_of_geom = {geom: i for i, geom in enumerate(geoms)}
        joints = [self._model.joint(name) for name in robot.joint_names]
        self._joint_q = np.array([int(joint.qposadr[0]) for joint in joints])
        self._joint_v = np.array([int(joint.dofadr[0]) for joint in joints])

    @property
    def state(self) -> State:
        """Where the robot is now."""
        qpos, qvel = self._data.qpos, self._data.qvel
        quat = qpos[XYZW]
        q = np.concatenate([qpos[:3], quat, qpos[self._joint_q]])
        R_WB = pin.Quaternion(quat).toRotationMatrix()
        return State(q, np.concatenate([R_WB.T @ qvel[:3], qvel[3:6], qvel[self._joint_v]]))

    @state.setter
    def state(self, state: State) -> None:
        data = self._data
        data.qpos[:3], data.qpos[3:7], data.qpos[self._joint_q] = (
            state.q[:3],
            state.q[WXYZ],
            state.q[BASE_NQ:],
        )
        R_WB = pin.Quaternion(state.q[3:BASE_NQ]).toRotationMatrix()
        data.qvel[:3], data.qvel[3:6], data.qvel[self._joint_v] = (
            R_WB @ state.v[:3],
            state.v[3:6],
            state.v[6:],
        )
        data.qacc_warmstart[:] = 0.0

    def step(self, torque: Array) -> StepForces:
        """Go on by one time step.

        Args:
            torque: Of the motors, held over the step, shape (n,) [Nm].

        Returns:
            Forces and IMU at the state before the step, with this torque acting.
        """
        self._data.ctrl[:] = torque
        self._mujoco.mj_step(self._model, self._data)
        # A copy: sensors are of the state before the step, and the next step overwrites them.
        imu = np.array(self._data.sensordata)
        return StepForces(self._contact_forces(), imu[:3], imu[3:])

    def carry(self, base_inertia: pin.Inertia) -> None:
        """Replace the inertia of the base; configuration and velocity go on.

        Args:
            base_inertia: In the frame of the base.
        """
        kept = self._mujoco.mjtState.mjSTATE_INTEGRATION
        state = np.empty(self._mujoco.mj_stateSize(self._model, kept))
        self._mujoco.mj_getState(self._model, self._data, state, kept)
        self._model, self._data = self._compile(base_inertia)
        self._mujoco.mj_setState(self._model, self._data, state, kept)

    def mass_matrix(self) -> Array:
        """Joint-space inertia with armature at the present state, in Pinocchio's layout, (nv, nv)."""
        self._mujoco.mj_forward(self._model, self._data)
        to_mujoco, column = self._velocity_map(), np.empty(self._model.nv)
        mass = np.empty((self._model.nv, self._model.nv))
        for index, direction in enumerate(np.ascontiguousarray(to_mujoco.T)):
            self._mujoco.mj_mulM(self._model, self._data, column, direction)
            mass[:, index] = to_mujoco.T @ column
        return mass

    def gravity_forces(self) -> Array:
        """Generalised gravity at the present configuration, in Pinocchio's layout, shape (nv,)."""
        moving = np.array(self._data.qvel)
        self._data.qvel[:] = 0.0
        self._mujoco.mj_forward(self._model, self._data)
        forces = self._velocity_map().T @ self._data.qfrc_bias
        self._data.qvel[:] = moving
        return forces

    def _velocity_map(self) -> Array:
        """From Pinocchio's velocity to MuJoCo's, whose base moves in world axes but turns in its own."""
        matrix = np.zeros((self._model.nv, self._model.nv))
        matrix[:3, :3] = pin.Quaternion(np.array(self._data.qpos[XYZW])).toRotationMatrix()
        matrix[3:6, 3:6] = np.eye(3)
        matrix[self._joint_v, np.arange(BASE_NV, self._model.nv)] = 1.0
        return matrix

    def _compile(self, base_inertia: pin.Inertia) -> tuple[Any, Any]:
        text = mjcf(self._robot, base_inertia, self._feet, self.timestep)
        try:
            model = self._mujoco.MjModel.from_xml_string(text)
        except ValueError as error:
            raise SimulationError(f"robot '{self._robot.name}': MuJoCo refuses it: {error}") from error
        return model, self._mujoco.MjData(model)

    def _contact_forces(self) -> Array:
        forces = np.zeros((len(self._robot.contacts), 3))
        wrench = np.empty(6)
        for index in range(self._data.ncon):
            contact = self._data.contact[index]
            self._mujoco.mj_contactForce(self._model, self._data, index, wrench)
            # The frame's first row is the normal, from the ground to the foot.
            forces[self._contact_of_geom[int(contact.geom2)]] += contact.frame.reshape(3, 3).T @ wrench[:3]
        return forces
