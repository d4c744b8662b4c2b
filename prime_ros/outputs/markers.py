# SPDX-License-Identifier: Apache-2.0
"""Contacts as RViz and Foxglove draw them: an arrow for the force, a sphere coloured by the contact state."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from prime_ros.estimation.estimate import Estimate
from prime_ros.outputs.messages import FrameNames, Values, header, vector
from prime_ros.robot import Robot

ARROW_OF_WEIGHT = 0.5
"""Length of the arrow of a force as large as the robot's weight [m]."""
IN_AIR = np.array([0.45, 0.55, 0.70, 0.35])
TOUCHING = np.array([0.95, 0.45, 0.10, 1.0])
"""Colours of a sphere: red, green, blue, opacity; in between by the probability of contact."""
FORCE = (0.10, 0.65, 0.35, 1.0)

LEAST_DIAMETER = 0.02  # [m], for points of contact
ARROW, SPHERE = 0, 2  # visualization_msgs/Marker

Array = NDArray[np.float64]


def contact_markers(estimate: Estimate, robot: Robot, frames: FrameNames, points: Array) -> Values:
    """visualization_msgs/MarkerArray: force and state of every contact.

    Args:
        estimate: K knots, C contacts.
        robot: Its weight scales the arrows.
        frames: Names of the frames.
        points: Where the contacts are, world frame, shape (K, C, 3) [m].
    """
    weight = pin.computeTotalMass(robot.model) * np.linalg.norm(robot.model.gravity.linear)
    scale = ARROW_OF_WEIGHT / float(weight)
    tips = points + scale * estimate.contact_force_W
    markers = []
    for index, contact in enumerate(robot.contacts):
        common = {"header": header(estimate.stamp_ns, frames.world), "id": index}
        ends = [vector(points[:, index]), vector(tips[:, index])]
        markers.append({**common, **_arrow(ends)})
        diameter = max(2.0 * contact.radius, LEAST_DIAMETER)
        chance = estimate.contact_probability[:, index]
        markers.append({**common, **_sphere(points[:, index], diameter, chance)})
    return {"markers": markers}


def _arrow(ends: list[Values]) -> Values:
    """From the first point to the second; scale: diameter of the shaft, diameter and length of the head."""
    return {
        "ns": "force",
        "type": ARROW,
        "pose": {"orientation": {"w": 1.0}},
        "scale": {"x": 0.012, "y": 0.03, "z": 0.04},
        "color": dict(zip("rgba", FORCE, strict=True)),
        "points": ends,
    }


def _sphere(centre: Array, diameter: float, chance: Array) -> Values:
    colour = IN_AIR + chance[:, None] * (TOUCHING - IN_AIR)
    return {
        "ns": "contact",
        "type": SPHERE,
        "pose": {"position": vector(centre), "orientation": {"w": 1.0}},
        "scale": dict.fromkeys("xyz", diameter),
        "color": dict(zip("rgba", colour.T, strict=True)),
    }
