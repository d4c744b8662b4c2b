# SPDX-License-Identifier: Apache-2.0
"""The reference solver: Crocoddyl's FDDP on the same action models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import crocoddyl
import numpy as np

from prime_ros import _core
from prime_ros.config import EstimatorConfig
from prime_ros.estimation.estimate import Certificate, StageReport
from prime_ros.estimation.problem import Problem
from prime_ros.estimation.progress import Progress, Report

STOP = 0.1  # expected decrease of the cost at which FDDP stops, in units of what the certificate allows


class _Callback(crocoddyl.CallbackAbstract):
    """Reports every iteration of a Crocoddyl solver."""

    def __init__(self, report: Callable[[float, float], None]) -> None:
        super().__init__()
        self._report = report

    def __call__(self, solver: Any) -> None:
        self._report(float(solver.cost), float(solver.ffeas))


def shooting_problem(problem: Problem) -> crocoddyl.ShootingProblem:
    """The estimation problem as a Crocoddyl shooting problem.

    The first action carries the prior: its control is the increment of the state from the prior mean. K + 1
    running actions and a terminal one.
    """
    state = _core.StateInertial(problem.model, problem.step.ntheta)
    pool = _core.WorkspacePool(problem.step)
    arrival = _core.ActionArrival(state, problem.prior_information)
    actions = [_core.ActionContactStep(state, problem.step, pool, knot) for knot in problem.knots]
    return crocoddyl.ShootingProblem(problem.prior, [arrival, *actions[:-1]], actions[-1])


def solve_fddp(
    problem: Problem,
    evaluator: _core.GaussNewton,
    config: EstimatorConfig,
    report: Report,
) -> Certificate:
    """Solve with FDDP through the stages of the smoothing.

    Args:
        problem: The problem and its start.
        evaluator: A solver of the same problem; it receives the result and judges it.
        config: Stages and tolerances.
        report: Called after every iteration.

    Returns:
        The certificate.
    """
    shooting = shooting_problem(problem)
    solver = crocoddyl.SolverFDDP(shooting)
    state = shooting.runningModels[0].state
    xs = [problem.prior, *problem.states.T]
    us = [state.diff(problem.prior, problem.states[:, 0]), *problem.controls.T]
    stages: list[StageReport] = []
    total, kappas = 0, config.contact.kappa_stages
    cost = float(evaluator.evaluate().cost)
    for number, kappa in enumerate(kappas, start=1):
        problem.step.kappa = kappa
        before = total

        def tell(cost: float, gap: float, number: int = number, kappa: float = kappa) -> None:
            nonlocal total
            total += 1
            report(Progress(number, len(kappas), kappa, total, cost, gap))

        solver.th_stop = STOP * config.solver.cost_tolerance * cost
        solver.setCallbacks([_Callback(tell)])
        solver.solve(xs, us, max(1, config.solver.max_iterations - total), False, 1e-9)
        xs, us = list(solver.xs), list(solver.us)
        cost = float(solver.cost)
        gap, feasible = float(solver.ffeas), bool(solver.isFeasible)
        stages.append(StageReport(kappa, total - before, cost, gap, feasible))
    evaluator.set_kappa(kappas[-1])
    evaluator.set_trajectory(np.array(xs[1:]).T, np.array(us[1:]).T)
    return _certificate(evaluator, stages, total, config)


def _certificate(
    evaluator: _core.GaussNewton, stages: list[StageReport], total: int, config: EstimatorConfig
) -> Certificate:
    """Judge the result by the defects and the decrease that another Gauss-Newton step promises."""
    check = evaluator.evaluate()
    expected = evaluator.posterior().expected
    relative = abs(expected) / max(1.0, check.cost)
    converged = check.largest_gap <= config.solver.gap_tolerance and relative <= config.solver.cost_tolerance
    return Certificate(
        converged=converged,
        reason=(
            f"FDDP stopped with a largest gap of {check.largest_gap:.1e} and an expected relative decrease "
            f"of {relative:.1e}"
        ),
        iterations=total,
        cost=check.cost,
        largest_gap=check.largest_gap,
        gradient=relative,
        relative_cost_change=relative,
        stages=tuple(stages),
    )
