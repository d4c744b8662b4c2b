# SPDX-License-Identifier: Apache-2.0
"""One estimate against the truth of its simulated log, as named figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from prime_ros.estimation.estimate import Estimate
from prime_ros.experiments.force_errors import EDGE_KNOTS, ForceErrors, force_errors
from prime_ros.experiments.simulation_logs import Floats, SimulationLog, pose_at, truth_at
from prime_ros.measurements import KnotMeasurements
from prime_ros.measurements.samples import NANOSECONDS
from prime_ros.robot import Robot

DIFFERENCED_KNOTS = 5
"""Knots over which mocap is differenced for the raw linear velocity."""

SENSORS = (
    "mocap position",
    "mocap orientation",
    "joint position",
    "gyroscope",
    "joint velocity",
    "joint torque",
)
"""Reports of `Estimate.sensors` that stand for a sensor; the others are the model's disturbance and slack."""


@dataclass(frozen=True)
class Channel:
    """RMS error of one quantity: as estimated, and as its sensor has it, averaged onto knots.

    The length of the error for vectors of the base, per joint for quantities of the joints.
    """

    name: str
    unit: str
    estimate: float
    raw: float


def run_metrics(
    estimate: Estimate,
    measurements: KnotMeasurements,
    log: SimulationLog,
    robot: Robot,
    threshold: float,
) -> dict[str, float]:
    """Judge an estimate.

    Args:
        estimate: Of one link of the robot of the log.
        measurements: What it was made from.
        log: The truth.
        robot: Its feet; only what a foot carries altogether is judged, because how a flat one shares it out
            among its corners is not determined.
        threshold: Normal force on a foot that counts as contact [N].

    Returns:
        Figures by name; `accuracy.QUANTITIES` has their units. Errors are signed where they are scalars.
    """
    truth = _Truth.of(estimate, log)
    channels = {
        f"{channel.name}/{source}": value
        for channel in compared_channels(estimate, measurements, log, truth)
        for source, value in (("estimate", channel.estimate), ("raw", channel.raw))
    }
    sensors = {f"chi_square/{name}": report.chi_square_per_dof for name, report in estimate.sensors.items()}
    return {
        **_certificate(estimate),
        **_inertia(estimate, log.truth["true"]),
        **_forces(estimate, truth, force_errors(estimate, log, robot, threshold)),
        **channels,
        **sensors,
    }


def _certificate(estimate: Estimate) -> dict[str, float]:
    certificate = estimate.certificate
    return {
        "converged": float(certificate.converged),
        "iterations": float(certificate.iterations),
        "seconds": sum(estimate.timing.values()),
        "largest_gap": certificate.largest_gap,
        "ground_height": estimate.ground_height,
    }


def _inertia(estimate: Estimate, true: Mapping[str, Any]) -> dict[str, float]:
    (link,) = estimate.links.values()
    inertia_com = np.array(true["inertia_com"])
    error = np.linalg.norm(link.estimate.inertia_com - inertia_com) / np.linalg.norm(inertia_com)
    figures = {
        "mass_error": link.estimate.mass - true["mass"],
        "mass_std": link.std.mass,
        "mass_error_over_std": (link.estimate.mass - true["mass"]) / link.std.mass,
        "inertia_error": float(error),
    }
    for axis, com, std, true_com in zip("xyz", link.estimate.com, link.std.com, true["com"], strict=True):
        figures[f"com_{axis}_error"] = 1e3 * (com - true_com)
        figures[f"com_{axis}_std"] = 1e3 * std
    return figures


def _forces(estimate: Estimate, truth: _Truth, feet: ForceErrors) -> dict[str, float]:
    used = slice(EDGE_KNOTS, -EDGE_KNOTS)
    by_contact = (estimate.contact_force_W - truth.contact_force_W)[used]
    claimed = estimate.std["contact_force_W"][used]
    return {
        **{f"force/{name}": float(rmse) for name, rmse in zip(feet.feet, feet.rmse, strict=True)},
        "force": feet.worst,
        "force_error_over_std": float(np.sqrt((by_contact**2).mean() / (claimed**2).mean())),
        "contact_agreement": feet.agreement,
    }


