# SPDX-License-Identifier: Apache-2.0
"""The result of an estimation: trajectories, inertia, standard deviations, and how far to trust them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from prime_ros.estimation.progress import Progress

Array = NDArray[np.float64]


@dataclass(frozen=True)
class BodyInertia:
    """Inertia of a moving body: a link and all that is fixed to it, in the frame of its joint."""

    mass: float
    """Mass [kg]."""
    com: Array
    """Centre of mass, shape (3,) [m]."""
    inertia_com: Array
    """Rotational inertia about the centre of mass, axes of the joint frame, shape (3, 3) [kg m^2]."""


@dataclass(frozen=True)
class LinkEstimate:
    """Nominal and estimated inertia of one identified link, and the standard deviation of each entry."""

    nominal: BodyInertia
    estimate: BodyInertia
    std: BodyInertia
    prior_std: BodyInertia | None = None
    """What was assumed before the data, about `nominal`, at the estimate to first order; None: not known."""
    covariance: Array | None = None
    """Posterior, of (mass, com, inertia_com row by row), shape (13, 13); None: not known."""


@dataclass(frozen=True)
class Parameters:
    """Gaussian posterior and prior of the n = 10 L log-Cholesky parameters of L links (docs/concept.md)."""

    links: tuple[str, ...]
    """In the order of the parameters, ten each."""
    mean: Array
    """Shape (n,)."""
    covariance: Array
    """Shape (n, n)."""
    prior_mean: Array
    """Shape (n,)."""
    prior_covariance: Array
    """Shape (n, n)."""


@dataclass(frozen=True)
class StageReport:
    """What the solver did at one contact stiffness."""

    kappa: float
    """Sharpness of the contact smoothing of the stage [1/J]."""
    iterations: int
    cost: float
    """Negative log-posterior at the end of the stage, up to a constant [-]."""
    largest_gap: float
    """Largest defect of the dynamics, infinity norm in tangent units [m, rad, m/s, rad/s]."""
    converged: bool


@dataclass(frozen=True)
class Certificate:
    """Evidence that the estimate solves the problem it claims to solve."""

    converged: bool
    reason: str
    """Why the solver stopped, in words."""
    iterations: int
    """Over all stages."""
    cost: float
    """Negative log-posterior, up to a constant [-]."""
    largest_gap: float
    """Largest defect of the dynamics, infinity norm in tangent units [m, rad, m/s, rad/s]."""
    gradient: float
    """Expected relative decrease of the cost by another Gauss-Newton step [-]."""
    relative_cost_change: float
    """Relative decrease of the cost by the last step [-]."""
    stages: tuple[StageReport, ...]


@dataclass(frozen=True)
class SensorReport:
    """How the residuals of one sensor compare with its stated noise."""

    count: int
    """Number of scalar measurements used."""
    dof: float
    """Degrees of freedom: count minus the trace of the hat matrix [-]."""
    chi_square: float
    """Sum of squared whitened residuals [-]."""
    rms_residual: float
    """Root mean square residual, in `unit`."""
    unit: str
    measured: bool = True
    """False for what the model had to invent (disturbance, slack): its std is a setting, not sensor noise."""
    rejected: int = 0
    """Scalar measurements that were given no weight because they contradict all others; not in `count`."""

    @property
    def chi_square_per_dof(self) -> float:
        """Chi-square per degree of freedom: 1 where the stated noise is right [-]."""
        return self.chi_square / self.dof if self.dof > 0.0 else float("nan")

    @property
    def rejected_share(self) -> float:
        """Share of the measurements that was rejected [-]."""
        total = self.count + self.rejected
        return self.rejected / total if total else 0.0


@dataclass(frozen=True)
class Residuals:
    """Residuals of one sensor over time, prediction minus measurement, in its standard deviations."""

    stamp_ns: NDArray[np.int64]
    """Time of the knots, shape (K,) [ns]."""
    channels: tuple[str, ...]
    """Names of the m channels: axes or joints."""
    whitened: Array
    """Shape (K, m) [-]; NaN where nothing was measured."""
    rejected: NDArray[np.bool_]
    """Which measurements were given no weight, shape (K, m)."""


@dataclass(frozen=True)
class Direction:
    """A combination of parameters, and how much this recording told about it."""

    link: str
    """The link it belongs to."""
    description: str
    """In words, such as ``moment of inertia about z``: its largest parts."""
    learned: float
    """1 - posterior variance / prior variance along it: near 1 known by the data, near 0 by the prior [-]."""


@dataclass(frozen=True)
class FootLoads:
    """What F flat feet carry altogether over K knots: means over the same triangle as the contact forces."""

    names: tuple[str, ...]
    wrench_W: Array
    """Force [N], then moment about the middle of the sole [Nm], on the robot, world axes, shape (K, F, 6)."""
    std_wrench_W: Array
    """Shape (K, F, 6)."""
    pressure_centre_F: Array
    """From the middle of the sole along its length (to the toe) and width, shape (K, F, 2) [m]; NaN while it
    carries less than the contact threshold."""
    std_pressure_centre_F: Array
    """Shape (K, F, 2) [m]."""
    roll: Array
    """Where along the sole the pressure is: 0 the heel, 1 the toe, shape (K, F) [-]; NaN as above."""


@dataclass(frozen=True)
class Estimate:
    """Maximum a posteriori trajectory and inertia over K knots, n joints and C contacts.

    Velocities are means over the interval (stamp - dt, stamp]; forces and torques are means weighted by the
    triangle over stamp +- dt (docs/concept.md, "Time").
    """

    stamp_ns: NDArray[np.int64]
    """Measurement time of each knot, shape (K,) [ns]."""
    dt: float
    """Knot spacing [s]."""
    joint_names: tuple[str, ...]
    contact_names: tuple[str, ...]
    base_position_W: Array
    """Shape (K, 3) [m], world frame."""
    base_quat_xyzw: Array
    """Base to world, shape (K, 4), x y z w."""
    base_velocity_B: Array
    """Base twist in the base frame, linear then angular, shape (K, 6) [m/s, rad/s]."""
    joint_position: Array
    """Shape (K, n) [rad]."""
    joint_velocity: Array
    """Shape (K, n) [rad/s]."""
    joint_torque: Array
    """Measured torque corrected by the estimated joint disturbance, shape (K, n) [Nm]."""
    contact_force_W: Array
    """Force on the robot in world axes, shape (K, C, 3) [N]."""
    contact_probability: Array
    """Probability that the normal force exceeds the contact threshold, shape (K, C) [-]."""
    std: Mapping[str, Array]
    """Posterior standard deviation by field name; of `base_quat_xyzw` that of the rotation vector in base
    axes, shape (K, 3) [rad]."""
    links: Mapping[str, LinkEstimate]
    ground_height: float
    """[m], world frame."""
    std_ground_height: float
    certificate: Certificate
    sensors: Mapping[str, SensorReport]
    timing: Mapping[str, float]
    """Wall time by phase [s]."""
    residuals: Mapping[str, Residuals] = field(default_factory=dict)
    """By the names of `sensors`."""
    history: tuple[Progress, ...] = ()
    """Every iteration of the solver."""
    directions: tuple[Direction, ...] = ()
    """Of the inertia of every link, least known first."""
    parameters: Parameters | None = None
    """Of all identified links; None if there are none."""
    feet: FootLoads | None = None
    """Of feet with several contact points, whose own forces are hardly determined; None if there are none."""
