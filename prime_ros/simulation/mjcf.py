# SPDX-License-Identifier: Apache-2.0
"""A robot as MJCF text: bodies, joints and inertias of its Pinocchio model, feet and ground, no more.

Written from the Pinocchio model rather than imported from the URDF, so that simulator and estimator mean the
same bodies: no meshes to find, no links fused differently, no inertias rounded.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from prime_ros.exceptions import SimulationError
from prime_ros.robot import BASE_NV, FREE_BASE, Contact, Robot

Array = NDArray[np.float64]

GRAVITY = 9.81  # [m/s^2], as Pinocchio's


@dataclass(frozen=True)
class Feet:
    """How feet give way on the ground."""

    padding: float
    """What the radius of the unloaded foot has over the configured one, that of the loaded foot [m]."""
    solref: tuple[float, float]
    """MuJoCo's time constant [s] and damping ratio [-] of the contact."""
    solimp: tuple[float, float, float]
    """MuJoCo's impedance [-] at the surface and at depth, and that depth [m]."""


FEET = {
    "soft": Feet(padding=0.010, solref=(0.02, 1.0), solimp=(0.015, 0.99, 0.022)),
    "stiff": Feet(padding=0.0005, solref=(0.01, 1.0), solimp=(0.9, 0.95, 0.001)),
}


def feet_named(name: str) -> Feet:
    """Feet of a preset.

    Raises:
        SimulationError: If there is none of this name.
    """
    if name not in FEET:
        raise SimulationError(f"feet: got '{name}', expected one of {', '.join(FEET)}")
    return FEET[name]


def mjcf(robot: Robot, base_inertia: pin.Inertia, feet: Feet, timestep: float) -> str:
    """The model as XML text.

    Bodies are the joints of the Pinocchio model and bear their names; contact i is the geom ``contact_i``,
    motor j drives joint j, both in the order of the robot. Only contacts and ground collide.

    Args:
        robot: The robot.
        base_inertia: Inertia of the base in its frame, with whatever it carries.
        feet: How contacts give way.
        timestep: Of the simulation [s].

    Returns:
        MJCF.
    """
    root = Element("mujoco", model=robot.name)
    SubElement(root, "compiler", angle="radian", autolimits="false")
    option = SubElement(root, "option", timestep=repr(timestep), gravity=f"0 0 {-GRAVITY}")
    # Elliptic cones with stiff friction, so that loaded feet stick and hardly creep.
    option.attrib.update(cone="elliptic", impratio="100", integrator="Euler")
    world = SubElement(root, "worldbody")
    _geom(world, name="ground", type="plane", size="0 0 1")
    bodies = {0: world}
    for joint in range(FREE_BASE, robot.model.njoints):
        parent = bodies[robot.model.parents[joint]]
        inertia = base_inertia if joint == FREE_BASE else robot.model.inertias[joint]
        bodies[joint] = _body(robot, joint, parent, inertia)
    pairs = SubElement(root, "contact")
    for index, contact in enumerate(robot.contacts):
        _foot(bodies[contact.joint_id], pairs, index, contact, feet)
    _instrument(root, bodies[FREE_BASE], robot)
    return ElementTree.tostring(root, encoding="unicode")


def _geom(body: Element, **attributes: str) -> None:
    """A shape that collides with nothing but what it is paired with."""
    SubElement(body, "geom", {"contype": "0", "conaffinity": "0", **attributes})


def _body(robot: Robot, joint: int, parent: Element, inertia: pin.Inertia) -> Element:
    model = robot.model
    placement = pin.SE3.Identity() if joint == FREE_BASE else model.jointPlacements[joint]
    body = SubElement(
        parent,
        "body",
        name=model.names[joint],
        pos=_text(placement.translation),
        quat=_text(_wxyz(placement.rotation)),
    )
    if inertia.mass > 0.0:
        entries = inertia.inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        SubElement(
            body,
            "inertial",
            mass=_text([inertia.mass]),
            pos=_text(inertia.lever),
            fullinertia=_text(entries),
        )
    if joint == FREE_BASE:
        SubElement(body, "freejoint", name=model.names[joint])
        return body
    drive = model.joints[joint].idx_v - BASE_NV
    kind, axis = _axis(model, joint)
    SubElement(
        body,
        "joint",
        name=model.names[joint],
        type=kind,
        axis=_text(axis),
        armature=_text([model.armature[BASE_NV + drive]]),
        damping=_text([robot.joint_damping[drive]]),
        frictionloss=_text([robot.joint_friction[drive]]),
    )
    return body


def _axis(model: pin.Model, joint: int) -> tuple[str, Array]:
    """Type of a joint of one degree of freedom and its axis in its own frame."""
    data = model.joints[joint].createData()
    model.joints[joint].calc(data, np.zeros(1))
    subspace = np.ravel(data.S)
    turns = bool(np.any(subspace[3:]))
    return ("hinge", subspace[3:]) if turns else ("slide", subspace[:3])


def _foot(body: Element, pairs: Element, index: int, contact: Contact, feet: Feet) -> None:
    """A sphere, and its contact with the ground, whose tangents are world y and -x."""
    name = f"contact_{index}"
    radius = repr(contact.radius + feet.padding)
    _geom(body, name=name, type="sphere", size=radius, pos=_text(contact.offset), mass="0")
    along_x, along_y = contact.friction
    SubElement(
        pairs,
        "pair",
        geom1="ground",
        geom2=name,
        condim="3",
        friction=_text([along_y, along_x, 0.0, 0.0, 0.0]),
        solref=_text(feet.solref),
        solimp=_text(feet.solimp),
    )


def _instrument(root: Element, base: Element, robot: Robot) -> None:
    """Motors and an IMU."""
    actuators, sensors = SubElement(root, "actuator"), SubElement(root, "sensor")
    for joint in robot.joint_names:
        SubElement(actuators, "motor", joint=joint)
    SubElement(base, "site", name="imu", pos=_text(robot.p_BI), quat=_text(_wxyz(robot.R_BI)))
    SubElement(sensors, "gyro", site="imu")
    SubElement(sensors, "accelerometer", site="imu")


def _wxyz(rotation: Array) -> Array:
    x, y, z, w = pin.Quaternion(rotation).coeffs()
    return np.array([w, x, y, z])


def _text(numbers: Iterable[float]) -> str:
    return " ".join(repr(float(number)) for number in numbers)
