# SPDX-License-Identifier: Apache-2.0
"""Robots, states and gaits that the tests share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from prime_ros.estimation.contact import ContactStep, SmoothedCone, StepInput

Array = NDArray[np.float64]

ROBOT_NAMES = ("hopper", "go2", "g1")
DT = 0.01
FRICTION = (0.8, 0.6)  # unequal, so that a swap of the axes shows


@dataclass(frozen=True)
class ContactSphere:
    """Contact point of a test robot."""

    name: str
    joint_id: int
    offset: Array
    radius: float


@dataclass(frozen=True)
class RobotCase:
    """A robot with what the contact step needs to know of it."""

    name: str
    model: pin.Model
    contacts: tuple[ContactSphere, ...]
    joint_damping: Array
    joint_friction: Array
    stance: Array
    """Joint positions of a stance with all contacts near the ground when the base is level, shape (n,)."""
    identified_joints: tuple[int, ...]
    """Two of them: the base, and a link further out."""
    stiffness: Array
    """Of the spring that drives the joints in a gait, shape (n,) [Nm/rad, N/m]."""
    swing: dict[str, tuple[float, float]]
    """By joint: amplitude [rad or m] and phase [cycles] of the gait."""

    def step(
        self, kappa: float = 500.0, dt: float = DT, friction: tuple[float, float] = FRICTION
    ) -> ContactStep:
        """Contact step of the robot with smoothed cones."""
        return ContactStep(
            model=self.model,
            contacts=self.contacts,
            potentials=[SmoothedCone(friction, kappa)] * len(self.contacts),
            dt=dt,
            joint_damping=self.joint_damping,
            joint_friction=self.joint_friction,
            identified_joints=self.identified_joints,
        )


@cache
def robot_case(name: str) -> RobotCase:
    """The test robot of that name (see ROBOT_NAMES)."""
    return {"hopper": _hopper, "go2": _go2, "g1": _g1}[name]()


def lowest_height(case: RobotCase, q: Array) -> float:
    """World height of the lowest point of the lowest contact sphere [m]."""
    data = case.model.createData()
    pin.forwardKinematics(case.model, data, q)
    return min(data.oMi[c.joint_id].act(c.offset)[2] - c.radius for c in case.contacts)


def stance_configuration(case: RobotCase, gap: float = 0.0) -> Array:
    """Level stance with the lowest contact at `gap` above the ground [m]."""
    q = np.concatenate([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], case.stance])
    q[2] += gap - lowest_height(case, q)
    return q


def random_input(case: RobotCase, seed: int, gap: float = 2e-3, speed: float = 0.5) -> StepInput:
    """Input of a step near contact: everything that can be non-zero is, and the theta is not the nominal one.

    The lowest contact is at `gap` [m]; base and joint velocities have standard deviations `speed`, 2 `speed`.
    """
    random = np.random.default_rng(seed)
    model, contact_size = case.model, 3 * len(case.contacts)
    ground_height = 0.1 * random.standard_normal()
    spread = np.concatenate([np.full(3, 0.3), np.full(2, 0.05), [1.0], np.full(model.nv - 6, 0.05)])
    q = pin.integrate(model, stance_configuration(case), spread * random.standard_normal(model.nv))
    q[2] += ground_height + gap - lowest_height(case, q)
    v = speed * random.standard_normal(model.nv) * np.concatenate([np.ones(6), np.full(model.nv - 6, 2.0)])
    force = random.standard_normal(model.nv) * np.concatenate([np.full(3, 5.0), np.full(model.nv - 3, 2.0)])
    theta = case.step().nominal_theta()
    theta += 0.05 * random.standard_normal(theta.size)
    slack = 0.02 * random.standard_normal(contact_size)
    return StepInput(q, v, force, slack, theta, float(ground_height))


@dataclass(frozen=True)
class Motion:
    """Trajectory that obeys the contact step exactly, K steps."""

    configurations: Array
    """Shape (K + 1, nq)."""
    velocities: Array
    """Shape (K + 1, nv)."""
    forces: Array
    """Generalised force of each step, zero on the base, shape (K, nv)."""
    impulses: Array
    """Shape (K, C, 3)."""


def gait(case: RobotCase, steps: int, frequency: float = 2.0, kappa: float = 500.0) -> Motion:
    """Swing the legs about the stance: the Go2 trots, the G1 shifts its weight, the hopper hops.

    The joints follow their reference by a stiff implicit spring and damper, whose torque is the measured one.
    """
    dt, joints = DT, slice(6, None)
    damping = 0.05 * case.stiffness
    # Evaluated at the end of the step, spring and damper are stable at any gain. The step damps the mean of
    # old and new velocity: twice that, less the damping of the old one, is the damping of the new one.
    implicit = damping + dt * case.stiffness
    truth = case.step(kappa)
    driven = replace(truth, joint_damping=case.joint_damping + 2.0 * implicit)
    q, v = stance_configuration(case, gap=1e-3), np.zeros(case.model.nv)
    no_slack = np.zeros(3 * len(case.contacts))
    still = StepInput(q, v, np.zeros_like(v), no_slack, truth.nominal_theta())
    configurations, velocities, forces, impulses = [q], [v], [], []
    for k in range(steps):
        force = np.zeros_like(v)
        spring = case.stiffness * (_reference(case, frequency * k * dt) - q[7:])
        force[joints] = spring + implicit * v[joints]
        result = driven.solve(replace(still, configuration=q, velocity=v, force=force))
        force[joints] = spring - implicit * result.velocity[joints]
        q, v = pin.integrate(case.model, q, dt * result.velocity), result.velocity
        configurations.append(q)
        velocities.append(v)
        forces.append(force)
        impulses.append(result.impulses)
    return Motion(np.array(configurations), np.array(velocities), np.array(forces), np.array(impulses))


def _reference(case: RobotCase, cycles: float) -> Array:
    reference = case.stance.copy()
    for joint, (amplitude, phase) in case.swing.items():
        index = case.model.joints[case.model.getJointId(joint)].idx_v - 6
        reference[index] += amplitude * np.sin(2.0 * np.pi * (cycles + phase))
    return reference


def _hopper() -> RobotCase:
    model = _load(Path(__file__).parent / "data" / "hopper.urdf", [0.01, 0.2])
    shank = model.getJointId("knee_joint")
    return RobotCase(
        name="hopper",
        model=model,
        contacts=(ContactSphere("foot", shank, np.array([0.005, 0.0, -0.2]), 0.03),),
        joint_damping=np.array([0.1, 5.0]),
        joint_friction=np.array([0.2, 3.0]),
        stance=np.array([0.0, 0.0]),
        identified_joints=(1, shank),
        stiffness=np.array([80.0, 4000.0]),
        swing={"knee_joint": (0.1, 0.0)},
    )


def _go2() -> RobotCase:
    joint_count = 12
    model = _load(example_robot("go2_description/urdf/go2.urdf"), np.full(joint_count, 0.00712))
    legs = ("FL", "FR", "RL", "RR")
    phases = {"FL": 0.0, "FR": 0.5, "RL": 0.5, "RR": 0.0}
    foot = np.array([0.0, 0.0, -0.213])
    swing = {f"{leg}_thigh_joint": (0.15, phases[leg]) for leg in legs}
    swing |= {f"{leg}_calf_joint": (0.3, phases[leg] + 0.25) for leg in legs}
    return RobotCase(
        name="go2",
        model=model,
        contacts=tuple(
            ContactSphere(leg, model.getJointId(f"{leg}_calf_joint"), foot, 0.022) for leg in legs
        ),
        joint_damping=np.full(joint_count, 0.285),
        joint_friction=np.full(joint_count, 0.365),
        stance=np.tile([0.0, 0.8, -1.5], len(legs)),
        identified_joints=(1, model.getJointId("RL_calf_joint")),
        stiffness=np.full(joint_count, 80.0),
        swing=swing,
    )


def _g1() -> RobotCase:
    model = _load(example_robot("g1_description/urdf/g1_29dof_rev_1_0.urdf"), np.full(29, 0.01))
    corners = [(-0.05, 0.025, -0.03), (-0.05, -0.025, -0.03), (0.12, 0.03, -0.03), (0.12, -0.03, -0.03)]
    leg = {"hip_pitch": -0.312, "knee": 0.669, "ankle_pitch": -0.357}  # sums to zero: the sole is level
    stance, swing = np.zeros(29), {}
    for side, phase in (("left", 0.0), ("right", 0.5)):
        for joint, position in leg.items():
            stance[model.joints[model.getJointId(f"{side}_{joint}_joint")].idx_v - 6] = position
            swing[f"{side}_{joint}_joint"] = (0.3 * position, phase)
    return RobotCase(
        name="g1",
        model=model,
        contacts=tuple(
            ContactSphere(
                f"{side}_c{i}", model.getJointId(f"{side}_ankle_roll_joint"), np.array(corner), 0.005
            )
            for side in ("left", "right")
            for i, corner in enumerate(corners)
        ),
        joint_damping=np.full(29, 0.05),
        joint_friction=np.full(29, 0.1),
        stance=stance,
        identified_joints=(1, model.getJointId("waist_pitch_joint")),
        stiffness=np.full(29, 80.0),
        swing=swing,
    )


def _load(urdf: Path, armature: Sequence[float] | Array) -> pin.Model:
    model = pin.buildModelFromUrdf(str(urdf), pin.JointModelFreeFlyer())
    model.armature = np.concatenate([np.zeros(6), armature])
    return model


def example_robot(path: str) -> Path:
    """File of the example-robot-data beside Pinocchio (pip: in cmeel.prefix, ROS: in its prefix)."""
    for prefix in Path(pin.__file__).resolve().parents:
        candidate = prefix / "share" / "example-robot-data" / "robots" / path
        if candidate.is_file():
            return candidate
    raise FileNotFoundError(f"no example-robot-data with {path} beside {pin.__file__}: install it")
