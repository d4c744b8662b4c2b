# SPDX-License-Identifier: Apache-2.0
"""The window of the core against the estimate of the whole recording."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from simulation import Array, config, go2, measure, trot

from prime_ros import _core
from prime_ros.estimation.gate import Gate
from prime_ros.estimation.gauss_newton import solve_gauss_newton
from prime_ros.estimation.problem import Problem, build_problem

STEPS = 30
KAPPA = 500.0
NO_GATES = "outliers={mocap: 0, gyroscope: 0, joint_position: 0, joint_velocity: 0, joint_torque: 0}"


@cache
def problem() -> Problem:
    settings = config(NO_GATES)
    made = build_problem(measure(trot(STEPS, seed=11), seed=12), go2(), settings)
    made.step.kappa = KAPPA
    return made


@cache
def whole() -> _core.GaussNewton:
    """Solver of all knots, converged."""
    p, settings = problem(), config(NO_GATES, "solver.cost_tolerance=1e-12", "contact.kappa_stages=[500]")
    solver = _core.GaussNewton(p.step, p.knots, p.prior, p.prior_information, threads=1)
    solver.set_trajectory(p.states, p.controls)
    assert solve_gauss_newton(p.step, solver, Gate(p.knots, settings), settings, lambda _: None).converged
    return solver


def next_knot(k: int) -> _core.KnotMeasurement:
    """Knot k with the torque of the step that leads to it."""
    knot, before = problem().knots[k], problem().knots[k - 1]
    knot.torque, knot.control_weight = before.torque, before.control_weight
    return knot


def window(horizon: int, walk: Array | None = None) -> _core.MovingHorizon:
    """A window at the first knot."""
    p = problem()
    made = _core.MovingHorizon(p.step, horizon, np.zeros(p.step.ntheta) if walk is None else walk)
    made.reset(p.prior, p.prior_information, p.knots[0], p.states[:, 0])
    return made


@cache
def converged() -> _core.MovingHorizon:
    """A window that holds all knots, iterated to the end."""
    made = window(STEPS)
    for k in range(1, STEPS + 1):
        made.append(next_knot(k))
        assert made.iterate(3).ok
    for _ in range(20):
        report = made.iterate(1)
    assert report.largest_gap < 1e-8
    return made


def test_window_of_all_knots_is_the_whole_problem() -> None:
    solver, made = whole(), converged()
    posterior = solver.posterior()
    for age in (1, 5, 20, STEPS):
        k = STEPS - age
        np.testing.assert_allclose(made.state(age), solver.states[:, k], atol=2e-6)
        found = made.estimate(age)
        assert found.ok
        np.testing.assert_allclose(found.impulse, solver.impulses[:, k], atol=1e-5)
        nv = problem().step.nv
        std = np.sqrt(np.diag(found.covariance))
        np.testing.assert_allclose(std[:nv], posterior.configuration_std[:, k], rtol=1e-3)
        np.testing.assert_allclose(std[nv : 2 * nv], posterior.velocity_std[:, k], rtol=1e-3)
        np.testing.assert_allclose(found.control_std, posterior.control_std[:, k], rtol=1e-3)
        np.testing.assert_allclose(found.impulse_std, posterior.impulse_std[:, k], rtol=1e-3, atol=1e-9)
        np.testing.assert_allclose(
            found.covariance[2 * nv :, 2 * nv :], posterior.theta_covariance, rtol=1e-3, atol=1e-7
        )


@pytest.mark.parametrize("left", [20, 10, 2])
def test_knots_that_left_the_window_count_once(left: int) -> None:
    # At the minimum, the arrival cost says of the rest exactly what the knots that left it said.
    full = converged()
    states = [full.state(age) for age in range(left + 1)]
    before = full.estimate(1)
    shorter = window(STEPS)
    for k in range(1, STEPS + 1):
        shorter.append(next_knot(k))
        shorter.iterate(3)
    for _ in range(20):
        shorter.iterate(1)
    shorter.set_horizon(left)
    assert shorter.steps == left
    assert shorter.iterate(3).ok
    for age in range(left + 1):
        np.testing.assert_allclose(shorter.state(age), states[age], atol=1e-7)
    after = shorter.estimate(1)
    scale = np.sqrt(np.diag(before.covariance))
    np.testing.assert_allclose(
        after.covariance / np.outer(scale, scale), before.covariance / np.outer(scale, scale), atol=1e-6
    )
    np.testing.assert_allclose(after.impulse_std, before.impulse_std, rtol=1e-6)


def test_moving_window_agrees_with_the_whole_within_its_uncertainty() -> None:
    solver, moving = whole(), window(12)
    for k in range(1, STEPS + 1):
        moving.append(next_knot(k))
        assert moving.iterate(1).ok
        assert moving.refine(6, 1).ok
    nx_theta = problem().step.ntheta
    found = moving.estimate(1)
    difference = moving.state(1) - solver.states[:, STEPS - 1]
    std = np.sqrt(np.diag(found.covariance))[-nx_theta:]
    # Knots leave the window after 0.12 s, before all is known that would have moved their linearisation.
    assert np.all(np.abs(difference[-nx_theta:]) < 2.0 * std)
    force = (found.impulse - solver.impulses[:, STEPS - 1]) / found.impulse_std
    assert np.abs(force).max() < 1.0


def test_refinement_brings_the_newest_knots_to_the_minimum() -> None:
    moving, plain = window(12), window(12)
    refined, unrefined = [], []
    for k in range(1, STEPS + 1):
        for each in (moving, plain):
            each.append(next_knot(k))
            each.iterate(1)
        moving.refine(6, 1)
        if k > 6:
            refined.append(moving.estimate(1).impulse - converged_impulse(k))
            unrefined.append(plain.estimate(1).impulse - converged_impulse(k))
    assert np.std(refined) < 0.5 * np.std(unrefined)


@cache
def converged_impulse(k: int) -> Array:
    """Impulse of the newest step when knots 0 ... k are known and the window is iterated to the end."""
    made = window(STEPS)
    for i in range(1, k + 1):
        made.append(next_knot(i))
        made.iterate(2)
    made.iterate(15)
    return made.estimate(1).impulse


def test_parameters_walk_by_the_given_variance() -> None:
    # Without measurements, what is known of the parameters is the prior, and what was added.
    p = problem()
    ntheta, nv = p.step.ntheta, p.step.nv
    variance = np.linspace(1e-3, 2e-3, ntheta)
    walking = window(1, variance)
    blank = p.knots[0]
    blank.configuration_weight = blank.velocity_weight = np.zeros(nv)
    walking.reset(p.prior, p.prior_information, blank, p.states[:, 0])
    for _ in range(4):
        walking.append(blank)  # three knots leave the window
        walking.iterate(1)
    prior = 1.0 / np.diag(p.prior_information)[2 * nv :]
    found = np.diag(walking.estimate(1).covariance)[2 * nv :]
    np.testing.assert_allclose(found, prior + 3 * variance, rtol=1e-6)


def test_late_measurement_counts_as_if_it_had_come_in_time() -> None:
    late, punctual = window(STEPS), window(STEPS)
    for k in range(1, 11):
        knot = next_knot(k)
        punctual.append(knot)
        if k == 6:
            weight = knot.configuration_weight
            weight[:6] = 0.0
            knot.configuration_weight = weight
        late.append(knot)
    late.set_measurement(4, next_knot(6))
    for each in (late, punctual):
        each.iterate(20)
    for age in range(11):
        np.testing.assert_allclose(late.state(age), punctual.state(age), atol=1e-8)


def test_misuse_is_refused() -> None:
    p = problem()
    with pytest.raises(ValueError, match="walk has size 3"):
        _core.MovingHorizon(p.step, 5, np.zeros(3))
    with pytest.raises(ValueError, match="horizon is 0"):
        _core.MovingHorizon(p.step, 0, np.zeros(p.step.ntheta))
    fresh = _core.MovingHorizon(p.step, 5, np.zeros(p.step.ntheta))
    with pytest.raises(ValueError, match="append before reset"):
        fresh.append(next_knot(1))
    made = window(5)
    with pytest.raises(ValueError, match="two knots"):
        made.iterate(1)
    bad = next_knot(1)
    bad.torque = np.full_like(bad.torque, np.nan)
    with pytest.raises(ValueError, match="torque is not finite"):
        made.append(bad)
    made.append(next_knot(1))
    for age in (-1, 2):
        with pytest.raises(ValueError, match="of that age"):
            made.estimate(age)
        with pytest.raises(ValueError, match="of that age"):
            made.state(age)
    bad = next_knot(1)
    bad.configuration_weight = -np.ones(p.step.nv)
    with pytest.raises(ValueError, match="weight is negative"):
        made.set_measurement(0, bad)
