# SPDX-License-Identifier: Apache-2.0
"""From a solution to the estimate: deviations, contact probability, link inertia, chi-square per sensor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from prime_ros import _core
from prime_ros.config import EstimatorConfig
from prime_ros.estimation.estimate import (
    BodyInertia,
    Certificate,
    Estimate,
    LinkEstimate,
    Parameters,
)
from prime_ros.estimation.foot_loads import foot_loads
from prime_ros.estimation.gate import Gate
from prime_ros.estimation.inertia import (
    PARAMETER_COUNT,
    body_inertia,
    body_inertia_covariance,
    body_inertia_std,
    from_inertia,
)
from prime_ros.estimation.observability import link_directions
from prime_ros.estimation.problem import BASE_NV, Problem, prior_std
from prime_ros.estimation.progress import Progress
from prime_ros.estimation.sensors import sensor_channels
from prime_ros.measurements.knots import KnotMeasurements
from prime_ros.robot import Robot

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Solution:
    """What a solver leaves: the problem, its last iterate, the posterior there, and what it took."""

    problem: Problem
    solver: _core.GaussNewton
    posterior: _core.Posterior
    certificate: Certificate
    gate: Gate
    history: tuple[Progress, ...]


def to_estimate(
    solution: Solution,
    measurements: KnotMeasurements,
    robot: Robot,
    config: EstimatorConfig,
    timing: Mapping[str, float],
) -> Estimate:
    """Turn a solution over K steps into the estimate of its first K knots."""
    steps, nq, nv = solution.problem.steps, robot.model.nq, robot.model.nv
    theta = solution.solver.states[nq + nv :, 0]
    parameters = link_parameters(theta, solution.posterior.theta_covariance, robot, config)
    states = solution.solver.states[:, :steps].T
    controls = solution.solver.controls.T
    q, v = states[:, :nq], states[:, nq : nq + nv]
    force, force_std = contact_forces(solution, config.dt)
    probability, probability_std = contact_probability(force, force_std, config.contact_threshold)
    posterior = solution.posterior
    channels = sensor_channels(
        solution.solver, posterior, solution.gate, robot.joint_names, robot.contact_names
    )
    std = {
        "base_position_W": posterior.position_std[:, :steps].T,
        "base_quat_xyzw": posterior.configuration_std[3:6, :steps].T,
        "base_velocity_B": posterior.velocity_std[:BASE_NV, :steps].T,
        "joint_position": posterior.configuration_std[BASE_NV:, :steps].T,
        "joint_velocity": posterior.velocity_std[BASE_NV:, :steps].T,
        "joint_torque": posterior.control_std[BASE_NV:nv].T,
        "contact_force_W": force_std,
        "contact_probability": probability_std,
    }
    return Estimate(
        stamp_ns=measurements.stamp_ns[:steps],
        dt=config.dt,
        joint_names=robot.joint_names,
        contact_names=robot.contact_names,
        base_position_W=q[:, :3],
        base_quat_xyzw=q[:, 3:7] / np.linalg.norm(q[:, 3:7], axis=1, keepdims=True),
        base_velocity_B=v[:, :BASE_NV],
        joint_position=q[:, 7:],
        joint_velocity=v[:, BASE_NV:],
        joint_torque=measurements.joint_torque[:steps] + controls[:, BASE_NV:nv],
        contact_force_W=force,
        contact_probability=probability,
        std=std,
        links=links_of(parameters, robot),
        ground_height=float(states[0, -1]),
        std_ground_height=float(np.sqrt(posterior.theta_covariance[-1, -1])),
        certificate=solution.certificate,
        sensors={name: each.report() for name, each in channels.items()},
        timing=timing,
        residuals={
            name: each.residuals(measurements.stamp_ns) for name, each in channels.items() if each.measured
        },
        history=solution.history,
        directions=link_directions(parameters),
        parameters=parameters if parameters.links else None,
        feet=foot_loads(q, force, force_covariance(solution, config.dt), robot, config.contact_threshold),
    )


def contact_forces(solution: Solution, dt: float) -> tuple[Array, Array]:
    """Mean contact forces in world axes and their standard deviations, each of shape (K, C, 3) [N]."""
    steps = solution.problem.steps
    force = solution.solver.impulses.T.reshape(steps, -1, 3) / dt
    std = solution.posterior.impulse_std.T.reshape(steps, -1, 3) / dt
    return force, std


def force_covariance(solution: Solution, dt: float) -> Array:
    """Of the mean forces of all contacts at each knot, shape (K, 3 C, 3 C) [N^2]."""
    size = len(solution.posterior.impulse_std)
    return solution.posterior.impulse_covariance.T.reshape(-1, size, size) / dt**2


def contact_probability(force_W: Array, std: Array, threshold: float) -> tuple[Array, Array]:
    """Probability that the normal force exceeds a threshold, and the standard deviation of that event.

    The posterior of the force is taken as Gaussian. The state of a contact is then a Bernoulli variable, of
    standard deviation sqrt(p (1 - p)).

    Args:
        force_W: Shape (K, C, 3) [N].
        std: Standard deviation, shape (K, C, 3) [N].
        threshold: Normal force that counts as contact [N].

    Returns:
        Two arrays of shape (K, C) [-].
    """
    probability = ndtr((force_W[..., 2] - threshold) / std[..., 2])
    return probability, np.sqrt(probability * (1.0 - probability))


def link_parameters(theta: Array, covariance: Array, robot: Robot, config: EstimatorConfig) -> Parameters:
    """Posterior of the parameters of all identified links, and the prior that the settings state.

    Args:
        theta: Parameters, those of the links first, shape (ntheta,).
        covariance: Theirs, shape (ntheta, ntheta).
        robot: The robot.
        config: Links and prior.
    """
    count = PARAMETER_COUNT * len(config.links)
    mean, variance = parameter_prior(robot, config)
    return Parameters(
        links=config.links,
        mean=theta[:count],
        covariance=covariance[:count, :count],
        prior_mean=mean,
        prior_covariance=np.diag(variance),
    )


def parameter_prior(robot: Robot, config: EstimatorConfig) -> tuple[Array, Array]:
    """Mean and variance of the parameters of all links to identify, each of shape (10 L,)."""
    nominal = [from_inertia(robot.model.inertias[robot.joint_of_link(link)]) for link in config.links]
    count = PARAMETER_COUNT * len(nominal)
    first = 2 * robot.model.nv
    return np.array(nominal).reshape(count), prior_std(robot, config)[first : first + count] ** 2


def links_of(parameters: Parameters, robot: Robot) -> dict[str, LinkEstimate]:
    """Inertia of every link of the parameters."""
    nominal = nominal_bodies(parameters.links, robot)
    return link_estimates(nominal, parameters.mean, parameters.covariance, parameters.prior_covariance)


def nominal_bodies(links: Iterable[str], robot: Robot) -> dict[str, BodyInertia]:
    """Nominal inertia of every identified link, in the order of theta."""
    return {
        link: body_inertia(from_inertia(robot.model.inertias[robot.joint_of_link(link)])) for link in links
    }


def link_estimates(
    nominal: Mapping[str, BodyInertia], theta: Array, covariance: Array, prior: Array | None = None
) -> dict[str, LinkEstimate]:
    """Nominal and estimated inertia of every identified link.

    Args:
        nominal: What `nominal_bodies` returned.
        theta: Parameters, those of the links first, shape (ntheta,).
        covariance: Theirs, shape (ntheta, ntheta).
        prior: Their covariance before the data, as far as it is known.
    """
    links = {}
    for i, (link, body) in enumerate(nominal.items()):
        block = slice(PARAMETER_COUNT * i, PARAMETER_COUNT * (i + 1))
        links[link] = LinkEstimate(
            nominal=body,
            estimate=body_inertia(theta[block]),
            std=body_inertia_std(theta[block], covariance[block, block]),
            prior_std=None if prior is None else body_inertia_std(theta[block], prior[block, block]),
            covariance=body_inertia_covariance(theta[block], covariance[block, block]),
        )
    return links


class LazyLinks(Mapping[str, LinkEstimate]):
    """`link_estimates` that are made when one of them is first looked at; live, most are not."""

    def __init__(self, nominal: Mapping[str, BodyInertia], theta: Array, covariance: Array) -> None:
        """Arguments as for `link_estimates`."""
        self._nominal, self._theta, self._covariance = nominal, theta, covariance

    def __getitem__(self, link: str) -> LinkEstimate:
        """Estimate of a link."""
        return self._made[link]

    def __iter__(self) -> Iterator[str]:
        """Names of the links."""
        return iter(self._nominal)

    def __len__(self) -> int:
        """Number of links."""
        return len(self._nominal)

    @cached_property
    def _made(self) -> dict[str, LinkEstimate]:
        return link_estimates(self._nominal, self._theta, self._covariance)
