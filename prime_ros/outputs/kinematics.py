# SPDX-License-Identifier: Apache-2.0
"""Where the links and the contacts of a robot are at the estimate, for many knots at once.

Pinocchio takes one configuration at a time, which from Python costs more than the kinematics itself; here
every operation covers all knots.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from prime_ros.exceptions import OutputError
from prime_ros.robot import FREE_BASE, Robot

Array = NDArray[np.float64]


class Motion(Protocol):
    """What the poses follow from at K knots, n joints; an `Estimate` is one."""

    @property
    def stamp_ns(self) -> NDArray[np.int64]:
        """Time of the knots, shape (K,) [ns]."""
        ...

    @property
    def base_position_W(self) -> Array:
        """Base frame in the world, shape (K, 3) [m]."""
        ...

    @property
    def base_quat_xyzw(self) -> Array:
        """Rotation from base to world, shape (K, 4)."""
        ...

    @property
    def joint_position(self) -> Array:
        """Joints in the order of the model, shape (K, n) [rad, m]."""
        ...

    @property
    def contact_names(self) -> tuple[str, ...]:
        """Contacts in the order of the robot's."""
        ...


@dataclass(frozen=True)
class Poses:
    """Poses of one frame in another at K knots."""

    rotation: Rotation
    """K rotations from the frame to the other."""
    position: Array
    """Origin of the frame in the other, shape (K, 3) [m]."""

    def __matmul__(self, inner: Poses) -> Poses:
        """Poses of the inner frame, given in this one, in the other."""
        return Poses(self.rotation * inner.rotation, self.act(inner.position))

    def act(self, points: Array) -> Array:
        """Points of shape (3,) or (K, 3) [m], given in this frame, in the other, shape (K, 3)."""
        return np.asarray(self.position + self.rotation.apply(points), dtype=float)

    def inverse(self) -> Poses:
        """Poses of the other frame in this one."""
        back = self.rotation.inv()
        return Poses(back, -back.apply(self.position))


@dataclass(frozen=True)
class Edge:
    """Poses of a link in the link it hangs on."""

    parent: str
    child: str
    poses: Poses


def joint_poses(robot: Robot, estimate: Motion) -> list[Poses]:
    """Poses of what each joint moves, in the world, by Pinocchio's index of the joint; joint 0 is the world.

    Raises:
        OutputError: If the estimate is not one of this robot.
    """
    joints = estimate.joint_position.shape[1]
    if joints != len(robot.joint_names) or estimate.contact_names != robot.contact_names:
        raise OutputError(
            f"the estimate has {joints} joints and the contacts {', '.join(estimate.contact_names)}; "
            f"{robot.name} has {len(robot.joint_names)} and {', '.join(robot.contact_names)}"
        )
    count = len(estimate.stamp_ns)
    world = Poses(Rotation.identity(count), np.zeros((count, 3)))
    poses = [world, Poses(Rotation.from_quat(estimate.base_quat_xyzw), estimate.base_position_W)]
    for joint in range(FREE_BASE + 1, robot.model.njoints):
        parent = poses[robot.model.parents[joint]]
        moved = _joint_motion(robot.model, joint, estimate.joint_position[:, joint - FREE_BASE - 1])
        poses.append(parent @ _fixed(robot.model.jointPlacements[joint]) @ moved)
    return poses


def contact_points(robot: Robot, estimate: Motion, poses: list[Poses] | None = None) -> Array:
    """Where each contact would touch the ground: the lowest point of its sphere.

    Args:
        robot: The robot, C contacts.
        estimate: K knots.
        poses: Result of `joint_poses`, if it is there already.

    Returns:
        World frame, shape (K, C, 3) [m].

    Raises:
        OutputError: If the estimate is not one of this robot.
    """
    poses = joint_poses(robot, estimate) if poses is None else poses
    points = np.empty((len(estimate.stamp_ns), len(robot.contacts), 3))
    for index, contact in enumerate(robot.contacts):
        points[:, index] = poses[contact.joint_id].act(contact.offset)
        points[:, index, 2] -= contact.radius
    return points


def moving_links(robot: Robot, poses: list[Poses]) -> list[Edge]:
    """Links that a joint moves, but for the base, in the links they hang on."""
    edges = []
    for child, parent in _links(robot.model):
        if child.parentJoint != parent.parentJoint:
            outer = poses[parent.parentJoint] @ _fixed(parent.placement)
            inner = poses[child.parentJoint] @ _fixed(child.placement)
            edges.append(Edge(parent.name, child.name, outer.inverse() @ inner))
    return edges


def fixed_links(robot: Robot) -> list[Edge]:
    """Links that are fixed to another, in that one; one pose each."""
    return [
        Edge(parent.name, child.name, _fixed(parent.placement.actInv(child.placement)))
        for child, parent in _links(robot.model)
        if child.parentJoint == parent.parentJoint
    ]


def _links(model: pin.Model) -> list[tuple[pin.Frame, pin.Frame]]:
    """Every link but the base, with the link it hangs on."""
    pairs = []
    for frame in model.frames:
        if frame.type != pin.FrameType.BODY or frame.parentJoint == 0:
            continue
        parent = model.frames[frame.parentFrame]
        while parent.type != pin.FrameType.BODY and parent.parentFrame != 0:
            parent = model.frames[parent.parentFrame]
        if parent.type == pin.FrameType.BODY and parent.parentJoint > 0:
            pairs.append((frame, parent))
    return pairs


def _fixed(placement: pin.SE3) -> Poses:
    """A constant pose; NumPy and SciPy spread it over the knots."""
    return Poses(Rotation.from_matrix(placement.rotation[None]), placement.translation[None].copy())


def _joint_motion(model: pin.Model, joint: int, position: Array) -> Poses:
    """Motion of a joint of one degree of freedom: a turn about its axis and a shift along it."""
    axis = np.asarray(model.joints[joint].createData().S).reshape(6)
    return Poses(Rotation.from_rotvec(np.outer(position, axis[3:])), np.outer(position, axis[:3]))
