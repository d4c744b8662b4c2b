# SPDX-License-Identifier: Apache-2.0
"""The ten numbers of an inertia, as tables and figures show them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prime_ros.estimation.estimate import BodyInertia, LinkEstimate
from prime_ros.estimation.identifiability import MOMENTS, learned_shares, values


@dataclass(frozen=True)
class Entry:
    """One number of an inertia."""

    name: str
    unit: str
    nominal: float
    estimate: float
    std: float
    scale: float
    """What a change is measured by: 1 for lengths, else the nominal size."""
    learned: float
    """Share of the prior variance that the data removed [-]; NaN if not known."""

    @property
    def change(self) -> float:
        """Estimate minus nominal, by `scale`."""
        return (self.estimate - self.nominal) / self.scale if self.scale > 0 else float("nan")

    @property
    def change_std(self) -> float:
        """Standard deviation of `change`."""
        return self.std / self.scale if self.scale > 0 else float("nan")


def entries(link: LinkEstimate) -> list[Entry]:
    """Mass, centre of mass [mm] and rotational inertia of a link."""
    moments = np.abs(np.diag(link.nominal.inertia_com))
    scales = {name: float(np.sqrt(moments[row] * moments[column])) for name, (row, column) in MOMENTS.items()}
    nominal, estimate, std = (values(body) for body in (link.nominal, link.estimate, link.std))
    found = []
    for name, learned in learned_shares(link).items():
        unit = "kg" if name == "mass" else "mm" if name.startswith("com") else "kg m²"
        factor = 1e3 if unit == "mm" else 1.0
        scale = {"kg": link.nominal.mass, "mm": 1.0}.get(unit, scales.get(name, 1.0))
        shown = [factor * each[name] for each in (nominal, estimate, std)]
        found.append(Entry(name, unit, shown[0], shown[1], shown[2], scale, learned))
    return found


def principal_moments_std(link: LinkEstimate) -> list[float]:
    """Standard deviations of the estimated principal moments, to first order [kg m^2]; NaN if not known."""
    if link.covariance is None or not np.isfinite(link.covariance).all():
        return [float("nan")] * 3
    _, axes = np.linalg.eigh(np.asarray(link.estimate.inertia_com, dtype=float))
    directions = np.array([np.outer(axis, axis).ravel() for axis in axes.T])
    variance = np.einsum("ki,ij,kj->k", directions, link.covariance[4:, 4:], directions)
    return [float(std) for std in np.sqrt(np.maximum(variance, 0.0))]


def principal_moments(body: BodyInertia) -> list[float]:
    """Moments about the principal axes, increasing [kg m^2]; NaN if the inertia is not finite."""
    matrix = np.asarray(body.inertia_com, dtype=float)
    if not np.isfinite(matrix).all():
        return [float("nan")] * 3
    return [float(moment) for moment in np.linalg.eigvalsh(matrix)]
