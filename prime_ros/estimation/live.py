# SPDX-License-Identifier: Apache-2.0
"""Live estimation without ROS: push samples as they come, poll estimates.

estimator = LiveEstimator(load_robot("go2"), load_estimator_config("mhe"))
...
estimator.push_joints(stamp_ns, names, position, velocity, torque)
estimator.push_imu(stamp_ns, angular_velocity, linear_acceleration)
estimator.push_mocap(stamp_ns, position, quat_xyzw)
estimate = estimator.update()
if estimate is not None:
    print(estimate.newest.contact_force_W[0])  # and those of estimate.earlier, if updates come too seldom
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prime_ros.config import EstimatorConfig
from prime_ros.estimation.estimate import Estimate
from prime_ros.estimation.live_intake import Intake
from prime_ros.estimation.live_knots import KnotBuilder
from prime_ros.estimation.live_stream import StreamStatus
from prime_ros.estimation.window import WindowEstimator
from prime_ros.measurements.knots import KnotMeasurements
from prime_ros.measurements.samples import NANOSECONDS
from prime_ros.robot import Robot

Array = NDArray[np.float64]

PREDICTED = 2  # knots that may be added on the strength of the prediction alone, if several wait
TIMED_UPDATES = 500
SLOW = 20  # updates over which the average time is judged against the budget
RELAXED = 0.5  # share of the budget below which what was cut comes back
CUTS = ("", "no refinement of the newest steps", "no refinement, half the window")


@dataclass(frozen=True)
class LiveEstimate:
    """What one update found."""

    newest: Estimate
    """K = 1: the newest step whose force is known, one dt before the newest sample."""
    lagged: Estimate | None
    """K = 1: `horizon.lag` steps before the newest sample, smoother; None while the window is too short, or
    without `LiveEstimator.wants_lagged`."""
    earlier: tuple[LiveEstimate, ...] = ()
    """Of the steps that were added together with this one, oldest first: none unless samples had to wait."""


@dataclass(frozen=True)
class LiveStatus:
    """How the estimator does."""

    state: Literal["waiting", "running"]
    reason: str
    """Why it waits."""
    streams: dict[str, StreamStatus]
    """``joints``, ``imu`` and ``mocap``."""
    solve_seconds: dict[str, float]
    """``last``, ``p50`` and ``p99`` of the last updates [s]; empty before the first."""
    steps: int
    """Steps in the window."""
    degraded: str
    """What was cut to keep the budget, or nothing."""
    resets: int
    last_reset: str
    """Why it started anew last time."""
    missed_knots: int
    """Knots without joint samples."""
    unestimated: int
    """Steps that had left the window before they were estimated."""
    rejected: dict[str, int]
    """Scalar measurements that lost their weight, by sensor."""
    chi_square: dict[str, float]
    """Chi-square over the number of measurements in the last second, by sensor [-]."""


@dataclass
class _Memory:
    """What was counted since the construction."""

    resets: int = 0
    last_reset: str = ""
    missed_knots: int = 0
    unestimated: int = 0
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=TIMED_UPDATES))
    level: int = 0
    """Index into `CUTS`."""
    since_level: int = 0


class LiveEstimator:
    """Moving-horizon estimation of live samples. Not thread-safe: hold a lock or use one thread."""

    def __init__(self, robot: Robot, config: EstimatorConfig) -> None:
        """Wait for samples.

        Args:
            robot: The robot.
            config: Settings, such as those of ``load_estimator_config("mhe")``.

        Raises:
            RobotError: If a link to identify does not exist.
        """
        self.wants_lagged = True
        """Whether updates give the lagged estimate, too; it costs a tenth of them."""
        self._robot, self._memory = robot, _Memory()
        self._knot_ns: int | None = None
        self._rejected_before: dict[str, int] = {}
        self._configure(config)

    def push_joints(
        self,
        stamp_ns: int,
        names: Sequence[str],
        position: ArrayLike,
        velocity: ArrayLike,
        torque: ArrayLike,
    ) -> None:
        """Take a sample of the joints, in any order; NaN: not measured.

        Args:
            stamp_ns: Time of measurement [ns].
            names: Names of n joints; what the robot does not have is ignored.
            position: Shape (n,) [rad].
            velocity: Shape (n,) [rad/s].
            torque: Shape (n,) [Nm].
        """
        self._intake.joints(stamp_ns, names, position, velocity, torque)

    def push_imu(self, stamp_ns: int, angular_velocity: ArrayLike, linear_acceleration: ArrayLike) -> None:
        """Take a sample of the IMU in its own axes, (3,) [rad/s] and (3,) [m/s^2]."""
        self._intake.imu(stamp_ns, angular_velocity, linear_acceleration)

    def push_mocap(self, stamp_ns: int, position: ArrayLike, quat_xyzw: ArrayLike) -> None:
        """Take a pose of the tracked body in the world, (3,) [m] and (4,), x y z w."""
        self._intake.mocap(stamp_ns, position, quat_xyzw)

    def update(self) -> LiveEstimate | None:
        """Fuse what has come.

        Returns:
            The estimate of the newest step, or None if no new knot is complete.
        """
        begin = time.perf_counter()
        self._follow_clocks()
        if self._knot_ns is None and not self._start():
            return None
        appended = self._append()
        if not appended:
            return None
        self._fuse_late()
        sound = self._window.solve()
        found = self._estimate(appended) if sound else None
        if found is None:
            self.reset("the window became singular or not finite")
        self._account(time.perf_counter() - begin)
        return found

    def reset(self, reason: str) -> None:
        """Start anew with the next samples.

        Args:
            reason: Why, for the status.
        """
        self._memory.resets += 1
        self._memory.last_reset = reason
        self._rejected_before = self._rejected()
        self._knot_ns = None
        self._window = WindowEstimator(self._robot, self._config)
        self._apply_level()

    def reconfigure(self, config: EstimatorConfig) -> None:
        """Change settings; the window starts anew with them."""
        self._configure(config)
        self._memory.resets += 1
        self._memory.last_reset = "new settings"

    @property
    def status(self) -> LiveStatus:
        """How it does now."""
        memory, running = self._memory, self._knot_ns is not None
        seconds = np.array(memory.seconds)
        timing: dict[str, float] = {}
        if seconds.size:
            p50, p99 = np.percentile(seconds, [50, 99])
            timing = {"last": float(seconds[-1]), "p50": float(p50), "p99": float(p99)}
        sensors = self._window.sensors()
        return LiveStatus(
            state="running" if running else "waiting",
            reason="" if running else self._intake.missing(),
            streams={name: buffer.measure() for name, buffer in self._intake.buffers_by_name.items()},
            solve_seconds=timing,
            steps=max(self._window.steps, 0),
            degraded=CUTS[memory.level],
            resets=memory.resets,
            last_reset=memory.last_reset,
            missed_knots=memory.missed_knots,
            unestimated=memory.unestimated,
            rejected=self._rejected(),
            chi_square={name: report.chi_square_per_dof for name, report in sensors.items()},
        )

    def _configure(self, config: EstimatorConfig) -> None:
        self._config = config
        self._dt_ns = round(config.dt * NANOSECONDS)
        self._intake = Intake(self._robot, config)
        self._builder = KnotBuilder(self._robot, config, self._intake.buffers)
        self._window = WindowEstimator(self._robot, config)
        self._rejected_before = {}
        self._knot_ns = None
        self._knots: deque[KnotMeasurements] = deque(maxlen=config.horizon.steps + 1)
        self._memory.level = 0

    def _follow_clocks(self) -> None:
        """Start anew where the clock of the joints went back or far ahead; other streams just go on."""
        buffers = self._intake.buffers
        if buffers.joints.jumped:
            buffers.joints.follow_jump()
            self.reset("the clock of the joints jumped")
        for buffer in (buffers.imu, buffers.mocap):
            if buffer.jumped:
                buffer.follow_jump()
        if self._knot_ns is not None and self._window.gate.contradicted_s > self._config.horizon.reset_after:
            self._intake.distrust_poses()
            self.reset("motion capture contradicts the estimate: its origin moved, or the estimate is lost")

    def _start(self) -> bool:
        """Begin at the newest pose, if there are joints around it."""
        stamp_ns = self._intake.first_knot(self._dt_ns)
        if stamp_ns is None:
            return False
        fallback = np.zeros(self._robot.model.nq + self._robot.model.nv)
        fallback[6] = 1.0
        knot = self._builder.build(stamp_ns, fallback)
        if not np.isfinite(knot.std_joint_position).all() or not np.isfinite(knot.std_base_position[0]):
            return False
        self._window.start(knot)
        self._knot_ns = stamp_ns
        self._knots.clear()
        self._knots.append(knot)
        return True

    def _append(self) -> int:
        """Add all knots that the joints have passed; how many."""
        count, newest = 0, self._intake.buffers.joints.newest_ns
        while self._knot_ns is not None and newest is not None and self._knot_ns + self._dt_ns <= newest:
            if count >= PREDICTED:
                self._window.solve()
            self._knot_ns += self._dt_ns
            knot = self._builder.build(self._knot_ns, self._fallback())
            self._memory.missed_knots += int(not np.isfinite(knot.std_joint_position).any())
            self._window.append(knot)
            self._knots.append(knot)
            count += 1
        return count

    def _fallback(self) -> Array:
        return self._window.predicted()[: self._robot.model.nq + self._robot.model.nv]

    def _fuse_late(self) -> None:
        """Look again at knots that lacked a pose or a rate, or joints that came out of order."""
        late_ns = self._intake.buffers.joints.take_late()
        for age in range(1, len(self._knots)):
            knot = self._knots[-1 - age]
            stamp_ns = int(knot.stamp_ns[0])
            if late_ns is not None and stamp_ns + self._dt_ns >= late_ns:
                self._knots[-1 - age] = self._builder.build(stamp_ns, self._fallback())
                self._window.replace(age, self._knots[-1 - age])
            elif _incomplete(knot) and self._intake.may_complete(stamp_ns):
                later = self._builder.completed(knot, self._fallback())
                if _measured(later) > _measured(knot):
                    self._window.replace(age, later)
                    self._knots[-1 - age] = later

    def _estimate(self, appended: int) -> LiveEstimate | None:
        """Of the newest step, with those of the others that were added; None if one is not determined."""
        count = min(appended, self._window.steps)
        self._memory.unestimated += appended - count
        found = [self._at(age) for age in range(count, 0, -1)]
        known = [estimate for estimate in found if estimate is not None]
        if not known or len(known) < count:
            return None
        return replace(known[-1], earlier=tuple(known[:-1]))

    def _at(self, age: int) -> LiveEstimate | None:
        """As if the step of an age were the newest."""
        newest, lag = self._window.estimate(age), self._config.horizon.lag + age - 1
        there = self.wants_lagged and self._window.steps >= lag
        lagged = self._window.estimate(lag) if there else None
        return None if newest is None else LiveEstimate(newest, lagged)

    def _rejected(self) -> dict[str, int]:
        total = dict(self._rejected_before)
        for sensor, count in self._window.gate.rejected.items():
            total[sensor] = total.get(sensor, 0) + count
        return total

    def _account(self, seconds: float) -> None:
        """Remember the time of an update; cut or restore work to keep the budget."""
        memory, budget = self._memory, self._config.horizon.budget
        memory.seconds.append(seconds)
        memory.since_level += 1
        if budget <= 0.0 or memory.since_level < SLOW:
            return
        average = float(np.mean(list(memory.seconds)[-SLOW:]))
        if average > budget and memory.level + 1 < len(CUTS):
            memory.level += 1
        elif average < RELAXED * budget and memory.level:
            memory.level -= 1
        else:
            return
        memory.since_level = 0
        self._apply_level()

    def _apply_level(self) -> None:
        horizon = self._config.horizon
        full = self._memory.level == 0
        self._window.settings.refine_iterations = horizon.refine_iterations if full else 0
        self._window.set_horizon(horizon.steps if self._memory.level < 2 else max(horizon.steps // 2, 2))


def _incomplete(knot: KnotMeasurements) -> bool:
    """Whether a knot lacks its pose or its angular velocity."""
    return _measured(knot) < 2


def _measured(knot: KnotMeasurements) -> int:
    """How many of pose and angular velocity a knot has."""
    stds = (knot.std_base_position[0], knot.std_base_angular_velocity[0])
    return sum(map(math.isfinite, stds))
