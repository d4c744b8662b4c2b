# SPDX-License-Identifier: Apache-2.0
"""Full-information estimation with inertia (PFIE): one maximum a posteriori estimate of a whole recording."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from prime_ros import _core
from prime_ros.config import EstimatorConfig
from prime_ros.estimation.covariance import Solution, to_estimate
from prime_ros.estimation.estimate import Estimate
from prime_ros.estimation.gate import Gate
from prime_ros.estimation.gauss_newton import solve_gauss_newton
from prime_ros.estimation.pieces import Arrival, arrival_at, joined, pieces, sliced
from prime_ros.estimation.problem import build_problem
from prime_ros.estimation.progress import Progress, Report
from prime_ros.estimation.reference import solve_fddp
from prime_ros.exceptions import MeasurementError
from prime_ros.measurements.knots import KnotMeasurements
from prime_ros.robot import Robot


def solve(
    measurements: KnotMeasurements,
    robot: Robot,
    config: EstimatorConfig,
    progress: Report | None = None,
) -> Estimate:
    """Estimate motion, contact forces and inertia from all measurements.

    A recording longer than `solver.piece` is solved piece by piece: what a piece leaves at the knot where the
    next one begins is that one's prior of state and parameters. The inertia is then that of the last piece,
    which knows all; forces and motion of a piece know what came before, and a second after it.

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
        MeasurementError: If the measurements or the weights are too absurd to start from.
    """
    report = progress or (lambda _: None)
    plan = pieces(len(measurements.stamp_ns) - 1, config)
    arrival: Arrival | None = None
    found: list[Estimate] = []
    iterations = 0
    for number, piece in enumerate(plan, start=1):

        def tell(at: Progress, number: int = number, before: int = iterations) -> None:
            report(replace(at, piece=number, pieces=len(plan), iteration=before + at.iteration))

        part = sliced(measurements, piece.first, piece.last)
        estimate, arrival = _solve_piece(part, robot, config, arrival, tell, piece.cut - piece.first)
        found.append(estimate)
        iterations += estimate.certificate.iterations
    return joined(found, plan)


def _solve_piece(
    measurements: KnotMeasurements,
    robot: Robot,
    config: EstimatorConfig,
    arrival: Arrival | None,
    report: Report,
    next_first: int,
) -> tuple[Estimate, Arrival]:
    """Solve one piece; and what the next one, which begins at knot `next_first`, has as its prior."""
    start = time.perf_counter()
    problem = build_problem(measurements, robot, config)
    if arrival is not None:
        problem = arrival.prior_of(problem)
    gate = Gate(problem.knots, config)
    history: list[Progress] = []

    def record(at: Progress) -> None:
        history.append(at)
        report(at)

    with _refusals():
        solver = _core.GaussNewton(
            problem.step,
            problem.knots,
            problem.prior,
            problem.prior_information,
            config.solver.threads,
        )
        solver.set_trajectory(problem.states, problem.controls)
        built = time.perf_counter()
        if config.solver.name == "fddp":
            certificate = solve_fddp(problem, solver, gate, config, record)
        else:
            certificate = solve_gauss_newton(problem.step, solver, gate, config, record)
    solved = time.perf_counter()
    posterior = solver.posterior(next_first)
    solution = Solution(problem, solver, posterior, certificate, gate, tuple(history))
    timing = {"problem": built - start, "solver": solved - built, "covariance": time.perf_counter() - solved}
    estimate = to_estimate(solution, measurements, robot, config, timing)
    return estimate, arrival_at(next_first, solver.states, posterior, robot)


@contextmanager
def _refusals() -> Iterator[None]:
    """Numbers that the core refuses are the user's: the recording's or the settings'."""
    try:
        yield
    except ValueError as error:
        if not str(error).startswith("GaussNewton: "):
            raise
        raise MeasurementError(
            f"the estimation cannot start ({error}), expected measurements that a robot can have and standard"
            " deviations of a usual size; look for wrong units and outliers with"
            " prime info INPUT --robot ROBOT, and at the settings"
        ) from error
