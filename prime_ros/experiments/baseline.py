# SPDX-License-Identifier: Apache-2.0
"""Against an estimator with a contact sequence that is fixed beforehand (PRIME's Table VI and Fig. 10)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from prime_ros.experiments.context import Context
from prime_ros.experiments.logs import BASELINE as LOGS
from prime_ros.experiments.logs import TUNING
from prime_ros.experiments.plots import BASELINE, OURS, TRUTH, figure
from prime_ros.experiments.section import Plot, Section, Table
from prime_ros.experiments.solving import Case, Outcome, identified
from prime_ros.experiments.target import Target

FIXED = "estimator=fixed-contact"
HEIGHTS = (0.002, 0.004, 0.008, 0.012, 0.02)  # [m]
SETTLES = (0.01, 0.03, 0.06)  # [s]
SPAN = (4.0, 3.0)  # start and length of what the settings are chosen on [s]
LIMIT = 0.5  # of the baseline's force error that ours may have
SHOWN = (4.0, 6.5)  # [s] of the recording that is drawn
COLUMNS = (
    "log",
    "estimator",
    "force x [N]",
    "force y [N]",
    "force z [N]",
    "worst foot [N]",
    "contact right",
    "base position [mm]",
    "cost",
    "converged",
)
OURS_NAME, BEST_INERTIA = "ours", "fixed contact, our inertia"


def baseline(context: Context) -> Section:
    """Both estimators on the same recordings."""
    rows: list[tuple[str, ...]] = []
    plots: list[Plot] = []
    targets: list[Target] = []
    for log in LOGS:
        outcomes = {
            name: [context.solves.of(case) for case in cases] for name, cases in _cases(context, log).items()
        }
        rows += [(log, name, *_cells(context, log, found)) for name, found in outcomes.items()]
        plots.append(_plot(context, log, outcomes))
        ratio = _ratio(outcomes)
        limit = LIMIT if identified(log)[0] == "g1" else None
        if limit is not None:
            targets.append(
                Target(
                    "baseline", f"{log}: our force error over the baseline's best", ratio, "", highest=limit
                )
            )
    seeds = context.seed_words
    return Section(
        name="baseline",
        title="Against a fixed contact sequence (as PRIME's Table VI and Fig. 10)",
        text=(
            "The baseline (`prime solve --estimator fixed-contact`, [how it"
            " works](concept.md#a-baseline-to-compare-with))"
            " has the same measurements, weights and priors, but takes a foot for standing while it is low,"
            " and holds it"
            " fast by rigid contact. Its settings are the best of [a"
            " grid](#how-the-baselines-settings-were-chosen). It"
            " is given the nominal inertia, the inertia that our estimator found (as the paper, whose"
            " baseline knows the"
            " inertia), or identifies the inertia itself. RMS errors of the force of a foot (sum of its"
            " points) by axis"
            f" over all feet, and of the worst foot in 3-D; means over the seeds {seeds}."
        ),
        command=f"prime experiments baseline --data DIR --seeds {seeds.replace(' ', '')} --out DIR",
        parts=(Table(COLUMNS, tuple(rows)), *plots),
        targets=tuple(targets),
    )


def _cases(context: Context, log: str) -> Mapping[str, list[Case]]:
    ours = {seed: Case(log, seed) for seed in context.seeds}
    return {
        OURS_NAME: list(ours.values()),
        "fixed contact, nominal inertia": [Case(log, seed, (FIXED, "links=[]")) for seed in ours],
        BEST_INERTIA: [Case(log, seed, (FIXED, "links=[]"), mine) for seed, mine in ours.items()],
        "fixed contact, identifying": [Case(log, seed, (FIXED,)) for seed in ours],
    }


def _cells(context: Context, log: str, outcomes: list[Outcome]) -> tuple[str, ...]:
    axes = np.mean([outcome.forces.rmse_by_axis for outcome in outcomes], axis=0)
    converged = sum(outcome.estimate.certificate.converged for outcome in outcomes)
    position = np.mean([context.solves.position_error(log, outcome) for outcome in outcomes])
    return (
        *(f"{error:.2f}" for error in axes),
        f"{np.mean([outcome.forces.worst for outcome in outcomes]):.2f}",
        f"{np.mean([outcome.forces.agreement for outcome in outcomes]):.3f}",
        f"{1e3 * position:.2f}",
        f"{np.mean([outcome.estimate.certificate.cost for outcome in outcomes]):.0f}",
        f"{converged} of {len(outcomes)}",
    )


def _ratio(outcomes: Mapping[str, list[Outcome]]) -> float:
    """Our force error over that of the best variant of the baseline, worst feet, means over the seeds."""
    worst = {name: float(np.mean([each.forces.worst for each in found])) for name, found in outcomes.items()}
    return worst[OURS_NAME] / min(value for name, value in worst.items() if name != OURS_NAME)


def _plot(context: Context, log: str, outcomes: Mapping[str, list[Outcome]]) -> Plot:
    ours, fixed = outcomes[OURS_NAME][0], outcomes[BEST_INERTIA][0]
    stamp = 1e-9 * (ours.estimate.stamp_ns - ours.estimate.stamp_ns[0])
    shown = (stamp >= SHOWN[0]) & (stamp <= SHOWN[1])
    name = f"baseline_{log.replace('.', '_')}"
    feet = ours.forces.feet[:2]
    with figure(context.picture(name), len(feet), 1, (7.5, 3.2), sharex=True) as axes:
        for f, foot in enumerate(feet):
            panel = axes[f, 0]
            panel.plot(
                stamp[shown], ours.forces.true_W[shown, f, 2], color=TRUTH, label="truth", linewidth=1.6
            )
            panel.plot(
                stamp[shown], fixed.forces.estimated_W[shown, f, 2], color=BASELINE, label="fixed contact"
            )
            panel.plot(stamp[shown], ours.forces.estimated_W[shown, f, 2], "--", color=OURS, label="ours")
            panel.set(ylabel=f"{foot} [N]")
        axes[0, 0].legend(ncols=3)
        axes[-1, 0].set(xlabel="time [s]")
    return context.plot(
        name, f"{log}: normal force of two feet, seed {context.seeds[0]}, both with our inertia"
    )


def baseline_tuning(context: Context) -> Section:
    """Force error of the baseline over its settings, on a recording of each robot as the model has it."""
    seed = context.seeds[0]
    rows: list[tuple[str, ...]] = []
    notes: list[str] = []
    for log in TUNING:
        worst = np.array(
            [
                [
                    context.solves.of(_tuning_case(log, seed, height, settle)).forces.worst
                    for settle in SETTLES
                ]
                for height in HEIGHTS
            ]
        )
        rows += [
            (log, f"{1e3 * height:g}", *(f"{value:.2f}" for value in row))
            for height, row in zip(HEIGHTS, worst, strict=True)
        ]
        best = np.unravel_index(np.argmin(worst), worst.shape)
        notes.append(
            f"`{log}`: best at a height of {1e3 * HEIGHTS[best[0]]:g} mm and a time constant of"
            f" {SETTLES[best[1]]:g} s."
        )
    return Section(
        name="baseline-tuning",
        title="How the baseline's settings were chosen",
        text=(
            "Force error of the worst foot [N, 3-D RMS] over the height below which a foot stands"
            " (`fixed_contact.height`)"
            " and the time constant with which its velocity dies out (`fixed_contact.settle`),"
            " with the"
            f" nominal inertia, which is right on these logs, over {SPAN[1]:g} s of walking. Seed {seed}."
            " Chosen is the best of each robot."
        ),
        command=f"prime experiments baseline-tuning --data DIR --seeds {seed} --out DIR",
        parts=(Table(("log", "height [mm]", *(f"settle {settle:g} s" for settle in SETTLES)), tuple(rows)),),
        notes=tuple(notes),
    )


def _tuning_case(log: str, seed: int, height: float, settle: float) -> Case:
    settings = (f"fixed_contact.height={height}", f"fixed_contact.settle={settle}")
    return Case(log, seed, (FIXED, "links=[]", *settings), span=SPAN)
