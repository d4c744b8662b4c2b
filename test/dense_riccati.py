# SPDX-License-Identifier: Apache-2.0
"""Dense reference of the structured sweeps: textbook recursions in NumPy, slow and obvious.

The state of a knot is dx = (dq, dv, dtheta), ndx = 2 nv + nt; the problem is stated in cpp/sweeps/sweep.hpp.
`Step.dense` is the only place where its structure appears.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
Solution = tuple[list[Array], list[Array]]


@dataclass(frozen=True)
class Step:
    """Linearised step from one knot to the next, and its control cost 1/2 du' diag(luu) du + lu' du."""

    dt: float
    Aq: Array  # (nv, nv)
    Av: Array  # (nv, nv)
    At: Array  # (nv, nt)
    B: Array  # (nv, nu)
    luu: Array  # (nu,)
    lu: Array  # (nu,)
    c: Array  # (nv,) velocity gap
    fq: Array  # (nv,) configuration gap
    Jq6: Array  # (6, 6)
    Jv6: Array  # (6, 6)

    def dense(self) -> tuple[Array, Array, Array]:
        """F (ndx, ndx), G (ndx, nu), f (ndx,) of dx+ = F dx + G du + f."""
        nv, nt = self.At.shape
        Jq, Jv = np.eye(nv), np.eye(nv)
        Jq[:6, :6], Jv[:6, :6] = self.Jq6, self.Jv6
        A = np.hstack([self.Aq, self.Av, self.At])
        keep_q = np.hstack([Jq, np.zeros((nv, nv + nt))])
        keep_t = np.hstack([np.zeros((nt, 2 * nv)), np.eye(nt)])
        F = np.vstack([keep_q + self.dt * Jv @ A, A, keep_t])
        G = np.vstack([self.dt * Jv @ self.B, self.B, np.zeros((nt, self.B.shape[1]))])
        f = np.concatenate([self.fq + self.dt * Jv @ self.c, self.c, np.zeros(nt)])
        return F, G, f


@dataclass(frozen=True)
class Quadratic:
    """1/2 dx' hessian dx + gradient' dx, with hessian (ndx, ndx) and gradient (ndx,)."""

    hessian: Array
    gradient: Array

    def __add__(self, other: Quadratic) -> Quadratic:
        return Quadratic(self.hessian + other.hessian, self.gradient + other.gradient)

    def minimiser(self) -> Array:
        """The minimising dx (ndx,), with one step of iterative refinement."""
        dx = -np.linalg.solve(self.hessian, self.gradient)
        return dx - np.linalg.solve(self.hessian, self.hessian @ dx + self.gradient)


@dataclass(frozen=True)
class Policy:
    """du = gain dx + feedforward; covariance (nu, nu) is the inverse of the control Hessian."""

    gain: Array
    feedforward: Array
    covariance: Array


def knot_cost(nv: int, diagonal: Array, base_block: Array, gradient: Array) -> Quadratic:
    """Cost of a knot: a diagonal (ndx,), a (12, 12) block on (dq[:6], dv[:6]) and a gradient (ndx,)."""
    base = np.r_[0:6, nv : nv + 6]
    hessian = np.diag(diagonal)
    hessian[np.ix_(base, base)] += base_block
    return Quadratic(hessian, gradient)


def backward(steps: Sequence[Step], costs: Sequence[Quadratic]) -> tuple[list[Quadratic], list[Policy]]:
    """Costs to go of the K + 1 knots, own cost included, and the K policies (Riccati recursion)."""
    values = [costs[-1]]
    policies: list[Policy] = []
    for step, cost in zip(reversed(steps), reversed(costs[:-1]), strict=True):
        F, G, f = step.dense()
        V = values[-1].hessian
        v = V @ f + values[-1].gradient
        Quu = np.diag(step.luu) + G.T @ V @ G
        Qux = G.T @ V @ F
        Qu = step.lu + G.T @ v
        gain, feedforward = -np.linalg.solve(Quu, Qux), -np.linalg.solve(Quu, Qu)
        hessian = cost.hessian + F.T @ V @ F + Qux.T @ gain
        values.append(Quadratic((hessian + hessian.T) / 2, cost.gradient + F.T @ v + Qux.T @ feedforward))
        policies.append(Policy(gain, feedforward, np.linalg.inv(Quu)))
    return values[::-1], policies[::-1]


def forward(steps: Sequence[Step], costs: Sequence[Quadratic], prior: Quadratic) -> list[Quadratic]:
    """Costs to arrive at the K + 1 knots, own cost not included; F must be invertible.

    With dx = E (dx+ - G du - f), E = F^-1, the cost of knot k is a form in (dx+, du); du is eliminated.
    """
    arrivals = [prior]
    for step, cost in zip(steps, costs, strict=False):
        F, G, f = step.dense()
        E = np.linalg.inv(F)
        here = arrivals[-1] + cost
        M = E.T @ here.hessian @ E
        m = E.T @ here.gradient - M @ f
        Quu = np.diag(step.luu) + G.T @ M @ G
        gain = np.linalg.solve(Quu, G.T @ M)
        hessian = M - M @ G @ gain
        arrivals.append(Quadratic((hessian + hessian.T) / 2, m + gain.T @ (step.lu - G.T @ m)))
    return arrivals


def rollout(steps: Sequence[Step], policies: Sequence[Policy], dx_0: Array) -> Solution:
    """Linear steps from dx_0 under the policies: dx of the K + 1 knots and du of the K steps."""
    dx: list[Array] = [dx_0]
    du: list[Array] = []
    for step, policy in zip(steps, policies, strict=True):
        F, G, f = step.dense()
        du.append(policy.gain @ dx[-1] + policy.feedforward)
        dx.append(F @ dx[-1] + G @ du[-1] + f)
    return dx, du


def solve(steps: Sequence[Step], costs: Sequence[Quadratic], prior: Quadratic) -> Solution:
    """Minimiser of the whole chain: dx of the K + 1 knots and du of the K steps."""
    values, policies = backward(steps, costs)
    return rollout(steps, policies, (values[0] + prior).minimiser())


def covariances(steps: Sequence[Step], costs: Sequence[Quadratic], prior: Quadratic) -> list[Array]:
    """Posterior covariance (ndx, ndx) of dx of every knot (two-filter smoother)."""
    values, _ = backward(steps, costs)
    arrivals = forward(steps, costs, prior)
    return [np.linalg.inv((V + A).hessian) for V, A in zip(values, arrivals, strict=True)]


def change(
    steps: Sequence[Step],
    costs: Sequence[Quadratic],
    prior: Quadratic,
    dx: Sequence[Array],
    du: Sequence[Array],
) -> tuple[float, float]:
    """Linear and quadratic term of the modelled cost along (dx, du)."""
    forms = [prior, *costs]
    points = [dx[0], *dx]
    linear = sum(float(form.gradient @ x) for form, x in zip(forms, points, strict=True))
    quadratic = sum(float(x @ form.hessian @ x) for form, x in zip(forms, points, strict=True))
    linear += sum(float(step.lu @ u) for step, u in zip(steps, du, strict=True))
    quadratic += sum(float(u @ (step.luu * u)) for step, u in zip(steps, du, strict=True))
    return linear, quadratic
