# SPDX-License-Identifier: Apache-2.0
"""The estimate as RViz and Foxglove draw it: forces, friction cones, contact states, inertia."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from prime_ros.estimation.estimate import Estimate
from prime_ros.outputs.inertia_box import InertiaBox, inertia_box
from prime_ros.outputs.kinematics import Poses
from prime_ros.outputs.messages import FrameNames, Values, header, quaternion, vector
from prime_ros.robot import Contact, Robot

ARROW_OF_WEIGHT = 0.5
"""Length of the arrow of a force as large as the robot's weight [m]."""
IN_AIR = np.array([0.45, 0.55, 0.70, 0.35])
TOUCHING = np.array([0.95, 0.45, 0.10, 1.0])
"""Colours of a sphere: red, green, blue, opacity; in between by the probability of contact."""
FORCE = (0.10, 0.65, 0.35, 1.0)
CONE = (0.10, 0.65, 0.35, 0.25)
BOXES = {"nominal": (0.42, 0.45, 0.48, 0.3), "estimate": (0.46, 0.22, 0.74, 0.4)}

LEAST_DIAMETER = 0.02  # [m], for points of contact
LEAST_EDGE = 1e-3  # [m], for boxes: viewers complain about edges of zero
SIDES = 12  # of the pyramid that stands for a cone
ARROW, CUBE, SPHERE, TRIANGLES = 0, 1, 2, 11  # visualization_msgs/Marker

Array = NDArray[np.float64]


def markers(
    estimate: Estimate, robot: Robot, frames: FrameNames, poses: list[Poses], points: Array
) -> Values:
    """visualization_msgs/MarkerArray, all in the world, by namespace.

    ``force`` and ``contact``: arrow and sphere of every contact. ``friction cone``: as high as the normal
    force in the scale of the arrow, so that its tip lies in the opening exactly if the force is inside the
    cone; the tangent of the half angle is the friction coefficient. ``inertia nominal`` and ``inertia
    estimate``: the box of even density with the mass, centre of mass and inertia of every identified link.

    Args:
        estimate: K knots, C contacts.
        robot: Its weight scales the arrows.
        frames: Names of the frames.
        poses: Of the joints (`kinematics.joint_poses`).
        points: Where the contacts are, world frame, shape (K, C, 3) [m].
    """
    shown = [
        *_contacts(estimate, robot, points),
        *(box for name in estimate.links for box in _boxes(estimate, name, poses[robot.joint_of_link(name)])),
    ]
    head = header(estimate.stamp_ns, frames.world)
    ids: dict[str, int] = {}
    for marker in shown:
        ids[marker["ns"]] = ids.get(marker["ns"], -1) + 1
        marker |= {"header": head, "id": ids[marker["ns"]]}
    return {"markers": shown}


def _contacts(estimate: Estimate, robot: Robot, points: Array) -> list[dict[str, Any]]:
    """Three markers per contact."""
    weight = pin.computeTotalMass(robot.model) * np.linalg.norm(robot.model.gravity.linear)
    forces = ARROW_OF_WEIGHT / float(weight) * estimate.contact_force_W
    found = []
    for index, contact in enumerate(robot.contacts):
        place, force = points[:, index], forces[:, index]
        found.append(_arrow([vector(place), vector(place + force)]))
        diameter = max(2.0 * contact.radius, LEAST_DIAMETER)
        found.append(_sphere(place, diameter, estimate.contact_probability[:, index]))
        found.append(_cone(place, contact, np.maximum(force[:, 2], 0.0)))
    return found


def _boxes(estimate: Estimate, link: str, pose: Poses) -> list[dict[str, Any]]:
    """The inertia of a link before and after; `pose` is that of the frame it is stated in."""
    bodies = estimate.links[link]
    return [
        _box(f"inertia {kind}", inertia_box(getattr(bodies, kind)), pose, colour)
        for kind, colour in BOXES.items()
    ]


def _arrow(ends: list[Values]) -> dict[str, Any]:
    """From the first point to the second; scale: diameter of the shaft, diameter and length of the head."""
    return {
        "ns": "force",
        "type": ARROW,
        "pose": {"orientation": {"w": 1.0}},
        "scale": {"x": 0.012, "y": 0.03, "z": 0.04},
        "color": _colour(FORCE),
        "points": ends,
    }


def _sphere(centre: Array, diameter: float, chance: Array) -> dict[str, Any]:
    colour = IN_AIR + chance[:, None] * (TOUCHING - IN_AIR)
    return {
        "ns": "contact",
        "type": SPHERE,
        "pose": {"position": vector(centre), "orientation": {"w": 1.0}},
        "scale": dict.fromkeys("xyz", diameter),
        "color": _colour(colour.T),
    }


def _cone(apex: Array, contact: Contact, height: Array) -> dict[str, Any]:
    """The surface of the cone that opens upwards from a contact, of a height at each knot (K,) [m]."""
    angles = 2.0 * np.pi * np.arange(SIDES) / SIDES
    slopes = np.column_stack([np.cos(angles), np.sin(angles)]) * np.asarray(contact.friction)
    rim = [vector(height[:, None] * np.append(slope, 1.0)) for slope in slopes]
    origin = dict.fromkeys("xyz", 0.0)
    return {
        "ns": "friction cone",
        "type": TRIANGLES,
        "pose": {"position": vector(apex), "orientation": {"w": 1.0}},
        "scale": dict.fromkeys("xyz", 1.0),
        "color": _colour(CONE),
        "points": [corner for side in range(SIDES) for corner in (origin, rim[side - 1], rim[side])],
    }


def _box(name: str, box: InertiaBox, pose: Poses, colour: tuple[float, ...]) -> dict[str, Any]:
    return {
        "ns": name,
        "type": CUBE,
        "pose": {
            "position": vector(pose.act(box.centre)),
            "orientation": quaternion((pose.rotation * box.rotation).as_quat()),
        },
        "scale": vector(np.maximum(box.size, LEAST_EDGE)),
        "color": _colour(colour),
    }


def _colour(rgba: Array | tuple[float, ...]) -> Values:
    return dict(zip("rgba", rgba, strict=True))
