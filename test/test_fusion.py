# SPDX-License-Identifier: Apache-2.0
"""Fusing Gaussians: against least squares over all data at once, and with the spread that it claims."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from prime_ros.estimation.estimate import Parameters
from prime_ros.estimation.fusion import Information, agreements, data_alone, fuse, fused
from prime_ros.estimation.observability import contributions, link_directions

Array = NDArray[np.float64]

N = 10
STD = np.linspace(0.05, 0.5, N)  # of the prior
PRIOR_MEAN = np.linspace(-1.0, 1.0, N)


class Linear:
    """Recordings that measure rows A_i of the same parameters with unit noise, fewer rows than parameters."""

    def __init__(self, seed: int, recordings: int = 3, rows: int = 7, theta: Array | None = None) -> None:
        random = np.random.default_rng(seed)
        self.theta = PRIOR_MEAN + STD * random.standard_normal(N) if theta is None else theta
        self.rows = [random.standard_normal((rows, N)) * 30.0 for _ in range(recordings)]
        self.y = [a @ self.theta + random.standard_normal(rows) for a in self.rows]

    def posterior(self, *which: int) -> Parameters:
        """Of some recordings at once, by least squares with the prior."""
        a = np.vstack([np.diag(1.0 / STD), *(self.rows[i] for i in which)])
        y = np.concatenate([PRIOR_MEAN / STD, *(self.y[i] for i in which)])
        covariance = np.linalg.inv(a.T @ a)
        mean = np.linalg.lstsq(a, y, rcond=None)[0]
        return Parameters(("base",), mean, covariance, PRIOR_MEAN, np.diag(STD**2))


def assert_same(one: Parameters, other: Parameters) -> None:
    std = np.sqrt(np.diag(other.covariance))
    np.testing.assert_allclose((one.mean - other.mean) / std, 0.0, atol=1e-7)
    np.testing.assert_allclose(
        one.covariance / np.outer(std, std), other.covariance / np.outer(std, std), atol=1e-7
    )


def test_fused_is_least_squares_over_all_data_with_the_prior_once() -> None:
    linear = Linear(1)
    fusion = fuse([linear.posterior(i) for i in range(3)])
    assert_same(fusion.parameters, linear.posterior(0, 1, 2))
    for i, data in enumerate(fusion.data):
        np.testing.assert_allclose(data.matrix, linear.rows[i].T @ linear.rows[i], rtol=0, atol=1e-5)
    # Products of the posteriors as they are would count the prior three times.
    naive = sum(
        (Information.of(p.mean, p.covariance) for p in [linear.posterior(i) for i in (1, 2)]),
        Information.of(linear.posterior(0).mean, linear.posterior(0).covariance),
    )
    assert np.all(np.diag(naive.covariance) < 0.9999 * np.diag(fusion.parameters.covariance))


def test_fusing_what_was_fused_is_fusing_all() -> None:
    linear = Linear(2)
    pair = fuse([linear.posterior(0), linear.posterior(1)]).parameters
    assert_same(fuse([pair, linear.posterior(2)]).parameters, linear.posterior(0, 1, 2))


def test_order_of_links_does_not_matter() -> None:
    linear = Linear(3)
    one, other = linear.posterior(0), linear.posterior(1)
    split = [replace(p, links=("base", "calf")) for p in (one, other)]  # five parameters each
    at = np.r_[5:10, 0:5]
    turned = Parameters(
        ("calf", "base"),
        other.mean[at],
        other.covariance[np.ix_(at, at)],
        other.prior_mean[at],
        other.prior_covariance[np.ix_(at, at)],
    )
    assert_same(fuse([split[0], turned]).parameters, fuse(split).parameters)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"links": ("calf",)}, "links differ: calf and base"),
        ({"prior_mean": PRIOR_MEAN + 0.01}, "priors differ"),
        ({"prior_covariance": np.diag(STD**2) * 1.01}, "priors differ"),
    ],
)
def test_what_does_not_belong_together_is_refused(change: dict[str, object], message: str) -> None:
    linear = Linear(4)
    with pytest.raises(ValueError, match=message):
        fuse([linear.posterior(0), replace(linear.posterior(1), **change)])


def test_data_without_prior_never_know_less_than_nothing() -> None:
    prior = Information(np.diag(STD**-2.0), PRIOR_MEAN / STD**2)
    noisy = replace(prior, matrix=prior.matrix * (1.0 - 1e-13))
    assert np.linalg.eigvalsh(data_alone(noisy, prior).matrix)[0] >= 0.0


def test_agreement_has_the_distribution_that_it_claims() -> None:
    prior = Information(np.diag(STD**-2.0), PRIOR_MEAN / STD**2)
    square, dof, alarms = 0.0, 0, 0
    for seed in range(300):
        linear = Linear(seed, recordings=2, rows=12)
        data = [
            data_alone(Information.of(p.mean, p.covariance), prior) for p in map(linear.posterior, (0, 1))
        ]
        first = agreements(prior, data)[0]
        square, dof = square + first.chi_square, dof + first.dof
        alarms += first.contradicts
    assert dof > 2000
    assert abs(square - dof) < 4.0 * np.sqrt(2.0 * dof)
    assert alarms <= 3  # 0.3 expected


def test_agreement_does_not_take_a_body_that_differs_from_the_model_for_a_contradiction() -> None:
    far = Linear(7, recordings=2, rows=12, theta=PRIOR_MEAN + 4.0 * STD)
    fusion = fuse([far.posterior(0), far.posterior(1)])
    assert not any(each.contradicts for each in fusion.agreements)


def test_contradiction_is_found_and_named() -> None:
    theta = PRIOR_MEAN.copy()
    one, other = Linear(8, rows=12, theta=theta), Linear(9, rows=12, theta=theta + 0.5 * np.eye(N)[3])
    fusion = fuse([one.posterior(0), other.posterior(0)])
    for agreement, sign in zip(fusion.agreements, (-1.0, 1.0), strict=True):
        assert agreement.contradicts
        assert int(np.argmax(np.abs(agreement.difference))) == 3
        assert sign * agreement.difference[3] > 3.0


def test_nothing_known_is_no_contradiction() -> None:
    prior = Information(np.diag(STD**-2.0), PRIOR_MEAN / STD**2)
    nothing = Information(np.zeros((N, N)), np.zeros(N))
    found = agreements(prior, [nothing, nothing])
    assert [each.dof for each in found] == [0, 0]
    assert [each.probability for each in found] == [1.0, 1.0]


def test_shares_are_those_of_the_information() -> None:
    linear = Linear(10)
    parameters = linear.posterior(0, 1, 2)
    matrices = [a.T @ a for a in linear.rows]
    shares = contributions(parameters, matrices)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    # What a direction has learned, in units of its prior, is the sum of what each brought.
    learned = np.array([direction.learned for direction in link_directions(parameters)])
    total = fused(Information(np.zeros((N, N)), np.zeros(N)), [Information(m, np.zeros(N)) for m in matrices])
    assert np.all(np.diff(learned) >= 0.0)
    whitened = np.linalg.eigvalsh(np.outer(STD, STD) * total.matrix)
    np.testing.assert_allclose(learned / (1.0 - learned), whitened, rtol=1e-6)
