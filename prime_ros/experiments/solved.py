# SPDX-License-Identifier: Apache-2.0
"""A solved problem in the terms of the core, to time its parts on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prime_ros import _core
from prime_ros.config import EstimatorConfig
from prime_ros.estimation.gate import Gate
from prime_ros.estimation.gauss_newton import solve_gauss_newton
from prime_ros.estimation.problem import Problem, build_problem
from prime_ros.experiments.simulation_logs import Floats
from prime_ros.measurements import KnotMeasurements
from prime_ros.robot import Robot


@dataclass(frozen=True)
class Solved:
    """A problem and the trajectory that solves it."""

    robot: Robot
    config: EstimatorConfig
    measurements: KnotMeasurements
    problem: Problem
    states: Floats
    """(nx, K + 1), without gaps."""
    controls: Floats
    """(nu, K)"""


@dataclass(frozen=True)
class StepInputs:
    """What `_core.benchmark_step` takes, a column for every step.

    Column-major, so that the core reads it in place.
    """

    q: Floats
    v: Floats
    force: Floats
    slack: Floats
    theta: Floats
    measured_next: Floats
    """Measured velocity at the next knot, from which the first iteration of a solve starts."""
    v_next: Floats
    """The solution."""


def solve_problem(measurements: KnotMeasurements, robot: Robot, config: EstimatorConfig) -> Solved:
    """Solve with Gauss-Newton.

    Raises:
        RuntimeError: If the solver does not converge: its figures would mean little.
    """
    problem = build_problem(measurements, robot, config)
    solver = _core.GaussNewton(problem.step, problem.knots, problem.prior, problem.prior_information)
    solver.set_trajectory(problem.states, problem.controls)
    certificate = solve_gauss_newton(
        problem.step, solver, Gate(problem.knots, config), config, lambda _: None
    )
    if not certificate.converged:
        raise RuntimeError(f"{problem.steps} steps: {certificate.reason}")
    states, controls = np.array(solver.states), np.array(solver.controls)
    return Solved(robot, config, measurements, problem, states, controls)


def step_inputs(solved: Solved) -> StepInputs:
    """The steps of a solution as the core times them."""
    model, knots = solved.robot.model, solved.problem.knots
    nq, nv = model.nq, model.nv
    force = solved.controls[:nv].copy()
    force[nv - len(knots.torque) :] += knots.torque[:, :-1]
    velocity = solved.states[nq : nq + nv]
    columns = (
        solved.states[:nq, :-1],
        velocity[:, :-1],
        force,
        solved.controls[nv:],
        solved.states[nq + nv :, 0],
        solved.problem.states[nq : nq + nv, 1:],
        velocity[:, 1:],
    )
    return StepInputs(*(np.asfortranarray(array) for array in columns))
