# SPDX-License-Identifier: Apache-2.0
"""Moving-horizon estimation over knots: one knot at a time in, the newest and a lagged estimate out."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from prime_ros import _core
from prime_ros.config import EstimatorConfig
from prime_ros.estimation.covariance import LazyLinks, contact_probability, nominal_bodies
from prime_ros.estimation.estimate import Certificate, Estimate, SensorReport
from prime_ros.estimation.live_gate import UNITS, LiveGate
from prime_ros.estimation.problem import BASE_NV, contact_step, knot_measurements, prior_std, start_height
from prime_ros.estimation.slack import slack_weight
from prime_ros.measurements.knots import KnotMeasurements
from prime_ros.robot import Robot

Array = NDArray[np.float64]

WARM_UP_ITERATIONS = 3  # while the first knots are in the window: the inertia is still far from its end
CHI_SQUARE_KNOTS = 100  # over which chi-square is summed
PASSES = 4  # sensors of one knot that may lose their weight one after another


@dataclass
class Settings:
    """What may change from update to update."""

    iterations: int
    """Over the window."""
    refine_iterations: int
    """Over the newest steps."""


@dataclass
class _Knot:
    """What is remembered of a knot of the window."""

    stamp_ns: int
    torque: Array
    """Of the step that leads to it, zero where not measured, shape (n,) [Nm]."""
    measurement: _core.KnotMeasurement
    lost: NDArray[np.bool_]
    """Rows of (q, v) that lost their weight, shape (2 nv,)."""

    @property
    def weights(self) -> Array:
        """Inverse variances of (q, v), shape (2 nv,)."""
        return np.concatenate([self.measurement.configuration_weight, self.measurement.velocity_weight])


class WindowEstimator:
    """The window of the core with the parameters of the robot, gates, and results as `Estimate`."""

    def __init__(self, robot: Robot, config: EstimatorConfig) -> None:
        self.robot, self.config = robot, config
        self.settings = Settings(config.horizon.iterations, config.horizon.refine_iterations)
        self.gate = LiveGate(robot.model.nv, config)
        self._step = contact_step(robot, config)
        self._step.kappa = config.contact.kappa_stages[-1]
        self._prior_std = prior_std(robot, config)
        theta_std = self._prior_std[2 * robot.model.nv :].copy()
        theta_std[-1] = 0.0  # the ground stays where it is
        walk = (config.horizon.inertia_walk * theta_std) ** 2 * config.dt
        horizon = config.horizon
        self._window = _core.MovingHorizon(self._step, horizon.steps, walk)
        self._nominal = nominal_bodies(config.links, robot)
        self._squares = np.zeros((CHI_SQUARE_KNOTS, 3, len(UNITS)))  # see `_sums`; the oldest is replaced
        self._summed = 0
        self._sensor_of_row = np.full(2 * robot.model.nv, len(UNITS))  # the linear velocity is not measured
        for group in self.gate.groups:
            self._sensor_of_row[group.rows] = list(UNITS).index(group.sensor)
        self._report: _core.WindowReport | None = None
        self._knots_since_start = 0
        self._knots: deque[_Knot] = deque(maxlen=config.horizon.steps + 1)

    @property
    def steps(self) -> int:
        """Steps in the window; -1 before `start`."""
        return self._window.steps

    def set_horizon(self, steps: int) -> None:
        """Shorten or lengthen the window, at most to the configured length."""
        self._window.set_horizon(steps)

    def start(self, m: KnotMeasurements) -> None:
        """Begin at one knot (M = 1) that has a pose and joint positions."""
        knot, q, v = self._knot(m)
        height = start_height(q[None], self.robot)
        start = np.concatenate([q, v, self._step.nominal_theta(height)])
        mean = start.copy()
        mean[-1] = self.config.ground_height.initial
        self._window.reset(mean, np.diag(self._prior_std**-2.0), knot, start)
        self._knots_since_start = 0
        self._squares[:] = 0.0
        self._knots.clear()
        self._remember(m, knot)

    def append(self, m: KnotMeasurements) -> None:
        """Add the next knot (M = 1); its torque is that of the step that leads to it."""
        knot, _, v = self._knot(m)
        if self.config.slack.change:
            knot.control_weight = self._widened(knot.control_weight, v)
        self._window.append(knot)
        self._remember(m, knot)
        self._judge(0)

    def replace(self, age: int, m: KnotMeasurements) -> None:
        """Give the knot of an age (0: newest) measurements that came late."""
        knot, _, _ = self._knot(m)
        self._window.set_measurement(age, knot)
        self._knots[-1 - age].measurement = knot
        self._judge(age)

    def predicted(self) -> Array:
        """State (q, v, theta) of the newest knot, shape (nx,)."""
        return self._window.state(0)

    def solve(self) -> bool:
        """Iterate; measurements of the newest knot that contradict everything else lose their weight.

        Returns:
            Whether the window is sound; if not it should be started anew.
        """
        ok = self._iterate()
        for _ in range(PASSES):
            kept = self.gate.worst(self._window.residual(0), self._knots[-1].weights) if ok else None
            if kept is None:
                break
            self._weigh(0, kept)
            ok = self._iterate()
        if ok and self.steps > self.config.horizon.lag:
            self._squares[self._summed % CHI_SQUARE_KNOTS] = self._sums(self.config.horizon.lag)
            self._summed += 1
        return ok and bool(np.isfinite(self._window.state(0)).all())

    def estimate(self, age: int) -> Estimate | None:
        """Estimate of the knot of an age >= 1 (K = 1); None if the window does not determine it."""
        found = self._window.estimate(age)
        if not found.ok or self._report is None:
            return None
        nq, nv = self.robot.model.nq, self.robot.model.nv
        state, covariance = found.state, found.covariance
        force = found.impulse.reshape(1, -1, 3) / self.config.dt
        force_std = found.impulse_std.reshape(1, -1, 3) / self.config.dt
        probability, probability_std = contact_probability(force, force_std, self.config.contact_threshold)
        tangent = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        rotation = Rotation.from_quat(state[3:7]).as_matrix()
        position_std = np.sqrt(np.maximum(np.diag(rotation @ covariance[:3, :3] @ rotation.T), 0.0))
        std = {
            "base_position_W": position_std[None],
            "base_quat_xyzw": tangent[None, 3:6],
            "base_velocity_B": tangent[None, nv : nv + BASE_NV],
            "joint_position": tangent[None, BASE_NV:nv],
            "joint_velocity": tangent[None, nv + BASE_NV : 2 * nv],
            "joint_torque": found.control_std[None, BASE_NV:nv],
            "contact_force_W": force_std,
            "contact_probability": probability_std,
        }
        theta, theta_covariance = state[nq + nv :], covariance[2 * nv :, 2 * nv :]
        torque = self._knots[-age].torque  # of the step that leads to the knot after this one
        return Estimate(
            stamp_ns=np.array([self._knots[-1 - age].stamp_ns]),
            dt=self.config.dt,
            joint_names=self.robot.joint_names,
            contact_names=self.robot.contact_names,
            base_position_W=state[None, :3],
            base_quat_xyzw=state[None, 3:7] / np.linalg.norm(state[3:7]),
            base_velocity_B=state[None, nq : nq + BASE_NV],
            joint_position=state[None, 7:nq],
            joint_velocity=state[None, nq + BASE_NV : nq + nv],
            joint_torque=(torque + found.control[BASE_NV:nv])[None],
            contact_force_W=force,
            contact_probability=probability,
            std=std,
            links=LazyLinks(self._nominal, theta, theta_covariance),
            ground_height=float(theta[-1]),
            std_ground_height=float(np.sqrt(max(theta_covariance[-1, -1], 0.0))),
            certificate=self._certificate(),
            sensors=self.sensors(),
            timing={},
        )

    def sensors(self) -> dict[str, SensorReport]:
        """Residuals at the lagged knots of the last second; not corrected for what the fit absorbs."""
        counts, chi_squares, squares = self._squares.sum(axis=0).tolist()
        return {
            name: SensorReport(
                int(counts[i]),
                counts[i],
                chi_squares[i],
                math.sqrt(squares[i] / counts[i]),
                UNITS[name],
                rejected=self.gate.rejected.get(name, 0),
            )
            for i, name in enumerate(UNITS)
            if counts[i]
        }

    def _knot(self, m: KnotMeasurements) -> tuple[_core.KnotMeasurement, Array, Array]:
        """The knot for the core, and its measured configuration and velocity."""
        q = np.concatenate([m.base_position_W[0], m.base_quat_xyzw[0], m.joint_position[0]])
        v = np.concatenate([np.zeros(3), m.base_angular_velocity_B[0], m.joint_velocity[0]])
        return knot_measurements(m, q[None], v[None], self.robot, self.config)[0], q, v

    def _widened(self, control_weight: Array, v: Array) -> Array:
        """Control weights of the next step, with the slack of contacts whose velocity changes to v (nv,).

        Nothing measures the linear velocity of the base: it counts as unchanged.
        """
        nq, nv = self.robot.model.nq, self.robot.model.nv
        before = self._window.state(0)
        after = before.copy()
        after[nq + 3 : nq + nv] = v[3:]
        slack = slack_weight(self._step, np.column_stack([before, after]), self.config)
        return np.concatenate([control_weight[:nv], slack[:, 0]])

    def _remember(self, m: KnotMeasurements, knot: _core.KnotMeasurement) -> None:
        self._knots_since_start += 1
        lost = np.zeros(2 * self.robot.model.nv, dtype=bool)
        self._knots.append(_Knot(int(m.stamp_ns[0]), np.nan_to_num(m.joint_torque[0]), knot, lost))

    def _iterate(self) -> bool:
        warm = self._knots_since_start < self.config.horizon.steps
        iterations = self.settings.iterations
        self._report = self._window.iterate(max(iterations, WARM_UP_ITERATIONS) if warm else iterations)
        if self._report.ok and self.settings.refine_iterations:
            self._report = self._window.refine(
                self.config.horizon.refine_steps, self.settings.refine_iterations
            )
        return self._report.ok

    def _judge(self, age: int) -> None:
        """Take the weight of what is far from the prediction, and of what has lost it before."""
        knot = self._knots[-1 - age]
        weights = np.where(knot.lost, 0.0, knot.weights)
        self._weigh(age, self.gate.gross(self._window.residual(age), weights, knot.stamp_ns))

    def _weigh(self, age: int, weights: Array) -> None:
        """Give the knot of an age new weights, if they differ from its own."""
        knot, nv = self._knots[-1 - age], self.robot.model.nv
        before = knot.weights
        knot.lost |= (before > 0.0) & (weights == 0.0)
        if not np.array_equal(weights, before):
            y = knot.measurement
            y.configuration_weight, y.velocity_weight = weights[:nv], weights[nv:]
            self._window.set_measurement(age, y)

    def _sums(self, age: int) -> Array:
        """Count, chi-square and sum of squared residuals of every sensor at one knot, shape (3, sensors)."""
        weights = self._knots[-1 - age].weights
        square = self._window.residual(age) ** 2
        used = (weights > 0.0).astype(float)
        parts = (used, weights * square, used * square)
        return np.array(
            [np.bincount(self._sensor_of_row, part, len(UNITS) + 1)[: len(UNITS)] for part in parts]
        )

    def _certificate(self) -> Certificate:
        report = self._report
        assert report is not None
        converged = report.ok and report.newton_failures == 0
        return Certificate(
            converged=converged,
            reason="one update of a moving window" if converged else "a contact step did not converge",
            iterations=self.settings.iterations + self.settings.refine_iterations,
            cost=report.cost,
            largest_gap=report.largest_gap,
            gradient=float("nan"),
            relative_cost_change=float("nan"),
            stages=(),
        )
