# SPDX-License-Identifier: Apache-2.0
"""Solves of simulated logs, each done once however many experiments ask for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pinocchio as pin

from prime_ros.config import load_estimator_config
from prime_ros.estimation.estimate import BodyInertia, Estimate
from prime_ros.estimation.estimators import solve
from prime_ros.experiments.data import LogFolder
from prime_ros.experiments.force_errors import EDGE_KNOTS, ForceErrors, force_errors
from prime_ros.experiments.simulation_logs import noisy_recording, truth_at
from prime_ros.measurements import KnotMeasurements, align
from prime_ros.robot import Robot, load_robot

MOCAP_RATE = 100.0  # [Hz]


@dataclass(frozen=True)
class Case:
    """One solve."""

    log: str
    seed: int = 0
    overrides: tuple[str, ...] = ()
    """Settings that differ from the shipped ones of the robot."""
    inertia_of: Case | None = None
    """Whose estimated inertia replaces that of the model; None: the model's own."""
    span: tuple[float, float] | None = None
    """Start and length of the part of the log that is used [s]; None: all of it."""


@dataclass(frozen=True)
class Outcome:
    """What came out."""

    estimate: Estimate
    measurements: KnotMeasurements
    robot: Robot
    forces: ForceErrors


@dataclass
class Solves:
    """Solves of the logs of a folder, remembered."""

    logs: LogFolder
    progress: Callable[[str], None] = lambda text: None
    """Told what is solved."""
    _done: dict[Case, Outcome] = field(default_factory=dict)

    def of(self, case: Case) -> Outcome:
        """The outcome of a case."""
        if case not in self._done:
            self.progress(f"{case.log}, seed {case.seed} {' '.join(case.overrides)}")
            self._done[case] = self._solve(case)
        return self._done[case]

    def position_error(self, log: str, outcome: Outcome) -> float:
        """RMS error of the base position of an outcome [m]."""
        estimate = outcome.estimate
        true = truth_at(self.logs.log(log), estimate.stamp_ns, estimate.dt)["base_position_W"]
        error = (estimate.base_position_W - true)[EDGE_KNOTS:-EDGE_KNOTS]
        return float(np.sqrt((error**2).sum(axis=1).mean()))

    def _solve(self, case: Case) -> Outcome:
        log, (name, _) = self.logs.log(case.log), identified(case.log)
        robot = load_robot(name)
        config = load_estimator_config("pfie", case.overrides, name)
        recording = noisy_recording(log, case.seed, mocap_rate=MOCAP_RATE)
        if case.span is not None:
            recording = recording.cropped(*case.span)
        measurements = align(recording, robot, config)
        if case.inertia_of is not None:
            bodies = self.of(case.inertia_of).estimate.links
            for of_link, body in bodies.items():
                robot = with_inertia(robot, of_link, body.estimate)
        estimate = solve(measurements, robot, config)
        return Outcome(
            estimate, measurements, robot, force_errors(estimate, log, robot, config.contact_threshold)
        )


def identified(log: str) -> tuple[str, str]:
    """Robot of a log, and its link whose inertia the log knows."""
    return ("g1", "torso_link") if log.startswith("g1_") else ("go2", "base")


def with_inertia(robot: Robot, link: str, body: BodyInertia) -> Robot:
    """The robot with another inertia of a moving body."""
    model = robot.model.copy()
    model.inertias[robot.joint_of_link(link)] = pin.Inertia(body.mass, body.com, body.inertia_com)
    return replace(robot, model=model)
