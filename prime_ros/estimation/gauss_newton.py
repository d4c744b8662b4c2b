# SPDX-License-Identifier: Apache-2.0
"""Gauss-Newton through the stages of the contact smoothing, until what is rejected and the cost settle."""

from __future__ import annotations

from collections.abc import Callable

from prime_ros import _core
from prime_ros.config import EstimatorConfig
from prime_ros.estimation.estimate import Certificate, StageReport
from prime_ros.estimation.gate import GATE_FACTORS, Gate
from prime_ros.estimation.progress import Progress, Report
from prime_ros.estimation.slack import slack_weight

EARLY_TOLERANCE = 5e-2  # relative decrease of the cost at which an early stage hands over
EARLY_ITERATIONS = 8


def solve_gauss_newton(
    step: _core.ContactStep,
    solver: _core.GaussNewton,
    gate: Gate,
    config: EstimatorConfig,
    report: Report,
    near: bool = False,
) -> Certificate:
    """Run Gauss-Newton through the stages of the contact smoothing, on a solver of a step that holds a start.

    Args:
        step: The contact step of the solver.
        solver: Holds the start.
        gate: Decides what is rejected.
        config: Stages and tolerances.
        report: Called after every iteration.
        near: The start is the solution of nearly the same problem, the gate that of it: only the last stage
            is run, weights stay, and nothing rejected is taken back.

    Returns:
        The certificate; `solver` holds the last iterate, `gate` what was rejected.
    """
    run = _Run(step, solver, gate, config, report)
    if not near:
        run.early_stages()
    run.last_stage(near)
    return run.certificate()


class _Run:
    """Gauss-Newton from stage to stage."""

    def __init__(
        self,
        step: _core.ContactStep,
        solver: _core.GaussNewton,
        gate: Gate,
        config: EstimatorConfig,
        report: Report,
    ) -> None:
        self.step = step
        self.solver, self.gate, self.config, self.report = solver, gate, config, report
        self.stages: list[StageReport] = []
        self.total, self.converged = 0, False
        self.last: _core.IterationReport | None = None

    def early_stages(self) -> None:
        """Bring the iterate near."""
        for number in range(1, len(self.config.contact.kappa_stages)):
            self._early_stage(number)

    def _early_stage(self, number: int) -> None:
        """One of them; no outlier may pull far."""
        self.solver.set_kappa(self._kappa(number))
        settled = False
        for _ in range(EARLY_ITERATIONS):
            settled = self._iterate_until(number, _settled, 1)
            self.gate.soften(self.solver)
            if settled:
                break
        self._close(number, settled)

    def last_stage(self, near: bool) -> None:
        """Converge, and again while what is rejected changes; if near, what is rejected only grows."""
        number = len(self.config.contact.kappa_stages)
        self.solver.set_kappa(self._kappa(number))
        if self.config.slack.change and not near:
            self.gate.set_slack(self.solver, slack_weight(self.step, self.solver.states, self.config))
        for attempt in range(0 if near else len(GATE_FACTORS)):
            if self.gate.reject(self.solver, attempt):
                self._iterate_until(number, _settled, EARLY_ITERATIONS)
        while not self.converged or self.gate.reject(self.solver):
            self.converged = self._iterate_until(number, lambda last: _converged(last, self.config))
            if not self.converged:
                break
        self._close(number, self.converged)

    def certificate(self) -> Certificate:
        """Evidence on the last iterate."""
        return _certificate(self.last, tuple(self.stages), self.converged, self.total, self.config)

    def _kappa(self, number: int) -> float:
        return self.config.contact.kappa_stages[number - 1]

    def _iterate_until(
        self, number: int, done: Callable[[_core.IterationReport], bool], most: int | None = None
    ) -> bool:
        """Iterate until done, at most so often or as often as is left altogether; whether it is done."""
        left = self.config.solver.max_iterations - self.total
        for _ in range(left if most is None else min(most, left)):
            self.last = self.solver.iterate()
            self.total += 1
            stages, kappa = len(self.config.contact.kappa_stages), self._kappa(number)
            self.report(Progress(number, stages, kappa, self.total, self.last.cost, self.last.largest_gap))
            if done(self.last):
                return True
        return False

    def _close(self, number: int, converged: bool) -> None:
        before = sum(stage.iterations for stage in self.stages)
        if self.last is not None and self.total > before:
            last, iterations = self.last, self.total - before
            kappa = self._kappa(number)
            self.stages.append(StageReport(kappa, iterations, last.cost, last.largest_gap, converged))


def _settled(report: _core.IterationReport) -> bool:
    """An early stage only has to bring the iterate near: stop when a full step gains little."""
    promised = max(abs(report.expected), report.relative_change * report.cost)
    return report.step_length == 1.0 and promised < EARLY_TOLERANCE * report.cost


def _converged(report: _core.IterationReport, config: EstimatorConfig) -> bool:
    solver = config.solver
    return (
        report.accepted
        and report.newton_failures == 0
        and report.largest_gap <= solver.gap_tolerance
        and report.relative_change <= solver.cost_tolerance
    )


def _certificate(
    last: _core.IterationReport | None,
    stages: tuple[StageReport, ...],
    converged: bool,
    total: int,
    config: EstimatorConfig,
) -> Certificate:
    if last is None:
        raise ValueError("solver.max_iterations leaves no iteration")
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