def compared_channels(
    estimate: Estimate, m: KnotMeasurements, log: SimulationLog, truth: _Truth
) -> Iterator[Channel]:
    """Every channel that has a sensor, and the linear velocity, which mocap has only by differencing."""
    steps = slice(0, len(estimate.stamp_ns))
    raw_position, raw_rotation = _raw_pose_errors(m, log)
    rotation = truth.rotation.inv() * Rotation.from_quat(estimate.base_quat_xyzw)
    twist = estimate.base_velocity_B - truth.base_velocity_B
    raw_linear = differenced_velocity(m)[steps] - truth.base_velocity_B[:, :3]
    raw_angular = m.base_angular_velocity_B[steps] - truth.base_velocity_B[:, 3:]
    position = estimate.base_position_W - truth.base_position_W
    yield Channel("base_position", "mm", 1e3 * _norm_rms(position), 1e3 * _norm_rms(raw_position[steps]))
    yield Channel(
        "base_orientation", "deg", _norm_rms(np.rad2deg(rotation.as_rotvec())), _norm_rms(raw_rotation[steps])
    )
    yield Channel("base_linear_velocity", "m/s", _norm_rms(twist[:, :3]), _norm_rms(raw_linear))
    yield Channel("base_angular_velocity", "rad/s", _norm_rms(twist[:, 3:]), _norm_rms(raw_angular))
    for name, unit in (("joint_position", "rad"), ("joint_velocity", "rad/s"), ("joint_torque", "Nm")):
        true, estimated, measured = getattr(truth, name), getattr(estimate, name), getattr(m, name)[steps]
        yield Channel(name, unit, _rms(estimated - true), _rms(measured - true))


def differenced_velocity(m: KnotMeasurements) -> Floats:
    """Linear velocity of the base in its own axes from mocap alone, shape (M, 3) [m/s].

    The span of the difference is centred on the interval (knot - dt, knot] whose mean velocity is wanted.
    """
    stamp = np.arange(len(m.stamp_ns)) * m.dt + m.base_time_offset
    k = np.arange(len(stamp))
    half = DIFFERENCED_KNOTS // 2
    after, before = np.minimum(k + half, len(k) - 1), np.maximum(k - half - 1, 0)
    span = stamp[after] - stamp[before]
    velocity_W = (m.base_position_W[after] - m.base_position_W[before]) / span[:, None]
    return Rotation.from_quat(m.base_quat_xyzw).inv().apply(velocity_W)


def _raw_pose_errors(m: KnotMeasurements, log: SimulationLog) -> tuple[Floats, Floats]:
    """Errors of mocap at its own times: position [m] and rotation vector [deg], each of shape (M, 3)."""
    stamp_ns = m.stamp_ns + np.round(m.base_time_offset * NANOSECONDS).astype(np.int64)
    position, rotation = pose_at(log, stamp_ns)
    error = rotation.inv() * Rotation.from_quat(m.base_quat_xyzw)
    return m.base_position_W - position, np.rad2deg(error.as_rotvec())


@dataclass(frozen=True)
class _Truth:
    """The truth at the knots of an estimate, in the order of its joints and contacts."""

    base_position_W: Floats
    rotation: Rotation
    base_velocity_B: Floats
    joint_position: Floats
    joint_velocity: Floats
    joint_torque: Floats
    contact_force_W: Floats

    @classmethod
    def of(cls, estimate: Estimate, log: SimulationLog) -> _Truth:
        truth = truth_at(log, estimate.stamp_ns, estimate.dt)
        joints = [log.joint_names.index(name) for name in estimate.joint_names]
        contacts = [log.contact_names.index(name) for name in estimate.contact_names]
        return cls(
            truth["base_position_W"],
            Rotation.from_quat(truth["base_quat_xyzw"]),
            truth["base_velocity_B"],
            truth["joint_position"][:, joints],
            truth["joint_velocity"][:, joints],
            truth["joint_torque"][:, joints],
            truth["contact_force_W"][:, contacts],
        )


def _rms(error: Floats) -> float:
    """Over all entries of the rows that count."""
    return float(np.sqrt((error[EDGE_KNOTS:-EDGE_KNOTS] ** 2).mean()))


def _norm_rms(error: Floats) -> float:
    """RMS of the length of the vectors of the rows that count."""
    return float(np.sqrt((error[EDGE_KNOTS:-EDGE_KNOTS] ** 2).sum(axis=1).mean()))
