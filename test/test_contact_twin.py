# SPDX-License-Identifier: Apache-2.0
"""The contact step: derivatives against central differences, and the laws of mechanics it must obey."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pinocchio as pin
import pytest
from differences import assert_derivative, central_differences
from models import (
    DT,
    FRICTION,
    ROBOT_NAMES,
    RobotCase,
    gait,
    lowest_height,
    random_input,
    robot_case,
    stance_configuration,
)

from prime_ros.estimation import inertia
from prime_ros.estimation.contact import ContactStep, NewtonOptions, StepInput, StepResult

KAPPA = 500.0
# kappa, gap of the lowest foot [m], speed [m/s]
SITUATIONS = {
    "landing": (500.0, 2e-3, 0.5),
    "penetrating": (500.0, -5e-3, 0.3),
    "soft": (20.0, 1e-3, 0.3),
    "in the air": (500.0, 0.1, 0.5),
}
# Steps of the differences: small against what changes the contact force much, large against rounding.
DIFFERENCE_STEPS = {"configuration": 1e-5, "ground_height": 1e-5}  # [m, rad]
OTHER_DIFFERENCE_STEP = 1e-4
STEP_INPUTS = [field.name for field in fields(StepInput)]

# Differences on the G1 take long.
DERIVATIVE_CASES = [(robot, situation) for robot in ("hopper", "go2") for situation in SITUATIONS]
DERIVATIVE_CASES += [("g1", "landing"), ("g1", "in the air")]

robots = pytest.mark.parametrize("robot", ROBOT_NAMES)
situations = pytest.mark.parametrize("situation", SITUATIONS)


def moved(case: RobotCase, inputs: StepInput, name: str, by: np.ndarray) -> StepInput:
    """The inputs with one of them moved within its tangent space."""
    if name == "configuration":
        return replace(inputs, configuration=pin.integrate(case.model, inputs.configuration, by))
    if name == "ground_height":
        return replace(inputs, ground_height=inputs.ground_height + float(by[0]))
    return replace(inputs, **{name: getattr(inputs, name) + by})


def solved(step: ContactStep, inputs: StepInput) -> StepResult:
    result = step.solve(inputs)
    assert result.converged
    return result


def situation_of(robot: str, situation: str) -> tuple[RobotCase, ContactStep, StepInput]:
    kappa, gap, speed = SITUATIONS[situation]
    case = robot_case(robot)
    return case, case.step(kappa), random_input(case, seed=7, gap=gap, speed=speed)


def model_with(case: RobotCase, step: ContactStep, theta: np.ndarray) -> pin.Model:
    """Pinocchio model whose identified bodies have the inertia theta."""
    model = case.model.copy()
    for joint, parameters in zip(step.identified_joints, theta.reshape(-1, 10), strict=True):
        model.inertias[joint] = inertia.to_inertia(parameters)
    return model


def contact_locations(case: RobotCase, data: pin.Data) -> np.ndarray:
    """World positions of the lowest points of the contact spheres, shape (C, 3)."""
    return np.array([data.oMi[c.joint_id].act(c.offset) - [0.0, 0.0, c.radius] for c in case.contacts])


# Derivatives


@pytest.mark.parametrize(("robot", "situation"), DERIVATIVE_CASES)
@pytest.mark.parametrize("name", STEP_INPUTS)
def test_derivatives(robot: str, situation: str, name: str) -> None:
    case, step, inputs = situation_of(robot, situation)
    derivatives = step.derivatives(inputs, solved(step, inputs))

    def velocity_and_impulses(by: np.ndarray) -> np.ndarray:
        result = solved(step, moved(case, inputs, name, by))
        return np.concatenate([result.velocity, result.impulses.ravel()])

    size = getattr(derivatives.velocity, name).shape[1]
    numeric = central_differences(
        velocity_and_impulses, size, DIFFERENCE_STEPS.get(name, OTHER_DIFFERENCE_STEP)
    )
    nv = case.model.nv
    assert_derivative(getattr(derivatives.velocity, name), numeric[:nv])
    assert_derivative(getattr(derivatives.impulses, name), numeric[nv:])


@robots
def test_hessian_is_the_derivative_of_the_residual(robot: str) -> None:
    # A force df moves the residual by -dt df at fixed v+, hence dv+/df = dt H^-1.
    _, step, inputs = situation_of(robot, "landing")
    result = solved(step, inputs)
    velocity = step.derivatives(inputs, result).velocity
    np.testing.assert_allclose(
        result.hessian @ velocity.force, step.dt * np.eye(len(result.velocity)), atol=1e-8
    )


def test_derivatives_without_contact_or_identified_body() -> None:
    case = robot_case("hopper")
    step = replace(case.step(), contacts=(), potentials=(), identified_joints=())
    inputs = replace(random_input(case, 0), slack=np.zeros(0), theta=np.zeros(0))
    derivatives = step.derivatives(inputs, solved(step, inputs))
    assert derivatives.velocity.slack.shape == derivatives.velocity.theta.shape == (case.model.nv, 0)
    assert derivatives.impulses.configuration.shape == (0, case.model.nv)
    np.testing.assert_array_equal(derivatives.velocity.ground_height, 0.0)


# Laws


@robots
@situations
def test_result_is_feasible_and_balanced(robot: str, situation: str) -> None:
    _, step, inputs = situation_of(robot, situation)
    result = solved(step, inputs)
    slip = np.hypot(*(result.contact_velocity[:, :2] * FRICTION).T)
    friction = np.hypot(*(result.impulses[:, :2] / FRICTION).T)
    assert np.all(result.contact_velocity[:, 2] > slip)
    assert np.all(friction < result.impulses[:, 2])
    np.testing.assert_allclose(result.residual, 0.0, atol=1e-10)


@robots
@situations
def test_momentum_of_the_whole_robot(robot: str, situation: str) -> None:
    # Newton and Euler about the centre of mass: only gravity and the contact forces act, where we say.
    case, step, inputs = situation_of(robot, situation)
    inputs = replace(inputs, force=np.concatenate([np.zeros(6), inputs.force[6:]]))
    result = solved(step, inputs)
    model = model_with(case, step, inputs.theta)
    data = model.createData()
    acceleration = (result.velocity - inputs.velocity) / DT
    rate = pin.computeCentroidalMomentumTimeVariation(
        model, data, inputs.configuration, inputs.velocity, acceleration
    )
    com = pin.centerOfMass(model, data, inputs.configuration)
    forces = result.impulses / DT
    weight = data.mass[0] * model.gravity.linear
    np.testing.assert_allclose(rate.linear, forces.sum(axis=0) + weight, atol=1e-7)
    moments = np.cross(contact_locations(case, data) - com, forces)
    np.testing.assert_allclose(rate.angular, moments.sum(axis=0), atol=1e-7)


@robots
@situations
def test_joint_friction_opposes_motion(robot: str, situation: str) -> None:
    # What inverse dynamics leaves of the joint torques after contact and damping is friction.
    case, step, inputs = situation_of(robot, situation)
    result = solved(step, inputs)
    model = model_with(case, step, inputs.theta)
    data = model.createData()
    acceleration = (result.velocity - inputs.velocity) / DT
    torque = pin.rnea(model, data, inputs.configuration, inputs.velocity, acceleration) - inputs.force
    pin.computeJointJacobians(model, data, inputs.configuration)
    for contact, location, impulse in zip(
        case.contacts, contact_locations(case, data), result.impulses, strict=True
    ):
        jacobian = pin.getJointJacobian(model, data, contact.joint_id, pin.WORLD)
        torque -= jacobian.T @ np.concatenate([impulse, np.cross(location, impulse)]) / DT
    joint_velocity = result.velocity[6:]
    friction = torque[6:] + case.joint_damping * (inputs.velocity[6:] + joint_velocity) / 2.0
    assert np.all(friction * joint_velocity <= 1e-8)
    assert np.all(np.abs(friction) <= case.joint_friction + 1e-7)
    assert np.abs(friction).max() > 0.5 * case.joint_friction.min()


@robots
def test_foot_at_rest_hovers(robot: str) -> None:
    case, step = robot_case(robot), replace(robot_case(robot).step(KAPPA), identified_joints=())
    v = np.zeros(case.model.nv)
    load = 40.0  # [N] on every foot, which hovers at 2 / (kappa load)
    q = stance_configuration(case, gap=2.0 / (KAPPA * load))
    data = case.model.createData()
    pin.computeJointJacobians(case.model, data, q)
    heights = contact_locations(case, data)[:, 2]
    np.testing.assert_allclose(heights, heights[0], atol=1e-12)
    holding = pin.nonLinearEffects(case.model, data, q, v).copy()
    for contact, location in zip(case.contacts, contact_locations(case, data), strict=True):
        force = np.array([0.0, 0.0, load])
        jacobian = pin.getJointJacobian(case.model, data, contact.joint_id, pin.WORLD)
        holding -= jacobian.T @ np.concatenate([force, np.cross(location, force)])
    result = solved(step, StepInput(q, v, holding, np.zeros(3 * len(case.contacts)), np.zeros(0)))
    np.testing.assert_allclose(result.velocity, 0.0, atol=1e-8)
    np.testing.assert_allclose(
        result.impulses / DT, np.tile([0.0, 0.0, load], (len(case.contacts), 1)), atol=1e-6
    )


def test_force_at_a_distance() -> None:
    case = robot_case("hopper")
    q = stance_configuration(case, gap=1.0)
    resting = StepInput(q, np.zeros(8), np.zeros(8), np.zeros(3), case.step().nominal_theta())
    force = solved(case.step(KAPPA), resting).impulses[0, 2] / DT
    assert force == pytest.approx(2.0 / (KAPPA * 1.0), rel=5e-3)  # falls by 1 mm within the step


@robots
def test_raising_ground_and_robot_changes_nothing(robot: str) -> None:
    case, step, inputs = situation_of(robot, "landing")
    result = solved(step, inputs)
    raised = replace(
        inputs, configuration=inputs.configuration.copy(), ground_height=inputs.ground_height + 0.3
    )
    raised.configuration[2] += 0.3
    other = solved(step, raised)
    np.testing.assert_allclose(other.velocity, result.velocity, atol=1e-8)
    np.testing.assert_allclose(other.impulses, result.impulses, atol=1e-9)
    derivatives = step.derivatives(inputs, result)
    up = np.zeros(case.model.nv)
    up[:3] = pin.XYZQUATToSE3(inputs.configuration[:7]).rotation[2]
    for quantity in (derivatives.velocity, derivatives.impulses):
        scale = np.abs(quantity.ground_height).max()
        np.testing.assert_allclose(
            quantity.configuration @ up, -quantity.ground_height[:, 0], atol=1e-10 * scale
        )


def test_slack_moves_the_ground() -> None:
    # A slack along the normal is a ground that is lower by dt times as much.
    _, step, inputs = situation_of("go2", "landing")
    lowered = replace(inputs, ground_height=inputs.ground_height - DT * 0.1)
    slack = inputs.slack.copy()
    slack[2::3] += 0.1
    np.testing.assert_allclose(
        solved(step, lowered).velocity, solved(step, replace(inputs, slack=slack)).velocity, atol=1e-9
    )


@robots
@pytest.mark.parametrize("damping", [0.0, 0.3, 1e3])
def test_damping_takes_its_work_from_the_kinetic_energy_and_no_more(robot: str, damping: float) -> None:
    # Evaluated at the mean velocity, damping cannot add energy at any gain. (At the old velocity it could.)
    case = robot_case(robot)
    free = replace(case.step(), contacts=(), potentials=(), identified_joints=())
    step = replace(
        free, joint_damping=np.full(case.model.nv - 6, damping), joint_friction=np.zeros(case.model.nv - 6)
    )
    q, v = random_input(case, 2, gap=0.5, speed=1.0).configuration, random_input(case, 2, speed=1.0).velocity
    data = case.model.createData()
    bias = pin.nonLinearEffects(case.model, data, q, v).copy()
    result = solved(step, StepInput(q, v, bias, np.zeros(0), np.zeros(0)))
    mass = result.hessian - 0.5 * DT * np.diag(np.concatenate([np.zeros(6), step.joint_damping]))
    mean = 0.5 * (v + result.velocity)
    work = DT * damping * mean[6:] @ mean[6:]
    energy = 0.5 * v @ mass @ v
    assert 0.5 * result.velocity @ mass @ result.velocity == pytest.approx(energy - work, rel=1e-9)
    assert 0.0 <= work <= energy
    assert (work > 0.0) == (damping > 0.0)


def test_huge_damping_at_most_reverses_the_joint_rates() -> None:
    case = robot_case("go2")
    inputs = random_input(case, 2, gap=0.5, speed=1.0)
    step = replace(case.step(), joint_damping=np.full(12, 1e6), joint_friction=np.zeros(12))
    velocity = inputs.velocity
    for _ in range(4):  # alternates without growing
        result = solved(step, replace(inputs, velocity=velocity))
        np.testing.assert_allclose(result.velocity[6:], -velocity[6:], atol=1e-4)
        velocity = result.velocity


def test_joint_sticks_under_less_torque_than_friction() -> None:
    case = robot_case("hopper")
    step = replace(case.step(), joint_friction=np.array([5.0, 200.0]))
    q, v = stance_configuration(case, gap=0.5), np.zeros(8)
    force = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0])
    for _ in range(20):
        v = solved(step, StepInput(q, v, force, np.zeros(3), step.nominal_theta())).velocity
    assert 0.0 < v[6] < step.friction_velocity


@robots
def test_solution_does_not_depend_on_the_guess(robot: str) -> None:
    case, step, inputs = situation_of(robot, "landing")
    expected = solved(step, inputs)
    random = np.random.default_rng(0)
    for scale in (0.1, 10.0):
        guess = scale * random.standard_normal(case.model.nv)
        result = step.solve(inputs, guess)
        assert result.converged
        np.testing.assert_allclose(result.velocity, expected.velocity, atol=1e-7)


@pytest.mark.parametrize("gap", [-0.3, -0.03, 0.0, 1e-6])
def test_start_inside_the_ground_converges(gap: float) -> None:
    case = robot_case("go2")
    for seed in range(5):
        result = solved(case.step(2000.0), random_input(case, seed, gap=gap, speed=2.0))
        assert np.all(result.contact_velocity[:, 2] > 0.0)


def test_robot_on_its_side() -> None:
    case, step, inputs = situation_of("go2", "landing")
    q = inputs.configuration.copy()
    q[3:7] = pin.Quaternion(pin.rpy.rpyToMatrix(np.pi / 2, 0.2, 0.0)).coeffs()
    q[2] += inputs.ground_height - lowest_height(case, q)
    result = solved(step, replace(inputs, configuration=q))
    np.testing.assert_allclose(result.residual, 0.0, atol=1e-9)


@robots
def test_gait_lands_and_takes_off(robot: str) -> None:
    case = robot_case(robot)
    motion = gait(case, steps=60)
    normal = motion.impulses[:, :, 2] / DT
    weight = 9.81 * pin.computeTotalMass(case.model)
    assert np.all(np.isfinite(motion.configurations))
    assert normal.min() < 0.02 * weight < 0.2 * weight < normal.max()


# Errors


def test_unfinished_solve_says_so() -> None:
    case = robot_case("go2")
    step = replace(case.step(), newton=NewtonOptions(max_iterations=2))
    assert not step.solve(random_input(case, 1, gap=-0.02, speed=2.0)).converged


@pytest.mark.parametrize("name", STEP_INPUTS)
def test_input_that_is_not_finite_is_refused(name: str) -> None:
    case = robot_case("hopper")
    inputs = random_input(case, 0)
    poisoned = np.full_like(np.asarray(getattr(inputs, name)), np.nan)
    with pytest.raises(ValueError, match=f"{name} that is not finite"):
        case.step().solve(replace(inputs, **{name: poisoned}))


def test_input_of_wrong_shape_is_refused() -> None:
    case = robot_case("hopper")
    inputs = replace(random_input(case, 0), slack=np.zeros(6))
    with pytest.raises(ValueError, match=r"slack of shape \(6,\), expected \(3,\)"):
        case.step().solve(inputs)


def test_model_without_free_flyer_is_refused() -> None:
    case = robot_case("hopper")
    model = pin.buildSampleModelManipulator()
    with pytest.raises(ValueError, match="expected JointModelFreeFlyer"):
        replace(case.step(), model=model)


def test_potentials_must_match_contacts() -> None:
    case = robot_case("go2")
    with pytest.raises(ValueError, match="got 1 potentials for 4 contacts"):
        replace(case.step(), potentials=case.step().potentials[:1])
