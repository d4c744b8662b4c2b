# SPDX-License-Identifier: Apache-2.0
"""What a recording told about the inertia, and what only the prior says."""

import numpy as np

from prime_ros.estimation.estimate import Direction, Parameters
from prime_ros.estimation.observability import NAMES, link_directions

STD = np.linspace(0.05, 0.5, 10)


def directions(covariance: np.ndarray) -> tuple[Direction, ...]:
    zero = np.zeros(10)
    return link_directions(Parameters(("base",), zero, covariance, zero, np.diag(STD**2)))


def test_parameter_the_data_know_is_learned_and_the_rest_is_not() -> None:
    variance = np.ones(10)
    variance[9] = 0.01
    found = directions(np.diag(variance * STD**2))
    assert len(found) == 10
    assert [d.learned for d in found] == sorted(d.learned for d in found)
    assert found[-1].description == NAMES[9] == "centre of mass z"
    np.testing.assert_allclose(found[-1].learned, 0.99)
    np.testing.assert_allclose([d.learned for d in found[:-1]], 0.0, atol=1e-12)


def test_combinations_are_named_with_their_signs() -> None:
    # Known: the difference of mass and centre of mass z in units of the prior; their sum is not.
    vector = np.zeros(10)
    vector[0], vector[9] = np.sqrt(0.6), -np.sqrt(0.4)
    whitened = np.eye(10) - 0.9 * np.outer(vector, vector)
    found = directions(whitened * np.outer(STD, STD))
    assert found[-1].description == "mass - centre of mass z"
    np.testing.assert_allclose(found[-1].learned, 0.9)


def test_no_covariance_no_directions() -> None:
    assert directions(np.full((10, 10), np.nan)) == ()
