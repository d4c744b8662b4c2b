# SPDX-License-Identifier: Apache-2.0
"""A simulated robot, step by step: its sensors, and the truth to compare with; no files, threads, clocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from prime_ros.exceptions import SimulationError
from prime_ros.robot import BASE_NV, FREE_BASE, Robot
from prime_ros.simulation.controller import Controller, LegController
from prime_ros.simulation.engine import BASE_NQ, Engine, State, StepForces
from prime_ros.simulation.gaits import Gait, Stand, Velocity, make_gait
from prime_ros.simulation.mjcf import feet_named
from prime_ros.simulation.payload import Payload
from prime_ros.simulation.sensors import Sensors, SensorSample

Array = NDArray[np.float64]

STEP = 0.002
"""Time between steps, and so between samples of joints and IMU [s]."""
STEP_NS = 2_000_000
START_NS = 1_700_000_000_000_000_000
"""Default stamp of the first sample, like that of a real clock [ns]."""
SETTLE = 0.75  # time for feet to sink in before the first step [s]
UPRIGHT = 0.5  # cosine of the tilt beyond which the robot has fallen
NOT_YET = "nothing was simulated yet: call step() first"
LOWEST = 0.4  # and the height, as a share of that at the start


@dataclass(frozen=True)
class Truth:
    """What really was at the time of the last step; n joints and C contacts in the order of the robot."""

    stamp_ns: int
    """[ns]"""
    base_position_W: Array
    """Shape (3,) [m]."""
    base_quat_xyzw: Array
    """Base to world, shape (4,)."""
    base_velocity_B: Array
    """Twist in base axes, linear then angular, shape (6,) [m/s, rad/s]."""
    joint_position: Array
    """Shape (n,) [rad]."""
    joint_velocity: Array
    """Shape (n,) [rad/s]."""
    joint_torque: Array
    """Of the motors, shape (n,) [Nm]; damping and friction of the joints come on top."""
    contact_force_W: Array
    """On the robot, in world axes, shape (C, 3) [N]."""
    payloads: tuple[Payload, ...]
    """What the robot carries."""
    base_inertia: pin.Inertia
    """Of the base with all it carries, in the base frame."""


class Simulator:
    """A robot on flat ground at height 0.

    Example:
        simulator = Simulator(load_robot("go2"), gait="trot", payload=Payload(3.0), seed=1)
        for _ in range(500):
            simulator.step()
            sample, truth = simulator.sensors(), simulator.truth()
    """

    def __init__(
        self,
        robot: Robot,
        gait: str = "trot",
        feet: str = "soft",
        payload: Payload | None = None,
        seed: int = 0,
        noise_free: bool = False,
        mocap_rate: float = 100.0,
        start_ns: int = START_NS,
        controller: Controller | None = None,
        initial: State | None = None,
    ) -> None:
        """Put the robot on the ground.

        Args:
            robot: The robot; a quadruped unless there is a controller for it.
            gait: ``stand``, ``sway``, ``trot`` or ``hop``; not used with a controller.
            feet: ``soft`` or ``stiff``.
            payload: What it carries from the start.
            seed: Of the noise and of the motion.
            noise_free: Sensors without noise.
            mocap_rate: Of motion capture, at most that of the steps [Hz].
            start_ns: Stamp of the first sample [ns].
            controller: What drives the robot in place of a gait; needs `initial`.
            initial: Where it starts; default: standing still, feet settled.

        Raises:
            SimulationError: If MuJoCo is missing, the robot does not fit the gait, or a value makes no sense.
        """
        if not 0.0 < mocap_rate <= 1.0 / STEP:
            raise SimulationError(
                f"mocap rate: got {mocap_rate} Hz, expected more than 0 and at most {1 / STEP:g} Hz"
            )
        if seed < 0:
            raise SimulationError(f"seed: got {seed}, expected an integer of at least 0")
        self.robot, self._start_ns, self._count = robot, start_ns, 0
        self._payloads: tuple[Payload, ...] = () if payload is None else (payload,)
        springs = feet_named(feet)
        self._inertia = self._base_inertia()
        self._engine = Engine(robot, self._inertia, springs, STEP)
        noise_seed, motion_seed = np.random.SeedSequence(seed).generate_state(2)
        self._sensors = Sensors(robot, int(noise_seed), noise_free, mocap_rate)
        self._seeds = np.random.default_rng(motion_seed)
        limit = robot.model.effortLimit[BASE_NV:]
        self._limit = np.where(limit > 0.0, limit, np.inf)  # 0 in a URDF: nobody said
        self._felt = np.zeros((len(robot.contacts), 3))
        self._walker: LegController | None = None
        if controller is None:
            self._controller: Controller = self._walk(gait, initial, springs.padding)
        elif initial is None:
            raise SimulationError("a controller needs a state to start from: give `initial`")
        else:
            self._controller, self._engine.state = controller, initial
        self._start_height = float(self._engine.state.q[2])
        self._sample: SensorSample | None = None
        self._truth: Truth | None = None

    @property
    def time(self) -> float:
        """Of the coming step, since the start [s]."""
        return self._count * STEP

    @property
    def payloads(self) -> tuple[Payload, ...]:
        """What the robot carries."""
        return self._payloads

    @property
    def fallen(self) -> bool:
        """Whether the robot lies on its side or belly, or the simulation went wrong."""
        q = self._engine.state.q
        up = 1.0 - 2.0 * (q[3] ** 2 + q[4] ** 2)
        return not (np.isfinite(q).all() and up > UPRIGHT and q[2] > LOWEST * self._start_height)

    def step(self) -> None:
        """Go on by `STEP`. Sensors and truth are those at the beginning of the step, with its torque."""
        state, time = self._engine.state, self.time
        torque = np.asarray(self._controller.torque(time, state, self._felt), dtype=float)
        if torque.shape != self._limit.shape or not np.isfinite(torque).all():
            raise SimulationError(
                f"controller: expected {len(self._limit)} finite torques, got {torque} at {time:.3f} s;"
                " the robot has probably fallen"
            )
        torque = np.clip(torque, -self._limit, self._limit)
        forces = self._engine.step(torque)
        self._felt = forces.contact_force_W
        stamp_ns = self._start_ns + self._count * STEP_NS
        self._sample = self._sensors.sample(stamp_ns, time, state, torque, forces)
        self._truth = self._true(stamp_ns, state, torque, forces)
        self._count += 1

    def sensors(self) -> SensorSample:
        """What the sensors said in the last step."""
        if self._sample is None:
            raise SimulationError(NOT_YET)
        return self._sample

    def truth(self) -> Truth:
        """What really was in the last step. For comparison: no robot measures this."""
        if self._truth is None:
            raise SimulationError(NOT_YET)
        return self._truth

    def add_payload(self, payload: Payload) -> None:
        """Put a box onto the robot, on top of what it carries; it arrives with the velocity of the base."""
        self._carry((*self._payloads, payload))

    def remove_payload(self) -> None:
        """Take off everything the robot carries."""
        self._carry(())

    def command(self, velocity: Velocity | None) -> None:
        """Where to go; None: as the gait likes. Only `trot` and `hop` go anywhere.

        Raises:
            SimulationError: If the robot has a controller of its own, or a number is not finite.
        """
        walker = self._own_controller()
        if velocity is not None and not np.isfinite([velocity.forward, velocity.left, velocity.turn]).all():
            raise SimulationError(f"command: got {velocity}, expected finite numbers")
        walker.gait.commanded = velocity

    def change_gait(self, gait: str) -> None:
        """Go on with another gait, by its name, as soon as all feet touch the ground.

        Raises:
            SimulationError: If there is none of this name, or the robot has a controller of its own.
        """
        self._own_controller().change(self._gait(gait))

    def _own_controller(self) -> LegController:
        if self._walker is None:
            raise SimulationError("the robot has a controller that was given to it: command that one")
        return self._walker

    def _carry(self, payloads: tuple[Payload, ...]) -> None:
        self._payloads = payloads
        self._inertia = self._base_inertia()
        self._engine.carry(self._inertia)

    def _base_inertia(self) -> pin.Inertia:
        inertia = self.robot.model.inertias[FREE_BASE].copy()
        for payload in self._payloads:
            inertia += payload.inertia
        return inertia

    def _walk(self, gait: str, initial: State | None, padding: float) -> LegController:
        """Put the robot where it starts; its controller."""
        wanted = self._gait(gait)
        self._walker = LegController(self.robot, Stand(0), STEP)
        self._engine.state = initial or self._above_ground(self._walker.stance, padding)
        if initial is None:
            self._settle(self._walker)
        self._walker.gait = wanted
        return self._walker

    def _gait(self, name: str) -> Gait:
        return make_gait(name, int(self._seeds.integers(2**32)))

    def _above_ground(self, q: Array, padding: float) -> State:
        """Standing with the feet on the ground, of a configuration whose feet have their centres there."""
        q = q.copy()
        q[2] += padding + max(contact.radius for contact in self.robot.contacts)
        return State(q, np.zeros(self.robot.model.nv))

    def _settle(self, standing: LegController) -> None:
        for k in range(round(SETTLE / STEP)):
            torque = standing.torque(k * STEP, self._engine.state, self._felt)
            self._felt = self._engine.step(np.clip(torque, -self._limit, self._limit)).contact_force_W

    def _true(self, stamp_ns: int, state: State, torque: Array, forces: StepForces) -> Truth:
        q, v = state.q, state.v
        return Truth(
            stamp_ns=stamp_ns,
            base_position_W=q[:3],
            base_quat_xyzw=q[3:BASE_NQ],
            base_velocity_B=v[:BASE_NV],
            joint_position=q[BASE_NQ:],
            joint_velocity=v[BASE_NV:],
            joint_torque=torque,
            contact_force_W=forces.contact_force_W,
            payloads=self._payloads,
            base_inertia=self._inertia,
        )
