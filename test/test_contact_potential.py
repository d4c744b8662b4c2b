# SPDX-License-Identifier: Apache-2.0
"""Contact potentials."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from differences import assert_derivative, central_differences
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_ros.estimation.contact_potential import SmoothedCone, is_feasible

CONE = SmoothedCone(friction=(0.8, 0.5), kappa=300.0)
VELOCITIES = [np.array([0.02, -0.03, 0.05]), np.array([0.5, 0.2, 0.42]), np.array([-1e-3, 2e-3, 4.0])]
SPEEDS = st.floats(-10.0, 10.0)


@settings(max_examples=200, deadline=None)
@given(SPEEDS, SPEEDS, SPEEDS)
def test_impulse_is_inside_the_friction_cone_wherever_it_exists(z_1: float, z_2: float, z_n: float) -> None:
    z = np.array([z_1, z_2, z_n])
    assert is_feasible(CONE, z) == (CONE.missing_normal_velocity(z) < 0.0)
    if CONE.missing_normal_velocity(z) < -1e-12:
        impulse = -CONE.gradient(z)
        assert np.isfinite(CONE.value(z))
        assert np.hypot(impulse[0] / 0.8, impulse[1] / 0.5) < impulse[2]
        assert z[:2] @ impulse[:2] <= 0.0  # friction opposes slip
        assert np.linalg.eigvalsh(CONE.hessian(z))[0] > 0.0


@pytest.mark.parametrize(
    "z", [[0.0, 0.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.8], [0.0, 1.0, 0.4], [0.0, 0.0, np.nan]]
)
def test_outside_of_the_cone_is_infeasible(z: list[float]) -> None:
    assert not is_feasible(CONE, np.array(z))


def test_missing_normal_velocity_leads_to_the_boundary() -> None:
    z = np.array([0.3, -0.4, -0.1])
    z[2] += CONE.missing_normal_velocity(z)
    assert CONE.missing_normal_velocity(z) == pytest.approx(0.0, abs=1e-15)
    assert z[2] == pytest.approx(np.hypot(0.8 * 0.3, 0.5 * 0.4))


@pytest.mark.parametrize("z", VELOCITIES)
def test_gradient_and_hessian(z: np.ndarray) -> None:
    value = central_differences(lambda d: np.array([CONE.value(z + d)]), 3)
    assert_derivative(CONE.gradient(z)[None], value)
    assert_derivative(CONE.hessian(z), central_differences(lambda d: CONE.gradient(z + d), 3))


@pytest.mark.parametrize("z", VELOCITIES)
def test_sensitivity_to_friction_and_kappa(z: np.ndarray) -> None:
    def gradient(d: np.ndarray) -> np.ndarray:
        friction = (CONE.friction[0] + d[0], CONE.friction[1] + d[1])
        return replace(CONE, friction=friction, kappa=CONE.kappa * (1.0 + d[2])).gradient(z)

    assert CONE.parameter_names == ("mu_1", "mu_2", "kappa")
    analytic = CONE.gradient_sensitivity(z) * [1.0, 1.0, CONE.kappa]
    assert_derivative(analytic, central_differences(gradient, 3))


def test_kappa_scales_the_impulse_only() -> None:
    z = VELOCITIES[0]
    np.testing.assert_allclose(replace(CONE, kappa=600.0).gradient(z), 0.5 * CONE.gradient(z))
