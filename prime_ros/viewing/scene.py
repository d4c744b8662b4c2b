# SPDX-License-Identifier: Apache-2.0
"""All that the page draws, as plain numbers: a description that is JSON, and arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from prime_ros.estimation.estimate import BodyInertia, LinkEstimate
from prime_ros.exceptions import OutputError
from prime_ros.outputs.advice import decimals, payload_position, with_std
from prime_ros.outputs.inertia_box import inertia_box
from prime_ros.outputs.kinematics import Poses, contact_points, joint_poses
from prime_ros.outputs.markers import ARROW_OF_WEIGHT
from prime_ros.robot import Robot
from prime_ros.viewing.body_shapes import Look, look_of
from prime_ros.viewing.meshes import Colour, Mesh
from prime_ros.viewing.results import Results

Array = NDArray[np.float64]

MOST_NOTES = 5


@dataclass
class Scene:
    """Content of the page."""

    about: dict[str, Any]
    """JSON-able."""
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    """By name, of types that JavaScript has."""


def make_scene(results: Results, robot: Robot, title: str) -> Scene:
    """Put together what the page draws.

    Args:
        results: K frames, C contacts.
        robot: The robot of the estimate, B moving bodies.
        title: What it is a replay of.

    Returns:
        Arrays `time` (K,) [s], `body_position` (K, B, 3) [m] and `body_quat_xyzw` (K, B, 4) of the joint
        frames in the world, `contact_point` [m], `contact_force` [N] and `contact_force_std` [N] (K, C, 3),
        `contact_probability` (K, C), `com` and `com_nominal` (K, 3) [m], and the meshes.

    Raises:
        OutputError: If the estimate is not one of this robot.
    """
    _check(results, robot)
    poses = joint_poses(robot, results)
    look = look_of(robot)
    arrays = {**_trajectories(results, robot, poses), **_mesh_arrays(look)}
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise OutputError("the estimate has values that are not finite, which cannot be drawn")
    about = {
        "title": title,
        "robot": robot.name,
        "converged": results.converged,
        "ground": results.ground_height,
        "ground_text": _millimetres(results.ground_height, results.std_ground_height),
        "metres_per_newton": ARROW_OF_WEIGHT / _weight(robot),
        "contacts": _contacts(robot),
        "bodies": [_body_name(robot, joint) for joint in range(1, robot.model.njoints)],
        "shapes": [_shape(shape.joint, shape.placement, shape.mesh, shape.colour) for shape in look.shapes],
        "inertia": [_inertia(robot, name, link) for name, link in results.links.items()],
        "notes": _notes(look.notes),
    }
    return Scene(about, arrays)


def _check(results: Results, robot: Robot) -> None:
    if results.joint_names != robot.joint_names or results.contact_names != robot.contact_names:
        raise OutputError(
            f"the estimate has the joints {', '.join(results.joint_names)} and the contacts"
            f" {', '.join(results.contact_names)}; {robot.name} has {', '.join(robot.joint_names)} and"
            f" {', '.join(robot.contact_names)}; name the robot it was made with by --robot"
        )
    for link in results.links:
        robot.joint_of_link(link)


def _trajectories(results: Results, robot: Robot, poses: list[Poses]) -> dict[str, NDArray[Any]]:
    nominal, estimated = _inertias(robot, results, "nominal"), _inertias(robot, results, "estimate")
    arrays = {
        "time": 1e-9 * (results.stamp_ns - results.stamp_ns[0]),
        "body_position": np.stack([pose.position for pose in poses[1:]], axis=1),
        "body_quat_xyzw": np.stack([pose.rotation.as_quat(canonical=True) for pose in poses[1:]], axis=1),
        "contact_point": contact_points(robot, results, poses),
        "contact_force": results.contact_force_W,
        "contact_force_std": results.contact_force_W_std,
        "contact_probability": results.contact_probability,
        "com": _centre_of_mass(poses, estimated),
        "com_nominal": _centre_of_mass(poses, nominal),
    }
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def _inertias(robot: Robot, results: Results, kind: str) -> list[tuple[float, Array]]:
    """Mass and centre of mass of the moving bodies from joint 1 on, of the model where not identified."""
    known = {robot.joint_of_link(name): getattr(link, kind) for name, link in results.links.items()}
    bodies = []
    for joint in range(1, robot.model.njoints):
        inertia = robot.model.inertias[joint]
        body: BodyInertia | None = known.get(joint)
        mass, com = (inertia.mass, inertia.lever) if body is None else (body.mass, body.com)
        bodies.append((float(mass), np.asarray(com, dtype=float)))
    return bodies


def _centre_of_mass(poses: list[Poses], bodies: list[tuple[float, Array]]) -> Array:
    """Of the whole robot in the world, shape (K, 3) [m]."""
    moments = sum(mass * pose.act(com) for pose, (mass, com) in zip(poses[1:], bodies, strict=True))
    return np.asarray(moments / sum(mass for mass, _ in bodies))


def _mesh_arrays(look: Look) -> dict[str, NDArray[Any]]:
    """Vertices as shares of the bounding box, see `_shape`, and faces of every mesh."""
    arrays: dict[str, NDArray[Any]] = {}
    for index, mesh in enumerate(look.meshes):
        arrays[f"vertices_{index}"] = mesh.vertices.astype(np.float32)
        arrays[f"faces_{index}"] = mesh.faces.astype(_index_type(mesh))
    return arrays


def _index_type(mesh: Mesh) -> type[np.unsignedinteger[Any]]:
    return np.uint16 if len(mesh.vertices) <= np.iinfo(np.uint16).max else np.uint32


def _shape(joint: int, placement: pin.SE3, mesh: int, colour: Colour) -> dict[str, Any]:
    return {
        "body": joint - 1,
        "mesh": mesh,
        "position": placement.translation.tolist(),
        "quat_xyzw": pin.Quaternion(placement.rotation).coeffs().tolist(),
        "colour": list(colour),
    }


def _contacts(robot: Robot) -> list[dict[str, Any]]:
    from prime_ros.outputs.report.style import colour

    return [
        {
            "name": contact.name,
            "colour": colour(index),
            "radius": contact.radius,
            "friction": np.asarray(contact.friction, dtype=float).tolist(),
        }
        for index, contact in enumerate(robot.contacts)
    ]


def _inertia(robot: Robot, name: str, link: LinkEstimate) -> dict[str, Any]:
    position = payload_position(link)
    change = link.estimate.mass - link.nominal.mass
    return {
        "link": name,
        "body": robot.joint_of_link(name) - 1,
        "nominal": _box(link.nominal),
        "estimate": _box(link.estimate),
        "mass_text": f"{link.nominal.mass:.3f} → {_measured(link.estimate.mass, link.std.mass)} kg",
        "payload": None if position is None else position.tolist(),
        "payload_text": f"{change:+.{decimals(link.std.mass)}f} kg",
    }


def _box(body: BodyInertia) -> dict[str, Any]:
    """The box of a body, in the frame of its joint."""
    box = inertia_box(body)
    return {
        "mass": body.mass,
        "com": box.centre.tolist(),
        "size": box.size.tolist(),
        "quat_xyzw": box.rotation.as_quat().tolist(),
    }


def _measured(value: float, std: float) -> str:
    return with_std(value, std, between="±")


def _millimetres(value: float, std: float) -> str:
    return f"{with_std(1e3 * value, 1e3 * std, True, '±')} mm"


def _body_name(robot: Robot, joint: int) -> str:
    frames = (f for f in robot.model.frames if f.type == pin.FrameType.BODY and f.parentJoint == joint)
    return next((frame.name for frame in frames), str(robot.model.names[joint]))


def _weight(robot: Robot) -> float:
    return float(pin.computeTotalMass(robot.model) * np.linalg.norm(robot.model.gravity.linear))


def _notes(notes: list[str]) -> list[str]:
    left_out = len(notes) - MOST_NOTES
    return notes[:MOST_NOTES] + ([f"and {left_out} more"] if left_out > 0 else [])
