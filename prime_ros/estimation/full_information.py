# SPDX-License-Identifier: Apache-2.0
"""Full-information estimation with inertia (PFIE): one maximum a posteriori estimate of a whole recording."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from prime_ros import _core
from prime_ros.config import EstimatorConfig
from prime_ros.estimation.covariance import Solution, to_estimate
from prime_ros.estimation.estimate import Estimate
from prime_ros.estimation.fusion import Information
from prime_ros.estimation.gate import Gate
from prime_ros.estimation.gauss_newton import solve_gauss_newton
from prime_ros.estimation.pieces import Arrival, arrival_at, joined, pieces, sliced
from prime_ros.estimation.problem import Problem, build_problem, with_belief
from prime_ros.estimation.progress import Progress, Report
from prime_ros.estimation.reference import solve_fddp
from prime_ros.exceptions import MeasurementError
from prime_ros.measurements.knots import KnotMeasurements
from prime_ros.robot import Robot

Array = NDArray[np.float64]


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
    return solve_recording(measurements, robot, config, progress or (lambda _: None)).estimate


@dataclass(frozen=True)
class Start:
    """Where the solution of a piece was: to solve it again with other knowledge of its parameters."""

    states: Array
    controls: Array
    gate: Gate
    """Weights of its measurements, slack and disturbance."""


@dataclass(frozen=True)
class Solved:
    """What is known when a recording has been solved."""

    estimate: Estimate
    theta: Array
    """Parameters that the last Gauss-Newton step would end at, those of the links first, shape (ntheta,)."""
    covariance: Array
    """Theirs, with all that was known before, shape (ntheta, ntheta)."""
    starts: tuple[Start, ...]
    """Of every piece."""


def solve_recording(
    measurements: KnotMeasurements,
    robot: Robot,
    config: EstimatorConfig,
    report: Report,
    belief: Information | None = None,
    starts: Sequence[Start] = (),
) -> Solved:
    """As `solve`, with what else is known of the body.

    Args:
        measurements: K + 1 knots.
        robot: The robot that was measured.
        config: Weights, prior, identified links, solver.
        report: Called after every iteration.
        belief: Of the parameters of the links, in place of the prior of the settings.
        starts: Where an earlier solve of the same recording ended; without: the measurements.
    """
    plan = pieces(len(measurements.stamp_ns) - 1, config)
    found: list[_Piece] = []
    for number, piece in enumerate(plan, start=1):
        before = sum(each.estimate.certificate.iterations for each in found)

        def tell(at: Progress, number: int = number, before: int = before) -> None:
            report(replace(at, piece=number, pieces=len(plan), iteration=before + at.iteration))

        part = sliced(measurements, piece.first, piece.last)
        known = _Known(found[-1].arrival if found else belief, starts[number - 1] if starts else None)
        found.append(_solve_piece(part, robot, config, known, tell, piece.cut - piece.first))
    estimate = joined([each.estimate for each in found], plan)
    return Solved(estimate, found[-1].theta, found[-1].covariance, tuple(each.start for each in found))


@dataclass(frozen=True)
class _Known:
    """What is known before a piece is solved."""

    prior: Arrival | Information | None
    """Of state and parameters, or of the parameters of the links alone; None: what the settings state."""
    start: Start | None

    def problem(self, measurements: KnotMeasurements, robot: Robot, config: EstimatorConfig) -> Problem:
        problem = build_problem(measurements, robot, config)
        if isinstance(self.prior, Arrival):
            problem = self.prior.prior_of(problem)
        elif self.prior is not None:
            problem = with_belief(problem, self.prior)
        if self.start is not None:
            problem = replace(problem, states=self.start.states, controls=self.start.controls)
        return problem


@dataclass(frozen=True)
class _Piece:
    """What a piece leaves."""

    estimate: Estimate
    theta: Array
    covariance: Array
    arrival: Arrival
    start: Start


def _solve_piece(
    measurements: KnotMeasurements,
    robot: Robot,
    config: EstimatorConfig,
    known: _Known,
    report: Report,
    next_first: int,
) -> _Piece:
    """Solve one piece; and what the next one, which begins at knot `next_first`, has as its prior."""
    start = time.perf_counter()
    problem = known.problem(measurements, robot, config)
    gate = Gate(problem.knots, config) if known.start is None else known.start.gate
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
        if known.start is not None:
            gate.hand_over(solver)
        built = time.perf_counter()
        if config.solver.name == "fddp":
            certificate = solve_fddp(problem, solver, gate, config, record)
        else:
            near = known.start is not None
            certificate = solve_gauss_newton(problem.step, solver, gate, config, record, near)
    solved = time.perf_counter()
    posterior = solver.posterior(next_first)
    solution = Solution(problem, solver, posterior, certificate, gate, tuple(history))
    timing = {"problem": built - start, "solver": solved - built, "covariance": time.perf_counter() - solved}
    return _Piece(
        estimate=to_estimate(solution, measurements, robot, config, timing),
        theta=solver.states[-problem.step.ntheta :, 0] + posterior.theta_step,
        covariance=posterior.theta_covariance,
        arrival=arrival_at(next_first, solver.states, posterior, robot),
        start=Start(solver.states, solver.controls, gate),
    )


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
