# SPDX-License-Identifier: Apache-2.0
"""Feet for rigid contact: a point where a foot has one contact, a sole where it has several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from prime_ros import _core
from prime_ros.exceptions import RobotError
from prime_ros.robot import Contact, Robot

Array = NDArray[np.float64]

SMALLEST_SOLE = 1e-3  # [m] below which a foot of several contacts has no area


@dataclass(frozen=True)
class Foot:
    """Contacts of one link that stand and lift together."""

    name: str
    contacts: tuple[int, ...]
    """Places in `Robot.contacts`."""
    joint_id: int
    """Joint that moves the link."""
    placement: pin.SE3
    """Of the foot in the frame of that joint: in the middle of its contacts, z of a sole away from the
    ground."""
    size: Array
    """Length and width of a sole, shape (2,) [m]; zero for a point."""
    friction: float
    """The smallest coefficient of its contacts [-]."""
    spread: Array
    """Least forces in axes of the foot that add up to a wrench on it, shape (3 m, 6); the identity of a
    point's force, shape (3, 6)."""

    @property
    def flat(self) -> bool:
        """Whether it takes moments."""
        return bool(self.size.min() > 0.0)

    def for_core(self) -> _core.RigidFoot:
        """The same for the core."""
        foot = _core.RigidFoot()
        foot.joint, foot.placement = self.joint_id, self.placement
        foot.friction, foot.size = self.friction, self.size
        return foot


def feet_of(robot: Robot) -> tuple[Foot, ...]:
    """The feet of a robot, in the order of their first contacts.

    Raises:
        RobotError: If contacts of one foot are on several links or on a line.
    """
    place = {name: i for i, name in enumerate(robot.contact_names)}
    return tuple(
        _foot(name, tuple(place[contact] for contact in contacts), robot)
        for name, contacts in robot.feet.items()
    )


def soles_of(robot: Robot) -> tuple[Foot, ...]:
    """The feet whose contacts are on one link and span an area."""
    place = {name: i for i, name in enumerate(robot.contact_names)}
    soles = []
    for name, contacts in robot.feet.items():
        try:
            foot = _foot(name, tuple(place[contact] for contact in contacts), robot)
        except RobotError:  # of use to who needs rigid feet
            continue
        if foot.flat:
            soles.append(foot)
    return tuple(soles)


def lowered(feet: Sequence[Foot], q: Array, standing: NDArray[np.bool_], robot: Robot) -> tuple[Foot, ...]:
    """The feet with points at the bottom of their spheres instead of the middle.

    A ball rolls while its link turns; of the points of the link, that one comes closest which is at the
    bottom on average while it stands.

    Args:
        feet: F feet.
        q: Configurations, shape (M, nq).
        standing: Shape (M, F).
        robot: The robot.
    """
    data = robot.model.createData()
    down = np.zeros((len(feet), 3))
    for configuration, stands in zip(q, standing, strict=True):
        pin.forwardKinematics(robot.model, data, configuration)
        for f in np.flatnonzero(stands).tolist():
            down[f] -= data.oMi[feet[f].joint_id].rotation[2]
    found = []
    for foot, direction in zip(feet, down, strict=True):
        length = float(np.linalg.norm(direction))
        if foot.flat or length == 0.0:
            found.append(foot)
            continue
        radius = robot.contacts[foot.contacts[0]].radius
        bottom = foot.placement.translation + radius / length * direction
        found.append(replace(foot, placement=pin.SE3(foot.placement.rotation, bottom)))
    return tuple(found)


def _foot(name: str, contacts: tuple[int, ...], robot: Robot) -> Foot:
    members = [robot.contacts[i] for i in contacts]
    joint = members[0].joint_id
    if any(contact.joint_id != joint for contact in members):
        raise RobotError(f"foot '{name}': its contacts are on several links, expected one rigid foot")
    friction = float(min(contact.friction.min() for contact in members))
    if len(members) == 1:
        placement = pin.SE3(np.eye(3), np.asarray(members[0].offset, float))
        return Foot(name, contacts, joint, placement, np.zeros(2), friction, np.eye(3, 6))
    placement, points = _sole(members)
    size = np.ptp(points[:, :2], axis=0)
    if size.min() < SMALLEST_SOLE:
        raise RobotError(f"foot '{name}': its contacts are on a line, expected a sole or a single contact")
    to_wrench = np.hstack([np.vstack([np.eye(3), pin.skew(point)]) for point in points])
    return Foot(name, contacts, joint, placement, size, friction, np.linalg.pinv(to_wrench))


def _sole(members: list[Contact]) -> tuple[pin.SE3, Array]:
    """Placement of the sole in the frame of the joint, and the lowest points of the contacts in its axes."""
    centres = np.array([contact.offset for contact in members])
    middle = 0.5 * (centres.min(axis=0) + centres.max(axis=0))
    _, _, axes = np.linalg.svd(centres - centres.mean(axis=0))
    # The ankle is above the sole, and the toes are where the link's x points.
    up = axes[2] * np.sign(-middle @ axes[2] or 1.0)
    forward = axes[0] * np.sign(axes[0] @ np.array([1.0, 0.1, 0.01]))
    rotation = np.column_stack([forward, np.cross(up, forward), up])
    radius = float(np.mean([contact.radius for contact in members]))
    placement = pin.SE3(rotation, middle - radius * up)
    return placement, (centres - middle) @ rotation
