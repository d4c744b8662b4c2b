# SPDX-License-Identifier: Apache-2.0
"""The contact step with all its derivatives, in units of Pinocchio's derivatives of inverse dynamics."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from child import processor_time
from simulation_logs import Floats
from speed_problem import Solved

from prime_ros import _core

GUESSES = ("cold", "measured", "solved")
"""First guesses of the next velocity: that of the knot before, as in a simulation; the measured one of the
next knot, as in the first iteration of a solve; the solution, as in a linearisation after an evaluation."""


def step_timers(solved: Solved) -> dict[str, Callable[[], float]]:
    """Timers of a pass over the estimated states [s per call]: one per guess, and the reference, `rnea`."""
    model, knots = solved.robot.model, solved.problem.knots
    nq, nv = model.nq, model.nv
    q, velocity = solved.states[:nq, :-1], solved.states[nq : nq + nv]
    force = solved.controls[:nv].copy()
    force[nv - len(knots.torque) :] += knots.torque[:, :-1]
    theta = solved.states[nq + nv :, 0]
    v, v_next = velocity[:, :-1], velocity[:, 1:]
    slack, acceleration = solved.controls[nv:], (v_next - v) / solved.config.dt
    guesses = dict(zip(GUESSES, (v, solved.problem.states[nq : nq + nv, 1:], v_next), strict=True))
    q, v, force, slack, acceleration = (_columns(array) for array in (q, v, force, slack, acceleration))

    step, count = solved.problem.step, q.shape[1]

    def timer(guess: Floats) -> Callable[[], float]:
        guess = _columns(guess)
        return lambda: (
            processor_time(lambda: _core.benchmark_step(step, q, v, force, slack, theta, guess)) / count
        )

    def rnea() -> float:
        return processor_time(lambda: _core.benchmark_rnea_derivatives(model, q, v, acceleration)) / count

    return {**{name: timer(guess) for name, guess in guesses.items()}, "rnea": rnea}


def _columns(array: Floats) -> Floats:
    """Column-major copy: the core then reads it in place."""
    return np.asfortranarray(array)
