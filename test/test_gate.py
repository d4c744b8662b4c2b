# SPDX-License-Identifier: Apache-2.0
"""Measurements that contradict all others lose their weight, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from simulation import Array, Truth, config, go2, measure, trot

from prime_ros.estimation.estimate import Estimate
from prime_ros.estimation.full_information import solve
from prime_ros.measurements import KnotMeasurements

STEPS = 120
NO_GATES = "outliers={mocap: 0, gyroscope: 0, joint_position: 0, joint_velocity: 0, joint_torque: 0}"


@cache
def simulated() -> tuple[Truth, KnotMeasurements]:
    truth = trot(STEPS, seed=5)
    return truth, measure(truth, seed=6)


def hit(values: Array, seed: int, size: float, share: float = 0.02) -> tuple[Array, Array]:
    """Values with some of the entries, and never the last rows, moved by `size`; and where."""
    random = np.random.default_rng(seed)
    where = random.random(values.shape) < share
    where[-2:] = False
    return values + size * where * random.choice([-1.0, 1.0], values.shape), where


def poses(m: KnotMeasurements) -> tuple[KnotMeasurements, Array]:
    position, where = hit(m.base_position_W[:, :1], 1, 0.08, 0.05)
    return replace(m, base_position_W=np.hstack([position, m.base_position_W[:, 1:]])), np.repeat(where, 3, 1)


def rates(m: KnotMeasurements) -> tuple[KnotMeasurements, Array]:
    rate, where = hit(m.base_angular_velocity_B[:, :1], 2, 1.0, 0.05)
    moved = np.hstack([rate, m.base_angular_velocity_B[:, 1:]])
    return replace(m, base_angular_velocity_B=moved), np.repeat(where, 3, 1)


def positions(m: KnotMeasurements) -> tuple[KnotMeasurements, Array]:
    moved, where = hit(m.joint_position, 3, 0.1)
    return replace(m, joint_position=moved), where


def velocities(m: KnotMeasurements) -> tuple[KnotMeasurements, Array]:
    moved, where = hit(m.joint_velocity, 4, 3.0)
    return replace(m, joint_velocity=moved), where


def torques(m: KnotMeasurements, seed: int) -> KnotMeasurements:
    return replace(m, joint_torque=hit(m.joint_torque, seed, 40.0, 0.01)[0])


CASES: dict[str, Callable[[KnotMeasurements], tuple[KnotMeasurements, Array]]] = {
    "mocap position": poses,
    "gyroscope": rates,
    "joint position": positions,
    "joint velocity": velocities,
}


@cache
def clean() -> Estimate:
    return solve(simulated()[1], go2(), config())


def payload_error(estimate: Estimate, truth: Truth) -> float:
    return abs(estimate.links["base"].estimate.mass - truth.base.mass)


def force_error(estimate: Estimate, truth: Truth) -> float:
    return float(np.sqrt(np.mean((estimate.contact_force_W - truth.force_W) ** 2)))


def test_clean_measurements_are_all_used() -> None:
    estimate = clean()
    assert estimate.certificate.converged
    assert {name: report.rejected for name, report in estimate.sensors.items() if report.rejected} == {}
    ungated = solve(simulated()[1], go2(), config(NO_GATES))
    np.testing.assert_allclose(ungated.contact_force_W, estimate.contact_force_W, atol=0.05)


@pytest.mark.parametrize("sensor", CASES)
def test_outliers_are_found_and_harmless(sensor: str) -> None:
    truth, measurements = simulated()
    bad, where = CASES[sensor](measurements)
    estimate = solve(bad, go2(), config())
    assert estimate.certificate.converged
    report, residuals = estimate.sensors[sensor], estimate.residuals[sensor]
    rows = len(residuals.rejected)
    missed = where[:rows] & ~residuals.rejected
    wrong = residuals.rejected & ~where[:rows]
    assert where[:rows].sum() >= 6
    assert missed.sum() <= 0.1 * where.sum()
    assert wrong.sum() <= 0.002 * wrong.size
    assert report.rejected == residuals.rejected.sum()
    assert report.count + report.rejected == clean().sensors[sensor].count
    assert 0.8 < report.chi_square_per_dof < 1.25
    assert payload_error(estimate, truth) < 3.0 * estimate.links["base"].std.mass
    assert force_error(estimate, truth) < 1.3 * force_error(clean(), truth)


@pytest.mark.parametrize("seed", [0, 1])
def test_wrong_torques_lose_most_of_their_harm(seed: int) -> None:
    # Not all of it: for a moment, a wrong torque can hide in the forces between the feet.
    truth, measurements = simulated()
    bad = torques(measurements, seed)
    gated, ungated = solve(bad, go2(), config()), solve(bad, go2(), config(NO_GATES))
    assert gated.sensors["joint torque"].rejected > 8
    assert payload_error(gated, truth) < 0.3 * payload_error(ungated, truth)
    assert force_error(gated, truth) < 0.5 * force_error(ungated, truth)


def test_rejection_leaves_a_wider_posterior() -> None:
    estimate = solve(torques(simulated()[1], 1), go2(), config())
    lost = estimate.residuals["joint torque"].rejected
    ratio = estimate.std["joint_torque"][lost] / clean().std["joint_torque"][lost]
    assert np.median(ratio) > 1.5


def test_without_gates_outliers_count() -> None:
    bad, _ = velocities(simulated()[1])
    estimate = solve(bad, go2(), config(NO_GATES))
    assert estimate.sensors["joint velocity"].rejected == 0
    assert estimate.sensors["joint velocity"].chi_square_per_dof > 3.0


def test_noise_larger_than_stated_is_not_an_outlier() -> None:
    measurements = simulated()[1]
    random = np.random.default_rng(8)
    std = 3.0 * measurements.std_joint_velocity[0, 0]
    noisy = measurements.joint_velocity + std * random.standard_normal(measurements.joint_velocity.shape)
    estimate = solve(replace(measurements, joint_velocity=noisy), go2(), config())
    assert estimate.sensors["joint velocity"].rejected_share < 0.005
    assert estimate.sensors["joint velocity"].chi_square_per_dof > 4.0


def test_both_solvers_reject_the_same() -> None:
    bad, where = positions(simulated()[1])
    fast = solve(bad, go2(), config())
    reference = solve(bad, go2(), config("solver.name=fddp"))
    np.testing.assert_array_equal(
        fast.residuals["joint position"].rejected, reference.residuals["joint position"].rejected
    )
    assert where[:STEPS].sum() > 10
    np.testing.assert_allclose(
        reference.links["base"].estimate.mass, fast.links["base"].estimate.mass, atol=2e-3
    )


def test_residuals_are_whitened_by_the_stated_noise() -> None:
    estimate, (_, m) = clean(), simulated()
    residuals = estimate.residuals["joint velocity"]
    assert residuals.channels == go2().joint_names
    expected = (estimate.joint_velocity - m.joint_velocity[:STEPS]) / m.std_joint_velocity[:STEPS]
    np.testing.assert_allclose(residuals.whitened[:STEPS], expected, atol=1e-9)
    np.testing.assert_array_equal(residuals.stamp_ns, m.stamp_ns[: len(residuals.whitened)])
    total = np.nansum(residuals.whitened**2)
    assert total == pytest.approx(estimate.sensors["joint velocity"].chi_square)
