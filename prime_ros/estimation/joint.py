# SPDX-License-Identifier: Apache-2.0
"""Several recordings of one body: one inertia from all, everything else for each of them.

What is shared are the log-Cholesky parameters of the identified links. Motion, forces, contact states and the
height of the ground belong to a recording: another day, another room. The recordings are solved in turn, each
with what the prior and all others say of the shared parameters as its prior, until all of them end at the
same inertia: that is the maximum a posteriori of all recordings together (docs/joint.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prime_ros.config import EstimatorConfig
from prime_ros.estimation.covariance import links_of, parameter_prior
from prime_ros.estimation.estimate import Certificate, Direction, Estimate, LinkEstimate, Parameters
from prime_ros.estimation.full_information import Solved, Start, solve_recording
from prime_ros.estimation.fusion import Agreement, Information, agreements, data_alone, fused
from prime_ros.estimation.observability import contributions, link_directions
from prime_ros.estimation.progress import Report
from prime_ros.exceptions import ConfigError, MeasurementError
from prime_ros.measurements.knots import KnotMeasurements
from prime_ros.robot import Robot

Array = NDArray[np.float64]

TOLERANCE = 1e-2
"""Largest distance of the inertia of a recording from that of all, in standard deviations of the latter."""
MOST_ROUNDS = 20
PATIENCE = 3
"""Rounds without a smaller distance than ever before after which there is no point in going on."""


@dataclass(frozen=True)
class JointEstimate:
    """One inertia from R recordings, and the estimate of each recording."""

    recordings: tuple[Estimate, ...]
    """Motion, forces and ground height of each with the inertia of all, in the order given."""
    alone: tuple[Estimate, ...]
    """What each recording says without the others."""
    links: Mapping[str, LinkEstimate]
    """Inertia of every identified link, from all."""
    parameters: Parameters
    """Of the links, from all."""
    directions: tuple[Direction, ...]
    """What all told about the inertia, least known first."""
    shares: Array
    """Share of every recording in what is known of each direction, shape (len(directions), R) [-]."""
    agreements: tuple[Agreement, ...]
    """How well every recording alone agrees with all others."""
    distances: Array
    """Of the inertia at which each recording ended from that of all, in its std, shape (R,) [-]."""
    rounds: int
    """How often every recording was solved."""
    certificate: Certificate
    """Converged only if every recording is and all end at one inertia."""


def solve_joint(
    recordings: Sequence[KnotMeasurements],
    robot: Robot,
    config: EstimatorConfig,
    progress: Report | None = None,
) -> JointEstimate:
    """Estimate one inertia from several recordings, and motion and forces of each.

    Args:
        recordings: At least two, of the same robot with the same load.
        robot: The robot that was measured.
        config: Weights, prior, identified links, solver; the same for all.
        progress: Called after every iteration; an exception it raises ends the solve and passes through.

    Returns:
        The estimate; `certificate.converged` says whether it is that of all recordings together.

    Raises:
        ConfigError: If no link is to be identified: nothing would be shared.
        MeasurementError: If there are less than two recordings, or one cannot be started from.
        RobotError: If a link to identify does not exist.
    """
    check(len(recordings), config)
    run = _Run(recordings, robot, config, progress or (lambda _: None))
    run.solve_alone()
    while run.goes_on():
        run.solve_with_others()
    return run.result()


def check(recordings: int, config: EstimatorConfig) -> None:
    """Refuse what makes no sense, before the work; errors as `solve_joint`."""
    if recordings < 2:
        raise MeasurementError(f"a joint solve: got {recordings} recordings, expected at least two")
    if not config.links:
        raise ConfigError("a joint solve: got no link to identify, expected one: nothing else is shared")


class _Run:
    """The recordings from round to round."""

    def __init__(
        self, recordings: Sequence[KnotMeasurements], robot: Robot, config: EstimatorConfig, report: Report
    ) -> None:
        self.recordings, self.robot, self.config, self.report = recordings, robot, config, report
        mean, variance = parameter_prior(robot, config)
        self.prior = Information.of(mean, np.diag(variance))
        self.rounds, self.iterations = 0, 0
        self.history: list[float] = []  # largest distance after each round with others
        self.solved: list[Solved] = []
        self.before: list[Information] = []  # what every recording was solved with
        self.data: list[Information] = []  # of every recording, without any prior

    def solve_alone(self) -> None:
        """Every recording with nothing but the prior."""
        self.rounds = 1
        for number in range(len(self.recordings)):
            solved = self._solve(number, None)
            self.solved.append(solved)
            self.before.append(self.prior)
            self.data.append(self._data(solved, self.prior))
        self.alone, self.alone_data = tuple(each.estimate for each in self.solved), tuple(self.data)

    def solve_with_others(self) -> None:
        """Every recording with what the prior and all others say, the newest word of each."""
        self.rounds += 1
        for number in range(len(self.recordings)):
            others = self.total - self.data[number]
            solved = self._solve(number, others, self.solved[number].starts)
            self.solved[number], self.before[number] = solved, others
            self.data[number] = self._data(solved, others)
        self.history.append(float(self.distances().max()))

    def _solve(self, number: int, before: Information | None, starts: Sequence[Start] = ()) -> Solved:
        where: dict[str, Any] = {
            "recording": number + 1,
            "recordings": len(self.recordings),
            "round": self.rounds,
        }
        solved = solve_recording(
            self.recordings[number],
            self.robot,
            self.config,
            lambda at: self.report(replace(at, **where)),
            before,
            starts,
        )
        self.iterations += solved.estimate.certificate.iterations
        return solved

    @property
    def total(self) -> Information:
        """The prior once, and what all recordings say."""
        return fused(self.prior, self.data)

    def distances(self) -> Array:
        """How far every recording ended from all together."""
        total, count = self.total, len(self.prior.vector)
        ends = [each.theta[:count] for each in self.solved]
        ends += [each.estimate.parameters.mean for each in self.solved if each.estimate.parameters]
        found = np.array([total.distance(end) for end in ends])
        return found.reshape(2, -1).max(axis=0)

    def goes_on(self) -> bool:
        """Whether another round is needed, and makes sense."""
        if any(not each.estimate.certificate.converged for each in self.solved):
            return False
        if self.history and self.history[-1] <= TOLERANCE:
            return False
        stuck = len(self.history) > PATIENCE and min(self.history) not in self.history[-PATIENCE:]
        return not stuck and self.rounds < MOST_ROUNDS

    def _data(self, solved: Solved, before: Information) -> Information:
        count = len(self.prior.vector)
        covariance = solved.covariance[:count, :count]
        if not np.isfinite(covariance).all():
            nothing = np.zeros((count, count))
            return Information(nothing, np.zeros(count))
        return data_alone(Information.of(solved.theta[:count], covariance), before)

    def result(self) -> JointEstimate:
        """What was found."""
        total = self.total
        prior_covariance = self.prior.covariance
        parameters = Parameters(
            tuple(self.config.links), total.mean, total.covariance, self.prior.mean, prior_covariance
        )
        links, directions = links_of(parameters, self.robot), link_directions(parameters)
        certificate = self._certificate()
        common: dict[str, Any] = {"links": links, "directions": directions, "parameters": parameters}
        return JointEstimate(
            recordings=tuple(
                replace(each.estimate, certificate=self._of_one(each.estimate, certificate), **common)
                for each in self.solved
            ),
            alone=self.alone,
            links=links,
            parameters=parameters,
            directions=directions,
            shares=contributions(parameters, [each.matrix for each in self.data]),
            agreements=tuple(agreements(self.prior, self.alone_data)),
            distances=self.distances(),
            rounds=self.rounds,
            certificate=certificate,
        )

    def _certificate(self) -> Certificate:
        """Of all: the worst of the recordings, and whether they end at one inertia."""
        each = [solved.estimate.certificate for solved in self.solved]
        distance = float(self.distances().max())
        failed = [i for i, certificate in enumerate(each, start=1) if not certificate.converged]
        if failed:
            which = ", ".join(map(str, failed))
            reason = f"recording {which} did not converge: {each[failed[0] - 1].reason}"
        elif self.rounds == 1 or distance > TOLERANCE:
            reason = (
                f"the recordings end {distance:.2g} std from one inertia after round {self.rounds}; is the"
                " load the same in all of them?"
            )
        else:
            reason = (
                f"each of {len(each)} recordings, and they end within {distance:.1e} std of one inertia"
                f" ({TOLERANCE:.0e} allowed) in round {self.rounds}"
            )
        return Certificate(
            converged=not failed and self.rounds > 1 and distance <= TOLERANCE,
            reason=reason,
            iterations=self.iterations,
            cost=self._cost(),
            largest_gap=max(certificate.largest_gap for certificate in each),
            gradient=max(certificate.gradient for certificate in each),
            relative_cost_change=max(certificate.relative_cost_change for certificate in each),
            stages=each[-1].stages,
        )

    def _cost(self) -> float:
        """Negative log-posterior of all together: the prior of the inertia once."""
        costs = [solved.estimate.certificate.cost for solved in self.solved]
        ends = [solved.estimate.parameters.mean for solved in self.solved if solved.estimate.parameters]
        counted = [before.distance(end) ** 2 for before, end in zip(self.before, ends, strict=True)]
        return sum(costs) - 0.5 * sum(counted) + 0.5 * self.prior.distance(self.total.mean) ** 2

    @staticmethod
    def _of_one(estimate: Estimate, all_: Certificate) -> Certificate:
        """A recording is not converged as long as the inertia it was solved with is not that of all."""
        if all_.converged or not estimate.certificate.converged:
            return estimate.certificate
        return replace(estimate.certificate, converged=False, reason=f"the joint solve: {all_.reason}")
