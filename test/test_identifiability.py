# SPDX-License-Identifier: Apache-2.0
"""Which numbers of an inertia rest on the prior, and that whoever reads the results is told."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from rich.console import Console
from simulation import config, go2, measure, trot
from synthetic import synthetic_estimate

from prime_ros.estimation.covariance import links_of
from prime_ros.estimation.estimate import BodyInertia, Estimate, LinkEstimate, Parameters
from prime_ros.estimation.full_information import solve
from prime_ros.estimation.identifiability import (
    MOMENTS,
    UNKNOWN,
    learned_shares,
    prior_dominated,
    values,
    warnings,
)
from prime_ros.estimation.inertia import body_inertia, from_inertia
from prime_ros.outputs.advice import payload_position, payload_position_std
from prime_ros.outputs.inertia_entries import principal_moments, principal_moments_std
from prime_ros.outputs.summary import print_summary
from prime_ros.outputs.write import write_results


def known(*names: str) -> LinkEstimate:
    """A link of which the data know some numbers well and nothing of the others."""
    ones = BodyInertia(1.0, np.ones(3), np.ones((3, 3)))
    inertia = np.ones((3, 3))
    com = np.array([0.1 if f"com {axis}" in names else 0.9 for axis in "xyz"])
    for name, at in MOMENTS.items():
        inertia[at] = inertia[at[::-1]] = 0.1 if name in names else 0.9
    std = BodyInertia(0.1 if "mass" in names else 0.9, com, inertia)
    return LinkEstimate(ones, ones, std, prior_std=ones)


def posterior(scale: float = 1.0, correlated: bool = False) -> Parameters:
    """Of the base of the Go2; `scale` on the std of the prior is left."""
    mean = from_inertia(go2().model.inertias[1])
    prior = np.diag(np.array([0.25, *3 * [0.3], *3 * [0.05], *3 * [0.1]]) ** 2)
    factor = np.eye(10)
    if correlated:
        factor = factor + 0.4 * np.random.default_rng(3).standard_normal((10, 10))
    covariance = scale**2 * factor @ prior @ factor.T
    return Parameters(("base",), mean, covariance, mean, prior)


def test_numbers_beyond_the_threshold_are_named() -> None:
    link = known("mass", "com x", "Ixx")
    assert prior_dominated(link) == ["com y", "com z", "Iyy", "Izz", "Ixy", "Ixz", "Iyz"]
    assert learned_shares(link)["mass"] == pytest.approx(0.99)
    assert learned_shares(link)["Izz"] == pytest.approx(1.0 - 0.81)
    assert prior_dominated(known(*values(link.std))) == []
    assert list(warnings({"base": known(*values(link.std))})) == []


@pytest.mark.parametrize(
    ("left", "weak"), [(0.99 * np.sqrt(1 - UNKNOWN), 0), (1.01 * np.sqrt(1 - UNKNOWN), 10)]
)
def test_threshold_is_a_factor_of_two_in_information(left: float, weak: int) -> None:
    (link,) = links_of(posterior(left), go2()).values()
    assert len(prior_dominated(link)) == weak
    np.testing.assert_allclose(list(learned_shares(link).values()), 1.0 - left**2, rtol=1e-9)


def test_unknown_prior_is_no_reason_to_warn() -> None:
    link = replace(known("mass"), prior_std=None)
    assert prior_dominated(link) == []
    assert np.isnan(list(learned_shares(link).values())).all()


def test_warning_names_numbers_and_a_motion() -> None:
    everything = set(values(known().std))
    ((what, advice),) = warnings({"base": known(*everything - {"Izz"})})
    assert what.startswith("base: Izz rests on the prior")
    assert "turn on the spot" in advice
    ((what, advice),) = warnings({"FL_calf": known(*everything - {"com z", "Ixx"})})
    assert what.startswith("FL_calf: com z, Ixx rest on the prior")
    assert "swing FL_calf" in advice
    ((_, advice),) = warnings({"pelvis": known(*everything - {"mass"})}, base="pelvis")
    assert "stand on all feet" in advice


def weak_estimate() -> Estimate:
    """Any moment may act on the base: its turning tells nothing about its inertia."""
    measurements = measure(trot(60, seed=3), seed=4)
    return solve(measurements, go2(), config("disturbance.moment=20.0"))


def test_terminal_report_and_file_tell_what_rests_on_the_prior(tmp_path: Path) -> None:
    estimate = weak_estimate()
    weak = prior_dominated(estimate.links["base"])
    assert weak
    assert "mass" not in weak
    console = Console(file=io.StringIO(), width=400)
    print_summary(estimate, console)
    (line,) = (line for line in console.file.getvalue().splitlines() if "on the prior" in line)
    assert all(name in line for name in weak)
    write_results(estimate, go2(), tmp_path / "out")
    base = yaml.safe_load((tmp_path / "out" / "inertia.yaml").read_text())["links"]["base"]
    assert base["prior_dominated"] == weak
    for name, share in learned_shares(estimate.links["base"]).items():
        assert (share < UNKNOWN) == (name in weak)


# Error bars of what is made of several numbers, against samples


def sampled(parameters: Parameters, count: int = 4000) -> list[BodyInertia]:
    random = np.random.default_rng(5)
    factor = np.linalg.cholesky(parameters.covariance)
    return [body_inertia(parameters.mean + factor @ random.standard_normal(10)) for _ in range(count)]


def test_std_of_principal_moments_is_the_spread_of_samples() -> None:
    parameters = posterior(0.02, correlated=True)
    (link,) = links_of(parameters, go2()).values()
    spread = np.std([principal_moments(body) for body in sampled(parameters)], axis=0)
    np.testing.assert_allclose(principal_moments_std(link), spread, rtol=0.1)


def test_std_of_the_payload_is_the_spread_of_samples() -> None:
    parameters = posterior(0.02, correlated=True)
    heavier = parameters.mean.copy()
    heavier[0] += 0.5 * np.log(1.4)
    heavier[7:] += [0.01, -0.02, 0.03]
    parameters = replace(parameters, mean=heavier)
    (link,) = links_of(parameters, go2()).values()
    assert payload_position(link) is not None
    places = []
    for body in sampled(parameters):
        added = body.mass - link.nominal.mass
        places.append((body.mass * body.com - link.nominal.mass * np.asarray(link.nominal.com)) / added)
    np.testing.assert_allclose(payload_position_std(link), np.std(places, axis=0), rtol=0.1)


def test_no_covariance_no_error_bars() -> None:
    (link,) = synthetic_estimate().links.values()
    assert np.isnan(payload_position_std(link)).all()
    assert np.isnan(principal_moments_std(link)).all()
