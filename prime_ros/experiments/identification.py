# SPDX-License-Identifier: Apache-2.0
"""What identifying the inertia is good for: forces and cost with and without it (PRIME's Table III)."""

from __future__ import annotations

import numpy as np

from prime_ros.experiments.context import Context
from prime_ros.experiments.logs import IDENTIFIED
from prime_ros.experiments.section import Section, Table
from prime_ros.experiments.solving import Case, Outcome

COLUMNS = (
    "log",
    "identification",
    "cost",
    "force x [N]",
    "force y [N]",
    "force z [N]",
    "worst foot [N]",
    "joint torque residual [Nm]",
    "converged",
)


def identification(context: Context) -> Section:
    """Solve with and without identification."""
    rows: list[tuple[str, ...]] = []
    for log in IDENTIFIED:
        for words, overrides in {"with": (), "without": ("links=[]",)}.items():
            outcomes = [context.solves.of(Case(log, seed, overrides)) for seed in context.seeds]
            rows.append((log, words, *_cells(outcomes)))
    seeds = context.seed_words
    return Section(
        name="identification",
        title="Forces and cost with and without identification (as PRIME's Table III)",
        text=(
            "The model has the nominal inertia, the robot carries more. RMS errors of the force of a foot"
            " (sum of its"
            " points) by axis over all feet, and of the worst foot in 3-D; cost: negative log-posterior."
            " Means over"
            f" the seeds {seeds}. The paper compares with a force plate, these logs with the simulated truth."
        ),
        command=f"prime experiments identification --data DIR --seeds {seeds.replace(' ', '')} --out DIR",
        parts=(Table(COLUMNS, tuple(rows)),),
    )


def _cells(outcomes: list[Outcome]) -> tuple[str, ...]:
    cost = np.mean([outcome.estimate.certificate.cost for outcome in outcomes])
    axes = np.mean([outcome.forces.rmse_by_axis for outcome in outcomes], axis=0)
    worst = np.mean([outcome.forces.worst for outcome in outcomes])
    torque = np.mean([outcome.estimate.sensors["joint torque"].rms_residual for outcome in outcomes])
    converged = sum(outcome.estimate.certificate.converged for outcome in outcomes)
    return (
        f"{cost:.0f}",
        *(f"{error:.2f}" for error in axes),
        f"{worst:.2f}",
        f"{torque:.3f}",
        f"{converged} of {len(outcomes)}",
    )
