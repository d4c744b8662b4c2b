# SPDX-License-Identifier: Apache-2.0
"""The convex problem whose minimiser is the generalised velocity after a time step, and its Newton solver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, cho_factor, cho_solve

from prime_ros.estimation.contact_potential import ContactPotential, is_feasible

Array = NDArray[np.float64]


@dataclass(frozen=True)
class VelocityProblem:
    """min over u of  1/2 u'A u - p'u + sum_i l_i(z_i) + sum_j c_j sqrt(u_j^2 + w^2),   z = J u + b."""

    mass: Array
    """A: joint-space inertia with armature and dt/2 times the joint damping, shape (nv, nv)."""
    momentum: Array
    """p: momentum without contact, friction and the damping of the velocity sought, shape (nv,)."""
    jacobian: Array
    """J: contact Jacobians in world axes, shape (3 C, nv)."""
    bias: Array
    """b: velocity of closing the gap within the step, plus slack, shape (3 C,) [m/s]."""
    potentials: Sequence[ContactPotential]
    """l_i, one per contact."""
    friction_impulse: Array
    """c: dt times the Coulomb friction, zero on the base, shape (nv,) [N m s]."""
    friction_velocity: float
    """w: width of the pseudo-Huber friction [rad/s]."""

    def contact_velocity(self, velocity: Array) -> Array:
        """z, shape (C, 3) [m/s]."""
        return (self.jacobian @ velocity + self.bias).reshape(-1, 3)

    def missing_normal_velocity(self, velocity: Array) -> float:
        """What the worst contact lacks to be in the domain of its potential [m/s]; negative inside."""
        missing = [contact.missing_normal_velocity(z) for contact, z in self._contacts(velocity)]
        return max(missing, default=-np.inf)

    def is_feasible(self, velocity: Array) -> bool:
        """Whether every contact velocity lies strictly inside the domain of its potential."""
        return all(is_feasible(contact, z) for contact, z in self._contacts(velocity))

    def value(self, velocity: Array) -> float:
        """Objective at a feasible velocity [J]."""
        kinetic = 0.5 * velocity @ self.mass @ velocity - self.momentum @ velocity
        friction = self.friction_impulse @ self._smooth_speed(velocity)
        return float(kinetic + friction + sum(contact.value(z) for contact, z in self._contacts(velocity)))

    def impulses(self, velocity: Array) -> Array:
        """Impulses -grad l_i on the robot, shape (C, 3) [N s]."""
        return np.array([-contact.gradient(z) for contact, z in self._contacts(velocity)]).reshape(-1, 3)

    def contact_hessian(self, velocity: Array) -> Array:
        """W: block-diagonal Hessian of the contact potentials, shape (3 C, 3 C) [kg]."""
        blocks = [contact.hessian(z) for contact, z in self._contacts(velocity)]
        return block_diag(*blocks) if blocks else np.zeros((0, 0))

    def gradient(self, velocity: Array) -> Array:
        """Gradient of the objective: the momentum left unbalanced, shape (nv,) [N s, N m s]."""
        return self.gradient_without_contact(velocity) - self.jacobian.T @ self.impulses(velocity).ravel()

    def gradient_without_contact(self, velocity: Array) -> Array:
        """Momentum that the contacts have to balance, shape (nv,) [N s, N m s]."""
        friction = self.friction_impulse * velocity / self._smooth_speed(velocity)
        return self.mass @ velocity - self.momentum + friction

    def hessian(self, velocity: Array) -> Array:
        """Hessian of the objective, shape (nv, nv), positive definite."""
        friction = self.friction_impulse * self.friction_velocity**2 / self._smooth_speed(velocity) ** 3
        contact = self.jacobian.T @ self.contact_hessian(velocity) @ self.jacobian
        return self.mass + contact + np.diag(friction)

    def _contacts(self, velocity: Array) -> Iterator[tuple[ContactPotential, Array]]:
        return zip(self.potentials, self.contact_velocity(velocity), strict=True)

    def _smooth_speed(self, velocity: Array) -> Array:
        return np.sqrt(velocity**2 + self.friction_velocity**2)


@dataclass(frozen=True)
class NewtonOptions:
    """When to stop the damped Newton method."""

    tolerance: float = 1e-8
    """Newton decrement sqrt(g' H^-1 g) after which one last full step is taken [sqrt(J)]."""
    max_iterations: int = 100
    sufficient_decrease: float = 1e-4
    """Fraction of the predicted decrease that a step must reach (Armijo) [-]."""
    max_halvings: int = 60


@dataclass(frozen=True)
class NewtonResult:
    """Minimiser found by `minimise`."""

    velocity: Array
    iterations: int
    """Number of linear systems solved."""
    converged: bool


def minimise(problem: VelocityProblem, start: Array, options: NewtonOptions) -> NewtonResult:
    """Damped Newton method from a strictly feasible start, shape (nv,)."""
    velocity = start
    for iteration in range(1, options.max_iterations + 1):
        gradient = problem.gradient(velocity)
        step = -cho_solve(cho_factor(problem.hessian(velocity)), gradient)
        slope = float(gradient @ step)  # minus the Newton decrement squared
        if -slope <= options.tolerance**2 and problem.is_feasible(velocity + step):
            # One more step squares the error. A line search would only compare rounding errors.
            return NewtonResult(velocity + step, iteration, converged=True)
        length = _step_length(problem, velocity, step, slope, options)
        if length == 0.0:
            return NewtonResult(velocity, iteration, converged=False)
        velocity = velocity + length * step
    return NewtonResult(velocity, options.max_iterations, converged=False)


def _step_length(
    problem: VelocityProblem, velocity: Array, step: Array, slope: float, options: NewtonOptions
) -> float:
    """Largest 2^-k that stays feasible and decreases the objective enough; 0 if there is none."""
    value = problem.value(velocity)
    rounding = 10.0 * np.finfo(float).eps * (1.0 + abs(value))
    length = 1.0
    for _ in range(options.max_halvings):
        trial = velocity + length * step
        if problem.is_feasible(trial):
            bound = value + options.sufficient_decrease * length * slope + rounding
            if problem.value(trial) <= bound:
                return length
        length *= 0.5
    return 0.0
