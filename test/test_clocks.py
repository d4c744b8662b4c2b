# SPDX-License-Identifier: Apache-2.0
"""Offset of the clocks and rotation of the sensors: found, and as uncertain as they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from perturbed import bundled, every, late
from recordings import NS
from scipy.spatial.transform import Rotation
from simulation import go2

from prime_ros.config import load_estimator_config
from prime_ros.measurements import align
from prime_ros.measurements.clocks import Fit, fit
from prime_ros.measurements.preparation import prepare
from prime_ros.measurements.rates import GRID, Correlation, gyro_rates, integrated, pose_rates

Array = NDArray[np.float64]
SEEDS = 24
OFFSET = 0.0137  # [s]
NOISE = np.deg2rad(0.5)
MOUNT = Rotation.from_euler("xyz", [20, -40, 130], degrees=True)


def shaken(seed: int, rate_hz: float = 500.0, duration: float = 8.0) -> tuple[Array, Array, Array, Array]:
    """A body that rocks while it turns: times and poses of motion capture, and of a biased gyroscope."""
    random = np.random.default_rng(seed)
    time = np.arange(-0.2, duration + 0.2, 1 / rate_hz)
    # Small steps of constant rate, as a sampled gyroscope sees them; every seed moves alike.
    rocking = np.array([0.8, 0.6, 0.4]) * np.sin(2 * np.pi * np.outer(time, [2.1, 2.9, 0.7]) + [0, 1, 2])
    rate = rocking + np.array([0, 0, 0.5])
    path = integrated(time, rate)
    mocap_time = np.arange(0.0, duration, 0.01)
    at = np.searchsorted(time, mocap_time + OFFSET)
    back = Rotation.from_rotvec((mocap_time + OFFSET - time[at])[:, None] * rate[at])
    noise = Rotation.from_rotvec(NOISE * random.standard_normal((len(at), 3)))
    pose = path[at] * back * MOUNT.inv() * noise
    bias = np.array([0.02, -0.03, 0.05])
    return mocap_time, pose.as_quat(), time, rate + bias + 0.02 * random.standard_normal(rate.shape)


def fitted(seed: int) -> Fit:
    mocap_time, quat, time, rate = shaken(seed)
    grid = np.arange(0.0, 8.0, GRID)
    free = Correlation.of(
        pose_rates(mocap_time, quat, grid, 0.1), gyro_rates(time, rate, grid, 0.03), 0.5
    ).free()
    found = fit(mocap_time, quat, time, rate, [(float(free.lag[0]), free.rotation[0])], 0.03)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def fits() -> list[Fit]:
    return [fitted(seed) for seed in range(SEEDS)]


def test_the_offset_errs_as_much_as_it_says(fits: list[Fit]) -> None:
    error = np.array([found.offset - OFFSET for found in fits])
    std = np.array([found.std for found in fits])
    assert (std < 1e-3).all()
    assert 0.65 < np.sqrt(np.mean((error / std) ** 2)) < 1.4
    assert abs(np.mean(error / std)) < 3 / np.sqrt(SEEDS)


def test_the_rotation_errs_as_much_as_it_says(fits: list[Fit]) -> None:
    error = np.array([(MOUNT.inv() * Rotation.from_matrix(found.R_MI)).as_rotvec() for found in fits])
    std = np.sqrt([np.diag(found.cov_rotation) for found in fits])
    assert np.rad2deg(std).max() < 1.0
    assert (np.sqrt(np.mean((error / std) ** 2, axis=0)) > 0.6).all()
    assert (np.sqrt(np.mean((error / std) ** 2, axis=0)) < 1.5).all()


def test_the_residual_is_the_noise_of_the_poses(fits: list[Fit]) -> None:
    assert np.mean([found.residual for found in fits]) == pytest.approx(NOISE, rel=0.05)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_blockwise_integration_is_the_plain_product(count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    time, rate = np.cumsum(random.uniform(0.001, 0.02, count)), random.standard_normal((count, 3))
    turn, expected = Rotation.identity(), [Rotation.identity()]
    for step, value in zip(np.diff(time), rate[1:], strict=True):
        turn = turn * Rotation.from_rotvec(step * value)
        expected.append(turn)
    error = Rotation.concatenate(expected).inv() * integrated(time, rate)
    assert error.magnitude().max() < 1e-10


@pytest.mark.parametrize("seconds", [0.03, -0.2, 0.45])
def test_late_motion_capture_is_put_right(seconds: float) -> None:
    config = load_estimator_config("pfie")
    prepared = prepare(late(bundled(), seconds), go2(), config)
    assert prepared.clock is not None
    assert prepared.clock.applied
    assert prepared.clock.seconds == pytest.approx(-seconds, abs=1e-3)
    assert prepared.clock.std < 1e-3
    shift = prepared.mocap.stamp_ns - bundled().mocap.stamp_ns
    assert np.abs(shift).max() < NS // 1000
    (finding,) = prepared.findings
    word = "late" if seconds > 0 else "early"
    assert f"motion capture are {word}: {1e3 * prepared.clock.seconds:+.1f} +- 0.8 ms" in str(finding)


def test_a_good_clock_is_left_alone() -> None:
    prepared = prepare(bundled(), go2(), load_estimator_config("pfie"))
    assert prepared.clock is not None
    assert not prepared.clock.applied
    assert abs(prepared.clock.seconds) < 2 * prepared.clock.std
    np.testing.assert_array_equal(prepared.mocap.stamp_ns, bundled().mocap.stamp_ns)


@pytest.mark.parametrize("mode", ["never", "always"])
def test_the_offset_is_applied_as_configured(mode: str) -> None:
    config = load_estimator_config("pfie", [f"sampling.clock_offset.estimate={mode}"])
    whole = late(bundled(), 0.03) if mode == "never" else bundled()
    prepared = prepare(whole, go2(), config)
    assert prepared.clock is not None
    assert prepared.clock.applied == (mode == "always")
    if mode == "never":
        assert "-29" in str(prepared.findings[0])
        assert "estimate=auto" in str(prepared.findings[0])


def test_the_offset_adds_to_the_configured_one() -> None:
    config = load_estimator_config("pfie", ["sampling.clock_offset.mocap=-3"])
    whole = late(bundled(), 3.03)
    knots = align(whole, go2(), config)
    assert knots.diagnostics.clock is not None
    assert knots.diagnostics.clock.seconds == pytest.approx(-0.03, abs=1e-3)
    assert len(knots.stamp_ns) > 990


def test_without_imu_there_is_no_offset() -> None:
    prepared = prepare(replace(late(bundled(), 0.03), imu=None), go2(), load_estimator_config("pfie"))
    assert prepared.clock is None


def test_a_robot_that_hardly_turns_gives_no_offset() -> None:
    prepared = prepare(bundled().cropped(0.0, 1.05), go2(), load_estimator_config("pfie"))
    assert prepared.clock is None
    assert [finding.severity for finding in prepared.findings] == ["note"]


def test_slow_streams_give_an_offset_too() -> None:
    prepared = prepare(late(every(bundled(), imu=5, mocap=4), 0.03), go2(), load_estimator_config("pfie"))
    assert prepared.clock is not None
    assert prepared.clock.seconds == pytest.approx(-0.03, abs=3 * prepared.clock.std)
