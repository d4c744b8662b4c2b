# SPDX-License-Identifier: Apache-2.0
"""What a recording told about the inertia of a link, and what only the prior says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from prime_ros.estimation.estimate import Direction, Parameters
from prime_ros.estimation.inertia import PARAMETER_COUNT

Array = NDArray[np.float64]

NAMES = (
    "mass",
    "extent along x",
    "extent along y",
    "extent along z",
    "tilt of the axes in xy",
    "tilt of the axes in yz",
    "tilt of the axes in xz",
    "centre of mass x",
    "centre of mass y",
    "centre of mass z",
)
"""What the log-Cholesky parameters stand for, in their order."""

LEAST_SHARE = 0.1  # of the squared length of a direction that makes a parameter worth naming


def link_directions(parameters: Parameters) -> tuple[Direction, ...]:
    """Ten directions of every link in the space of its log-Cholesky parameters, least known first of all.

    None if the covariance is not finite.
    """
    return tuple(
        Direction(each.link, each.words, float(np.clip(1.0 - each.left, 0.0, 1.0)))
        for each in _principal_of_links(parameters)
    )


def contributions(parameters: Parameters, data: Sequence[Array]) -> Array:
    """Share of every recording in what all of them know of each direction of `link_directions`.

    Args:
        parameters: Of all R recordings together.
        data: Information of every recording without the prior, shape (n, n) each.

    Returns:
        Shape (directions, R) [-]; rows sum to 1, or are NaN where nothing was learned. For a link among
        several it is the information at given parameters of the others.
    """
    known = []
    for each in _principal_of_links(parameters):
        known.append([each.vector @ matrix[each.block, each.block] @ each.vector for matrix in data])
    table = np.array(known).reshape(-1, len(data))
    total = table.sum(axis=1, keepdims=True)
    return np.divide(table, total, out=np.full_like(table, np.nan), where=total > 0.0)


def principal(prior: Array, covariance: Array) -> tuple[Array, Array]:
    """Combinations e' theta that are independent before and after the data: P e = lambda P0 e.

    Args:
        prior: Prior covariance P0, shape (n, n).
        covariance: Posterior covariance P, shape (n, n).

    Returns:
        Share lambda of the prior variance that is left, largest first, shape (n,), and the e as columns, of
        prior variance 1, shape (n, n).
    """
    left, vectors = eigh(0.5 * (covariance + covariance.T), prior)
    return left[::-1], vectors[:, ::-1]


@dataclass(frozen=True)
class _Principal:
    """One direction of a link."""

    link: str
    block: slice
    """Of its parameters."""
    left: float
    """Share of the prior variance that is left."""
    vector: Array
    """P0 e: the step of the parameters along it, one prior std long, shape (10,)."""
    words: str


def _principal_of_links(parameters: Parameters) -> list[_Principal]:
    """Of all links, least known first."""
    if not np.isfinite(parameters.covariance).all():
        return []
    found = []
    for i, link in enumerate(parameters.links):
        block = slice(PARAMETER_COUNT * i, PARAMETER_COUNT * (i + 1))
        prior = parameters.prior_covariance[block, block]
        left, vectors = principal(prior, parameters.covariance[block, block])
        scale = np.sqrt(np.diag(prior))
        for share, e in zip(left, vectors.T, strict=True):
            found.append(_Principal(link, block, float(share), prior @ e, _described(scale * e)))
    return sorted(found, key=lambda each: -each.left)


def _described(vector: Array) -> str:
    """The largest parts of a direction, in units of the prior, with the sign they have against the first."""
    share = vector**2
    order = [int(i) for i in np.argsort(-share) if share[i] >= LEAST_SHARE]
    first = np.sign(vector[order[0]])
    parts = [NAMES[order[0]]]
    parts += [f"{'+' if np.sign(vector[i]) == first else '-'} {NAMES[i]}" for i in order[1:]]
    return " ".join(parts)
