# SPDX-License-Identifier: Apache-2.0
"""Long recordings piece by piece: where to cut, what one piece tells the next, and the estimate of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from prime_ros import _core
from prime_ros.config import EstimatorConfig
from prime_ros.estimation.estimate import Certificate, Estimate, FootLoads, Residuals, SensorReport
from prime_ros.estimation.problem import Problem
from prime_ros.measurements.knots import KnotMeasurements
from prime_ros.robot import Robot

Array = NDArray[np.float64]

OVERLAP = 1.0  # [s] that a piece knows of the next one: forces and motion depend on less of the future


@dataclass(frozen=True)
class Piece:
    """Knots first ... last of a recording are solved together; the estimate of first ... cut - 1 is kept."""

    first: int
    cut: int
    last: int


@dataclass(frozen=True)
class Arrival:
    """Prior of state and parameters at the first knot of a piece, from all pieces before."""

    mean: Array
    """(q, v, theta), shape (nx,)."""
    information: Array
    """Inverse covariance in the tangent, shape (ndx, ndx)."""

    def prior_of(self, problem: Problem) -> Problem:
        """The problem with this prior, its parameters as start."""
        states = problem.states.copy()
        count = problem.step.ntheta
        states[-count:] = self.mean[-count:, None]
        return replace(problem, prior=self.mean, prior_information=self.information, states=states)


def pieces(steps: int, config: EstimatorConfig) -> list[Piece]:
    """Cut a recording of K steps (K + 1 knots)."""
    longest = round(config.solver.piece / config.dt) if config.solver.piece else steps
    count = max(ceil(steps / max(longest, 2)), 1)
    ends = [steps * i // count for i in range(count + 1)]
    overlap = round(OVERLAP / config.dt)
    return [Piece(first, cut, min(cut + overlap, steps)) for first, cut in pairwise(ends)]


def sliced(m: KnotMeasurements, first: int, last: int) -> KnotMeasurements:
    """The knots first ... last."""
    arrays: dict[str, Any] = {f.name: getattr(m, f.name) for f in fields(m)}
    part: dict[str, Any] = {
        name: value[first : last + 1] for name, value in arrays.items() if isinstance(value, np.ndarray)
    }
    return replace(m, **part)


def arrival_at(knot: int, states: Array, posterior: _core.Posterior, robot: Robot) -> Arrival:
    """What is known of a knot from all before it, without its own measurement.

    The cost to arrive is a quadratic about the state of the knot in the solution; its minimum is the mean.
    """
    hessian, state = posterior.arrival_hessian, states[:, knot]
    nq, nv = robot.model.nq, robot.model.nv
    if not hessian.size or not np.isfinite(hessian).all():
        return Arrival(state, np.full((len(state) - 1, len(state) - 1), np.nan))
    step = -np.linalg.solve(hessian, posterior.arrival_gradient)
    q = pin.integrate(robot.model, state[:nq], step[:nv])
    return Arrival(np.concatenate([q, state[nq:] + step[nv:]]), hessian)


def joined(found: Sequence[Estimate], plan: Sequence[Piece]) -> Estimate:
    """The estimate of the whole recording from those of its pieces; parameters are those of the last one."""
    if len(found) == 1:
        return found[0]
    counts = [piece.cut - piece.first for piece in plan]

    def along(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate([array[:count] for array, count in zip(arrays, counts, strict=True)])

    last = found[-1]
    by_knot: dict[str, Any] = {
        name: along([getattr(each, name) for each in found]) for name in ("stamp_ns", *last.std)
    }
    return replace(
        last,
        **by_knot,
        std={name: along([each.std[name] for each in found]) for name in last.std},
        certificate=_certificate(found, counts),
        sensors=_sensors(found),
        timing={name: sum(each.timing[name] for each in found) for name in last.timing},
        residuals={
            name: Residuals(
                along([each.residuals[name].stamp_ns for each in found]),
                residuals.channels,
                along([each.residuals[name].whitened for each in found]),
                along([each.residuals[name].rejected for each in found]),
            )
            for name, residuals in last.residuals.items()
            if all(name in each.residuals for each in found)
        },
        history=tuple(at for each in found for at in each.history),
        feet=_feet([each.feet for each in found], along),
    )


def _feet(
    found: Sequence[FootLoads | None], along: Callable[[Sequence[NDArray[Any]]], NDArray[Any]]
) -> FootLoads | None:
    loads = [each for each in found if each is not None]
    if not loads:
        return None
    names = [field.name for field in fields(FootLoads) if field.name != "names"]
    arrays: dict[str, Any] = {name: along([getattr(each, name) for each in loads]) for name in names}
    return replace(loads[0], **arrays)


def _certificate(found: Sequence[Estimate], counts: Sequence[int]) -> Certificate:
    """Of all pieces; the seams are told, as the motion of two pieces need not meet exactly."""
    certificates = [each.certificate for each in found]
    failed = [i for i, each in enumerate(certificates, start=1) if not each.converged]
    if failed:
        which = ", ".join(map(str, failed[:10])) + (" ..." if len(failed) > 10 else "")
        first = certificates[failed[0] - 1].reason
        reason = (
            f"{len(failed)} of {len(found)} pieces did not converge ({which}): piece {failed[0]}: {first}"
        )
    else:
        position, rotation = _seams(found, counts)
        reason = (
            f"each of {len(found)} pieces, the last: {certificates[-1].reason}; where they meet the base"
            f" moves by at most {1e3 * position:.2f} mm and {1e3 * rotation:.2f} mrad"
        )
    return Certificate(
        converged=not failed,
        reason=reason,
        iterations=sum(each.iterations for each in certificates),
        cost=sum(each.cost for each in certificates),
        largest_gap=max(each.largest_gap for each in certificates),
        gradient=max(each.gradient for each in certificates),
        relative_cost_change=max(each.relative_cost_change for each in certificates),
        stages=certificates[-1].stages,
    )


def _seams(found: Sequence[Estimate], counts: Sequence[int]) -> tuple[float, float]:
    """How far two pieces disagree about the knot where one hands over to the next: metres, radians."""
    position = rotation = 0.0
    for before, after, count in zip(found, found[1:], counts, strict=False):
        step = before.base_position_W[count] - after.base_position_W[0]
        position = max(position, float(np.linalg.norm(step)))
        turn = abs(float(before.base_quat_xyzw[count] @ after.base_quat_xyzw[0]))
        rotation = max(rotation, 2.0 * float(np.arccos(min(turn, 1.0))))
    return position, rotation


def _sensors(found: Sequence[Estimate]) -> dict[str, SensorReport]:
    """Sums over all pieces; what they overlap counts twice, in chi-square as in the degrees of freedom."""
    reports: dict[str, SensorReport] = {}
    for each in found:
        for name, report in each.sensors.items():
            reports[name] = _sum(reports[name], report) if name in reports else report
    return reports


def _sum(one: SensorReport, other: SensorReport) -> SensorReport:
    count = one.count + other.count
    square = sum(report.count * report.rms_residual**2 for report in (one, other) if report.count)
    return replace(
        one,
        count=count,
        dof=one.dof + other.dof,
        chi_square=one.chi_square + other.chi_square,
        rms_residual=float(np.sqrt(square / count)) if count else float("nan"),
        rejected=one.rejected + other.rejected,
    )
