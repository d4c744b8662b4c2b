# SPDX-License-Identifier: Apache-2.0
"""A robot: rigid-body model with a free base, named contacts, drives, sensor mounts and sensor noise.

Integers that index joints or contacts are made here, for the C++ core; everything else speaks in names.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from prime_ros.config import ContactConfig, RobotConfig, load_robot_config
from prime_ros.exceptions import RobotError
from prime_ros.model_file import find_model_file, read_model

FREE_BASE = 1  # Pinocchio's index of the root joint; joint 0 is the world
BASE_NV = 6

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Contact:
    """A sphere fixed to a moving body that can touch the ground."""

    name: str
    """Name in every output."""
    joint_id: int
    """Index of the joint that moves it in `Robot.model`."""
    offset: Array
    """Centre of the sphere in the frame of that joint, shape (3,) [m]."""
    radius: float
    """Radius [m], 0 for a point."""
    friction: Array
    """Friction coefficients along world x and y, shape (2,) [-]."""
    foot: str
    """Foot it belongs to."""


@dataclass(frozen=True)
class SensorNoise:
    """Standard deviation of the white noise of one sample; joint arrays of shape (n,) in model order."""

    joint_position: Array
    """[rad]"""
    joint_velocity: Array
    """[rad/s]"""
    joint_torque: Array
    """[Nm]"""
    mocap_position: float
    """Per axis [m]."""
    mocap_rotation: float
    """Per axis [rad]."""
    angular_velocity: float
    """Per axis [rad/s]."""
    linear_acceleration: float
    """Per axis [m/s^2]."""


@dataclass(frozen=True)
class Robot:
    """Everything about the robot that the estimation needs. n joints, nv = n + 6, nq = n + 7."""

    name: str
    """Name of the robot."""
    model: pin.Model
    """Model with a free base and nominal inertias; `model.armature` (nv,) is set [kg m^2]."""
    joint_names: tuple[str, ...]
    """The n actuated joints in the order of the model."""
    contacts: tuple[Contact, ...]
    """Contacts in the order of the configuration."""
    joint_damping: Array
    """Viscous damping, shape (n,) [Nm s/rad]."""
    joint_friction: Array
    """Coulomb friction, shape (n,) [Nm]."""
    friction_velocity: float
    """Width of the smoothed Coulomb friction [rad/s]."""
    R_BI: Array
    """Rotation from IMU axes to base axes, shape (3, 3)."""
    p_BI: Array
    """Position of the IMU in the base frame, shape (3,) [m]."""
    T_BM: pin.SE3
    """Pose of the body tracked by motion capture in the base frame."""
    noise: SensorNoise
    """Noise of one sample of each sensor."""
    urdf_path: Path
    """The URDF or MJCF file the model was read from."""
    vendor_joint_names: tuple[str, ...] = ()
    """Joint names in the order of the vendor's messages; empty if not configured."""

    @property
    def contact_names(self) -> tuple[str, ...]:
        """Names of the contacts."""
        return tuple(contact.name for contact in self.contacts)

    @property
    def feet(self) -> dict[str, tuple[str, ...]]:
        """Names of the contacts of each foot, by its name."""
        feet: dict[str, tuple[str, ...]] = {}
        for contact in self.contacts:
            feet[contact.foot] = (*feet.get(contact.foot, ()), contact.name)
        return feet

    @property
    def base_link(self) -> str:
        """Name of the link that the free base moves."""
        return self.link_names[0]

    @property
    def link_names(self) -> tuple[str, ...]:
        """Names of all links that move, in the order of the model."""
        return tuple(f.name for f in self.model.frames if f.type == pin.FrameType.BODY and f.parentJoint > 0)

    def joint_of_link(self, link_name: str) -> int:
        """Index of the joint that moves a link and all that is fixed to it.

        Args:
            link_name: Name of a link of the model; ``base`` always stands for the link the free base moves.

        Returns:
            Index into `model.inertias`.

        Raises:
            RobotError: If no link has this name.
        """
        for frame in self.model.frames:
            if frame.type == pin.FrameType.BODY and frame.name == link_name and frame.parentJoint > 0:
                return int(frame.parentJoint)
        if link_name == "base":
            return FREE_BASE
        raise RobotError(f"robot '{self.name}' has no {_unknown('link', link_name, self.link_names)}")

    @classmethod
    def from_config(cls, config: RobotConfig, urdf: str | Path | None = None) -> Robot:
        """Build a robot.

        Args:
            config: The robot's configuration.
            urdf: URDF or MJCF file to use in place of the configured one.

        Returns:
            The robot.

        Raises:
            RobotError: If the model file cannot be found or used, or lacks a joint or frame that is
                configured.
        """
        path = find_model_file(config.model if urdf is None else urdf)
        model = read_model(path)
        names = tuple(model.names)[FREE_BASE + 1 :]
        if config.vendor_joint_order:
            _check_joints(config.vendor_joint_order, names, f"{config.name}: vendor_joint_order")
        drives = config.joints
        model.armature = _on_joints(model.armature, drives.armature, names, "joints.armature")
        T_BM = pin.SE3(pin.Quaternion(np.array(config.mocap.quat_xyzw)), np.array(config.mocap.position))
        return cls(
            name=config.name,
            model=model,
            joint_names=names,
            contacts=tuple(_contact(model, contact, config.friction) for contact in config.contacts),
            joint_damping=_on_joints(model.damping, drives.damping, names, "joints.damping")[BASE_NV:],
            joint_friction=_on_joints(model.friction, drives.friction, names, "joints.friction")[BASE_NV:],
            friction_velocity=drives.friction_velocity,
            R_BI=pin.Quaternion(np.array(config.imu.quat_xyzw)).toRotationMatrix(),
            p_BI=np.array(config.imu.position),
            T_BM=T_BM,
            noise=_noise(config, names),
            urdf_path=path,
            vendor_joint_names=config.vendor_joint_order,
        )


