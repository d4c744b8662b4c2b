# SPDX-License-Identifier: Apache-2.0
"""Central differences, and the comparison of analytic derivatives with them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def central_differences(function: Callable[[Array], Array], size: int, step: float | Array = 1e-5) -> Array:
    """Jacobian at zero of a function of a vector, by five-point central differences (error ~ step^4).

    The step is one for all entries of the vector, or one for each.
    """
    columns = []
    for length, unit in zip(np.broadcast_to(step, size), np.eye(size), strict=True):
        direction = length * unit
        near = function(direction) - function(-direction)
        far = function(2.0 * direction) - function(-2.0 * direction)
        columns.append((8.0 * near - far) / (12.0 * length))
    return np.stack(columns, axis=-1)


def assert_derivative(analytic: Array, numeric: Array, relative: float = 1e-6) -> None:
    """Analytic and numeric derivatives agree entry by entry, and neither is trivially so."""
    assert analytic.shape == numeric.shape
    assert np.any(analytic), "the derivative is zero: the case tests nothing"
    assert not np.array_equal(analytic, numeric), "bit-equal: the derivative is itself a difference"
    np.testing.assert_allclose(analytic, numeric, rtol=relative, atol=relative * np.abs(numeric).max())
