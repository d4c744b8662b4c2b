# SPDX-License-Identifier: Apache-2.0
"""What a recording told about the inertia of a link, and what only the prior says."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from prime_ros.estimation.estimate import Direction
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


def directions(link: str, prior_std: Array, covariance: Array) -> list[Direction]:
    """Directions in the space of the log-Cholesky parameters of a link, least known first.

    The directions are the eigenvectors of the posterior covariance in units of the prior: P e = lambda P0 e.
    Along each the data have turned the prior variance 1 into lambda.

    Args:
        link: Its name.
        prior_std: Standard deviations of the prior, shape (10,).
        covariance: Posterior covariance, shape (10, 10).

    Returns:
        Ten directions; none if the covariance is not finite.
    """
    if not np.isfinite(covariance).all():
        return []
    whitened = covariance / np.outer(prior_std, prior_std)
    variances, vectors = eigh(0.5 * (whitened + whitened.T))
    found = [
        Direction(link, _described(vectors[:, i]), float(np.clip(1.0 - variances[i], 0.0, 1.0)))
        for i in reversed(range(PARAMETER_COUNT))
    ]
    return found


def _described(vector: Array) -> str:
    """The largest parts of a direction, in units of the prior, with the sign they have against the first."""
    share = vector**2
    order = [int(i) for i in np.argsort(-share) if share[i] >= LEAST_SHARE]
    first = np.sign(vector[order[0]])
    parts = [NAMES[order[0]]]
    parts += [f"{'+' if np.sign(vector[i]) == first else '-'} {NAMES[i]}" for i in order[1:]]
    return " ".join(parts)
