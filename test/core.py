# SPDX-License-Identifier: Apache-2.0
"""The compiled core on the robots and inputs that the tests share with the twin."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
from models import DT, FRICTION, RobotCase, random_input
from numpy.typing import NDArray

from prime_ros import _core
from prime_ros.estimation.contact import ContactStep, NewtonOptions, StepInput

Array = NDArray[np.float64]

# gap of the lowest foot [m], random speed [m/s], velocity of the base in the world on top [m/s]
SITUATIONS = {
    "contact": (2e-3, 0.2, (0.0, 0.0, -0.6)),
    "sliding": (2e-3, 0.2, (2.0, 1.0, -0.6)),
    "air": (0.1, 0.5, (0.0, 0.0, 0.0)),
}
KAPPAS = (20.0, 500.0, 2000.0)
TOLERANCE = 1e-16  # of Newton's method: what is compared and differentiated is the model, not where it stops
MAX_ITERATIONS = 500  # the twin, which does not go through soft contact, takes a few hundred


def core_step(
    case: RobotCase,
    kappa: float = 500.0,
    max_iterations: int = MAX_ITERATIONS,
    tolerance: float = TOLERANCE,
) -> _core.ContactStep:
    """The robot's contact step in the core, with the settings of `RobotCase.step`."""
    settings = _core.StepSettings()
    settings.dt, settings.kappa, settings.max_iterations = DT, kappa, max_iterations
    settings.tolerance = tolerance
    settings.damping = np.concatenate([np.zeros(6), case.joint_damping])
    settings.friction = np.concatenate([np.zeros(6), case.joint_friction])
    points = []
    for contact in case.contacts:
        point = _core.ContactPoint()
        point.joint, point.offset, point.radius = contact.joint_id, contact.offset, contact.radius
        point.friction = np.array(FRICTION)
        points.append(point)
    return _core.ContactStep(case.model, points, list(case.identified_joints), settings)


@dataclass(frozen=True)
class Arguments:
    """Arguments of `ContactStep.solve`; theta ends with the ground height."""

    q: Array
    v: Array
    force: Array
    slack: Array
    theta: Array

    def solve(self, step: _core.ContactStep, data: _core.ContactStepData) -> None:
        """Solve the step on `data`."""
        step.solve(data, self.q, self.v, self.force, self.slack, self.theta)


def arguments_of(inputs: StepInput) -> Arguments:
    """What the core takes for an input of the twin."""
    theta = np.append(inputs.theta, inputs.ground_height)
    return Arguments(inputs.configuration, inputs.velocity, inputs.force, inputs.slack, theta)


def situation_input(case: RobotCase, situation: str, seed: int) -> StepInput:
    """Random input in one of `SITUATIONS`."""
    gap, speed, velocity_W = SITUATIONS[situation]
    inputs = random_input(case, seed, gap=gap, speed=speed)
    rotation = pin.Quaternion(inputs.configuration[3:7]).toRotationMatrix()
    inputs.velocity[:3] += rotation.T @ velocity_W
    return inputs


def twin_step(case: RobotCase, kappa: float = 500.0) -> ContactStep:
    """The same step in the twin."""
    return replace(case.step(kappa), newton=NewtonOptions(max_iterations=MAX_ITERATIONS))
