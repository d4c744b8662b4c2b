# SPDX-License-Identifier: Apache-2.0
"""The contact step with all its derivatives, in units of Pinocchio's derivatives of inverse dynamics."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from child import processor_time

from prime_ros import _core
from prime_ros.experiments.simulation_logs import Floats
from prime_ros.experiments.solved import Solved, step_inputs

GUESSES = ("cold", "measured", "solved")
"""First guesses of the next velocity: that of the knot before, as in a simulation; the measured one of the
next knot, as in the first iteration of a solve; the solution, as in a linearisation after an evaluation."""


def step_timers(solved: Solved) -> dict[str, Callable[[], float]]:
    """Timers of a pass over the estimated states [s per call]: one per guess, and the reference, `rnea`."""
    inputs, step, model = step_inputs(solved), solved.problem.step, solved.robot.model
    q, v, count = inputs.q, inputs.v, inputs.q.shape[1]
    acceleration = np.asfortranarray((inputs.v_next - v) / solved.config.dt)
    guesses = dict(zip(GUESSES, (v, inputs.measured_next, inputs.v_next), strict=True))

    def timer(guess: Floats) -> Callable[[], float]:
        given = (inputs.force, inputs.slack, inputs.theta, guess)
        return lambda: processor_time(lambda: _core.benchmark_step(step, q, v, *given)) / count

    def rnea() -> float:
        return processor_time(lambda: _core.benchmark_rnea_derivatives(model, q, v, acceleration)) / count

    return {**{name: timer(guess) for name, guess in guesses.items()}, "rnea": rnea}
