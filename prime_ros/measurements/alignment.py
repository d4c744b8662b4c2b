# SPDX-License-Identifier: Apache-2.0
"""From samples at their own rates to measurements at equally spaced knots, with standard deviations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prime_ros.config import EstimatorConfig
from prime_ros.exceptions import MeasurementError
from prime_ros.measurements.knots import AlignmentDiagnostics, KnotMeasurements
from prime_ros.measurements.poses import KnotPoses, at_knots, filled_in
from prime_ros.measurements.preparation import Prepared, prepare
from prime_ros.measurements.samples import (
    NANOSECONDS,
    Floats,
    ImuSamples,
    Recording,
    Stamps,
)
from prime_ros.measurements.weights import Average, box, interpolation, triangle
from prime_ros.robot import Robot

MIN_KNOTS = 3
SPARSE = 100  # knots per joint sample; more are a wrong stamp, not a slow stream
MAX_MISSING = 0.5  # share of the knots; without position or torque of a joint the rest is a guess
NEEDED = {
    "position": "Record the position of every joint as JointState.position, or as joint_position in a table",
    "torque": "Record the torque as JointState.effort, or as joint_torque in a table",
}

Window = Callable[[Stamps, Stamps, int, int], Average]


@dataclass(frozen=True)
class _Grid:
    """Knots and the windows on them, in integer nanoseconds."""

    stamp_ns: Stamps
    dt_ns: int
    max_gap_ns: int


def align(recording: Recording, robot: Robot, config: EstimatorConfig) -> KnotMeasurements:
    """Average the samples of a recording onto knots.

    The streams are cleaned and checked first (`prepare`). The first knot is the first joint stamp at least dt
    after every stream has begun; the last one is not after the end of any stream. Samples that are not finite
    or not possible are left out per joint; knots whose window has a gap are without that measurement.

    Args:
        recording: The samples.
        robot: The robot that was recorded; its sensor noise sets the standard deviations.
        config: Spacing of the knots (`dt`) and rules of sampling (`sampling`).

    Returns:
        Measurements at the knots.

    Raises:
        MeasurementError: If a joint of the robot, a whole stream, or most positions or torques of a joint are
            missing, or the streams have too little time in common, or a check found an error; all errors are
            named.
    """
    return align_prepared(prepare(recording, robot, config), robot, config, recording.notes)


def align_prepared(
    streams: Prepared, robot: Robot, config: EstimatorConfig, notes: tuple[str, ...] = ()
) -> KnotMeasurements:
    """The second half of `align`: average streams that are cleaned and checked already.

    Args:
        streams: What `prepare` returned.
        robot: As for `align`.
        config: As for `align`.
        notes: What else the user should know.

    Returns:
        Measurements at the knots.

    Raises:
        MeasurementError: As for `align`.
    """
    _require_no_error(streams)
    grid = _grid(streams, config)
    joints, noise = streams.joints, robot.noise
    position, std_position = _averaged(joints.stamp_ns, joints.position, noise.joint_position, grid, _at_knot)
    velocity, std_velocity = _averaged(joints.stamp_ns, joints.velocity, noise.joint_velocity, grid, box)
    torque, std_torque = _averaged(joints.stamp_ns, joints.torque, noise.joint_torque, grid, triangle)
    _require_measured("position", std_position, robot)
    _require_measured("torque", std_torque[:-1], robot)
    rate, std_rate = _base_rate(streams.imu, robot, grid)
    poses = at_knots(streams.mocap, robot.T_BM, grid.stamp_ns, grid.dt_ns)
    std_base_position, std_base_rotation = _pose_std(poses, robot)
    std = {
        "base_pose": std_base_position,
        "base_angular_velocity": std_rate,
        "joint_position": std_position,
        "joint_velocity": std_velocity,
        "joint_torque": std_torque[:-1],
    }
    return KnotMeasurements(
        stamp_ns=grid.stamp_ns,
        dt=grid.dt_ns / NANOSECONDS,
        base_position_W=poses.position,
        base_quat_xyzw=poses.quat_xyzw,
        base_time_offset=poses.time_offset,
        std_base_position=std_base_position,
        std_base_rotation=std_base_rotation,
        joint_position=position,
        std_joint_position=std_position,
        base_angular_velocity_B=rate,
        std_base_angular_velocity=std_rate,
        joint_velocity=velocity,
        std_joint_velocity=std_velocity,
        joint_torque=torque,
        std_joint_torque=std_torque,
        diagnostics=_diagnostics(streams, std, notes),
    )


def _grid(streams: Prepared, config: EstimatorConfig) -> _Grid:
    stamps = {"joints": streams.joints.stamp_ns, "mocap": streams.mocap.stamp_ns}
    empty = [name for name, stamp in stamps.items() if not stamp.size]
    if empty:
        left_out = [
            f"{count} {reason}" for name in empty for reason, count in streams.counts[name].left_out()
        ]
        raise MeasurementError(
            f"got no valid sample of {' and '.join(empty)}, expected joints and motion capture"
            + (f"; left out: {', '.join(left_out)}" if left_out else "")
        )
    if streams.imu is not None:
        stamps["imu"] = streams.imu.stamp_ns
    dt_ns = round(config.dt * NANOSECONDS)
    start = max(int(stamp[0]) for stamp in stamps.values()) + dt_ns
    end = min(int(stamp[-1]) for stamp in stamps.values())
    later = streams.joints.stamp_ns[np.searchsorted(streams.joints.stamp_ns, start) :]
    knots = (end - int(later[0])) // dt_ns + 1 if later.size else 0
    if knots < MIN_KNOTS:
        spans = ", ".join(f"{name} {_span(stamp, stamps['joints'][0])}" for name, stamp in stamps.items())
        raise MeasurementError(
            f"got {max(knots, 0)} knots of {config.dt} s, expected at least {MIN_KNOTS}: the recording is too"
            f" short or its streams have too little time in common ({spans}, in seconds from the first joint"
            " sample). If clocks differ, sampling.clock_offset shifts them"
        )
    if knots > SPARSE * len(streams.joints.stamp_ns):
        raise MeasurementError(
            f"got {len(streams.joints.stamp_ns)} samples of the joints over {knots * config.dt:.3g} s: the"
            " stamps are not times of measurement, or dt is much too small"
        )
    interval = np.median(np.diff(streams.joints.stamp_ns)) / NANOSECONDS
    if interval > config.sampling.max_gap:
        raise MeasurementError(
            f"got a sample of the joints every {interval:.3g} s, expected one in sampling.max_gap"
            f" ({config.sampling.max_gap:g} s) or less; record them faster, or raise it"
        )
    return _Grid(later[0] + dt_ns * np.arange(knots), dt_ns, round(config.sampling.max_gap * NANOSECONDS))


def _span(stamp_ns: Stamps, origin_ns: int) -> str:
    return f"{(stamp_ns[0] - origin_ns) / NANOSECONDS:.3f} to {(stamp_ns[-1] - origin_ns) / NANOSECONDS:.3f}"


def _averaged(
    stamp_ns: Stamps, values: Floats, noise: Floats, grid: _Grid, window: Window
) -> tuple[Floats, Floats]:
    """Averages (M, w) of the finite samples in the columns of `values` (N, w), and their std."""
    mean = np.zeros((len(grid.stamp_ns), values.shape[1]))
    std = np.full(mean.shape, np.inf)
    finite = np.isfinite(values)
    groups: dict[bytes, list[int]] = {}
    for column in range(values.shape[1]):
        groups.setdefault(finite[:, column].tobytes(), []).append(column)
    for columns in groups.values():
        pattern = finite[:, columns[0]]
        average = window(stamp_ns[pattern], grid.stamp_ns, grid.dt_ns, grid.max_gap_ns)
        mean[:, columns] = filled_in(average.of(values[pattern][:, columns]), average.covered)
        std[:, columns] = average.noise_gain[:, None] * noise[columns]
    return mean, std


def _require_measured(channel: str, std: Floats, robot: Robot) -> None:
    """Without positions or torques, forces and inertia would be guesses with a small standard deviation."""
    missing = np.isinf(std).mean(axis=0)
    poor = [
        f"{name} ({share:.0%} missing)"
        for name, share in zip(robot.joint_names, missing, strict=True)
        if share > MAX_MISSING
    ]
    if poor:
        raise MeasurementError(
            f"got too few joint {channel}s: {', '.join(poor)}; expected them at more than "
            f"{1 - MAX_MISSING:.0%} of the knots. {NEEDED[channel]}"
        )


def _at_knot(stamp_ns: Stamps, knot_ns: Stamps, dt_ns: int, max_gap_ns: int) -> Average:
    return interpolation(stamp_ns, knot_ns, max_gap_ns)


def _base_rate(imu: ImuSamples | None, robot: Robot, grid: _Grid) -> tuple[Floats, Floats]:
    """Mean angular velocity of the base (M, 3) in base axes, and its standard deviation per axis (M,)."""
    knots = len(grid.stamp_ns)
    if imu is None:
        return np.zeros((knots, 3)), np.full(knots, np.inf)
    valid = np.isfinite(imu.angular_velocity).all(axis=1)
    average = box(imu.stamp_ns[valid], grid.stamp_ns, grid.dt_ns, grid.max_gap_ns)
    rate = filled_in(average.of(imu.angular_velocity[valid] @ robot.R_BI.T), average.covered)
    return rate, average.noise_gain * robot.noise.angular_velocity


def _pose_std(poses: KnotPoses, robot: Robot) -> tuple[Floats, Floats]:
    """Standard deviations of the base; a distant tracked body turns errors of rotation into position."""
    lever = float(np.linalg.norm(robot.T_BM.translation))
    position = np.hypot(robot.noise.mocap_position, lever * robot.noise.mocap_rotation)
    shrink = np.full(len(poses.count), np.inf)
    np.divide(1.0, np.sqrt(poses.count), out=shrink, where=poses.count > 0)
    return position * shrink, robot.noise.mocap_rotation * shrink


def _require_no_error(streams: Prepared) -> None:
    """Refuse with everything that is wrong, one finding per line."""
    errors = [str(finding) for finding in streams.findings if finding.severity == "error"]
    if errors:
        raise MeasurementError("\n".join(errors))


def _diagnostics(streams: Prepared, std: dict[str, Floats], read: tuple[str, ...]) -> AlignmentDiagnostics:
    names = streams.joints.names
    notes = list(read)
    if streams.imu is None:
        notes.append("no IMU in the recording: the angular velocity of the base is not measured")
    for channel, values in std.items():
        never = np.isinf(values).all(axis=0)
        if values.ndim == 2 and never.any():
            notes.append(f"{channel}: never measured for {', '.join(np.array(names)[never])}")
    missing = {channel: _count(values) for channel, values in std.items()}
    return AlignmentDiagnostics(
        streams.counts, missing, streams.ignored_joints, tuple(notes), streams.findings, streams.clock
    )


def _count(std: NDArray[np.float64]) -> int:
    """Knots with at least one missing measurement."""
    infinite = ~np.isfinite(std)
    return int(np.sum(infinite.any(axis=1) if infinite.ndim == 2 else infinite))
