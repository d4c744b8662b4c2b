# SPDX-License-Identifier: Apache-2.0
"""What an estimate says in words, and what to do about it: shared by the terminal summary and the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil, isfinite, log10

import numpy as np
from numpy.typing import NDArray

from prime_ros.estimation.estimate import Estimate, LinkEstimate, SensorReport

CHI_SQUARE_RANGE = (0.8, 1.25)
"""Chi-square per degree of freedom that agrees with the stated noise [-]."""

NOT_CONVERGED = (
    "Look at the sensors flagged below first; then try a part of the recording (--start, --duration) or more "
    "iterations (--set solver.max_iterations=...)."
)
"""What to do about an estimate that did not converge."""


def inertia_lines(estimate: Estimate) -> Iterator[str]:
    """Lines on mass, payload and centre of mass of each identified link, and on the ground height."""
    if not estimate.links:
        yield "Inertia not identified; the nominal one was used."
    for name, link in estimate.links.items():
        yield payload_line(name, link)
        yield com_line(name, link)
        position = payload_position(link)
        if position is not None:
            yield f"{name}: payload at {', '.join(_placed(position, payload_position_std(link)))} m"
    height, std = estimate.ground_height, estimate.std_ground_height
    yield f"ground height: {with_std(1e3 * height, 1e3 * std, sign=True)} mm"


def payload_line(name: str, link: LinkEstimate) -> str:
    """Such as `base: 7.277 -> 10.28 +- 0.01 kg (payload +3.00 kg)`."""
    change = link.estimate.mass - link.nominal.mass
    estimate = with_std(link.estimate.mass, link.std.mass)
    payload = f"{change:+.{decimals(link.std.mass)}f}"
    return f"{name}: {link.nominal.mass:.3f} -> {estimate} kg (payload {payload} kg)"


def com_line(name: str, link: LinkEstimate) -> str:
    """Shift of the centre of mass, axes of the link's frame [mm]."""
    shift = 1e3 * (np.asarray(link.estimate.com) - np.asarray(link.nominal.com))
    std = 1e3 * np.asarray(link.std.com)
    axes = (f"{a} {with_std(s, d, sign=True)}" for a, s, d in zip("xyz", shift, std, strict=True))
    return f"{name}: com shift {', '.join(axes)} mm"


def payload_position(link: LinkEstimate) -> NDArray[np.float64] | None:
    """Where an added mass would explain the change, if there is a clear one: 5 std and 1 % of the link.

    Returns:
        Shape (3,), in the frame of the link [m], or None.
    """
    nominal, estimate = link.nominal, link.estimate
    mass = estimate.mass - nominal.mass
    if not mass > max(5.0 * link.std.mass, 0.01 * nominal.mass):
        return None
    return (estimate.mass * np.asarray(estimate.com) - nominal.mass * np.asarray(nominal.com)) / mass


def payload_position_std(link: LinkEstimate) -> NDArray[np.float64]:
    """Standard deviation of `payload_position`, to first order, shape (3,) [m]; NaN if not known."""
    if link.covariance is None:
        return np.full(3, np.nan)
    nominal, estimate = link.nominal, link.estimate
    mass = estimate.mass - nominal.mass
    shift = np.asarray(nominal.com) - np.asarray(estimate.com)
    jacobian = np.column_stack([nominal.mass * shift / mass**2, np.eye(3) * estimate.mass / mass])
    variance = np.diag(jacobian @ link.covariance[:4, :4] @ jacobian.T)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


def _placed(position: NDArray[np.float64], std: NDArray[np.float64]) -> list[str]:
    """Position by axis, with as much of its deviation as is known [m]."""
    digits = [max(decimals(s), 3) for s in std]
    bars = [f" +- {s:.{d}f}" if isfinite(s) else "" for s, d in zip(std, digits, strict=True)]
    return [f"{a} {p:+.{d}f}{bar}" for a, p, d, bar in zip("xyz", position, digits, bars, strict=True)]


def noise_advice(sensors: Mapping[str, SensorReport]) -> Iterator[str]:
    """What to do about each sensor whose residuals do not fit its stated noise."""
    low, high = CHI_SQUARE_RANGE
    for name, report in sensors.items():
        ratio = report.chi_square_per_dof
        if not report.measured or not isfinite(ratio) or low <= ratio <= high:
            continue
        factor = f"multiply its noise std by {np.sqrt(ratio):.2f}"
        if ratio > high:
            yield (
                f"{name}: residuals exceed the stated noise; check the sensor (clock, mounting, "
                f"calibration), and if it is right, {factor}"
            )
        else:
            yield f"{name}: residuals are below the stated noise; {factor} to get the most out of it"


def decimals(std: float) -> int:
    """Decimals that show one to two digits of a standard deviation."""
    return min(max(ceil(-log10(std)), 0), 4) if isfinite(std) and std > 0.0 else 3


def with_std(value: float, std: float, sign: bool = False, between: str = "+-") -> str:
    """Such as `10.28 +- 0.01`."""
    digits = decimals(std)
    return f"{value:{'+' if sign else ''}.{digits}f} {between} {std:.{digits}f}"
