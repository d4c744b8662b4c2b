# SPDX-License-Identifier: Apache-2.0
"""Estimation with a contact sequence that is fixed beforehand, by rigid contacts and Crocoddyl's FDDP."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import crocoddyl
import numpy as np
from numpy.typing import NDArray

from prime_ros.config import EstimatorConfig
from prime_ros.estimation.estimate import Certificate, Estimate, StageReport
from prime_ros.estimation.fixed_contact.posterior import posterior_of
from prime_ros.estimation.fixed_contact.problem import (
    RigidProblem,
    build_rigid_problem,
    joint_rates,
    passive_torque,
    shooting_problem,
)
from prime_ros.estimation.fixed_contact.result import to_estimate
from prime_ros.estimation.progress import Progress, Report
from prime_ros.estimation.reference import STOP, FddpCallback
from prime_ros.measurements.knots import KnotMeasurements
from prime_ros.robot import Robot

Array = NDArray[np.float64]

RIGID = float("inf")  # the sharpness of rigid contact
PASSES = 2  # passive torques by measured rates, then by estimated ones
REGULARISATION = 1e-9


def solve(
    measurements: KnotMeasurements,
    robot: Robot,
    config: EstimatorConfig,
    progress: Report | None = None,
) -> Estimate:
    """Estimate motion, forces and inertia with feet that stand when they are low and then do not move.

    The comparison that the paper of PRIME makes: the cost is that of the full-information estimator, but the
    contact sequence comes from the height of the feet, and contact is rigid. Nothing is rejected as outlier,
    recordings are solved as a whole, and the ground has no height to estimate.

    Args:
        measurements: K + 1 knots, from `prime_ros.measurements.align`.
        robot: The robot that was measured.
        config: Weights, prior, identified links, solver, `fixed_contact`.
        progress: Called after every iteration; an exception it raises ends the solve and passes through.

    Returns:
        The estimate over K knots; contact probabilities are those of the fixed sequence, 0 or 1.

    Raises:
        RobotError: If a link to identify does not exist, or the feet cannot be rigid.
    """
    start = time.perf_counter()
    problem = build_rigid_problem(measurements, robot, config)
    built = time.perf_counter()
    run = _Run(problem, config, progress or (lambda _: None))
    rates = measurements.joint_velocity
    for number in range(1, PASSES + 1):
        run.solve(number, passive_torque(rates, robot))
        rates = joint_rates(run.xs, robot)
    certificate = run.certificate()
    solved = time.perf_counter()
    posterior = posterior_of(run.solver, problem, robot)
    timing = {"problem": built - start, "solver": solved - built, "covariance": time.perf_counter() - solved}
    return to_estimate(
        run.solver, problem, posterior, certificate, tuple(run.history), measurements, robot, config, timing
    )


class _Run:
    """FDDP, pass after pass, each from where the last one stopped."""

    def __init__(self, problem: RigidProblem, config: EstimatorConfig, report: Report) -> None:
        self.problem, self.config, self.report = problem, config, report
        first = problem.smooth.states[:-1].T  # without the ground
        self.xs: list[Array] = [problem.prior, *first]
        disturbance = np.zeros(problem.contact.nv)
        self.us: list[Array] = [problem.state.diff(problem.prior, first[0]), *[disturbance] * problem.steps]
        self.stages: list[StageReport] = []
        self.history: list[Progress] = []
        self.solver: Any = None
        self.cost = np.inf

    def solve(self, number: int, passive: Array) -> None:
        """Run one pass."""
        limits, before = self.config.solver, len(self.history)
        self.solver = crocoddyl.SolverFDDP(shooting_problem(self.problem, passive))
        self.solver.setCallbacks([FddpCallback(self._tell(number))])
        if not np.isfinite(self.cost):
            self.cost = self.solver.problem.calc(self.xs, self.us)
        self.solver.th_stop = STOP * limits.cost_tolerance * self.cost
        left = max(1, limits.max_iterations - before)
        self.solver.solve(self.xs, self.us, left, False, REGULARISATION)
        self.xs, self.us = list(self.solver.xs), list(self.solver.us)
        self.cost = float(self.solver.cost)
        iterations = len(self.history) - before
        feasible = bool(self.solver.isFeasible)
        self.stages.append(StageReport(RIGID, iterations, self.cost, float(self.solver.ffeas), feasible))

    def certificate(self) -> Certificate:
        """Judge the last iterate by its defects and by the decrease that another step promises."""
        limits, solver = self.config.solver, self.solver
        solver.computeDirection(True)
        relative = 0.5 * abs(float(solver.stoppingCriteria())) / max(1.0, self.cost)
        gap = float(max(np.abs(defect).max() for defect in solver.fs))
        return Certificate(
            converged=gap <= limits.gap_tolerance and relative <= limits.cost_tolerance,
            reason=(
                f"FDDP stopped with a largest gap of {gap:.1e} and an expected relative decrease of"
                f" {relative:.1e}"
            ),
            iterations=len(self.history),
            cost=self.cost,
            largest_gap=gap,
            gradient=relative,
            relative_cost_change=relative,
            stages=tuple(self.stages),
        )

    def _tell(self, number: int) -> Callable[[float, float], None]:
        def tell(cost: float, gap: float) -> None:
            at = Progress(number, PASSES, RIGID, len(self.history) + 1, cost, gap)
            self.history.append(at)
            self.report(at)

        return tell
