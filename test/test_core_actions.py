# SPDX-License-Identifier: Apache-2.0
"""The state manifold and the Crocoddyl actions of the core, on every robot."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass

import crocoddyl
import numpy as np
import pinocchio as pin
import pytest
from core import DT, arguments_of, core_step, situation_input
from differences import assert_derivative, central_differences
from models import ROBOT_NAMES, RobotCase, gait, robot_case
from numpy.typing import NDArray

from prime_ros import _core

Array = NDArray[np.float64]

TIME_OFFSET = -0.006  # [s] of the pose
HEIGHT_STEP, RATE_STEP, FORCE_STEP = (
    2e-6,
    1e-4,
    1e-3,
)  # of the differences, as in the tests of the contact step

robots = pytest.mark.parametrize("robot", ROBOT_NAMES)


@dataclass(frozen=True)
class Setup:
    """An action on a robot in contact, and where it is tested."""

    case: RobotCase
    step: _core.ContactStep
    state: _core.StateInertial
    measurement: _core.KnotMeasurement
    action: _core.ActionContactStep
    x: Array
    u: Array


def setup_of(robot: str, missing: bool = False, time_offset: float = TIME_OFFSET) -> Setup:
    """An action whose measurement is a bit off and may lack the base and every other joint."""
    case, step = robot_case(robot), core_step(robot_case(robot))
    random = np.random.default_rng(5)
    arguments = arguments_of(situation_input(case, "contact", seed=0))
    nv = case.model.nv
    y = _core.KnotMeasurement(nv, nv + 3 * step.ncontacts)
    y.configuration = pin.integrate(case.model, arguments.q, 0.05 * random.standard_normal(nv))
    y.velocity = arguments.v + 0.1 * random.standard_normal(nv)
    y.base_time_offset = time_offset
    y.torque = arguments.force[6:] + random.standard_normal(nv - 6)
    weight_q, weight_v = random.uniform(1.0, 1e4, nv), random.uniform(1.0, 100.0, nv)
    if missing:
        weight_q[:6] = weight_v[:6] = weight_v[6::2] = 0.0
        weight_q[7::2] = 0.0
    y.configuration_weight, y.velocity_weight = weight_q, weight_v
    y.control_weight = random.uniform(0.5, 20.0, nv + 3 * step.ncontacts)
    disturbance = arguments.force - np.concatenate([np.zeros(6), y.torque])
    state = _core.StateInertial(case.model, step.ntheta)
    action = _core.ActionContactStep(state, step, _core.WorkspacePool(step), y)
    x = np.concatenate([arguments.q, arguments.v, arguments.theta])
    return Setup(case, step, state, y, action, x, np.concatenate([disturbance, arguments.slack]))


def poisoned(action: object) -> crocoddyl.ActionDataAbstract:
    """New data whose every output is NaN: what an action forgets to write shows."""
    data = action.createData()  # type: ignore[attr-defined]
    for name in ("xnext", "Fx", "Fu", "Lx", "Lu", "Lxx", "Lxu", "Luu"):
        getattr(data, name)[:] = np.nan
    data.cost = np.nan
    return data


def calculated(s: Setup, x: Array, u: Array | None = None) -> crocoddyl.ActionDataAbstract:
    data = poisoned(s.action)
    s.action.calc(data, x, *([] if u is None else [u]))
    return data


def differentiated(s: Setup, *arguments: Array) -> crocoddyl.ActionDataAbstract:
    data = poisoned(s.action)
    s.action.calcDiff(data, *arguments)
    return data


def state_steps(s: Setup) -> Array:
    """Steps of the differences along the tangent of the state."""
    nv = s.case.model.nv
    return np.concatenate(
        [np.full(nv, HEIGHT_STEP), np.full(nv, RATE_STEP), np.full(s.step.ntheta, HEIGHT_STEP)]
    )


def residual(s: Setup, x: Array) -> Array:
    """Prediction minus measurement of the knot, restated: (configuration, velocity), shape (2 nv,)."""
    nq, nv = s.case.model.nq, s.case.model.nv
    q, v, y = x[:nq], x[nq : nq + nv], s.measurement
    # Over the offset the base moves with constant twist.
    pose = pin.XYZQUATToSE3(q[:7]) * pin.exp6(pin.Motion(y.base_time_offset * v[:6]))
    measured = pin.XYZQUATToSE3(y.configuration[:7])
    turn = pin.log3(measured.rotation.T @ pose.rotation)
    moved = pose.translation - measured.translation
    return np.concatenate([moved, turn, q[7:] - y.configuration[7:], v - y.velocity])


# State


def random_state(state: _core.StateInertial, seed: int) -> Array:
    random = np.random.default_rng(seed)
    return np.asarray(state.integrate(state.zero(), 0.5 * random.standard_normal(state.ndx)))


def state_of(robot: str) -> _core.StateInertial:
    return _core.StateInertial(robot_case(robot).model, 21)


@robots
def test_sizes_of_the_state(robot: str) -> None:
    model, state = robot_case(robot).model, state_of(robot)
    assert (state.nx, state.ndx) == (model.nq + model.nv + 21, 2 * model.nv + 21)
    assert (state.nq, state.nv, state.ntheta) == (model.nq, model.nv, 21)
    np.testing.assert_array_equal(state.zero()[: model.nq], pin.neutral(model))
    assert np.linalg.norm(state.rand()[3:7]) == pytest.approx(1.0)


@robots
@pytest.mark.parametrize("seed", range(3))
def test_integrate_and_diff_are_inverse(robot: str, seed: int) -> None:
    state = state_of(robot)
    one, other = random_state(state, seed), random_state(state, seed + 10)
    dx = 0.5 * np.random.default_rng(seed).standard_normal(state.ndx)  # it turns by less than half a turn
    np.testing.assert_allclose(state.diff(one, state.integrate(one, dx)), dx, atol=1e-10)
    there = state.integrate(one, state.diff(one, other))
    np.testing.assert_allclose(state.diff(there, other), 0.0, atol=1e-10)
    np.testing.assert_array_equal(state.diff(one, one), 0.0)
    np.testing.assert_allclose(state.integrate(one, np.zeros(state.ndx)), one, atol=1e-15)
    np.testing.assert_allclose(state.diff(one, other), -np.asarray(state.diff(other, one)), atol=1e-9)


@robots
def test_state_keeps_to_the_manifold(robot: str) -> None:
    state = state_of(robot)
    x = random_state(state, 3)
    for seed in range(50):
        x = state.integrate(x, np.random.default_rng(seed).standard_normal(state.ndx))
    assert np.linalg.norm(x[3:7]) == pytest.approx(1.0, abs=1e-12)


@robots
def test_jacobians_of_the_state_are_those_of_central_differences(robot: str) -> None:
    state = state_of(robot)
    x, y = random_state(state, 1), random_state(state, 2)
    dx = 0.5 * np.random.default_rng(3).standard_normal(state.ndx)
    there = state.integrate(x, dx)

    def numeric(function: Callable[[Array], Array]) -> Array:
        return central_differences(function, state.ndx, 1e-3)

    first, second = state.Jintegrate(x, dx)
    assert_derivative(first, numeric(lambda d: state.diff(there, state.integrate(state.integrate(x, d), dx))))
    assert_derivative(second, numeric(lambda d: state.diff(there, state.integrate(x, dx + d))))
    first, second = state.Jdiff(x, y)
    assert_derivative(first, numeric(lambda d: state.diff(state.integrate(x, d), y)))
    assert_derivative(second, numeric(lambda d: state.diff(x, state.integrate(y, d))))


# The contact step as an action


@robots
def test_next_state_is_the_contact_step(robot: str) -> None:
    s = setup_of(robot)
    nq, nv = s.case.model.nq, s.case.model.nv
    data = calculated(s, s.x, s.u)
    scratch = _core.ContactStepData(s.step)
    force = s.u[:nv] + np.concatenate([np.zeros(6), s.measurement.torque])
    q, v, theta = np.split(s.x, [nq, nq + nv])
    s.step.solve(scratch, q, v, force, s.u[nv:], theta)
    np.testing.assert_allclose(data.xnext[nq : nq + nv], scratch.v_next, rtol=1e-10, atol=1e-10)
    moved = pin.integrate(s.case.model, q, DT * scratch.v_next)
    np.testing.assert_allclose(data.xnext[:nq], moved, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(data.xnext[nq + nv :], theta)


@robots
@pytest.mark.parametrize("missing", [False, True])
def test_cost_is_half_the_whitened_square(robot: str, missing: bool) -> None:
    s = setup_of(robot, missing)
    weight = np.concatenate([s.measurement.configuration_weight, s.measurement.velocity_weight])
    of_sensors = 0.5 * weight @ residual(s, s.x) ** 2
    of_controls = 0.5 * s.measurement.control_weight @ s.u**2
    assert min(of_sensors, of_controls) > 0.1
    expected = pytest.approx(of_sensors + of_controls, rel=1e-12)
    assert calculated(s, s.x, s.u).cost == expected
    assert differentiated(s, s.x, s.u).cost == expected
    assert calculated(s, s.x).cost == pytest.approx(of_sensors, rel=1e-12)
    assert differentiated(s, s.x).cost == pytest.approx(of_sensors, rel=1e-12)


@robots
def test_derivatives_of_the_next_state_are_those_of_central_differences(robot: str) -> None:
    s = setup_of(robot)
    data = differentiated(s, s.x, s.u)
    expected = calculated(s, s.x, s.u).xnext.copy()

    def next_state(x: Array, u: Array) -> Array:
        return np.asarray(s.state.diff(expected, calculated(s, x, u).xnext))

    by_state = central_differences(
        lambda dx: next_state(np.asarray(s.state.integrate(s.x, dx)), s.u), s.state.ndx, state_steps(s)
    )
    nv = s.case.model.nv
    control_steps = np.concatenate([np.full(nv, FORCE_STEP), np.full(3 * s.step.ncontacts, RATE_STEP)])
    by_control = central_differences(lambda du: next_state(s.x, s.u + du), len(s.u), control_steps)
    for rows in (slice(0, nv), slice(nv, 2 * nv)):  # of configuration and velocity: their scales differ
        assert_derivative(data.Fx[rows], by_state[rows])
        assert_derivative(data.Fu[rows], by_control[rows])
    ntheta = s.step.ntheta
    np.testing.assert_array_equal(data.Fx[2 * nv :], np.eye(2 * nv + ntheta)[2 * nv :])
    np.testing.assert_array_equal(data.Fu[2 * nv :], np.zeros((ntheta, len(s.u))))


@robots
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("time_offset", [0.0, TIME_OFFSET])
def test_cost_expansion_is_that_of_gauss_newton(robot: str, missing: bool, time_offset: float) -> None:
    s = setup_of(robot, missing, time_offset)
    data = differentiated(s, s.x, s.u)
    weight = np.concatenate([s.measurement.configuration_weight, s.measurement.velocity_weight])
    jacobian = central_differences(
        lambda dx: residual(s, np.asarray(s.state.integrate(s.x, dx))), s.state.ndx, 1e-3
    )
    gradient = central_differences(
        lambda dx: np.array([calculated(s, np.asarray(s.state.integrate(s.x, dx)), s.u).cost]),
        s.state.ndx,
        1e-3,
    )
    assert_derivative(data.Lx, gradient[0], relative=1e-7)
    assert_derivative(data.Lx, jacobian.T @ (weight * residual(s, s.x)), relative=1e-7)
    assert_derivative(data.Lxx, jacobian.T @ (weight[:, None] * jacobian), relative=1e-7)
    np.testing.assert_array_equal(data.Lu, s.measurement.control_weight * s.u)
    np.testing.assert_array_equal(data.Luu, np.diag(s.measurement.control_weight))
    np.testing.assert_array_equal(data.Lxu, np.zeros((s.state.ndx, len(s.u))))
    terminal = differentiated(s, s.x)
    np.testing.assert_array_equal(terminal.Lx, data.Lx)
    np.testing.assert_array_equal(terminal.Lxx, data.Lxx)


@robots
def test_missing_measurements_do_not_matter(robot: str) -> None:
    s = setup_of(robot, missing=True)
    there = differentiated(s, s.x, s.u)
    random = np.random.default_rng(0)
    unseen = s.measurement.configuration_weight == 0.0
    moved = pin.integrate(
        s.case.model, s.measurement.configuration, unseen * 0.3 * random.standard_normal(len(unseen))
    )
    s.measurement.configuration = moved
    s.measurement.velocity = s.measurement.velocity + (s.measurement.velocity_weight == 0.0) * 5.0
    other = _core.ActionContactStep(s.state, s.step, _core.WorkspacePool(s.step), s.measurement)
    data = poisoned(other)
    other.calcDiff(data, s.x, s.u)
    assert data.cost == pytest.approx(there.cost, rel=1e-12)
    np.testing.assert_allclose(data.Lx, there.Lx, rtol=1e-10, atol=1e-10)


def test_state_that_is_not_finite_gives_a_next_state_that_says_so() -> None:
    s = setup_of("go2")
    data = s.action.createData()
    bad = s.x.copy()
    bad[7] = np.nan
    s.action.calc(data, bad, s.u)
    assert not np.any(np.isfinite(data.xnext[19:37]))
    s.action.calc(data, s.x, s.u)
    np.testing.assert_allclose(data.xnext, calculated(s, s.x, s.u).xnext, rtol=1e-10, atol=1e-10)


# The prior as an action


def arrival_of(robot: str) -> tuple[_core.StateInertial, _core.ActionArrival, Array]:
    state = state_of(robot)
    root = np.random.default_rng(4).standard_normal((state.ndx, state.ndx))
    information = root @ root.T
    return state, _core.ActionArrival(state, information), information


@robots
def test_arrival_adds_the_control_to_the_mean(robot: str) -> None:
    state, action, information = arrival_of(robot)
    x, u = random_state(state, 1), 0.5 * np.random.default_rng(2).standard_normal(state.ndx)
    data = poisoned(action)
    action.calc(data, x, u)
    np.testing.assert_array_equal(data.xnext, state.integrate(x, u))
    assert data.cost == pytest.approx(0.5 * u @ information @ u, rel=1e-12)
    first, second = state.Jintegrate(x, u)  # checked above
    data = poisoned(action)
    action.calcDiff(data, x, u)
    assert data.cost == pytest.approx(0.5 * u @ information @ u, rel=1e-12)
    np.testing.assert_array_equal(data.Fx, first)
    np.testing.assert_array_equal(data.Fu, second)
    np.testing.assert_allclose(data.Lu, information @ u, rtol=1e-12)
    np.testing.assert_array_equal(data.Luu, information)
    assert not np.any(data.Lx)
    assert not np.any(data.Lxx)
    assert not np.any(data.Lxu)


# In Crocoddyl


def gait_problem(steps: int, threads: int) -> tuple[crocoddyl.ShootingProblem, list[Array], list[Array]]:
    """Full information on a short trot of the Go2 with noisy measurements, and a start at them."""
    case, motion = robot_case("go2"), gait(robot_case("go2"), steps)
    step, random = core_step(case), np.random.default_rng(8)
    state, pool = _core.StateInertial(case.model, step.ntheta), _core.WorkspacePool(step)
    nu = step.nv + 3 * step.ncontacts
    theta = np.asarray(step.nominal_theta(0.0))
    actions, xs = [], []
    for k in range(steps + 1):
        y = _core.KnotMeasurement(step.nv, nu)
        y.configuration = pin.integrate(
            case.model, motion.configurations[k], 2e-3 * random.standard_normal(step.nv)
        )
        y.velocity = motion.velocities[k] + 0.05 * random.standard_normal(step.nv)
        y.torque = motion.forces[min(k, steps - 1), 6:]
        y.configuration_weight, y.velocity_weight = np.full(step.nv, 2e-3**-2), np.full(step.nv, 0.05**-2)
        y.control_weight = np.full(nu, 4.0)
        actions.append(_core.ActionContactStep(state, step, pool, y))
        xs.append(np.concatenate([y.configuration, y.velocity, theta]))
    arrival = _core.ActionArrival(state, 100.0 * np.eye(state.ndx))
    problem = crocoddyl.ShootingProblem(xs[0], [arrival, *actions[:-1]], actions[-1])
    problem.nthreads = threads
    return problem, [xs[0], *xs], [np.zeros(state.ndx)] + [np.zeros(nu)] * steps


@pytest.mark.parametrize("threads", [1, 2])
def test_fddp_solves_a_problem_of_the_actions(threads: int) -> None:
    problem, xs, us = gait_problem(steps=20, threads=threads)
    solver = crocoddyl.SolverFDDP(problem)
    solver.th_stop = 1e-8
    undisturbed = problem.calc(list(problem.rollout(us)), us)
    assert solver.solve(xs, us, 50, False)
    assert solver.isFeasible
    assert solver.cost < 0.5 * undisturbed
    assert problem.calc(solver.xs, solver.us) == pytest.approx(solver.cost, rel=1e-12)
    assert problem.calcDiff(solver.xs, solver.us) == pytest.approx(solver.cost, rel=1e-12)
    reached = [data.xnext.copy() for data in problem.runningDatas]
    np.testing.assert_allclose(reached, list(solver.xs)[1:], rtol=1e-9, atol=1e-9)


def test_threads_do_not_change_the_solution() -> None:
    solutions = []
    for threads in (1, 2):
        problem, xs, us = gait_problem(steps=12, threads=threads)
        solver = crocoddyl.SolverFDDP(problem)
        solver.solve(xs, us, 30, False)
        solutions.append(np.array(solver.xs))
    np.testing.assert_allclose(solutions[0], solutions[1], rtol=1e-9, atol=1e-9)


def test_thousand_calls_leave_no_memory_behind() -> None:
    problem, xs, us = gait_problem(steps=4, threads=1)

    def repeat(count: int) -> None:
        for _ in range(count):
            problem.calc(xs, us)
            problem.calcDiff(xs, us)

    repeat(10)
    before = allocated_bytes()
    repeat(1000)
    assert abs(allocated_bytes() - before) < 1000  # less than a byte a call


class MallocInfo(ctypes.Structure):
    """`struct mallinfo2` of glibc."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for names in (
            ("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            ("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
        for name in names
    )


