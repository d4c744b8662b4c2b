# SPDX-License-Identifier: Apache-2.0
"""Time of a contact step and of a whole solve, beside what the paper of PRIME states for its machine."""

from __future__ import annotations

import time

import numpy as np

from prime_ros import _core
from prime_ros.config import load_estimator_config
from prime_ros.experiments.context import Context
from prime_ros.experiments.logs import G1, GO2
from prime_ros.experiments.section import Section, Table
from prime_ros.experiments.solved import solve_problem, step_inputs
from prime_ros.experiments.solving import Case, identified

REPEATS = 7
PAPER = {
    "go2": ("80 µs (rollout with differentiation)", "below 200 s, 1000 knots"),
    "g1": ("not stated", "about 400 s, 1500 knots"),
}
"""Time of a step and of a solve that the paper states, on an Intel Core i9-13900."""


def timing(context: Context) -> Section:
    """Time a step and a solve of both robots."""
    rows = tuple(_row(context, log) for log in (GO2[0], G1[0]))
    return Section(
        name="timing",
        title="Time of a step and of a solve",
        text=(
            "A contact step with all derivatives, on one core, from the measured next velocity as in the"
            " first"
            f" iteration of a solve: median and best of {REPEATS} passes over the recording's states. A"
            " solve goes"
            " from measurements at knots to the estimate with covariance, from cold, on all cores; wall time,"
            f" median over the seeds {context.seed_words}. Wall times depend on the machine and on what"
            " else runs"
            " there. The paper's figures are the paper's, on an Intel Core i9-13900."
        ),
        command=(
            f"prime experiments timing --data DIR --seeds {context.seed_words.replace(' ', '')} --out DIR"
        ),
        parts=(
            Table(
                (
                    "log",
                    "knots",
                    "step, median",
                    "step, best",
                    "paper's step",
                    "iterations",
                    "solve",
                    "paper's solve",
                ),
                rows,
            ),
        ),
    )


def _row(context: Context, log: str) -> tuple[str, ...]:
    outcomes = [context.solves.of(Case(log, seed)) for seed in context.seeds]
    seconds = float(np.median([sum(outcome.estimate.timing.values()) for outcome in outcomes]))
    iterations = float(np.median([outcome.estimate.certificate.iterations for outcome in outcomes]))
    times = 1e6 * _step_times(context, log)
    paper_step, paper_solve = PAPER[identified(log)[0]]
    return (
        log,
        str(len(outcomes[0].estimate.stamp_ns)),
        f"{np.median(times):.0f} µs",
        f"{times.min():.0f} µs",
        paper_step,
        f"{iterations:.0f}",
        f"{seconds:.1f} s",
        paper_solve,
    )


def _step_times(context: Context, log: str) -> np.ndarray:
    """Wall time of one step of every pass, shape (REPEATS,) [s]."""
    outcome = context.solves.of(Case(log, context.seeds[0]))
    config = load_estimator_config("pfie", robot=identified(log)[0])
    solved = solve_problem(outcome.measurements, outcome.robot, config)
    x, step = step_inputs(solved), solved.problem.step
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        _core.benchmark_step(step, x.q, x.v, x.force, x.slack, x.theta, x.measured_next)
        times.append((time.perf_counter() - begin) / x.q.shape[1])
    return np.array(times)
