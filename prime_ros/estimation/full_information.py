# SPDX-License-Identifier: Apache-2.0
"""Full-information estimation with inertia (PFIE): one maximum a posteriori estimate of a whole recording."""

from __future__ import annotations

import time

from prime_ros import _core
from prime_ros.config import EstimatorConfig
from prime_ros.estimation.covariance import Solution, to_estimate
from prime_ros.estimation.estimate import Certificate, Estimate, StageReport
from prime_ros.estimation.problem import build_problem
from prime_ros.estimation.progress import Progress, Report
from prime_ros.estimation.reference import solve_fddp
from prime_ros.measurements.knots import KnotMeasurements
from prime_ros.robot import Robot

EARLY_TOLERANCE = 5e-2  # relative decrease of the cost at which an early stage hands over
EARLY_ITERATIONS = 8


def solve(
    measurements: KnotMeasurements,
    robot: Robot,
    config: EstimatorConfig,
    progress: Report | None = None,
) -> Estimate:
    """Estimate motion, contact forces and inertia from all measurements at once.

    Args:
        measurements: K + 1 knots, from `prime_ros.measurements.align`.
        robot: The robot that was measured.
        config: Weights, prior, identified links, solver.
        progress: Called after every iteration; an exception it raises ends the solve and passes through.

    Returns:
        The estimate over K knots with standard deviations; `certificate.converged` says whether it solves the
        problem.

    Raises:
        RobotError: If a link to identify does not exist.
    """
    start = time.perf_counter()
    problem = build_problem(measurements, robot, config)
    built = time.perf_counter()
    solver = _core.GaussNewton(
        problem.step,
        list(problem.knots),
        problem.prior,
        problem.prior_information,
        config.solver.cost_tolerance,
        config.solver.threads,
    )
    solver.set_trajectory(problem.states, problem.controls)
    report = progress or (lambda _: None)
    if config.solver.name == "fddp":
        run = solve_fddp(problem, solver, config, report)
    else:
        run = solve_gauss_newton(solver, config, report)
    solved = time.perf_counter()
    posterior = solver.posterior()
    timing = {"problem": built - start, "solver": solved - built, "covariance": time.perf_counter() - solved}
    return to_estimate(Solution(problem, solver, posterior, run), measurements, robot, config, timing)


def solve_gauss_newton(solver: _core.GaussNewton, config: EstimatorConfig, report: Report) -> Certificate:
    """Run Gauss-Newton through the stages of the contact smoothing on a solver that holds a start.

    Returns:
        The certificate; `solver` holds the last iterate.
    """
    stages: list[StageReport] = []
    total = 0
    kappas = config.contact.kappa_stages
    last: _core.IterationReport | None = None
    for number, kappa in enumerate(kappas, start=1):
        solver.set_kappa(kappa)
        final = number == len(kappas)
        budget = config.solver.max_iterations - total if final else EARLY_ITERATIONS
        converged, iterations = False, 0
        while not converged and iterations < min(budget, config.solver.max_iterations - total):
            last = solver.iterate()
            iterations += 1
            report(Progress(number, len(kappas), kappa, total + iterations, last.cost, last.largest_gap))
            converged = _converged(last, config) if final else _settled(last)
        total += iterations
        if last is not None and iterations:
            stages.append(StageReport(kappa, iterations, last.cost, last.largest_gap, converged))
    return _certificate(last, tuple(stages), total, config)


def _settled(report: _core.IterationReport) -> bool:
    """An early stage only has to bring the iterate near: stop when a full step gains little."""
    return report.step_length == 1.0 and abs(report.expected) < EARLY_TOLERANCE * report.cost


def _converged(report: _core.IterationReport, config: EstimatorConfig) -> bool:
    solver = config.solver
    return (
        report.accepted
        and report.newton_failures == 0
        and report.largest_gap <= solver.gap_tolerance
        and report.relative_change <= solver.cost_tolerance
    )


def _certificate(
    last: _core.IterationReport | None, stages: tuple[StageReport, ...], total: int, config: EstimatorConfig
) -> Certificate:
    if last is None:
        raise ValueError("solver.max_iterations leaves no iteration")
    converged = bool(stages and stages[-1].converged and len(stages) == len(config.contact.kappa_stages))
    return Certificate(
        converged=converged,
        reason=_reason(last, converged, config),
        iterations=total,
        cost=last.cost,
        largest_gap=last.largest_gap,
        gradient=abs(last.expected) / max(1.0, last.cost),
        relative_cost_change=last.relative_change,
        stages=stages,
    )


def _reason(last: _core.IterationReport, converged: bool, config: EstimatorConfig) -> str:
    if converged:
        return (
            f"largest gap {last.largest_gap:.1e} <= {config.solver.gap_tolerance:.1e} and relative change "
            f"of the cost {last.relative_change:.1e} <= {config.solver.cost_tolerance:.1e}"
        )
    if last.newton_failures:
        return f"{last.newton_failures} contact steps did not converge within their iterations"
    if not last.accepted:
        return f"no step lowered the merit (damping {last.damping:.1e})"
    return (
        f"stopped after {config.solver.max_iterations} iterations with a largest gap of "
        f"{last.largest_gap:.1e} and a relative change of the cost of {last.relative_change:.1e}; "
        "raise solver.max_iterations"
    )
