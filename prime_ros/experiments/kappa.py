# SPDX-License-Identifier: Apache-2.0
"""Sharpness of the contact: what it does to convergence, forces and inertia (PRIME's Fig. 11 and 12)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prime_ros.experiments.context import Context
from prime_ros.experiments.logs import KAPPA
from prime_ros.experiments.plots import BASELINE, OURS, figure
from prime_ros.experiments.section import Plot, Section, Table
from prime_ros.experiments.solving import Case, Outcome, identified

VALUES = (25, 100, 500, 1000, 2500, 5000)
FIRST_STAGES = (20, 100, 500)
SHOWN = (25, 500, 5000)  # whose convergence is drawn
COLUMNS = (
    "log",
    "kappa",
    "stages",
    "converged",
    "iterations",
    "largest gap",
    "cost",
    "worst foot [N]",
    "mass error [kg]",
    "inertia error [%]",
)


@dataclass(frozen=True)
class Point:
    """One solve at one sharpness."""

    log: str
    kappa: int
    stages: tuple[int, ...]
    outcome: Outcome
    mass_error: float
    inertia_error: float
    """Relative, of the tensor about the centre of mass [-]."""

    @property
    def staged(self) -> bool:
        """Whether softer contact came first."""
        return len(self.stages) > 1


def kappa(context: Context) -> Section:
    """Solve with one sharpness from the start, and through softer stages."""
    points = [
        _point(context, log, value, stages)
        for log in KAPPA
        for value in VALUES
        for stages in ((value,), (*(first for first in FIRST_STAGES if first < value), value))
    ]
    plots = tuple(plot for log in KAPPA for plot in _plots(context, log, [p for p in points if p.log == log]))
    seed = context.seeds[0]
    return Section(
        name="kappa",
        title="Sharpness of the contact, in stages or not (as PRIME's Fig. 11 and 12)",
        text=(
            "The shipped estimator reaches kappa 500 (Go2) or 4000 (G1) in stages. Here it is given one"
            " kappa from"
            f" cold, or the stages of {', '.join(map(str, FIRST_STAGES))} below it first. Seed {seed}; at"
            " most 100"
            " iterations. The paper finds 500 a good choice and proposes stages for noisy data."
        ),
        command=f"prime experiments kappa --data DIR --seeds {seed} --out DIR",
        parts=(*plots, Table(COLUMNS, tuple(_row(point) for point in points))),
    )


def _point(context: Context, log: str, value: int, stages: tuple[int, ...]) -> Point:
    overrides = (f"contact.kappa_stages={list(stages)}",)
    outcome = context.solves.of(Case(log, context.seeds[0], overrides))
    true = context.solves.logs.log(log).truth["true"]
    found = outcome.estimate.links[identified(log)[1]].estimate
    tensor = np.array(true["inertia_com"])
    inertia = float(np.linalg.norm(found.inertia_com - tensor) / np.linalg.norm(tensor))
    return Point(log, value, stages, outcome, found.mass - true["mass"], inertia)


def _row(point: Point) -> tuple[str, ...]:
    certificate = point.outcome.estimate.certificate
    return (
        point.log,
        str(point.kappa),
        ", ".join(map(str, point.stages)),
        "yes" if certificate.converged else "no",
        str(certificate.iterations),
        f"{certificate.largest_gap:.0e}",
        f"{certificate.cost:.0f}",
        f"{point.outcome.forces.worst:.2f}",
        f"{point.mass_error:+.3f}",
        f"{100 * point.inertia_error:.1f}",
    )


def _plots(context: Context, log: str, points: list[Point]) -> tuple[Plot, Plot]:
    _against_kappa(context, log, points)
    _convergence(context, log, points)
    return (
        context.plot(f"kappa_{_file(log)}", f"{log}: iterations, force and mass against kappa"),
        context.plot(
            f"kappa_convergence_{_file(log)}", f"{log}: cost and gap over the iterations, without stages"
        ),
    )


def _against_kappa(context: Context, log: str, points: list[Point]) -> None:
    with figure(context.picture(f"kappa_{_file(log)}"), 1, 3, (7.5, 2.3)) as axes:
        for staged, colour, words in ((False, BASELINE, "one kappa"), (True, OURS, "in stages")):
            chosen = [p for p in points if p.staged == staged]
            x = [p.kappa for p in chosen]
            shown: tuple[tuple[str, list[float]], ...] = (
                ("iterations", [p.outcome.estimate.certificate.iterations for p in chosen]),
                ("force of the worst foot [N]", [p.outcome.forces.worst for p in chosen]),
                ("error of the mass [kg]", [abs(p.mass_error) for p in chosen]),
            )
            for panel, (title, values) in zip(axes[0], shown, strict=True):
                panel.plot(x, values, "-", color=colour, label=words)
                for p, value in zip(chosen, values, strict=True):
                    filled = colour if p.outcome.estimate.certificate.converged else "white"
                    panel.plot(p.kappa, value, "o", markersize=4, color=colour, markerfacecolor=filled)
                panel.set(title=title, xlabel="kappa [1/J]", xscale="log", yscale="log")
        axes[0, 0].legend(title="filled: converged")


def _convergence(context: Context, log: str, points: list[Point]) -> None:
    alone = [p for p in points if not p.staged and p.kappa in SHOWN]
    with figure(context.picture(f"kappa_convergence_{_file(log)}"), 1, 2, (7.5, 2.3)) as axes:
        for point in alone:
            history = point.outcome.estimate.history
            iterations = [at.iteration for at in history]
            axes[0, 0].semilogy(iterations, [at.cost for at in history], label=f"kappa {point.kappa}")
            axes[0, 1].semilogy(iterations, [max(at.largest_gap, 1e-16) for at in history])
        axes[0, 0].set(title="cost", xlabel="iteration")
        axes[0, 1].set(title="largest gap", xlabel="iteration")
        axes[0, 0].legend()


def _file(log: str) -> str:
    return log.replace(".", "_")
