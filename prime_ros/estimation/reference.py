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
from prime_ros.estimation.gate import GATE_FACTORS, Gate
from prime_ros.estimation.problem import Problem
from prime_ros.estimation.progress import Progress, Report

STOP = 0.1  # expected decrease of the cost at which FDDP stops, in units of what the certificate allows


class FddpCallback(crocoddyl.CallbackAbstract):
    """Reports every iteration of a Crocoddyl solver."""

    def __init__(self, report: Callable[[float, float], None]) -> None:
        super().__init__()
        self._report = report

    def __call__(self, solver: Any) -> None:
        """Called by the solver."""
        self._report(float(solver.cost), float(solver.ffeas))


def shooting_problem(problem: Problem, gate: Gate | None = None) -> crocoddyl.ShootingProblem:
    """The estimation problem as a Crocoddyl shooting problem.

    The first action carries the prior: its control is the increment of the state from the prior mean. K + 1
    running actions and a terminal one. Without a gate no measurement is rejected.
    """
    state = _core.StateInertial(problem.model, problem.step.ntheta)
    pool = _core.WorkspacePool(problem.step)
    arrival = _core.ActionArrival(state, problem.prior_information)
    knots = problem.knots if gate is None else gate.weighted(problem.knots)
    actions = [_core.ActionContactStep(state, problem.step, pool, knots[k]) for k in range(problem.steps + 1)]
    return crocoddyl.ShootingProblem(problem.prior, [arrival, *actions[:-1]], actions[-1])


def solve_fddp(
    problem: Problem,
    evaluator: _core.GaussNewton,
    gate: Gate,
    config: EstimatorConfig,
    report: Report,
) -> Certificate:
    """Solve with FDDP through the stages of the smoothing, the last one again until the gate settles.

    Args:
        problem: The problem and its start.
        evaluator: A solver of the same problem; it receives the result and judges it.
        gate: Rejects measurements after the last stage.
        config: Stages and tolerances.
        report: Called after every iteration.

    Returns:
        The certificate.
    """
    stages = [(number, kappa) for number, kappa in enumerate(config.contact.kappa_stages, start=1)]
    run = _Run(problem, gate, config, report, float(evaluator.evaluate().cost))
    for number, kappa in stages:
        run.solve(number, kappa)
    run.hand_over(evaluator)
    for attempt in range(len(GATE_FACTORS)):
        if gate.reject(evaluator, attempt):
            run.solve(*stages[-1])
            run.hand_over(evaluator)
    return _certificate(evaluator, run.stages, run.total, config)


class _Run:
    """FDDP from stage to stage, each from where the last one stopped."""

    def __init__(
        self, problem: Problem, gate: Gate, config: EstimatorConfig, report: Report, cost: float
    ) -> None:
        self.problem, self.gate, self.config, self.report = problem, gate, config, report
        state = _core.StateInertial(problem.model, problem.step.ntheta)
        self.xs = [problem.prior, *problem.states.T]
        self.us = [state.diff(problem.prior, problem.states[:, 0]), *problem.controls.T]
        self.stages: list[StageReport] = []
        self.total, self.cost, self.kappa = 0, cost, 0.0

    def solve(self, number: int, kappa: float) -> None:
        """Run one stage."""
        self.problem.step.kappa = self.kappa = kappa
        solver = crocoddyl.SolverFDDP(shooting_problem(self.problem, self.gate))
        before, limits = self.total, self.config.solver

        def tell(cost: float, gap: float) -> None:
            self.total += 1
            stages = len(self.config.contact.kappa_stages)
            self.report(Progress(number, stages, kappa, self.total, cost, gap))

        solver.th_stop = STOP * limits.cost_tolerance * self.cost
        solver.setCallbacks([FddpCallback(tell)])
        solver.solve(self.xs, self.us, max(1, limits.max_iterations - self.total), False, 1e-9)
        self.xs, self.us, self.cost = list(solver.xs), list(solver.us), float(solver.cost)
        iterations, gap = self.total - before, float(solver.ffeas)
        self.stages.append(StageReport(kappa, iterations, self.cost, gap, bool(solver.isFeasible)))

    def hand_over(self, evaluator: _core.GaussNewton) -> None:
        """Give the trajectory to a solver that judges it."""
        evaluator.set_kappa(self.kappa)
        evaluator.set_trajectory(np.array(self.xs[1:]).T, np.array(self.us[1:]).T)


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
