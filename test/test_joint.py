# SPDX-License-Identifier: Apache-2.0
"""Several recordings of one body: the inertia is that of the most probable whole, all else their own."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import simulation
from numpy.typing import NDArray
from simulation import config, go2, loaded, measure

from prime_ros.estimation import joint as joint_module
from prime_ros.estimation.full_information import solve
from prime_ros.estimation.inertia import to_inertia
from prime_ros.estimation.joint import TOLERANCE, JointEstimate, solve_joint
from prime_ros.estimation.pieces import sliced
from prime_ros.estimation.progress import Progress
from prime_ros.exceptions import ConfigError, MeasurementError
from prime_ros.measurements import KnotMeasurements

Array = NDArray[np.float64]

STEPS = 60
HEIGHTS = (0.03, -0.02)  # of the ground in two rooms [m]
# No gate: the cost is then smooth, as the reference needs it.
SMOOTH = "outliers={mocap: 0, gyroscope: 0, joint_position: 0, joint_velocity: 0, joint_torque: 0}"


@cache
def recordings(steps: int = STEPS) -> tuple[KnotMeasurements, ...]:
    """Two recordings of one body by motions that differ, on grounds that differ."""
    found = []
    for i, height in enumerate(HEIGHTS):
        settings = config()
        shaking = simulation.simulator.Shaking(
            *(settings.disturbance.force, settings.disturbance.moment),
            *(settings.slack.tangential, settings.slack.normal),
        )
        truth = simulation.simulator.trot(loaded(go2()), settings, steps, height, shaking, seed=30 + i)
        found.append(measure(truth, seed=40 + i))
    return tuple(found)


@cache
def together(*overrides: str) -> JointEstimate:
    return solve_joint(recordings(), go2(), config(SMOOTH, *overrides))


def cost_at(theta: Array) -> float:
    """Negative log-posterior of everything at one inertia of the base: a sum over separate problems.

    The inertia is that of the model and not estimated, so that nothing of the joint solve is in here.
    """
    tight = ["solver.cost_tolerance=1e-9", "solver.gap_tolerance=1e-9", "solver.max_iterations=400"]
    settings = config(SMOOTH, "links=[]", *tight)
    model = go2().model.copy()
    model.inertias[go2().joint_of_link("base")] = to_inertia(theta)
    robot = replace(go2(), model=model)
    parameters = together().parameters
    off = theta - parameters.prior_mean
    total = 0.5 * off @ np.linalg.solve(parameters.prior_covariance, off)
    for measurements in recordings():
        certificate = solve(measurements, robot, settings).certificate
        assert certificate.converged, certificate.reason
        total += certificate.cost
    return float(total)


def test_inertia_is_the_minimum_of_the_sum_of_all_costs() -> None:
    joint = together()
    assert joint.certificate.converged, joint.certificate.reason
    mean, factor = joint.parameters.mean, np.linalg.cholesky(joint.parameters.covariance)
    here = cost_at(mean)
    assert joint.certificate.cost == pytest.approx(here, rel=2e-5)
    size = 0.5  # of the central differences, in standard deviations
    for column in factor.T:
        after, before = cost_at(mean + size * column), cost_at(mean - size * column)
        gradient, curvature = (after - before) / (2 * size), (after - 2 * here + before) / size**2
        # The curvature of the whole cost is that of Gauss-Newton but for second derivatives.
        assert curvature == pytest.approx(1.0, abs=0.2)
        assert abs(gradient / curvature) < 3.0 * TOLERANCE
    # Each alone is somewhere else: the reference would have told.
    for estimate in joint.alone:
        off = np.linalg.solve(factor, estimate.parameters.mean - mean)
        assert np.linalg.norm(off) > 1.0


def test_truth_is_found_with_less_doubt_than_by_each_alone() -> None:
    joint, truth = together(), loaded(go2()).model.inertias[go2().joint_of_link("base")]
    link = joint.links["base"]
    assert abs(link.estimate.mass - truth.mass) < 3.0 * link.std.mass
    assert np.all(np.abs(link.estimate.com - truth.lever) < 3.0 * link.std.com)
    assert np.all(np.abs(link.estimate.inertia_com - truth.inertia) < 3.0 * link.std.inertia_com)
    for alone in joint.alone:
        assert link.std.mass < alone.links["base"].std.mass
        assert np.all(link.std.com < alone.links["base"].std.com)
        assert np.all(link.std.inertia_com < alone.links["base"].std.inertia_com)
        excess = alone.parameters.covariance - joint.parameters.covariance
        assert np.linalg.eigvalsh(excess)[0] > 0.0


def test_every_recording_keeps_its_ground_and_its_motion() -> None:
    joint = together()
    for estimate, alone, height in zip(joint.recordings, joint.alone, HEIGHTS, strict=True):
        assert estimate.certificate.converged
        assert abs(estimate.ground_height - height) < 3.0 * estimate.std_ground_height
        assert estimate.links is joint.links
        assert estimate.parameters is joint.parameters
        # What the other recording knows of the body makes the forces of this one better known.
        assert estimate.std["contact_force_W"].mean() < alone.std["contact_force_W"].mean()
        np.testing.assert_allclose(estimate.base_position_W, alone.base_position_W, atol=0.01)


def test_alone_is_what_a_single_solve_gives() -> None:
    for estimate, measurements in zip(together().alone, recordings(), strict=True):
        single = solve(measurements, go2(), config(SMOOTH))
        np.testing.assert_array_equal(estimate.contact_force_W, single.contact_force_W)
        np.testing.assert_array_equal(estimate.parameters.covariance, single.parameters.covariance)


def test_order_does_not_matter() -> None:
    swapped = solve_joint(recordings()[::-1], go2(), config(SMOOTH))
    step = swapped.parameters.mean - together().parameters.mean
    assert np.sqrt(step @ np.linalg.solve(swapped.parameters.covariance, step)) < 2.0 * TOLERANCE


def test_halves_of_a_recording_together_are_nearly_the_whole() -> None:
    # What is lost is that the second half begins where the first one ends, and nothing else.
    (measurements, _) = recordings(2 * STEPS)
    whole = solve(measurements, go2(), config(SMOOTH))
    halves = solve_joint(
        [sliced(measurements, 0, STEPS), sliced(measurements, STEPS, 2 * STEPS)], go2(), config(SMOOTH)
    )
    assert halves.certificate.converged
    ratio = halves.links["base"].std.mass / whole.links["base"].std.mass
    assert 1.0 < ratio < 1.2
    step = halves.parameters.mean - whole.parameters.mean
    # At most 1.2^2 - 1 = 0.44 of the variance is lost, so the step has a deviation of 0.66 std or less.
    assert np.all(np.abs(step) < 2.0 * 0.66 * np.sqrt(np.diag(whole.parameters.covariance)))


def test_recordings_in_pieces_give_the_same() -> None:
    joint = together("solver.piece=0.4")
    assert joint.certificate.converged
    step = joint.parameters.mean - together().parameters.mean
    assert np.all(np.abs(step) < 0.2 * np.sqrt(np.diag(together().parameters.covariance)))


def test_shares_add_up_and_say_who_knows() -> None:
    joint = together()
    assert joint.shares.shape == (10, 2)
    np.testing.assert_allclose(joint.shares.sum(axis=1), 1.0)
    short = solve_joint([recordings()[0], sliced(recordings()[1], 0, 15)], go2(), config(SMOOTH))
    assert np.all(short.shares[:, 0] > short.shares[:, 1])


def test_several_links_are_shared() -> None:
    joint = together("links=[base, FL_calf]")
    assert joint.certificate.converged
    assert joint.parameters.mean.shape == (20,)
    assert set(joint.links) == {"base", "FL_calf"}
    assert joint.shares.shape == (20, 2)
    for alone in joint.alone:
        for link in joint.links:
            assert np.all(joint.links[link].std.com < alone.links[link].std.com)


def test_recordings_with_different_payloads_contradict_each_other() -> None:
    assert not any(agreement.contradicts for agreement in together().agreements)
    settings = config()
    calm = simulation.simulator.Shaking()
    truth = simulation.simulator.trot(go2(), settings, STEPS, 0.0, calm, seed=1)  # without the payload
    joint = solve_joint([recordings()[0], measure(truth, seed=2)], go2(), config(SMOOTH))
    # Neither can be explained by the mass of the other: no point in going on for long.
    assert not joint.certificate.converged
    assert "load the same" in joint.certificate.reason
    assert joint.rounds < 10
    for agreement in joint.agreements:
        assert agreement.contradicts
        assert abs(agreement.difference[0]) > 10.0  # mass


# Certificate


def test_not_converged_where_a_recording_is_not() -> None:
    joint = together("solver.max_iterations=5")
    assert not joint.certificate.converged
    assert "recording 1, 2 did not converge" in joint.certificate.reason
    assert joint.rounds == 1


def test_not_converged_before_all_end_at_one_inertia(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_module, "MOST_ROUNDS", 1)
    joint = solve_joint(recordings(), go2(), config(SMOOTH))
    assert not joint.certificate.converged
    assert joint.distances.max() > TOLERANCE
    assert all(not estimate.certificate.converged for estimate in joint.recordings)
    assert all("joint solve" in estimate.certificate.reason for estimate in joint.recordings)
    assert all(estimate.certificate.converged for estimate in joint.alone)


def test_progress_tells_recording_and_round() -> None:
    seen: list[Progress] = []
    joint = solve_joint(recordings(), go2(), config(SMOOTH), seen.append)
    assert {at.recording for at in seen} == {1, 2}
    assert {at.recordings for at in seen} == {2}
    assert sorted({at.round for at in seen}) == list(range(1, joint.rounds + 1))
    assert len(seen) == joint.certificate.iterations


@pytest.mark.parametrize(
    ("count", "overrides", "error", "message"),
    [
        (1, (), MeasurementError, "got 1 recordings, expected at least two"),
        (2, ("links=[]",), ConfigError, "expected one: nothing else is shared"),
    ],
)
def test_what_makes_no_sense_is_refused(
    count: int, overrides: tuple[str, ...], error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        solve_joint(recordings()[:count], go2(), config(*overrides))
