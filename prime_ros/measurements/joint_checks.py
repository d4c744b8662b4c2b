# SPDX-License-Identifier: Apache-2.0
"""Do the channels of the joints agree with each other: is the velocity that of the position?"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from prime_ros.measurements.axes import DEGREES
from prime_ros.measurements.findings import Finding
from prime_ros.measurements.samples import NANOSECONDS, Floats, JointSamples
from prime_ros.robot import Robot

SPAN = 0.05  # [s] over which positions are differenced: the noise of an encoder falls with it
MIN_WINDOWS = 20
MOVES = 4.0  # times its noise that a differenced position varies where the joint moves
AGREE, DISAGREE = 0.8, 0.6  # correlation; filters and delays of drives cost some
SCALES = (0.5, 2.0)
NOTHING = 0.01  # times the change of the position; even degrees for radians leave more
MAX_WINDOWS = 20_000


def joint_findings(joints: JointSamples, robot: Robot) -> list[Finding]:
    """Compare differences of position with velocity for every joint that moves.

    Args:
        joints: Joints in model order and in time order.
        robot: States the noise of the encoders.

    Returns:
        An error for joints whose velocity has the wrong sign, scale or order; nothing if all agree.
    """
    differenced, mean = _rates(joints)
    if len(differenced) < MIN_WINDOWS:
        return []
    noise = np.hypot(np.sqrt(2.0) * robot.noise.joint_position / SPAN, 1e-9)
    flipped, scaled, still, other = [], [], [], []
    count = len(joints.names)
    known = np.isfinite(differenced) & np.isfinite(mean)
    for column in range(count):
        rows = known[:, column]
        if rows.sum() < MIN_WINDOWS or np.std(differenced[rows, column]) < MOVES * noise[column]:
            continue
        position, velocity = differenced[rows, column], mean[rows, column]
        agreement = _correlation(position, velocity)
        if np.std(velocity) < NOTHING * np.std(position):
            still.append(joints.names[column])
        elif agreement > AGREE:
            slope = float(np.std(velocity) / np.std(position))
            if not SCALES[0] < slope < SCALES[1]:
                scaled.append((joints.names[column], slope))
        elif agreement < -AGREE:
            flipped.append(joints.names[column])
        elif agreement < DISAGREE:
            other.append((column, agreement))
    findings = []
    if still:
        what = f"joints: the velocity of {', '.join(still)} is zero although the position changes"
        advice = "record JointState.velocity; leave it empty (NaN in a table) where it is not measured"
        findings.append(Finding("joint-velocity", "error", what, advice))
    if flipped:
        names = ", ".join(flipped)
        what = f"joints: the velocity of {names} has the opposite sign of the change of the position"
        advice = "change the sign of the one that disagrees with the URDF"
        findings.append(Finding("joint-velocity", "error", what, advice))
    if scaled:
        findings.append(_scale_error(scaled))
    if other:
        findings.append(_order_error(other, differenced, mean, joints.names))
    return findings


def _scale_error(scaled: list[tuple[str, float]]) -> Finding:
    names, typical = ", ".join(name for name, _ in scaled), float(np.median([slope for _, slope in scaled]))
    what = f"joints: the velocity of {names} is {typical:.3g} times the change of the position, expected 1"
    if 0.8 < typical / DEGREES < 1.25:
        advice = "the velocity seems to be in deg/s: record rad/s"
    elif 0.8 < typical * DEGREES < 1.25:
        advice = "the position seems to be in degrees: record radians"
    else:
        advice = "check units and gear ratios"
    return Finding("joint-velocity", "error", what, advice)


def _order_error(
    other: list[tuple[int, float]], differenced: Floats, mean: Floats, names: tuple[str, ...]
) -> Finding:
    """Joints whose velocity is not theirs: whose is it?"""
    pairs = []
    for column, agreement in other:
        best, value = column, agreement
        for candidate in range(len(names)):
            rows = np.isfinite(differenced[:, column]) & np.isfinite(mean[:, candidate])
            if (
                rows.sum() >= MIN_WINDOWS
                and (c := _correlation(differenced[rows, column], mean[rows, candidate])) > value
            ):
                best, value = candidate, c
        if value > AGREE:
            pairs.append(f"{names[column]} has that of {names[best]}")
    listed = _first(f"{names[column]} ({agreement:.2f})" for column, agreement in other)
    what = f"joints: velocity and change of position do not correlate for {listed}, expected above {DISAGREE}"
    if pairs:
        advice = (
            f"the order of the velocities differs from that of the positions: by the motion, {_first(pairs)}"
        )
        return Finding("joint-order", "error", what, advice)
    return Finding(
        "joint-velocity", "warning", what, "look at the two channels: noise, delay, or another joint"
    )


def _first(items: Iterable[str], most: int = 4) -> str:
    """The first of many, and how many more there are."""
    listed = list(items)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def _rates(joints: JointSamples) -> tuple[Floats, Floats]:
    """Differenced positions and mean velocities over windows of `SPAN` without gaps, shape (W, n) each."""
    stamp = joints.stamp_ns
    if len(stamp) < 3:
        return np.zeros((0, len(joints.names))), np.zeros((0, len(joints.names)))
    step = float(np.median(np.diff(stamp))) / NANOSECONDS
    lag = max(1, round(SPAN / max(step, 1e-6)))
    stride = max(1, lag // 2, (len(stamp) - lag) // MAX_WINDOWS)
    first = np.arange(0, len(stamp) - lag, stride)
    span = (stamp[first + lag] - stamp[first]) / NANOSECONDS
    first = first[(span < 2 * lag * step)]
    span = (stamp[first + lag] - stamp[first])[:, None] / NANOSECONDS
    held = np.diff(stamp)[:, None] / NANOSECONDS * joints.velocity[1:]
    unknown = ~np.isfinite(held)
    total = np.vstack([np.zeros((1, held.shape[1])), np.cumsum(np.where(unknown, 0.0, held), axis=0)])
    gaps = np.vstack([np.zeros((1, held.shape[1])), np.cumsum(unknown, axis=0)])
    mean = np.where(gaps[first + lag] > gaps[first], np.nan, total[first + lag] - total[first]) / span
    return (joints.position[first + lag] - joints.position[first]) / span, mean


def _correlation(one: Floats, other: Floats) -> float:
    size = float(np.std(one) * np.std(other))
    return float(np.mean((one - one.mean()) * (other - other.mean())) / size) if size > 0 else 0.0
