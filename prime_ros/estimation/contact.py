# SPDX-License-Identifier: Apache-2.0
"""A time step of a legged robot with smoothed contact, and its derivatives: readable twin of the C++ core.

The generalised velocity after a step of length dt minimises a convex function,

    v+ = argmin_u  1/2 u'(M + dt/2 D) u - p'u + sum_i l_i(z_i) + dt sum_j c_j sqrt(u_j^2 + w^2)
    p  = (M - dt/2 D) v + dt (f - h(q, v)),     z_i = J_i(q) u + (0, 0, phi_i(q) / dt) + s_i

with M the joint-space inertia plus armature, D joint damping, c Coulomb friction of the joints, f generalised
force, s contact slack, phi the gap between foot and ground, l_i the contact potential. It is stationary where
momentum balances,

    g = dt (RNEA(q, v, (v+ - v)/dt) + D (v + v+)/2 + friction(v+) - f) - sum_i J_i' lambda_i = 0,
    lambda_i = -grad l_i(z_i),

and is differentiated by the implicit function theorem: dv+/dx = -H^-1 dg/dx, with the Hessian H.

World z is up; contact axes are world x, y (tangential) and z (normal). Configurations and velocities are
Pinocchio's: free-flyer root, twist of the base in the base frame, linear then angular. Derivatives with
respect to q are in the tangent space of `pinocchio.integrate(model, q, dq)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from prime_ros.estimation import inertia
from prime_ros.estimation.contact_dynamics import ROOT_JOINT, UP, ContactDynamics, ContactPoint, DynamicsTerms
from prime_ros.estimation.contact_potential import ContactPotential, SmoothedCone
from prime_ros.estimation.velocity_problem import NewtonOptions, VelocityProblem, minimise

__all__ = [
    "ContactPoint",
    "ContactPotential",
    "ContactStep",
    "NewtonOptions",
    "Sensitivity",
    "SmoothedCone",
    "StepDerivatives",
    "StepInput",
    "StepResult",
]

Array = NDArray[np.float64]

_BASE_SIZE = 6
_LIFT_MARGIN = 0.01  # [m/s] inside the domain of the worst contact: about where a loaded foot ends up


@dataclass(frozen=True)
class StepInput:
    """What the step depends on, for C contacts and B identified bodies."""

    configuration: Array
    """q, shape (nq,)."""
    velocity: Array
    """v, shape (nv,)."""
    force: Array
    """f: joint torques and disturbance as one generalised force, shape (nv,) [N, Nm]."""
    slack: Array
    """s: added to the contact velocities, shape (3 C,) [m/s]."""
    theta: Array
    """Log-Cholesky parameters of the identified bodies, shape (10 B,)."""
    ground_height: float = 0.0
    """World height of the ground [m]."""


@dataclass(frozen=True)
class StepResult:
    """Solution of the step."""

    velocity: Array
    """v+, shape (nv,)."""
    impulses: Array
    """lambda: contact impulses on the robot, shape (C, 3) [N s]; divided by dt, the mean forces [N]."""
    contact_velocity: Array
    """z, shape (C, 3) [m/s]."""
    hessian: Array
    """H, shape (nv, nv)."""
    residual: Array
    """g: momentum left unbalanced, shape (nv,) [N s, N m s]."""
    iterations: int
    """Newton iterations."""
    converged: bool


@dataclass(frozen=True)
class Sensitivity:
    """Derivatives of a quantity of size m with respect to every field of `StepInput`."""

    configuration: Array
    """Shape (m, nv), tangent space at q."""
    velocity: Array
    """Shape (m, nv)."""
    force: Array
    """Shape (m, nv)."""
    slack: Array
    """Shape (m, 3 C)."""
    theta: Array
    """Shape (m, 10 B)."""
    ground_height: Array
    """Shape (m, 1)."""


@dataclass(frozen=True)
class StepDerivatives:
    """Derivatives of the step at its solution."""

    velocity: Sensitivity
    """Of v+, m = nv."""
    impulses: Sensitivity
    """Of the flattened impulses, m = 3 C."""


@dataclass
class ContactStep:
    """The step of one robot. It owns Pinocchio's working memory: one object per thread.

    Damping acts on the mean of v and v+. As v is the mean velocity of the interval before the knot and v+ of
    the one after it, this is the mean over the triangle that weights all forces of the step.
    """

    model: pin.Model
    """Free-flyer root, armature set."""
    contacts: Sequence[ContactPoint]
    potentials: Sequence[ContactPotential]
    """One per contact."""
    dt: float
    """[s]"""
    joint_damping: Array
    """D, at the mean of v and v+, shape (nv - 6,) [Nm s/rad]."""
    joint_friction: Array
    """c: Coulomb friction, shape (nv - 6,) [Nm]."""
    friction_velocity: float = 0.05
    """w: width of the smoothing of Coulomb friction [rad/s]."""
    identified_joints: Sequence[int] = ()
    """Joints whose bodies have their inertia in theta."""
    newton: NewtonOptions = field(default_factory=NewtonOptions)

    def __post_init__(self) -> None:
        root = self.model.joints[ROOT_JOINT].shortname()
        if root != "JointModelFreeFlyer":
            raise ValueError(f"got a model whose root joint is {root}, expected JointModelFreeFlyer")
        if len(self.potentials) != len(self.contacts):
            count = f"{len(self.potentials)} potentials for {len(self.contacts)} contacts"
            raise ValueError(f"got {count}, expected one each")
        _require_shape("joint_damping", self.joint_damping, (self.model.nv - _BASE_SIZE,))
        _require_shape("joint_friction", self.joint_friction, (self.model.nv - _BASE_SIZE,))
        self._dynamics = ContactDynamics(self.model, self.contacts, self.identified_joints)

    def nominal_theta(self) -> Array:
        """Parameters of the model's own inertias, shape (10 B,)."""
        bodies = [inertia.from_inertia(self.model.inertias[joint]) for joint in self.identified_joints]
        return np.concatenate([np.zeros(0), *bodies])

    def solve(self, inputs: StepInput, guess: Array | None = None) -> StepResult:
        """Velocity and impulses of the step, from a guess of v+, shape (nv,) (default: v).

        Raises ValueError on an input of the wrong shape or not finite.
        """
        self._check(inputs)
        self._dynamics.set_inertia(inputs.theta)
        terms = self._dynamics.terms(inputs.configuration, inputs.velocity)
        problem = self._problem(inputs, terms)
        start = _lift(problem, terms, inputs.velocity if guess is None else guess)
        solution = minimise(problem, start, self.newton)
        return StepResult(
            velocity=solution.velocity,
            impulses=problem.impulses(solution.velocity),
            contact_velocity=problem.contact_velocity(solution.velocity),
            hessian=problem.hessian(solution.velocity),
            residual=problem.gradient(solution.velocity),
            iterations=solution.iterations,
            converged=solution.converged,
        )

    def unbalanced(self, inputs: StepInput, velocity: Array) -> tuple[Array, Array, Array]:
        """What a velocity after the step, shape (nv,), leaves to the contacts.

        Returns:
            The momentum that contact impulses have to balance, shape (nv,) [N s, N m s]; the contact
            Jacobian, shape (3 C, nv); and J v+ + (0, 0, phi / dt), shape (3 C,) [m/s].
        """
        self._check(inputs)
        self._dynamics.set_inertia(inputs.theta)
        terms = self._dynamics.terms(inputs.configuration, inputs.velocity)
        problem = self._problem(inputs, terms)
        approach = problem.contact_velocity(velocity).ravel() - inputs.slack
        return problem.gradient_without_contact(velocity), terms.jacobian, approach

    def derivatives(self, inputs: StepInput, result: StepResult) -> StepDerivatives:
        """Derivatives of v+ and of the impulses at the solution that `solve` gave for the same inputs."""
        self._dynamics.set_inertia(inputs.theta)
        terms = self._dynamics.terms(inputs.configuration, inputs.velocity)
        contact_hessian = self._problem(inputs, terms).contact_hessian(result.velocity)
        hessian = cho_factor(result.hessian)
        velocity, impulses = {}, {}
        for name, (d_balance, d_z) in self._partials(inputs, result, terms).items():
            # z moves on its own and with v+, and the impulses follow it: d lambda = -W dz.
            velocity[name] = -cho_solve(hessian, d_balance + terms.jacobian.T @ contact_hessian @ d_z)
            impulses[name] = -contact_hessian @ (d_z + terms.jacobian @ velocity[name])
        return StepDerivatives(velocity=Sensitivity(**velocity), impulses=Sensitivity(**impulses))

    def _problem(self, inputs: StepInput, terms: DynamicsTerms) -> VelocityProblem:
        half_damping = 0.5 * self.dt * self._damping()
        friction = np.concatenate([np.zeros(_BASE_SIZE), self.joint_friction])
        gaps = terms.heights - inputs.ground_height
        impulse = self.dt * (inputs.force - terms.bias_force)
        return VelocityProblem(
            mass=terms.mass + half_damping,
            momentum=(terms.mass - half_damping) @ inputs.velocity + impulse,
            jacobian=terms.jacobian,
            bias=np.kron(gaps / self.dt, UP) + inputs.slack,
            potentials=self.potentials,
            friction_impulse=self.dt * friction,
            friction_velocity=self.friction_velocity,
        )

    def _partials(
        self, inputs: StepInput, result: StepResult, terms: DynamicsTerms
    ) -> dict[str, tuple[Array, Array]]:
        """By input: derivative of g at fixed v+ and lambda, (nv, .), and of z at fixed v+, (3 C, .)."""
        q, v, dt = inputs.configuration, inputs.velocity, self.dt
        acceleration, forces = (result.velocity - v) / dt, result.impulses / dt
        d_tau_dq, d_tau_dv = self._dynamics.inverse_dynamics_derivatives(q, v, acceleration, forces)
        d_tau_dtheta = self._dynamics.inertia_derivative(q, v, acceleration, inputs.theta)
        d_z_dq = self._dynamics.contact_velocity_derivative(q, result.velocity)
        d_z_dq += np.kron(self._dynamics.height_derivative(q) / dt, UP[:, None])
        d_z_dheight = np.tile(-UP / dt, len(self.contacts))[:, None]
        nv, nz = terms.jacobian.shape[1], terms.jacobian.shape[0]
        return {
            "configuration": (dt * d_tau_dq, d_z_dq),
            "velocity": (dt * d_tau_dv - terms.mass + 0.5 * dt * self._damping(), np.zeros((nz, nv))),
            "force": (-dt * np.eye(nv), np.zeros((nz, nv))),
            "slack": (np.zeros((nv, nz)), np.eye(nz)),
            "theta": (dt * d_tau_dtheta, np.zeros((nz, inputs.theta.size))),
            "ground_height": (np.zeros((nv, 1)), d_z_dheight),
        }

    def _damping(self) -> Array:
        """D with the undamped base, shape (nv, nv)."""
        return np.diag(np.concatenate([np.zeros(_BASE_SIZE), self.joint_damping]))

    def _check(self, inputs: StepInput) -> None:
        shapes: dict[str, tuple[int, ...]] = {
            "configuration": (self.model.nq,),
            "velocity": (self.model.nv,),
            "force": (self.model.nv,),
            "slack": (3 * len(self.contacts),),
            "theta": (inertia.PARAMETER_COUNT * len(self.identified_joints),),
            "ground_height": (),
        }
        for name, shape in shapes.items():
            value = np.asarray(getattr(inputs, name))
            _require_shape(name, value, shape)
            if not np.all(np.isfinite(value)):
                raise ValueError(f"got a {name} that is not finite: {value}")


def _lift(problem: VelocityProblem, terms: DynamicsTerms, velocity: Array) -> Array:
    """The velocity, raised along world z at the base as far as strict feasibility needs."""
    missing = problem.missing_normal_velocity(velocity)
    if missing < 0.0:
        return velocity
    lifted = velocity.copy()
    # Translating the base moves every contact by as much, and not sideways.
    lifted[:3] += (missing + _LIFT_MARGIN) * terms.up_in_base
    return lifted


def _require_shape(name: str, value: Array, shape: tuple[int, ...]) -> None:
    if np.shape(value) != shape:
        raise ValueError(f"got {name} of shape {np.shape(value)}, expected {shape}")
