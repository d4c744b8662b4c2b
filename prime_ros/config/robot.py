# SPDX-License-Identifier: Apache-2.0
"""Robots as data: what ``config/robots/<name>.yaml`` may say."""

from typing import Any

from pydantic import Field, field_validator

from prime_ros.config.units import (
    Friction,
    JointDamping,
    JointInertia,
    JointNewtonMeters,
    Meters,
    MetersPerSecondSquared,
    NoiseNewtonMeters,
    NoiseRadians,
    NoiseRadiansPerSecond,
    Position,
    Quaternion,
    Radians,
    RadiansPerSecond,
    Section,
)

ORIGIN = (0.0, 0.0, 0.0)
PARALLEL = (0.0, 0.0, 0.0, 1.0)


class ContactConfig(Section):
    """A sphere (or, with radius 0, a point) on a link that can touch the ground."""

    name: str
    """Name of the contact in every output."""

    frame: str | None = None
    """Link, joint or frame of the model the contact is fixed to; default: the name of the contact."""

    foot: str | None = None
    """Foot the point belongs to; default: it is a foot of its own, with the name of the contact."""

    offset: Position = ORIGIN
    """Centre of the sphere in the axes of `frame` [m]."""

    radius: Meters = Field(0.0, ge=0)
    """Radius of the sphere [m]."""

    friction: Friction | None = None
    """Friction coefficient [-], one number or two (along world x and y); default: that of the robot."""


class JointsConfig(Section):
    """What the drives add to the rigid bodies: one number for all joints, or a mapping by joint name."""

    armature: JointInertia | None = None
    """Inertia of the rotors as felt at the joint [kg m^2]; default: what the model file says."""

    damping: JointDamping | None = None
    """Viscous damping of the joint [Nm s/rad]; default: what the model file says."""

    friction: JointNewtonMeters | None = None
    """Coulomb friction of the joint [Nm]; default: what the model file says."""

    friction_velocity: RadiansPerSecond = Field(0.05, gt=0)
    """Joint rate over which the Coulomb friction changes sign smoothly [rad/s]."""


class ImuConfig(Section):
    """Where the IMU sits in the base frame."""

    position: Position = ORIGIN
    """Position of the accelerometer in the base frame [m]."""

    quat_xyzw: Quaternion = PARALLEL
    """Rotation from IMU axes to base axes, quaternion x y z w."""


class MocapConfig(Section):
    """Where the rigid body that motion capture tracks sits in the base frame."""

    position: Position = ORIGIN
    """Origin of the tracked body in the base frame [m]."""

    quat_xyzw: Quaternion = PARALLEL
    """Rotation from axes of the tracked body to base axes, quaternion x y z w."""


class NoiseConfig(Section):
    """Standard deviation of the white noise of one sample of each sensor."""

    joint_position: NoiseRadians = 0.002
    """Joint encoders [rad], one number or a mapping by joint name."""

    joint_velocity: NoiseRadiansPerSecond = 0.1
    """Joint rates [rad/s], one number or a mapping by joint name."""

    joint_torque: NoiseNewtonMeters = 0.5
    """Joint torques [Nm], one number or a mapping by joint name."""

    mocap_position: Meters = Field(0.002, gt=0)
    """Position of motion capture, per axis [m]."""

    mocap_rotation: Radians = Field(0.00872664625997165, gt=0)
    """Orientation of motion capture, per axis [rad]."""

    angular_velocity: RadiansPerSecond = Field(0.02, gt=0)
    """Gyroscope, per axis [rad/s]."""

    linear_acceleration: MetersPerSecondSquared = Field(0.1, gt=0)
    """Accelerometer, per axis [m/s^2]."""


class RobotConfig(Section):
    """A robot: its model file, contacts, drives, sensor mounts and sensor noise."""

    name: str
    """Name of the robot."""

    model: str
    """URDF or MJCF: a path (from here or the working folder), package://PACKAGE/PATH, or PACKAGE:PATH."""

    contacts: tuple[ContactConfig, ...]
    """Everything that can touch the ground; outputs keep this order."""

    friction: Friction = (0.8, 0.8)
    """Friction coefficient of the ground [-], one number or two (along world x and y)."""

    joints: JointsConfig = JointsConfig()
    """Armature, damping and friction of the joints."""

    vendor_joint_order: tuple[str, ...] = ()
    """Joint names in the order of the vendor's own messages, for sources that number the joints."""

    imu: ImuConfig = ImuConfig()
    """Mount of the IMU."""

    mocap: MocapConfig = MocapConfig()
    """Mount of the body tracked by motion capture."""

    noise: NoiseConfig = NoiseConfig()
    """Sensor noise."""

    estimator: dict[str, Any] = Field(default_factory=dict)
    """Settings in which the shipped estimators differ for this robot; a file of the user wins over them."""

    estimators: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """The same for one of the shipped estimators, by its name; these win over `estimator`."""

    @field_validator("contacts")
    @classmethod
    def _named_once(cls, contacts: tuple[ContactConfig, ...]) -> tuple[ContactConfig, ...]:
        if not contacts:
            raise ValueError("at least one contact")
        names = [contact.name for contact in contacts]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"contacts with different names; {', '.join(twice)} occurs more than once")
        return contacts
