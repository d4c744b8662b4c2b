# SPDX-License-Identifier: Apache-2.0
"""What several recordings say about the same parameters: Gaussians in information form, added and compared.

A posterior holds its prior and the data of its recording. Information adds up, so that the data alone are the
posterior minus the prior, and everything known is the prior once plus the data of every recording
(docs/joint.md). All is generic in the number n of parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.stats import chi2

from prime_ros.estimation.estimate import Parameters

Array = NDArray[np.float64]

WIDE = 10.0
"""Factor on the std of the prior when recordings are compared: with each other, not with the model."""
LEAST_INFORMATION = 0.9
"""Share that data, not the wide prior, must have in what the others know of a direction that is compared."""
LEAST_RATIO = 1e-4
"""Least information of a recording, over that of the others, in a direction that is compared."""
CONTRADICTION = 1e-3
"""Probability below which recordings contradict each other."""


@dataclass(frozen=True)
class Information:
    """A Gaussian, or a factor of one: exp(-1/2 x' matrix x + vector' x)."""

    matrix: Array
    """Inverse covariance, shape (n, n)."""
    vector: Array
    """Inverse covariance times mean, shape (n,)."""

    @classmethod
    def of(cls, mean: Array, covariance: Array) -> Information:
        """Of a Gaussian with mean (n,) and positive definite covariance (n, n)."""
        matrix = _inverse(covariance)
        return cls(matrix, matrix @ mean)

    @property
    def covariance(self) -> Array:
        """Shape (n, n)."""
        return _inverse(self.matrix)

    @property
    def mean(self) -> Array:
        """Shape (n,)."""
        return np.asarray(cho_solve(cho_factor(self.matrix), self.vector))

    def __add__(self, other: Information) -> Information:
        return Information(self.matrix + other.matrix, self.vector + other.vector)

    def __sub__(self, other: Information) -> Information:
        return Information(self.matrix - other.matrix, self.vector - other.vector)

    def distance(self, point: Array) -> float:
        """Of a point (n,) from the mean, in standard deviations of the Gaussian."""
        step = point - self.mean
        square = float(step @ self.matrix @ step)
        return max(square, 0.0) ** 0.5


def data_alone(posterior: Information, prior: Information) -> Information:
    """What data say without the prior; rounding may not make them know less than nothing."""
    data = posterior - prior
    factor = np.linalg.cholesky(posterior.matrix)
    half = solve_triangular(factor, data.matrix, lower=True)
    share = solve_triangular(factor, half.T, lower=True)
    values, vectors = np.linalg.eigh(0.5 * (share + share.T))
    root = factor @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    return Information(root @ root.T, data.vector)


@dataclass(frozen=True)
class Fusion:
    """Posteriors of one body as one."""

    parameters: Parameters
    """Everything that is known, the common prior once."""
    data: tuple[Information, ...]
    """What every posterior has beyond the prior."""
    agreements: tuple[Agreement, ...]
    """How well each agrees with all others."""


def fuse(posteriors: Sequence[Parameters]) -> Fusion:
    """Combine at least two posteriors of the same links, made with the same prior from different data.

    The posteriors are taken as the Gaussians that they state: where they are far apart, or know little, a
    joint solve of the recordings is more accurate.

    Raises:
        ValueError: If links or priors differ.
    """
    first = posteriors[0]
    ordered = [_reordered(each, first.links) for each in posteriors]
    for each in ordered:
        same = np.allclose(each.prior_mean, first.prior_mean, rtol=1e-9, atol=1e-12)
        if not same or not np.allclose(each.prior_covariance, first.prior_covariance, rtol=1e-9, atol=1e-15):
            raise ValueError("the priors differ")
    prior = Information.of(first.prior_mean, first.prior_covariance)
    data = tuple(data_alone(Information.of(each.mean, each.covariance), prior) for each in ordered)
    total = fused(prior, data)
    parameters = replace(first, mean=total.mean, covariance=total.covariance)
    return Fusion(parameters, data, tuple(agreements(prior, data)))


def _reordered(parameters: Parameters, links: tuple[str, ...]) -> Parameters:
    if sorted(parameters.links) != sorted(links):
        raise ValueError(f"the links differ: {', '.join(parameters.links)} and {', '.join(links)}")
    size = len(parameters.mean) // len(links)
    at = np.concatenate([size * parameters.links.index(link) + np.arange(size) for link in links])
    square = np.ix_(at, at)
    return Parameters(
        links,
        parameters.mean[at],
        parameters.covariance[square],
        parameters.prior_mean[at],
        parameters.prior_covariance[square],
    )


def fused(prior: Information, data: Sequence[Information]) -> Information:
    """Everything that is known: the prior, counted once, and all data."""
    total = prior
    for each in data:
        total = total + each
    return total


@dataclass(frozen=True)
class Agreement:
    """How well one recording agrees with all others."""

    chi_square: float
    """Squared difference in its standard deviations, summed over the directions that both know [-]."""
    dof: int
    """Number of these directions."""
    difference: Array
    """What it says minus what the others say, each parameter in std of that; 0 if not known, shape (n,)."""

    @property
    def probability(self) -> float:
        """That recordings of one body differ by more: small if they contradict each other."""
        return float(chi2.sf(self.chi_square, self.dof)) if self.dof else 1.0

    @property
    def birge_ratio(self) -> float:
        """Factor on the standard deviations that would make the difference what they expect [-]."""
        return (self.chi_square / self.dof) ** 0.5 if self.dof else 0.0

    @property
    def contradicts(self) -> bool:
        """Whether it is unlikely that all saw the same body, or that the model is right for all."""
        return self.probability < CONTRADICTION


def agreements(prior: Information, data: Sequence[Information]) -> list[Agreement]:
    """Compare each of at least two recordings with all others."""
    wide = Information(prior.matrix / WIDE**2, prior.vector / WIDE**2)
    total = fused(wide, data)
    return [_agreement(each, total - each, wide) for each in data]


def _agreement(one: Information, others: Information, wide: Information) -> Agreement:
    """With L L' the information of the others, one predicts L^-1 (y - D m) ~ N(0, A + A A), A = L^-1 D L^-T.

    D and y are `one`, m is the mean of the others.
    """
    factor = np.linalg.cholesky(others.matrix)

    def whitened(matrix: Array) -> Array:
        half = solve_triangular(factor, matrix, lower=True)
        return np.asarray(solve_triangular(factor, half.T, lower=True))

    ratio, vectors = np.linalg.eigh(whitened(one.matrix))
    assumed = np.einsum("ik,ij,jk->k", vectors, whitened(wide.matrix), vectors)
    known = (ratio > LEAST_RATIO) & (1.0 - assumed > LEAST_INFORMATION)
    surprise = vectors.T @ solve_triangular(factor, one.vector - one.matrix @ others.mean, lower=True)
    surprise, ratio, vectors = surprise[known], ratio[known], vectors[:, known]
    square = surprise**2 / (ratio * (1.0 + ratio))
    # The estimate of one alone, minus that of the others, along the known directions.
    columns = solve_triangular(factor.T, vectors, lower=False)
    difference, variance = columns @ (surprise / ratio), (columns**2) @ (1.0 + 1.0 / ratio)
    std = np.sqrt(np.where(variance > 0.0, variance, 1.0))
    return Agreement(float(square.sum()), int(known.sum()), difference / std)


def _inverse(matrix: Array) -> Array:
    inverse = cho_solve(cho_factor(matrix), np.eye(len(matrix)))
    return np.asarray(0.5 * (inverse + inverse.T))