def allocated_bytes() -> int:
    """Bytes that the C library has handed out and not got back."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        pytest.skip("needs mallinfo2 of glibc 2.33")
    libc.mallinfo2.restype = MallocInfo
    info = libc.mallinfo2()
    return int(info.uordblks + info.hblkhd)


# Misuse


def test_sizes_that_do_not_fit_are_refused() -> None:
    s = setup_of("go2")
    wrong_state = _core.StateInertial(s.case.model, 3)
    pool = _core.WorkspacePool(s.step)
    with pytest.raises(ValueError, match="theta of the state has size 3, expected 21"):
        _core.ActionContactStep(wrong_state, s.step, pool, s.measurement)
    with pytest.raises(ValueError, match="measured configuration has size 36, expected 19"):
        _core.ActionContactStep(s.state, s.step, pool, _core.KnotMeasurement(35, 47))
    with pytest.raises(ValueError, match="control weight has size 18, expected 30"):
        _core.ActionContactStep(s.state, s.step, pool, _core.KnotMeasurement(18, 18))
    with pytest.raises(ValueError, match="information is 3 x 3, expected 57 square"):
        _core.ActionArrival(s.state, np.eye(3))


def test_pool_of_another_step_is_refused() -> None:
    s = setup_of("go2")
    pool = _core.WorkspacePool(core_step(robot_case("hopper")))
    with pytest.raises(ValueError, match="pool was made for another step"):
        _core.ActionContactStep(s.state, s.step, pool, s.measurement)


@pytest.mark.parametrize("method", ["calc", "calcDiff"])
def test_state_or_control_of_wrong_size_is_refused(method: str) -> None:
    s = setup_of("go2")
    call, data = getattr(s.action, method), s.action.createData()
    with pytest.raises(ValueError, match=r"x has size 3, expected 58"):
        call(data, np.zeros(3), s.u)
    with pytest.raises(ValueError, match=r"u has size 3, expected 30"):
        call(data, s.x, np.zeros(3))
    with pytest.raises(ValueError, match=r"x has size 3, expected 58"):
        call(data, np.zeros(3))


def test_tangent_of_wrong_size_is_refused() -> None:
    state = state_of("go2")
    with pytest.raises(ValueError, match=r"dx has size 3, expected 57"):
        state.integrate(state.zero(), np.zeros(3))
    with pytest.raises(ValueError, match=r"x has size 3, expected 58"):
        state.integrate(np.zeros(3), np.zeros(57))
    with pytest.raises(ValueError, match=r"has size 3, expected 58"):
        state.diff(state.zero(), np.zeros(3))
