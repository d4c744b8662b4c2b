# SPDX-License-Identifier: Apache-2.0
"""Inverse of the contact step: which forces and slacks explain a motion; readable twin of the C++ core.

Given q, v and the velocity v+ after the step, balance of momentum leaves a generalised force

    w = RNEA(q, v, (v+ - v)/dt) + D (v + v+)/2 + friction(v+) - f - sum_i J_i' lambda_i / dt

for every choice of the impulses lambda_i, and the contact potentials then a slack

    s_i = z_i - J_i v+ - (0, 0, phi_i / dt),     lambda_i = -grad l_i(z_i).

So (w, s) has 3 C degrees of freedom, a point on the graph {(z, lambda)} of each potential. The least
improbable one minimises |w|^2 and |s|^2, weighted by their inverse variances.

For the smoothed cone, z~ = (mu_1 z_1, mu_2 z_2, z_n) and lambda~ = (lambda_1/mu_1, lambda_2/mu_2, lambda_n)
are inverse to each other in the Jordan algebra of the Lorentz cone, times c = 2/kappa: the central path of
the complementarity of rigid contact. p = lambda~ - m z~ is a coordinate on it without bounds (the smoothing
of Chen, Harker, Kanzow and Smale; Fukushima, Luo and Tseng, SIAM J. Optim. 12, 2002).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from prime_ros.estimation.contact import ContactStep, StepInput
from prime_ros.estimation.contact_potential import ContactPotential, SmoothedCone

Array = NDArray[np.float64]

SCALE = 0.5  # m: impulse per velocity where neither of the two dominates [kg]


@dataclass(frozen=True)
class Explanation:
    """What leads from (q, v) to v+."""

    force: Array
    """w: generalised force on top of that of the input, shape (nv,) [N, Nm]."""
    slack: Array
    """s, shape (3 C,) [m/s]."""
    impulses: Array
    """lambda, shape (C, 3) [N s]."""


def explain(step: ContactStep, inputs: StepInput, velocity: Array, coordinate: Array) -> Explanation:
    """Force and slack that lead to a velocity, with the contacts at given points of their graphs.

    Args:
        step: The step, its potentials smoothed cones.
        inputs: q, v, force, theta and ground height; the slack is not used.
        velocity: v+, shape (nv,).
        coordinate: p of all contacts, shape (C, 3) [N s].
    """
    unbalanced, jacobian, approach = step.unbalanced(inputs, velocity)
    pairs = [on_graph(_cone(potential), p) for potential, p in zip(step.potentials, coordinate, strict=True)]
    z = np.array([pair[0] for pair in pairs])
    impulses = np.array([pair[1] for pair in pairs])
    force = (unbalanced - jacobian.T @ impulses.ravel()) / step.dt
    return Explanation(force, z.ravel() - approach, impulses)


def least_improbable(
    step: ContactStep, inputs: StepInput, velocity: Array, weight: Array, coordinate: Array
) -> tuple[Explanation, float]:
    """The explanation of least cost near a start, and its cost.

    Args:
        step: The step, its potentials smoothed cones.
        inputs: q, v, force, theta and ground height; the slack is not used.
        velocity: v+, shape (nv,).
        weight: Inverse variances of force and slack, shape (nv + 3 C,).
        coordinate: Start, shape (C, 3) [N s].
    """
    root = np.sqrt(weight)

    def whitened(p: Array) -> Array:
        found = explain(step, inputs, velocity, p.reshape(-1, 3))
        return root * np.concatenate([found.force, found.slack])

    best = least_squares(whitened, coordinate.ravel(), xtol=1e-14, ftol=1e-14, gtol=1e-14, x_scale="jac")
    return explain(step, inputs, velocity, best.x.reshape(-1, 3)), float(best.cost)


def on_graph(potential: SmoothedCone, coordinate: Array) -> tuple[Array, Array]:
    """The pair (z, lambda), each of shape (3,), at a coordinate p."""
    c, scale = 2.0 / potential.kappa, np.array([*potential.friction, 1.0])
    norm = float(np.hypot(*coordinate[:2]))
    direction = coordinate[:2] / norm if norm > 0.0 else np.array([1.0, 0.0])
    eigenvalues = coordinate[2] + norm * np.array([1.0, -1.0])
    impulse = 0.5 * (eigenvalues + np.sqrt(eigenvalues**2 + 4.0 * SCALE * c))
    return _vector(c / impulse, direction) / scale, _vector(impulse, direction) * scale


def coordinate_of(potential: SmoothedCone, impulse: Array) -> Array:
    """The coordinate p, shape (3,), of the pair with an impulse inside the friction cone."""
    scaled = impulse / np.array([*potential.friction, 1.0])
    norm = float(np.hypot(*scaled[:2]))
    direction = scaled[:2] / norm if norm > 0.0 else np.array([1.0, 0.0])
    eigenvalues = scaled[2] + norm * np.array([1.0, -1.0])
    return _vector(eigenvalues - SCALE * (2.0 / potential.kappa) / eigenvalues, direction)


def _cone(potential: ContactPotential) -> SmoothedCone:
    if not isinstance(potential, SmoothedCone):
        raise TypeError(f"got a {type(potential).__name__}, expected a SmoothedCone: only its graph is known")
    return potential


def _vector(eigenvalues: Array, direction: Array) -> Array:
    """Element of the algebra, shape (3,), from its eigenvalues and the direction of its frame."""
    difference, total = eigenvalues[0] - eigenvalues[1], eigenvalues.sum()
    return np.array([*(0.5 * difference * direction), 0.5 * total])
