# SPDX-License-Identifier: Apache-2.0
"""What to do about the offset of the clock of motion capture."""

from __future__ import annotations

from typing import Literal

import numpy as np

from prime_ros.measurements.clocks import Fit
from prime_ros.measurements.findings import ClockOffset, Finding
from prime_ros.measurements.rates import Correlation
from prime_ros.measurements.turning import Turning

SIGNIFICANT = 3.0  # standard deviations
AGREES = 0.7  # gain of the rates below which they are not of one body
USELESS = 0.01  # [s] of standard deviation: one knot


def clock_offset(
    turning: Turning, correlation: Correlation, fitted: Fit | None, mode: Literal["auto", "always", "never"]
) -> tuple[ClockOffset | None, list[Finding]]:
    """Judge the fitted offset.

    Args:
        turning: What motion capture and IMU saw.
        correlation: Of their rates.
        fitted: The fit, or None if the robot hardly turned.
        mode: When to apply the offset: above 3 standard deviations, always, or never.

    Returns:
        The offset, or None where it cannot be told, and what to say about it.
    """
    free = correlation.free(1)
    if fitted is None or not len(free.gain) or free.gain[0] < AGREES:
        what = "the offset between the clocks of motion capture and IMU cannot be told"
        advice = "their rates do not agree" if fitted is not None else "the robot hardly turned"
        return None, [Finding("clock-offset", "note", what, advice)]
    # A stamp does not say where in the interval of its sample the rate was: averaged over the interval before
    # it, at it, or filtered. That is uniform over an interval.
    interval = float(np.median(np.diff(turning.imu_time)))
    std = float(np.hypot(fitted.std, interval / np.sqrt(12.0)))
    text = f"{1e3 * fitted.offset:+.1f} +- {1e3 * std:.1f} ms"
    values: dict[str, float | str | list[float]] = {"seconds": fitted.offset, "std": std}
    if std > USELESS or abs(fitted.offset) > turning.search:
        what = f"the offset between the clocks of motion capture and IMU is too uncertain: {text}"
        return None, [Finding("clock-offset", "note", what, "let the robot turn more", values)]
    clear = abs(fitted.offset) > SIGNIFICANT * std
    applied = mode == "always" or (mode == "auto" and clear)
    late = "late" if fitted.offset < 0 else "early"
    if applied:
        what = f"the stamps of motion capture are {late}: {text} was added, so that it turns with the IMU"
        advice = (
            f"sampling.clock_offset.mocap={fitted.offset:.4f} makes it permanent,"
            " sampling.clock_offset.estimate=never leaves it out"
        )
        findings = [Finding("clock-offset", "warning" if clear else "note", what, advice, values)]
    elif clear:
        what = f"the stamps of motion capture are {late} by the way it turns with the IMU: {text} is missing"
        findings = [
            Finding("clock-offset", "warning", what, "set sampling.clock_offset.estimate=auto", values)
        ]
    else:
        findings = []
    return ClockOffset(fitted.offset, std, applied), findings
