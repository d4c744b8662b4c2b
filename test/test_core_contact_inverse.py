# SPDX-License-Identifier: Apache-2.0
"""The inverse of the contact step: it undoes the step, is the least improbable one, and equals its twin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from core import DT, KAPPAS, SITUATIONS, Arguments, arguments_of, core_step, situation_input, twin_step
from differences import assert_derivative, central_differences
from models import FRICTION, ROBOT_NAMES, robot_case

from prime_ros import _core
from prime_ros.estimation.contact import StepInput
from prime_ros.estimation.contact_inverse import coordinate_of, explain, least_improbable, on_graph
from prime_ros.estimation.contact_potential import SmoothedCone

STD_FORCE, STD_TORQUE, STD_SLACK = 0.3, 0.2, 0.05  # [N], [Nm], [m/s]
STANDING = np.array([0.01, 0.0, 0.2])  # [N s] first guess of every contact

robots = pytest.mark.parametrize("robot", ROBOT_NAMES)
situations = pytest.mark.parametrize("situation", SITUATIONS)
kappas = pytest.mark.parametrize("kappa", KAPPAS)


@dataclass(frozen=True)
class Motion:
    """A step that the model does not explain without disturbance and slack."""

    step: _core.ContactStep
    inputs: StepInput
    arguments: Arguments
    v_next: np.ndarray
    weight: np.ndarray

    def inverted(self, guess: np.ndarray | None = None) -> tuple[_core.ContactStepData, float]:
        data, a = _core.ContactStepData(self.step), self.arguments
        data.impulse = np.tile(STANDING, self.step.ncontacts) if guess is None else guess
        return data, self.step.invert(data, a.q, a.v, self.v_next, a.force, self.weight, a.theta)


def motion(robot: str, situation: str, kappa: float, seed: int = 0) -> Motion:
    case = robot_case(robot)
    step, inputs = core_step(case, kappa), situation_input(case, situation, seed)
    arguments = arguments_of(inputs)
    data = _core.ContactStepData(step)
    arguments.solve(step, data)
    assert data.converged
    noise = np.random.default_rng(seed).standard_normal(step.nv)
    std = [np.full(3, STD_FORCE), np.full(step.nv - 3, STD_TORQUE), np.full(3 * step.ncontacts, STD_SLACK)]
    return Motion(step, inputs, arguments, data.v_next + 0.002 * noise, np.concatenate(std) ** -2.0)


@robots
@situations
@kappas
def test_the_step_with_what_is_found_leads_to_the_velocity(robot: str, situation: str, kappa: float) -> None:
    m = motion(robot, situation, kappa)
    data, cost = m.inverted()
    assert data.converged
    assert cost == pytest.approx(0.5 * data.control @ (m.weight * data.control), rel=1e-12)
    forward, a, nv = _core.ContactStepData(m.step), m.arguments, m.step.nv
    m.step.solve(forward, a.q, a.v, a.force + data.control[:nv], data.control[nv:], a.theta)
    assert forward.converged
    np.testing.assert_allclose(forward.v_next, m.v_next, atol=1e-9)
    np.testing.assert_allclose(forward.impulse, data.impulse, atol=1e-8)


@robots
@situations
def test_it_is_that_of_the_twin(robot: str, situation: str) -> None:
    m = motion(robot, situation, 500.0)
    data, cost = m.inverted()
    potential, twin = SmoothedCone(FRICTION, 500.0), twin_step(robot_case(robot), 500.0)
    start = np.array([coordinate_of(potential, impulse) for impulse in data.impulse.reshape(-1, 3)])
    at_core = explain(twin, m.inputs, m.v_next, start)
    np.testing.assert_allclose(data.control, np.concatenate([at_core.force, at_core.slack]), atol=1e-6)
    _, least = least_improbable(twin, m.inputs, m.v_next, m.weight, start)
    assert cost <= least + 1e-6 * (1.0 + least)


@robots
def test_a_motion_of_the_model_needs_nothing(robot: str) -> None:
    case = robot_case(robot)
    step, inputs = core_step(case), situation_input(case, "contact", seed=1)
    inputs.slack[:] = 0.0
    arguments = arguments_of(inputs)
    forward = _core.ContactStepData(step)
    arguments.solve(step, forward)
    m = Motion(step, inputs, arguments, forward.v_next, np.ones(step.nv + 3 * step.ncontacts))
    data, cost = m.inverted()
    assert data.converged
    assert cost < 1e-4
    np.testing.assert_allclose(data.control, 0.0, atol=0.015)


COORDINATES = [(0.3, -0.2, 0.5), (-1.0, 0.5, 0.1), (0.01, 0.0, -2.0), (0.0, 0.0, 4.0), (0.0, 0.0, -0.01)]


@pytest.mark.parametrize("coordinate", COORDINATES)
def test_the_graph_of_the_cone(coordinate: tuple[float, float, float]) -> None:
    potential, p, nothing = SmoothedCone(FRICTION, 500.0), np.array(coordinate), np.zeros(3)
    z, impulse = on_graph(potential, p)
    assert potential.missing_normal_velocity(z) < 0.0
    np.testing.assert_allclose(impulse, -potential.gradient(z), rtol=1e-6)
    np.testing.assert_allclose(coordinate_of(potential, impulse), coordinate, atol=1e-6)
    core_z, core_impulse, *_ = _core.contact_graph(np.array(FRICTION), 500.0, p, nothing, nothing)
    np.testing.assert_allclose(core_z, z, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(core_impulse, impulse, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("coordinate", COORDINATES)
def test_derivatives_of_the_graph(coordinate: tuple[float, float, float]) -> None:
    slope_z, slope_impulse = np.array([0.3, -0.7, 0.2]), np.array([-1.1, 0.4, 0.9])

    def graph(by: np.ndarray) -> tuple[np.ndarray, ...]:
        p = np.array(coordinate) + by
        return _core.contact_graph(np.array(FRICTION), 500.0, p, slope_z, slope_impulse)

    def pair(by: np.ndarray) -> np.ndarray:
        return np.concatenate(graph(by)[:2])

    def slope(by: np.ndarray) -> np.ndarray:
        _, _, dz, dimpulse, _ = graph(by)
        return dz.T @ slope_z + dimpulse.T @ slope_impulse

    z, _, dz, dimpulse, curvature = graph(np.zeros(3))
    assert_derivative(np.vstack([dz, dimpulse]), central_differences(pair, 3, 1e-5), 1e-5)
    assert_derivative(curvature, central_differences(slope, 3, 1e-5), 1e-5)
    # Along the graph d lambda = -W dz, W the Hessian of the potential.
    hessian = SmoothedCone(FRICTION, 500.0).hessian(z)
    np.testing.assert_allclose(dimpulse, -hessian @ dz, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("name", ["v_next", "weight"])
def test_wrong_sizes_and_values(name: str) -> None:
    m = motion("hopper", "contact", 500.0)
    a, data = m.arguments, _core.ContactStepData(m.step)
    wrong = {"v_next": m.v_next, "weight": m.weight}
    wrong[name] = wrong[name][:-1]
    with pytest.raises(ValueError, match=f"{name} has size"):
        m.step.invert(data, a.q, a.v, wrong["v_next"], a.force, wrong["weight"], a.theta)
    assert m.step.invert(data, a.q, a.v, m.v_next * np.nan, a.force, m.weight, a.theta) == np.inf


@robots
def test_contact_velocity_is_the_derivative_of_the_position(robot: str) -> None:
    m = motion(robot, "air", 500.0)
    twin, a = twin_step(robot_case(robot)), m.arguments
    _, jacobian, _ = twin.unbalanced(m.inputs, m.v_next)
    data = _core.ContactStepData(m.step)
    np.testing.assert_allclose(m.step.contact_velocity(data, a.q, a.v), jacobian @ a.v, atol=1e-12)
    assert np.abs(jacobian @ a.v).max() > DT
