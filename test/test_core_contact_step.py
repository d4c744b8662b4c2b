# SPDX-License-Identifier: Apache-2.0
"""The compiled contact step: equal to its NumPy twin, differentiated correctly, and safe to misuse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import pinocchio as pin
import pytest
from core import DT, KAPPAS, SITUATIONS, Arguments, arguments_of, core_step, situation_input, twin_step
from differences import assert_derivative, central_differences
from models import FRICTION, ROBOT_NAMES, RobotCase, random_input, robot_case

from prime_ros import _core
from prime_ros.estimation.contact import Sensitivity

SEEDS = range(3)
ARGUMENTS = [field.name for field in fields(Arguments)]
DERIVATIVES = {"q": "dq", "v": "dv", "force": "df", "slack": "dslack", "theta": "dtheta"}
# Both Newton methods stop within rounding of the minimiser; next to the cone, kappa amplifies what is left.
TWIN_TOLERANCE = 1e-8
# The contact force changes much within 2 / (kappa force) of height, which differences must resolve.
DIFFERENCE_STEPS = {"q": 2e-6, "v": 1e-4, "force": 1e-3, "slack": 2e-4, "theta": 2e-6}

DIFFERENCE_TOLERANCE = 1e-6

robots = pytest.mark.parametrize("robot", ROBOT_NAMES)
situations = pytest.mark.parametrize("situation", SITUATIONS)
kappas = pytest.mark.parametrize("kappa", KAPPAS)


def solved(step: _core.ContactStep, arguments: Arguments) -> _core.ContactStepData:
    data = _core.ContactStepData(step)
    arguments.solve(step, data)
    assert data.converged
    return data


def solved_and_differentiated(step: _core.ContactStep, arguments: Arguments) -> _core.ContactStepData:
    data = solved(step, arguments)
    step.differentiate(data, arguments.q, arguments.v)
    return data


def assert_equal(core: np.ndarray, twin: np.ndarray, name: str) -> None:
    tolerance = TWIN_TOLERANCE * np.abs(twin).max(initial=0.0)
    np.testing.assert_allclose(core, twin, rtol=TWIN_TOLERANCE, atol=tolerance, err_msg=name)


def by_state(s: Sensitivity) -> np.ndarray:
    return np.hstack([s.configuration, s.velocity, s.theta, s.ground_height])


# Against the twin


@robots
@situations
@kappas
def test_step_and_derivatives_are_those_of_the_twin(robot: str, situation: str, kappa: float) -> None:
    case = robot_case(robot)
    step, twin = core_step(case, kappa), twin_step(case, kappa)
    for seed in SEEDS:
        inputs = situation_input(case, situation, seed)
        arguments = arguments_of(inputs)
        expected = twin.solve(inputs)
        assert expected.converged
        sensitivity = twin.derivatives(inputs, expected)
        velocity = sensitivity.velocity
        data = solved_and_differentiated(step, arguments)
        impulse_x, impulse_u = step.impulse_derivatives(data)
        assert_equal(data.v_next, expected.velocity, "v_next")
        assert_equal(data.z, expected.contact_velocity.ravel(), "z")
        assert_equal(data.impulse, expected.impulses.ravel(), "impulse")
        assert_equal(data.dq, velocity.configuration, "dq")
        assert_equal(data.dv, velocity.velocity, "dv")
        assert_equal(data.df, velocity.force, "df")
        assert_equal(data.dslack, velocity.slack, "dslack")
        assert_equal(data.dtheta, np.hstack([velocity.theta, velocity.ground_height]), "dtheta")
        assert_equal(impulse_x, by_state(sensitivity.impulses), "impulses by (q, v, theta)")
        assert_equal(
            impulse_u,
            np.hstack([sensitivity.impulses.force, sensitivity.impulses.slack]),
            "impulses by (f, s)",
        )


@robots
def test_situations_differ(robot: str) -> None:
    # Otherwise the tests above compare less than they claim.
    case = robot_case(robot)
    weight = 9.81 * pin.computeTotalMass(case.model)
    share, use = {}, {}
    for situation in SITUATIONS:
        data = solved(core_step(case), arguments_of(situation_input(case, situation, seed=0)))
        impulse = np.reshape(data.impulse, (-1, 3))
        share[situation] = impulse[:, 2].sum() / (weight * DT)
        use[situation] = (
            np.hypot(*(impulse[:, :2] / FRICTION).T)[impulse[:, 2].argmax()] / impulse[:, 2].max()
        )
    assert share["contact"] > 0.1
    assert share["air"] < 1e-3
    assert use["contact"] < use["sliding"] < 1.0 < use["sliding"] + 0.02


@robots
def test_nominal_theta_is_the_model_and_the_given_height(robot: str) -> None:
    case = robot_case(robot)
    theta = core_step(case).nominal_theta(0.25)
    np.testing.assert_allclose(theta[:-1], case.step().nominal_theta(), rtol=1e-12, atol=1e-14)
    assert theta[-1] == 0.25


# Derivatives


def moved(case: RobotCase, arguments: Arguments, name: str, by: np.ndarray) -> Arguments:
    if name == "q":
        return replace(arguments, q=pin.integrate(case.model, arguments.q, by))
    return replace(arguments, **{name: getattr(arguments, name) + by})


@robots
@situations
@kappas
@pytest.mark.parametrize("name", ARGUMENTS)
def test_derivatives_are_those_of_central_differences(
    robot: str, situation: str, kappa: float, name: str
) -> None:
    case, step = robot_case(robot), core_step(robot_case(robot), kappa)
    arguments = arguments_of(situation_input(case, situation, seed=0))
    data = solved_and_differentiated(step, arguments)
    nv, nslack = step.nv, 3 * step.ncontacts
    impulse_x, impulse_u = step.impulse_derivatives(data)
    q, v, theta = np.split(impulse_x, [nv, 2 * nv], axis=1)
    impulse = {"q": q, "v": v, "theta": theta, "force": impulse_u[:, :nv], "slack": impulse_u[:, nv:]}[name]
    velocity = getattr(data, DERIVATIVES[name])
    scratch = _core.ContactStepData(step)

    def velocity_and_impulse(by: np.ndarray) -> np.ndarray:
        scratch.v_next = data.v_next
        moved(case, arguments, name, by).solve(step, scratch)
        assert scratch.converged
        return np.concatenate([scratch.v_next, scratch.impulse])

    numeric = central_differences(velocity_and_impulse, velocity.shape[1], DIFFERENCE_STEPS[name])
    assert velocity.shape == (nv, {"slack": nslack, "theta": step.ntheta}.get(name, nv))
    assert_derivative(velocity, numeric[:nv], relative=DIFFERENCE_TOLERANCE)
    assert_derivative(impulse, numeric[nv:], relative=DIFFERENCE_TOLERANCE)


# Laws


@robots
@situations
@kappas
def test_result_is_strictly_feasible(robot: str, situation: str, kappa: float) -> None:
    case = robot_case(robot)
    for seed in SEEDS:
        data = solved(core_step(case, kappa), arguments_of(situation_input(case, situation, seed)))
        z, impulse = np.reshape(data.z, (-1, 3)), np.reshape(data.impulse, (-1, 3))
        assert np.all(z[:, 2] > np.hypot(*(z[:, :2] * FRICTION).T))
        assert np.all(impulse[:, 2] > np.hypot(*(impulse[:, :2] / FRICTION).T))


@robots
@situations
def test_warm_start_does_not_change_the_result(robot: str, situation: str) -> None:
    case, step = robot_case(robot), core_step(robot_case(robot))
    arguments = arguments_of(situation_input(case, situation, seed=1))
    cold = solved(step, arguments)
    random = np.random.default_rng(0)
    for guess in (
        np.full(step.nv, np.nan),
        np.full(step.nv, np.inf),
        np.zeros(step.nv),
        cold.v_next,
        cold.v_next + 3.0 * random.standard_normal(step.nv),
        -10.0 * np.ones(step.nv),
    ):
        data = _core.ContactStepData(step)
        data.v_next = guess
        arguments.solve(step, data)
        assert data.converged
        np.testing.assert_allclose(data.v_next, cold.v_next, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(data.impulse, cold.impulse, rtol=1e-7, atol=1e-8)


def test_solving_again_from_the_solution_takes_one_iteration() -> None:
    step = core_step(robot_case("go2"))
    arguments = arguments_of(situation_input(robot_case("go2"), "contact", seed=1))
    data = solved(step, arguments)
    arguments.solve(step, data)
    assert data.converged
    assert data.iterations == 1


@pytest.mark.parametrize("gap", [-0.3, -0.03, 0.0, 1e-9])
def test_start_inside_the_ground_converges(gap: float) -> None:
    case = robot_case("go2")
    for seed in range(5):
        data = solved(core_step(case, 2000.0), arguments_of(random_input(case, seed, gap=gap, speed=2.0)))
        assert np.reshape(data.z, (-1, 3))[:, 2].min() > 0.0


@robots
@kappas
def test_default_tolerance_is_fine_enough(robot: str, kappa: float) -> None:
    case = robot_case(robot)
    for situation in SITUATIONS:
        arguments = arguments_of(situation_input(case, situation, seed=2))
        exact = solved(core_step(case, kappa), arguments)
        default = solved(core_step(case, kappa, tolerance=_core.StepSettings().tolerance), arguments)
        np.testing.assert_allclose(default.v_next, exact.v_next, rtol=0.0, atol=1e-6)
        np.testing.assert_allclose(
            default.impulse, exact.impulse, rtol=0.0, atol=1e-6 * np.abs(exact.impulse).max()
        )


def test_kappa_can_be_changed_between_steps() -> None:
    case = robot_case("go2")
    step = core_step(case, 20.0)
    arguments = arguments_of(situation_input(case, "contact", seed=0))
    soft = solved(step, arguments).v_next
    step.kappa = 500.0
    assert step.kappa == 500.0
    stiff = solved(step, arguments).v_next
    np.testing.assert_array_equal(stiff, solved(core_step(case, 500.0), arguments).v_next)
    assert np.abs(stiff - soft).max() > 1e-3


def test_contacts_and_bodies_may_be_absent() -> None:
    case = robot_case("hopper")
    bare = replace(case, contacts=(), identified_joints=())
    inputs = replace(random_input(case, 0), slack=np.zeros(0), theta=np.zeros(0))
    step, twin = core_step(bare), replace(bare.step(), potentials=())
    data = solved_and_differentiated(step, arguments_of(inputs))
    expected = twin.solve(inputs)
    assert_equal(data.v_next, expected.velocity, "v_next")
    assert_equal(data.dv, twin.derivatives(inputs, expected).velocity.velocity, "dv")
    assert data.dslack.shape == (8, 0)
    np.testing.assert_array_equal(np.ravel(data.dtheta), np.zeros(8))  # no contact feels the ground


# Misuse


@robots
@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_input_that_is_not_finite_fails_without_harm(robot: str, name: str, bad: float) -> None:
    step = core_step(robot_case(robot))
    good = arguments_of(situation_input(robot_case(robot), "contact", seed=0))
    expected = solved(step, good).v_next
    data = _core.ContactStepData(step)
    for entry in (0, -1):
        poisoned = getattr(good, name).copy()
        poisoned[entry] = bad
        replace(good, **{name: poisoned}).solve(step, data)
        assert not data.converged
        assert np.all(np.isnan(data.v_next))
        assert np.all(np.isnan(data.impulse))
        good.solve(step, data)
        assert data.converged
        np.testing.assert_allclose(data.v_next, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("alpha", [400.0, -800.0])  # of a mass that overflows, of one that underflows
def test_absurd_mass_fails_without_harm(alpha: float) -> None:
    case = robot_case("go2")
    step, good = core_step(case), arguments_of(situation_input(case, "contact", seed=0))
    data = _core.ContactStepData(step)
    absurd = good.theta.copy()
    absurd[0] = alpha
    replace(good, theta=absurd).solve(step, data)
    assert np.all(np.isfinite(data.v_next)) == data.converged
    good.solve(step, data)
    assert data.converged
    np.testing.assert_allclose(data.v_next, solved(step, good).v_next, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kappa", [500.0, 2000.0])
def test_far_guesses_at_sharp_contact_converge(kappa: float) -> None:
    # Plain damped Newton takes 90 and 340 iterations here: feet of the G1 that slide, from the old velocity.
    case = robot_case("g1")
    step = core_step(case, kappa=kappa)
    for seed in range(6):
        data = _core.ContactStepData(step)
        arguments_of(situation_input(case, "sliding", seed)).solve(step, data)
        assert data.converged
        assert data.iterations <= 60


def test_unfinished_solve_says_so() -> None:
    case = robot_case("go2")
    step = core_step(case, max_iterations=2)
    data = _core.ContactStepData(step)
    arguments_of(random_input(case, 1, gap=-0.02, speed=2.0)).solve(step, data)
    assert not data.converged
    assert data.iterations == 2
    assert np.all(np.isfinite(data.v_next))


def test_data_of_another_step_is_refused() -> None:
    go2, hopper = core_step(robot_case("go2")), core_step(robot_case("hopper"))
    arguments = arguments_of(random_input(robot_case("go2"), 0))
    with pytest.raises(ValueError, match="data was made for another step"):
        arguments.solve(go2, _core.ContactStepData(hopper))
    with pytest.raises(ValueError, match="data was made for another step"):
        go2.differentiate(_core.ContactStepData(hopper), arguments.q, arguments.v)
    with pytest.raises(ValueError, match="data was made for another step"):
        go2.impulse_derivatives(_core.ContactStepData(hopper))


def test_guess_of_wrong_size_is_refused() -> None:
    step = core_step(robot_case("go2"))
    data = _core.ContactStepData(step)
    data.v_next = np.zeros(3)
    with pytest.raises(ValueError, match=r"data.v_next has size 3, expected 18"):
        arguments_of(random_input(robot_case("go2"), 0)).solve(step, data)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_argument_of_wrong_size_is_refused_with_both_sizes(name: str) -> None:
    case = robot_case("go2")
    step, good = core_step(case), arguments_of(random_input(case, 0))
    right = getattr(good, name)
    for wrong in (right[:-1], np.append(right, 0.0), np.zeros(0)):
        with pytest.raises(ValueError, match=rf"{name} has size {wrong.size}, expected {right.size}"):
            replace(good, **{name: wrong}).solve(step, _core.ContactStepData(step))


def _core_point(case: RobotCase, **changes: object) -> _core.ContactPoint:
    point = _core.ContactPoint()
    point.joint = case.contacts[0].joint_id
    for name, value in changes.items():
        setattr(point, name, value)
    return point


def _settings(**changes: object) -> _core.StepSettings:
    settings = _core.StepSettings()
    for name, value in changes.items():
        setattr(settings, name, value)
    return settings


GO2 = robot_case("go2")
MISTAKES: dict[str, tuple[str, Callable[[], object]]] = {
    "joint": ("contact on joint 99 of 14", lambda: ([_core_point(GO2, joint=99)], [1], _settings())),
    "universe": ("contact on joint 0 of 14", lambda: ([_core_point(GO2, joint=0)], [1], _settings())),
    "radius": ("radius must be >= 0", lambda: ([_core_point(GO2, radius=-0.1)], [1], _settings())),
    "friction": (
        "friction > 0",
        lambda: ([_core_point(GO2, friction=np.array([0.8, 0.0]))], [1], _settings()),
    ),
    "body": ("body of joint 99 of 14", lambda: ([], [99], _settings())),
    "dt": ("dt and kappa must be positive", lambda: ([], [1], _settings(dt=0.0))),
    "kappa": ("dt and kappa must be positive", lambda: ([], [1], _settings(kappa=-1.0))),
    "damping": ("damping has size 12, expected nv = 18", lambda: ([], [1], _settings(damping=np.zeros(12)))),
    "negative": (
        "friction must be finite and not negative",
        lambda: ([], [1], _settings(friction=-np.ones(18))),
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_wrong_settings_are_refused(mistake: str) -> None:
    message, arguments = MISTAKES[mistake]
    with pytest.raises(ValueError, match=message):
        _core.ContactStep(GO2.model, *arguments())


def test_model_without_free_flyer_is_refused() -> None:
    with pytest.raises(ValueError, match="must be a free-flyer"):
        _core.ContactStep(pin.buildSampleModelManipulator(), [], [], _core.StepSettings())


@pytest.mark.parametrize("kappa", [0.0, -1.0])
def test_wrong_kappa_is_refused(kappa: float) -> None:
    step = core_step(GO2)
    with pytest.raises(ValueError, match="kappa must be positive"):
        step.kappa = kappa
