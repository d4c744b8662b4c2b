# SPDX-License-Identifier: Apache-2.0
"""Log-Cholesky parameters of inertia."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from differences import assert_derivative, central_differences
from hypothesis import given, settings
from hypothesis import strategies as st
from models import ROBOT_NAMES, robot_case

from prime_ros.estimation import inertia
from prime_ros.estimation.estimate import BodyInertia
from prime_ros.exceptions import RobotError

SEEDS = st.integers(0, 2**32 - 1)


def random_theta(seed: int) -> np.ndarray:
    """Parameters of a body of some kilograms and some decimetres."""
    random = np.random.default_rng(seed)
    centre = np.array([0.8, -2.0, -2.2, -1.8, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    spread = np.array([0.8, 0.7, 0.7, 0.7, 0.1, 0.1, 0.1, 0.2, 0.2, 0.2])
    return centre + spread * random.standard_normal(10)


def flat(body: BodyInertia) -> np.ndarray:
    return np.concatenate([[body.mass], body.com, body.inertia_com.ravel()])


@settings(max_examples=50, deadline=None)
@given(SEEDS)
def test_round_trip_through_inertia(seed: int) -> None:
    theta = random_theta(seed)
    np.testing.assert_allclose(inertia.from_inertia(inertia.to_inertia(theta)), theta, rtol=0, atol=1e-8)


@settings(max_examples=50, deadline=None)
@given(SEEDS)
def test_every_theta_is_a_physical_inertia(seed: int) -> None:
    body = inertia.body_inertia(random_theta(seed))
    moments = np.linalg.eigvalsh(body.inertia_com)
    assert body.mass > 0.0
    assert moments[0] > 0.0
    assert moments[2] < moments[0] + moments[1]


@pytest.mark.parametrize("name", ROBOT_NAMES)
def test_links_of_robots_are_recovered(name: str) -> None:
    case = robot_case(name)
    for joint in case.identified_joints:
        nominal = case.model.inertias[joint]
        body = inertia.body_inertia(inertia.from_inertia(nominal))
        assert body.mass == pytest.approx(nominal.mass, rel=1e-12)
        np.testing.assert_allclose(body.com, nominal.lever, atol=1e-12)
        np.testing.assert_allclose(body.inertia_com, nominal.inertia, rtol=1e-9, atol=1e-12)


def test_mass_and_com_are_read_off_theta() -> None:
    theta = random_theta(3)
    body = inertia.body_inertia(theta)
    assert body.mass == pytest.approx(np.exp(2.0 * theta[0]))
    np.testing.assert_array_equal(body.com, theta[7:])


@pytest.mark.parametrize("seed", range(5))
def test_dynamic_parameters_are_those_of_pinocchio(seed: int) -> None:
    theta = random_theta(seed)
    parameters = inertia.dynamic_parameters(theta)
    np.testing.assert_allclose(
        parameters, inertia.to_inertia(theta).toDynamicParameters(), rtol=1e-10, atol=1e-12
    )
    if hasattr(pin, "LogCholeskyParameters"):
        theirs = pin.LogCholeskyParameters(theta)
        np.testing.assert_allclose(parameters, theirs.toDynamicParameters(), rtol=1e-10, atol=1e-12)
        ours = inertia.dynamic_parameters_jacobian(theta)
        np.testing.assert_allclose(ours, theirs.calculateJacobian(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_jacobian_of_dynamic_parameters(seed: int) -> None:
    theta = random_theta(seed)
    numeric = central_differences(lambda d: inertia.dynamic_parameters(theta + d), 10, step=1e-3)
    assert_derivative(inertia.dynamic_parameters_jacobian(theta), numeric, relative=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_jacobian_of_body_inertia(seed: int) -> None:
    theta = random_theta(seed)
    numeric = central_differences(lambda d: flat(inertia.body_inertia(theta + d)), 10, step=1e-3)
    assert_derivative(inertia.body_inertia_jacobian(theta), numeric, relative=1e-8)


def test_std_is_the_spread_of_samples() -> None:
    random = np.random.default_rng(0)
    theta = random_theta(1)
    root = 1e-3 * random.standard_normal((10, 10))
    samples = theta + random.standard_normal((20_000, 10)) @ root.T
    spread = np.std([flat(inertia.body_inertia(sample)) for sample in samples], axis=0)
    std = inertia.body_inertia_std(theta, root @ root.T)
    np.testing.assert_allclose(flat(std), spread, rtol=0.03)
    assert std.com.shape == (3,)
    assert std.inertia_com.shape == (3, 3)


def test_std_of_certain_parameters_is_zero() -> None:
    assert not np.any(flat(inertia.body_inertia_std(random_theta(2), np.zeros((10, 10)))))


@pytest.mark.parametrize(
    "impossible",
    [
        pin.Inertia(-1.0, np.zeros(3), np.eye(3)),
        pin.Inertia(0.0, np.zeros(3), np.zeros((3, 3))),
        pin.Inertia(1.0, np.array([0.1, 0.0, 0.0]), np.diag([1.0, 1.0, 2.5])),
    ],
    ids=["negative mass", "no mass", "triangle inequality"],
)
def test_impossible_inertia_is_refused(impossible: pin.Inertia) -> None:
    with pytest.raises(RobotError, match="no solid body"):
        inertia.from_inertia(impossible)
