# SPDX-License-Identifier: Apache-2.0
"""Units of the IMU."""

from __future__ import annotations

import numpy as np

from prime_ros.measurements.axes import DEGREES
from prime_ros.measurements.findings import Finding
from prime_ros.measurements.rates import Correlation
from prime_ros.measurements.turning import Turning

GRAVITY = 9.81  # [m/s^2]
FAST = 1.0  # [rad/s] rms, at which a robot turns and does not only sway
FASTER = 8.0  # times as fast as poses with their noise: no bias of a gyroscope, no offset of the clocks


def imu_units(turning: Turning, correlation: Correlation, informative: bool) -> tuple[list[Finding], bool]:
    """Check the units of gyroscope and accelerometer.

    Args:
        turning: What motion capture and IMU saw.
        correlation: Of their rates.
        informative: Whether the robot turned enough for the correlation to tell the scale.

    Returns:
        What was found, and whether the accelerometer shows gravity.
    """
    findings = []
    seen = _times_as_fast(correlation, informative)
    if seen is not None:
        what = f"imu: the gyroscope turns {seen} times as fast as motion capture, expected as fast"
        findings.append(Finding("imu-units", "error", what, "it is in deg/s: divide by 57.3"))
    known = np.isfinite(turning.force).all(axis=1)
    if not known.any():
        return findings, False
    typical = float(np.median(np.linalg.norm(turning.force[known], axis=1)))
    if 0.8 < typical < 1.2:
        what = f"imu: the accelerometer shows {typical:.2f} (median), expected 9.81 m/s^2"
        findings.append(Finding("imu-units", "warning", what, "it is in g: multiply by 9.81"))
    elif typical < 0.5 * GRAVITY:
        what = (
            f"imu: the accelerometer shows {typical:.2f} m/s^2 (median), expected 9.81: gravity was taken off"
            " or it is not connected"
        )
        findings.append(Finding("imu-units", "note", what, "frames are checked by angular rate only"))
        return findings, False
    return findings, True


def _times_as_fast(correlation: Correlation, informative: bool) -> str | None:
    """How much faster the gyroscope is than motion capture, if that looks like degrees for radians."""
    if informative:
        gain = float(correlation.free(1).gain[0])
        return f"{1 / gain:.1f}" if 0.7 < gain * DEGREES < 1.4 else None
    poses, gyroscope = np.sqrt(np.array(correlation.power) / max(correlation.points, 1))
    return f"over {FASTER:.0f}" if gyroscope > max(FAST, FASTER * poses) else None
