# SPDX-License-Identifier: Apache-2.0
"""The structured sweep against Crocoddyl's backward pass on the same linear-quadratic problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import crocoddyl
import numpy as np
import pinocchio as pin
from child import processor_time
from speed_problem import Solved

from prime_ros import _core
from prime_ros.estimation.problem import build_problem
from prime_ros.estimation.reference import shooting_problem
from prime_ros.experiments.simulation_logs import Floats

BASE = 6
LUU = 6  # position of the control weights among the arguments of `Sweep.set_step`
SEED = 0


@dataclass(frozen=True)
class SweepPair:
    """The same problem, filled into Crocoddyl's solver and into a structured sweep."""

    crocoddyl_solver: Any
    sweep: _core.Sweep
    steps: list[tuple[Any, ...]]
    """Arguments of `Sweep.set_step`."""

    def timers(self) -> dict[str, Callable[[], float]]:
        """Timers [s per knot]. The backward sweep after new control costs includes condensing them."""
        count = len(self.steps)
        luu = np.array([arguments[LUU] for arguments in self.steps]).T.copy(order="F")
        lu = np.array([arguments[LUU + 1] for arguments in self.steps]).T.copy(order="F")
        return {
            "crocoddyl": lambda: processor_time(self.crocoddyl_solver.backwardPass) / count,
            "control cost": lambda: _core.benchmark_control_cost(self.sweep, luu, lu),
            "backward": lambda: processor_time(self.sweep.backward) / count,
            "solve": lambda: processor_time(self.sweep.solve) / count,
        }

    def disagreement(self) -> float:
        """Largest difference of both steps, relative to the largest value of the same entry [-]."""
        self.crocoddyl_solver.backwardPass()
        self.sweep.backward()
        self.sweep.solve()
        dx, du = linear_step(self.crocoddyl_solver)
        own_dx = np.array([self.sweep.dx(k) for k in range(len(dx))])
        own_du = np.array([self.sweep.du(k) for k in range(len(du))])
        return max(_relative(own_dx, dx), _relative(own_du, du))


def sweep_pair(solved: Solved) -> SweepPair:
    """Linearise at a trajectory without gaps that is not optimal, so that there is a step to compare.

    The trajectory is the solution; the measurements of the joints are drawn anew around the old ones.
    """
    random = np.random.default_rng(SEED)
    m = solved.measurements

    def redrawn(values: Floats, std: Floats) -> Floats:
        return values + std * random.standard_normal(values.shape)

    measurements = replace(
        m,
        joint_position=redrawn(m.joint_position, m.std_joint_position),
        joint_velocity=redrawn(m.joint_velocity, m.std_joint_velocity),
    )
    problem = build_problem(measurements, solved.robot, solved.config)
    problem.step.kappa = solved.config.contact.kappa_stages[-1]
    shooting = shooting_problem(problem)
    state = shooting.runningModels[0].state
    solver = crocoddyl.SolverDDP(shooting)
    initial = state.diff(problem.prior, solved.states[:, 0])
    solver.setCandidate([problem.prior, *solved.states.T], [initial, *solved.controls.T], True)
    solver.preg = solver.dreg = 0.0
    solver.calcDiff()
    return _filled(solver, solved)


def linear_step(solver: Any) -> tuple[Floats, Floats]:
    """Step of the linear-quadratic problem by the policies of a backward pass.

    Returns:
        Steps of the K + 1 states and K controls after the arrival action, (K + 1, ndx) and (K, nu).
    """
    dx, states, controls = np.zeros(len(solver.Vx[0])), [], []
    for data, gain, feedforward in zip(solver.problem.runningDatas, solver.K, solver.k, strict=True):
        du = -feedforward - gain @ dx
        dx = data.Fx @ dx + data.Fu @ du
        states.append(dx)
        controls.append(du)
    return np.array(states), np.array(controls[1:])


def _filled(solver: Any, solved: Solved) -> SweepPair:
    nq, nv = solved.robot.model.nq, solved.robot.model.nv
    arrival, *running = solver.problem.runningDatas
    theta = len(arrival.Lx) - 2 * nv
    sweep = _core.Sweep(nv, theta, len(running[0].Lu), len(running), False, False)
    steps = [(k, *_step_arguments(data, nq, nv, solved.config.dt)) for k, data in enumerate(running)]
    for arguments in steps:
        sweep.set_step(*arguments)
    for k, data in enumerate([*running, solver.problem.terminalData]):
        sweep.set_cost(k, *_cost_arguments(data, nv))
    to_control = np.linalg.inv(arrival.Fu)  # from the step of the first state to the arrival's control
    sweep.set_arrival(to_control.T @ arrival.Luu @ to_control, to_control.T @ arrival.Lu)
    return SweepPair(solver, sweep, steps)


def _step_arguments(data: Any, nq: int, nv: int, dt: float) -> tuple[Any, ...]:
    """Arguments of `Sweep.set_step` without the knot; arrays in the order that the core reads in place."""
    v_next = slice(nv, 2 * nv)
    shift = pin.Motion(dt * data.xnext[nq : nq + BASE])
    rows = np.array(data.Fx[v_next])
    parts = (rows[:, :nv], rows[:, v_next], rows[:, 2 * nv :], np.array(data.Fu[v_next]))
    no_gap = np.zeros(nv)
    return (
        dt,
        *(np.asfortranarray(part) for part in parts),
        np.diag(data.Luu).copy(),
        np.array(data.Lu),
        no_gap,
        no_gap,
        np.asfortranarray(pin.exp6(shift).toActionMatrixInverse()),
        np.asfortranarray(pin.Jexp6(shift)),
    )


def _cost_arguments(data: Any, nv: int) -> tuple[Floats, Floats, Floats]:
    hessian = np.array(data.Lxx)
    base = np.r_[0:BASE, nv : nv + BASE]
    diagonal = np.diag(hessian).copy()
    diagonal[base] = 0.0
    return diagonal, np.asfortranarray(hessian[np.ix_(base, base)]), np.array(data.Lx)


def _relative(values: Floats, reference: Floats) -> float:
    scale = np.abs(reference).max(axis=0)
    return float((np.abs(values - reference).max(axis=0)[scale > 0] / scale[scale > 0]).max())
