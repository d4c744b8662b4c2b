# SPDX-License-Identifier: Apache-2.0
"""What the contact step takes from rigid-body dynamics: inertia, bias force, contact Jacobians, derivatives.

A contact is a sphere on a link. It touches with the material point of the link that is momentarily below the
centre by the radius; as the link turns, this location stays fixed to the centre in world axes. With the
velocity v_c of the centre and omega of the link, the point moves with v_c + r e_z x omega.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from prime_ros.estimation import inertia

Array = NDArray[np.float64]

UP = np.array([0.0, 0.0, 1.0])
ROOT_JOINT = 1
_WORLD_AXES = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
_LINK_AXES = pin.ReferenceFrame.LOCAL
_VERTICAL = 2


class ContactPoint(Protocol):
    """A sphere fixed to a link."""

    @property
    def joint_id(self) -> int:
        """Joint that moves the link."""
        ...

    @property
    def offset(self) -> Array:
        """Centre of the sphere in the frame of the joint, shape (3,) [m]."""
        ...

    @property
    def radius(self) -> float:
        """[m], 0 for a point."""
        ...


@dataclass(frozen=True)
class DynamicsTerms:
    """Terms of the equations of motion at one configuration and velocity, C contacts."""

    mass: Array
    """Joint-space inertia plus armature, shape (nv, nv)."""
    bias_force: Array
    """h(q, v): Coriolis, centrifugal and gravity force, shape (nv,)."""
    jacobian: Array
    """Velocity of the contacts in world axes per generalised velocity, shape (3 C, nv)."""
    heights: Array
    """World height of the lowest point of each sphere, shape (C,) [m]."""
    up_in_base: Array
    """World up in base axes, shape (3,)."""


class ContactDynamics:
    """Rigid-body dynamics of a robot with contact points and identified bodies, on a copy of the model."""

    def __init__(
        self, model: pin.Model, contacts: Sequence[ContactPoint], identified_joints: Sequence[int]
    ) -> None:
        self._model = model.copy()
        self._data = self._model.createData()
        self._contacts = tuple(contacts)
        self._centres = [pin.SE3(np.eye(3), np.asarray(contact.offset, dtype=float)) for contact in contacts]
        self._identified_joints = tuple(identified_joints)

    def set_inertia(self, theta: Array) -> None:
        """Set the inertia of the identified bodies from log-Cholesky parameters, shape (10 B,)."""
        for joint, parameters in zip(self._identified_joints, self._per_body(theta), strict=True):
            self._model.inertias[joint] = inertia.to_inertia(parameters)

    def terms(self, q: Array, v: Array) -> DynamicsTerms:
        """Terms at the configuration, shape (nq,), and velocity, shape (nv,)."""
        model, data = self._model, self._data
        mass = pin.crba(model, data, q)
        mass = np.triu(mass) + np.triu(mass, 1).T  # only the upper triangle is promised
        bias_force = pin.nonLinearEffects(model, data, q, v).copy()
        pin.computeJointJacobians(model, data, q)
        jacobian, heights = [np.zeros((0, model.nv))], []
        for contact, centre in zip(self._contacts, self._centres, strict=True):
            of_centre = pin.getFrameJacobian(model, data, contact.joint_id, centre, _WORLD_AXES)
            jacobian.append(_at_contact(contact.radius, of_centre))
            heights.append((data.oMi[contact.joint_id] * centre).translation[_VERTICAL] - contact.radius)
        up_in_base = data.oMi[ROOT_JOINT].rotation.T @ UP
        return DynamicsTerms(mass, bias_force, np.vstack(jacobian), np.array(heights), up_in_base)

    def inverse_dynamics_derivatives(
        self, q: Array, v: Array, acceleration: Array, forces: Array
    ) -> tuple[Array, Array]:
        """Derivatives of RNEA(q, v, a) - J' F with respect to q (tangent) and v, each of shape (nv, nv).

        The contact forces F, shape (C, 3) [N], world axes, stay constant.
        """
        model, data = self._model, self._data
        of_joints = [pin.Force.Zero() for _ in range(model.njoints)]
        turning = np.zeros((model.nv, model.nv))
        pin.computeJointJacobians(model, data, q)
        for contact, centre, force in zip(self._contacts, self._centres, forces, strict=True):
            moment = np.cross(-contact.radius * UP, force)  # about the centre
            joint = data.oMi[contact.joint_id]
            at_centre = pin.SE3(np.eye(3), joint.act(centre.translation))
            of_joints[contact.joint_id] += joint.actInv(at_centre.act(pin.Force(force, moment)))
            # RNEA's derivatives let the force turn with the link; ours keeps its direction. Seen from the
            # link it turns backwards, dF = F x turn, and so does the moment.
            of_centre = pin.getFrameJacobian(model, data, contact.joint_id, centre, _WORLD_AXES)
            linear, angular = np.split(of_centre, 2)
            turning += linear.T @ pin.skew(force) @ angular + angular.T @ pin.skew(moment) @ angular
        external = pin.StdVec_Force()
        external.extend(of_joints)
        d_tau_dq, d_tau_dv, _ = pin.computeRNEADerivatives(model, data, q, v, acceleration, external)
        return d_tau_dq - turning, d_tau_dv.copy()

    def contact_velocity_derivative(self, q: Array, v: Array) -> Array:
        """Derivative of J(q) v with respect to q (tangent), shape (3 C, nv)."""
        model, data = self._model, self._data
        pin.computeForwardKinematicsDerivatives(model, data, q, v, np.zeros(model.nv))
        rows = [np.zeros((0, model.nv))]
        for contact, centre in zip(self._contacts, self._centres, strict=True):
            in_link = pin.getFrameVelocityDerivatives(model, data, contact.joint_id, centre, _LINK_AXES)
            rotation = data.oMi[contact.joint_id].rotation
            rows.append(_at_contact(contact.radius, _in_world_axes(rotation, in_link, v)))
        return np.vstack(rows)

    def height_derivative(self, q: Array) -> Array:
        """Derivative of the heights with respect to q (tangent), shape (C, nv)."""
        model, data = self._model, self._data
        pin.computeJointJacobians(model, data, q)
        rows = [np.zeros((0, model.nv))]
        for contact, centre in zip(self._contacts, self._centres, strict=True):
            rows.append(pin.getFrameJacobian(model, data, contact.joint_id, centre, _WORLD_AXES)[[_VERTICAL]])
        return np.vstack(rows)

    def inertia_derivative(self, q: Array, v: Array, acceleration: Array, theta: Array) -> Array:
        """Derivative of RNEA(q, v, a) with respect to theta, shape (nv, 10 B)."""
        size = inertia.PARAMETER_COUNT
        regressor = pin.computeJointTorqueRegressor(self._model, self._data, q, v, acceleration)
        columns = [np.zeros((self._model.nv, 0))]
        for joint, parameters in zip(self._identified_joints, self._per_body(theta), strict=True):
            of_body = regressor[:, size * (joint - 1) : size * joint]  # the universe has no columns
            columns.append(of_body @ inertia.dynamic_parameters_jacobian(parameters))
        return np.hstack(columns)

    def _per_body(self, theta: Array) -> Array:
        return theta.reshape(len(self._identified_joints), inertia.PARAMETER_COUNT)


def _in_world_axes(rotation: Array, in_link: tuple[Array, Array], v: Array) -> Array:
    """Derivative of a twist in world axes with respect to q, (6, nv), from those in link axes (by q, by v).

    d(R b) = R (db - b x turn). Pinocchio's own derivatives in world-aligned axes leave the turning out.
    """
    d_twist_dq, d_twist_dv = in_link
    linear, angular = np.split(d_twist_dv @ v, 2)
    turn = d_twist_dv[3:]  # rotation of the link per dq, in link axes
    d_linear = rotation @ (d_twist_dq[:3] - pin.skew(linear) @ turn)
    d_angular = rotation @ (d_twist_dq[3:] - pin.skew(angular) @ turn)
    return np.vstack([d_linear, d_angular])


def _at_contact(radius: float, of_centre: Array) -> Array:
    """Rows for the contact from the rows (v_c, omega) of the centre, shape (6, m) to (3, m)."""
    linear, angular = np.split(of_centre, 2)
    return linear + radius * pin.skew(UP) @ angular
