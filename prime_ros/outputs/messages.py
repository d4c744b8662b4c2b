# SPDX-License-Identifier: Apache-2.0
"""What an estimate says as ROS messages, without ROS: the values of their fields, for one knot or for many.

`Values` map the fields of a message to

- a number: a Python number, or an array of shape (K,), one per knot;
- a list of numbers: a Python list, the same at every knot, or an array of shape (K, n);
- text or a list of texts, the same at every knot;
- a message: a mapping; a list of messages: a list of mappings.

Every array has one row per knot, so that `row` gives the message of one. Fields left out are zero or empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prime_ros.estimation.estimate import BodyInertia, Estimate
from prime_ros.measurements.samples import NANOSECONDS
from prime_ros.outputs.kinematics import Edge, Poses
from prime_ros.robot import Robot

WORLD_FRAME = "world"
CONTACT_SUFFIX = "_contact"

Array = NDArray[np.float64]
Stamps = NDArray[np.int64]
Values = Mapping[str, Any]


@dataclass(frozen=True)
class FrameNames:
    """Names of the frames that messages refer to."""

    base: str
    """The base: the root of the tree of links, so that robot_state_publisher gives it no parent."""
    contacts: tuple[str, ...]
    """At the points of contact, with the axes of the world; none is a link."""
    world: str = WORLD_FRAME


def frame_names(robot: Robot) -> FrameNames:
    """Names of the frames of a robot."""
    links = {frame.name for frame in robot.model.frames}
    contacts: list[str] = []
    for name in robot.contact_names:
        frame = name + CONTACT_SUFFIX
        while frame in links or frame in contacts:
            frame += "_"
        contacts.append(frame)
    return FrameNames(robot.base_link, tuple(contacts))


def row(values: Values, knot: int) -> dict[str, Any]:
    """What the message says at one knot."""
    return {name: _at(value, knot) for name, value in values.items()}


def joint_state(estimate: Estimate) -> Values:
    """sensor_msgs/JointState; the effort is the corrected torque."""
    return {
        "header": header(estimate.stamp_ns, ""),
        "name": list(estimate.joint_names),
        "position": estimate.joint_position,
        "velocity": estimate.joint_velocity,
        "effort": estimate.joint_torque,
    }


def odometry(estimate: Estimate, frames: FrameNames, poses: Poses) -> Values:
    """nav_msgs/Odometry: pose of the base in the world, its twist in base axes.

    The covariances hold the variances; correlations are not part of an estimate. Those of the rotation, which
    an estimate states about base axes, are turned into the axes of the world, as the message wants them.

    Args:
        estimate: K knots.
        frames: Names of the frames.
        poses: Poses of the base in the world.
    """
    std, count = estimate.std, len(estimate.stamp_ns)
    pose, twist = np.zeros((count, 6, 6)), np.zeros((count, 6, 6))
    axes, diagonal = np.arange(3), np.arange(6)
    pose[:, axes, axes] = std["base_position_W"] ** 2
    half = poses.rotation.as_matrix() * std["base_quat_xyzw"][:, None, :]
    pose[:, 3:, 3:] = half @ half.swapaxes(1, 2)
    twist[:, diagonal, diagonal] = std["base_velocity_B"] ** 2
    velocity = estimate.base_velocity_B
    return {
        "header": header(estimate.stamp_ns, frames.world),
        "child_frame_id": frames.base,
        "pose": {
            "pose": {
                "position": vector(estimate.base_position_W),
                "orientation": quaternion(estimate.base_quat_xyzw),
            },
            "covariance": pose.reshape(count, 36),
        },
        "twist": {
            "twist": {"linear": vector(velocity[:, :3]), "angular": vector(velocity[:, 3:])},
            "covariance": twist.reshape(count, 36),
        },
    }


def wrench(estimate: Estimate, contact: int, frames: FrameNames) -> Values:
    """geometry_msgs/WrenchStamped of one contact: the force on the robot, at the origin of its frame."""
    return {
        "header": header(estimate.stamp_ns, frames.contacts[contact]),
        "wrench": {"force": vector(estimate.contact_force_W[:, contact])},
    }


def contact_forces(estimate: Estimate, frames: FrameNames, points: Array) -> Values:
    """prime_ros/ContactForceArray; `points` (K, C, 3) are where the contacts are, world frame [m]."""
    force, force_std = estimate.contact_force_W, estimate.std["contact_force_W"]
    return {
        "header": header(estimate.stamp_ns, frames.world),
        "window": estimate.dt,
        "contacts": [
            {
                "contact": name,
                "position": vector(points[:, index]),
                "force": vector(force[:, index]),
                "force_std": vector(force_std[:, index]),
                "probability": estimate.contact_probability[:, index],
                "probability_std": estimate.std["contact_probability"][:, index],
            }
            for index, name in enumerate(estimate.contact_names)
        ],
    }


def inertia(estimate: Estimate, stamp_ns: int, frames: FrameNames) -> Values:
    """prime_ros/InertiaEstimate, one message; `stamp_ns` is the time of the newest measurement used."""
    links = estimate.links.values()
    return {
        "header": header(np.array([stamp_ns]), frames.world),
        "links": list(estimate.links),
        "nominal": [body(link.nominal) for link in links],
        "estimate": [body(link.estimate) for link in links],
        "std": [body(link.std) for link in links],
        "ground_height": float(estimate.ground_height),
        "ground_height_std": float(estimate.std_ground_height),
    }


def status(estimate: Estimate, stamp_ns: int) -> Values:
    """prime_ros/EstimatorStatus, one message; `stamp_ns` is the time of the newest measurement used."""
    certificate, reports = estimate.certificate, list(estimate.sensors.values())
    return {
        "header": header(np.array([stamp_ns]), ""),
        "converged": bool(certificate.converged),
        "reason": certificate.reason,
        "iterations": int(certificate.iterations),
        "cost": float(certificate.cost),
        "relative_cost_change": float(certificate.relative_cost_change),
        "largest_gap": float(certificate.largest_gap),
        "gradient": float(certificate.gradient),
        "solve_time": float(sum(estimate.timing.values())),
        "sensors": list(estimate.sensors),
        "count": [int(report.count) for report in reports],
        "degrees_of_freedom": [float(report.dof) for report in reports],
        "chi_square": [float(report.chi_square) for report in reports],
    }


def transforms(stamp_ns: Stamps, edges: list[Edge]) -> Values:
    """tf2_msgs/TFMessage: every edge at every knot."""
    return {"transforms": [transform(stamp_ns, edge) for edge in edges]}


def transform(stamp_ns: Stamps, edge: Edge) -> Values:
    """geometry_msgs/TransformStamped: pose of the child in the parent."""
    return {
        "header": header(stamp_ns, edge.parent),
        "child_frame_id": edge.child,
        "transform": {
            "translation": vector(edge.poses.position),
            "rotation": quaternion(edge.poses.rotation.as_quat()),
        },
    }


def header(stamp_ns: Stamps | int, frame: str) -> Values:
    """std_msgs/Header at the time of measurement, of one or of K."""
    second, nanosecond = np.divmod(stamp_ns, NANOSECONDS)
    return {"stamp": {"sec": second, "nanosec": nanosecond}, "frame_id": frame}


def vector(rows: Array) -> Values:
    """geometry_msgs/Vector3 or Point from (K, 3), or one from (3,)."""
    return dict(zip("xyz", rows.T, strict=True))


def quaternion(rows: Array) -> Values:
    """geometry_msgs/Quaternion from (K, 4), or one from (4,), x y z w."""
    return dict(zip("xyzw", rows.T, strict=True))


def body(inertia: BodyInertia) -> Values:
    """prime_ros/BodyInertia."""
    return {
        "mass": float(inertia.mass),
        "com": vector(np.asarray(inertia.com, dtype=float)),
        "inertia_com": np.asarray(inertia.inertia_com, dtype=float).ravel().tolist(),
    }


def _at(value: Any, knot: int) -> Any:
    if isinstance(value, Mapping):
        return row(value, knot)
    if isinstance(value, np.ndarray):
        return value[knot] if len(value) > 1 else value[0]
    if isinstance(value, list):
        return [_at(item, knot) for item in value]
    return value
