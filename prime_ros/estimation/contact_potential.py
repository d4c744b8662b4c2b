# SPDX-License-Identifier: Apache-2.0
"""Contact models: convex potentials of the contact velocity.

A contact model is a convex potential l(z) of the contact velocity z = (z_1, z_2, z_n) [m/s] in world axes
(tangential x, tangential y, normal z); its impulse on the robot is lambda = -grad l(z) [N s].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class ContactPotential(Protocol):
    """Convex potential l of the velocity z, shape (3,) [m/s], of one contact.

    Every method but `missing_normal_velocity` may assume that z lies in the domain of l.
    """

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the P parameters that `gradient_sensitivity` differentiates with respect to."""
        ...

    def missing_normal_velocity(self, z: Array) -> float:
        """What z_n lacks to reach the domain [m/s]; negative inside, -inf if every z is."""
        ...

    def value(self, z: Array) -> float:
        """l(z) [J]."""
        ...

    def gradient(self, z: Array) -> Array:
        """dl/dz, shape (3,) [N s]: minus the impulse on the robot."""
        ...

    def hessian(self, z: Array) -> Array:
        """d2l/dz2, shape (3, 3) [kg], positive semidefinite."""
        ...

    def gradient_sensitivity(self, z: Array) -> Array:
        """d(dl/dz)/d(parameters), shape (3, P)."""
        ...


def is_feasible(potential: ContactPotential, z: Array) -> bool:
    """Whether z lies strictly inside the domain of the potential (False for a non-finite z)."""
    return potential.missing_normal_velocity(z) < 0.0


@dataclass(frozen=True)
class SmoothedCone:
    """Rigid contact with elliptic Coulomb friction, smoothed by a logarithm.

        l(z) = -1/kappa log S,   S = z_n^2 - (mu_1 z_1)^2 - (mu_2 z_2)^2,   z_n > |(mu_1 z_1, mu_2 z_2)|

    The impulse lies strictly inside the friction cone |(lambda_1/mu_1, lambda_2/mu_2)| < lambda_n. As kappa
    grows, the model tends to rigid contact with Anitescu's convex friction (Math. Program. 105, 2006).
    """

    friction: tuple[float, float]
    """Coulomb coefficients (mu_1, mu_2) along world x and y [-], not negative."""
    kappa: float
    """Sharpness of the smoothing [1/J]: a foot at rest under the force F hovers at 2 / (kappa F)."""

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """mu_1, mu_2, kappa."""
        return ("mu_1", "mu_2", "kappa")

    def missing_normal_velocity(self, z: Array) -> float:
        """|(mu_1 z_1, mu_2 z_2)| - z_n [m/s]."""
        return self._tangential_speed(z) - float(z[2])

    def value(self, z: Array) -> float:
        """l(z) [J]."""
        return -float(np.log(self._margin(z))) / self.kappa

    def gradient(self, z: Array) -> Array:
        """2 / (kappa S) (mu_1^2 z_1, mu_2^2 z_2, -z_n), shape (3,) [N s]."""
        return -self._metric() * z * (2.0 / (self.kappa * self._margin(z)))

    def hessian(self, z: Array) -> Array:
        """2 / (kappa S) (2 (m z)(m z)' / S - diag(m)) with m = (-mu_1^2, -mu_2^2, 1), shape (3, 3) [kg]."""
        metric, margin = self._metric(), self._margin(z)
        mz = metric * z
        return (2.0 / (self.kappa * margin)) * ((2.0 / margin) * np.outer(mz, mz) - np.diag(metric))

    def gradient_sensitivity(self, z: Array) -> Array:
        """d(dl/dz)/d(mu_1, mu_2, kappa), shape (3, 3)."""
        margin, mz = self._margin(z), self._metric() * z
        sensitivity = np.full((3, 3), np.nan)
        for axis, mu in enumerate(self.friction):
            d_margin = -2.0 * mu * z[axis] ** 2
            sensitivity[:, axis] = (2.0 / (self.kappa * margin**2)) * d_margin * mz
            sensitivity[axis, axis] += 4.0 * mu * z[axis] / (self.kappa * margin)
        sensitivity[:, 2] = -self.gradient(z) / self.kappa
        return sensitivity

    def _metric(self) -> Array:
        mu_1, mu_2 = self.friction
        return np.array([-(mu_1**2), -(mu_2**2), 1.0])

    def _tangential_speed(self, z: Array) -> float:
        return float(np.hypot(self.friction[0] * z[0], self.friction[1] * z[1]))

    def _margin(self, z: Array) -> float:
        # Factored, S keeps its digits next to the cone and is positive exactly where `is_feasible` says so.
        tangential = self._tangential_speed(z)
        return float((z[2] - tangential) * (z[2] + tangential))
