# SPDX-License-Identifier: Apache-2.0
"""Statistics of whitened residuals: are they white noise of the variance that a fit leaves?

A fit absorbs part of the noise: where the stated noise is right, the variance of a whitened residual is not
1 but the degrees of freedom over the number of measurements. Residuals are divided by that expected
deviation first: then N(0, 1) is the right comparison, and chi-square per degree of freedom their mean square.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from prime_ros.estimation.estimate import Residuals, SensorReport
from prime_ros.outputs.report.series import finite

Floats = NDArray[np.float64]
EDGES = np.linspace(-5.0, 5.0, 41)
"""Edges of the bins of the histogram; values outside are counted in the outermost."""
LAGS = 50


@dataclass(frozen=True)
class Whiteness:
    """Pooled statistics of all channels of a sensor; rejected measurements do not count."""

    expected_std: float
    """Deviation of whitened residuals where the stated noise is right [-]."""
    density: Floats
    """Histogram over `EDGES`, integral one."""
    expected: Floats
    """The same of N(0, 1)."""
    autocorrelation: Floats
    """Mean over the channels at lags 0 .. L, shape (L + 1,) [-]."""
    bound: float
    """White noise stays within +- bound at 95 % of the lags [-]."""
    outside: float
    """Share beyond three expected deviations [-]; 0.0027 for N(0, 1)."""


def whiteness(residuals: Residuals, report: SensorReport | None = None) -> Whiteness | None:
    """Statistics of a sensor, or None if nothing is left to count."""
    expected_std = _expected_std(report)
    used = np.where(residuals.rejected, np.nan, finite(residuals.whitened)) / expected_std
    pooled = used[~np.isnan(used)]
    if not pooled.size:
        return None
    width = np.diff(EDGES)
    counts, _ = np.histogram(np.clip(pooled, EDGES[0], EDGES[-1]), EDGES)
    tails = np.concatenate([[0.0], ndtr(EDGES[1:-1]), [1.0]])
    correlation, pairs = autocorrelation(used)
    return Whiteness(
        expected_std=expected_std,
        density=counts / (pooled.size * width),
        expected=np.diff(tails) / width,
        autocorrelation=correlation,
        bound=1.96 / np.sqrt(max(pairs, 1)),
        outside=float(np.mean(np.abs(pooled) > 3.0)),
    )


def _expected_std(report: SensorReport | None) -> float:
    if report is None or not report.count or not 0.0 < report.dof <= report.count:
        return 1.0
    return float(np.sqrt(report.dof / report.count))


def autocorrelation(values: Floats, lags: int = LAGS) -> tuple[Floats, int]:
    """Autocorrelation over time with gaps, products summed over all channels.

    Args:
        values: Shape (K, m), NaN where there is none.
        lags: Largest lag.

    Returns:
        Autocorrelation at lags 0 .. min(lags, K - 1), and how many pairs of neighbours there were.
    """
    known = ~np.isnan(values)
    mean = np.where(known, values, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    products = _lagged(np.where(known, values - mean, 0.0), lags)
    pairs = np.round(_lagged(known.astype(float), lags))
    variance = products[0] / pairs[0] if pairs[0] else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where((pairs > 0) & (variance > 0.0), products / pairs / variance, np.nan)
    return found, int(pairs[min(1, len(pairs) - 1)])


def _lagged(values: Floats, lags: int) -> Floats:
    """Sums over rows and columns of products of rows that are 0 .. lags apart, for shape (K, m)."""
    count = len(values)
    spectrum = np.fft.rfft(values, 2 * count, axis=0)
    power = (spectrum.real**2 + spectrum.imag**2).sum(axis=1)
    return np.fft.irfft(power, 2 * count)[: min(lags, count - 1) + 1]