def load_robot(name_or_yaml: str | Path, urdf: str | Path | None = None) -> Robot:
    """Build a robot from its name or YAML file.

    Args:
        name_or_yaml: Name of a shipped robot (``go2``) or a YAML file.
        urdf: URDF or MJCF file to use in place of the configured one.

    Returns:
        The robot.

    Raises:
        ConfigError: If the configuration does not exist or is wrong.
        RobotError: If the model cannot be found or used.
    """
    return Robot.from_config(load_robot_config(name_or_yaml), urdf)


def _contact(model: pin.Model, config: ContactConfig, friction: Sequence[float]) -> Contact:
    name = config.name if config.frame is None else config.frame
    found = [frame for frame in model.frames if frame.name == name and frame.parentJoint > 0]
    if not found:
        valid = [frame.name for frame in model.frames if frame.parentJoint > 0]
        raise RobotError(f"contact '{config.name}': the model has no {_unknown('frame', name, valid)}")
    frame = next((f for f in found if f.type == pin.FrameType.BODY), found[0])
    return Contact(
        name=config.name,
        joint_id=int(frame.parentJoint),
        offset=frame.placement.act(np.array(config.offset)),
        radius=config.radius,
        friction=np.array(config.friction or friction),
        foot=config.foot or config.name,
    )


def _on_joints(
    nominal: Array, value: float | dict[str, float] | None, names: Sequence[str], key: str
) -> Array:
    """Copy of a vector of shape (nv,) whose joint part is the configured value, if there is one."""
    vector = np.array(nominal, dtype=float)
    if value is not None:
        vector[BASE_NV:] = _per_joint(value, names, key)
    return vector


def _per_joint(value: float | dict[str, float], names: Sequence[str], key: str) -> Array:
    if not isinstance(value, dict):
        return np.full(len(names), value)
    _check_joints(value, names, key)
    return np.array([value[name] for name in names])


def _check_joints(given: Iterable[str], names: Sequence[str], key: str) -> None:
    """Require each joint of the model to be named exactly once."""
    listed = list(given)
    for name in listed:
        if name not in names:
            raise RobotError(f"{key}: the model has no {_unknown('joint', name, names)}")
    missing = [name for name in names if name not in listed]
    if missing or len(listed) != len(names):
        raise RobotError(f"{key}: expected each joint once; missing: {', '.join(missing) or 'none'}")


def _noise(config: RobotConfig, names: Sequence[str]) -> SensorNoise:
    noise = config.noise
    return SensorNoise(
        joint_position=_per_joint(noise.joint_position, names, "noise.joint_position"),
        joint_velocity=_per_joint(noise.joint_velocity, names, "noise.joint_velocity"),
        joint_torque=_per_joint(noise.joint_torque, names, "noise.joint_torque"),
        mocap_position=noise.mocap_position,
        mocap_rotation=noise.mocap_rotation,
        angular_velocity=noise.angular_velocity,
        linear_acceleration=noise.linear_acceleration,
    )


def _unknown(kind: str, name: str, valid: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, valid, n=1)
    hint = f" (did you mean '{close[0]}'?)" if close else ""
    return f"{kind} '{name}'{hint}; valid names: {', '.join(valid)}"
