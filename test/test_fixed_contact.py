# SPDX-License-Identifier: Apache-2.0
"""The baseline: rigid contact in the core, feet, contact sequence, posterior, and a solve."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest
from differences import assert_derivative, central_differences
from models import RobotCase, robot_case, stance_configuration
from numpy.typing import NDArray
from recordings import BAG

from prime_ros import _core, sources
from prime_ros.config import load_estimator_config
from prime_ros.estimation.estimate import Estimate
from prime_ros.estimation.estimators import solve
from prime_ros.estimation.fixed_contact.feet import feet_of
from prime_ros.estimation.fixed_contact.posterior import state_covariances
from prime_ros.estimation.fixed_contact.problem import passive_torque
from prime_ros.estimation.fixed_contact.schedule import foot_heights, standing_feet
from prime_ros.exceptions import RobotError
from prime_ros.measurements import KnotMeasurements, align
from prime_ros.robot import Contact, Robot, load_robot

Array = NDArray[np.float64]

RATE, DT = 40.0, 0.01  # [1/s], [s]
SOLE = np.array([0.17, 0.06])  # [m]


def core_feet(case: RobotCase, flat: bool) -> list[_core.RigidFoot]:
    """A point at every contact, or a sole on every link that has some."""
    feet = []
    for joint in dict.fromkeys(contact.joint_id for contact in case.contacts):
        members = [contact for contact in case.contacts if contact.joint_id == joint]
        for offset in [np.mean([c.offset for c in members], axis=0)] if flat else [members[0].offset]:
            foot = _core.RigidFoot()
            foot.joint, foot.placement, foot.friction = joint, pin.SE3(np.eye(3), offset), 0.3
            foot.size = SOLE if flat else np.zeros(2)
            feet.append(foot)
    return feet


@dataclass(frozen=True)
class Setup:
    """An action of a robot of which the first foot is in the air, and where it is tested."""

    case: RobotCase
    action: _core.ActionRigidContact
    state: _core.StateInertial
    x: Array
    u: Array
    torque: Array


@cache
def setup_of(robot: str, flat: bool) -> Setup:
    case, random = robot_case(robot), np.random.default_rng(3)
    nv, feet = case.model.nv, core_feet(robot_case(robot), flat)
    settings = _core.RigidSettings()
    settings.dt, settings.settle_rate, settings.cone_weight = DT, RATE, 0.5
    contact = _core.RigidContact(case.model, feet, list(case.identified_joints), settings)
    state = _core.StateInertial(case.model, contact.ntheta)
    y = _core.KnotMeasurement(nv, nv)
    y.configuration = pin.integrate(case.model, stance_configuration(case), 0.05 * random.standard_normal(nv))
    y.torque, y.base_time_offset = random.standard_normal(nv - 6), -0.004
    y.configuration_weight, y.velocity_weight = random.uniform(1.0, 1e3, (2, nv))
    y.control_weight = random.uniform(0.5, 20.0, nv)
    standing = sum(1 << i for i in range(len(feet)) if i or len(feet) == 1)
    q = pin.integrate(case.model, stance_configuration(case), 0.05 * random.standard_normal(nv))
    theta = contact.nominal_theta() + 0.05 * random.standard_normal(contact.ntheta)
    x = np.concatenate([q, 0.5 * random.standard_normal(nv), theta])
    action = _core.ActionRigidContact(state, contact, standing, y)
    return Setup(case, action, state, x, 5.0 * random.standard_normal(nv), y.torque)


robots = pytest.mark.parametrize(
    ("robot", "flat"), [("hopper", False), ("go2", False), ("g1", True)], ids=["hopper", "go2", "g1"]
)


@robots
def test_step_obeys_the_equations_of_motion(robot: str, flat: bool) -> None:
    s = setup_of(robot, flat)
    model, data = s.case.model.copy(), s.case.model.createData()
    nq, nv = model.nq, model.nv
    q, v, theta = np.split(s.x, [nq, nq + nv])
    for joint, parameters in zip(s.case.identified_joints, theta.reshape(-1, 10), strict=True):
        model.inertias[joint] = pin.Inertia.FromDynamicParameters(
            pin.LogCholeskyParameters(parameters).toDynamicParameters()
        )
    d = s.action.createData()
    s.action.calc(d, s.x, s.u)
    acceleration = (d.xnext[nq : nq + nv] - v) / DT
    wrench = s.action.wrenches(s.x, s.u)[0].reshape(6, -1)
    force = s.u + np.concatenate([np.zeros(6), s.torque])
    frame = pin.ReferenceFrame.LOCAL if flat else pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    for i, foot in enumerate(core_feet(s.case, flat)):
        pin.forwardKinematics(model, data, q, v, acceleration)
        pin.computeJointJacobians(model, data, q)
        jacobian = pin.getFrameJacobian(model, data, foot.joint, foot.placement, frame)
        force += jacobian.T @ wrench[:, i]
        if not wrench[:, i].any():
            continue
        moving = pin.getFrameVelocity(model, data, foot.joint, foot.placement, frame).vector
        change = pin.getFrameAcceleration if flat else pin.getFrameClassicalAcceleration
        rate_of_change = change(model, data, foot.joint, foot.placement, frame).vector
        rows = slice(0, 6 if flat else 3)
        np.testing.assert_allclose(rate_of_change[rows], -RATE * moving[rows], atol=1e-8)
    inertial = pin.rnea(model, data, q, v, acceleration)
    np.testing.assert_allclose(inertial, force, atol=1e-7)
    assert np.count_nonzero(wrench.any(axis=0)) == max(1, len(core_feet(s.case, flat)) - 1)


@robots
def test_derivatives_of_the_step(robot: str, flat: bool) -> None:
    s = setup_of(robot, flat)
    d = s.action.createData()
    s.action.calcDiff(d, s.x, s.u)
    ndx, nv = s.state.integrate(s.x, np.zeros(2 * s.case.model.nv + s.state.ntheta)).size - 1, s.case.model.nv

    def next_state(dx: Array, du: Array) -> Array:
        data = s.action.createData()
        s.action.calc(data, s.state.integrate(s.x, dx), s.u + du)
        return s.state.diff(d.xnext, data.xnext)

    s.action.calc(d, s.x, s.u)
    still_x, still_u = np.zeros(ndx), np.zeros(nv)
    assert_derivative(d.Fx, central_differences(lambda dx: next_state(dx, still_u), ndx, 1e-4), 1e-6)
    assert_derivative(d.Fu, central_differences(lambda du: next_state(still_x, du), nv, 1e-2), 1e-6)


@robots
def test_derivatives_of_the_forces(robot: str, flat: bool) -> None:
    s = setup_of(robot, flat)
    _, by_x, by_u = (np.array(each) for each in s.action.wrenches(s.x, s.u))

    def wrench(x: Array, u: Array) -> Array:
        return np.array(s.action.wrenches(x, u)[0]).ravel(order="F")

    numeric = central_differences(lambda dx: wrench(s.state.integrate(s.x, dx), s.u), by_x.shape[1], 1e-4)
    assert_derivative(by_x, numeric, 1e-6)
    assert_derivative(by_u, central_differences(lambda du: wrench(s.x, s.u + du), len(s.u), 1e-2), 1e-6)


@robots
def test_gradient_of_the_cost(robot: str, flat: bool) -> None:
    s = setup_of(robot, flat)
    d = s.action.createData()
    s.action.calcDiff(d, s.x, s.u)
    value = float(d.cost)

    def cost(x: Array, u: Array) -> Array:
        data = s.action.createData()
        s.action.calc(data, x, u)
        return np.array([data.cost])

    assert cost(s.x, s.u)[0] == pytest.approx(value, rel=1e-12)
    by_x = central_differences(lambda dx: cost(s.state.integrate(s.x, dx), s.u), len(d.Lx), 1e-5)
    by_u = central_differences(lambda du: cost(s.x, s.u + du), len(d.Lu), 1e-3)
    assert_derivative(d.Lx, by_x[0], 1e-5)
    assert_derivative(d.Lu, by_u[0], 1e-5)
    np.testing.assert_allclose(d.Lxx, d.Lxx.T, atol=1e-9 * np.abs(d.Lxx).max())


def test_feet_that_do_not_fit_are_refused() -> None:
    case = robot_case("go2")
    foot = core_feet(case, False)[0]
    foot.joint = case.model.njoints
    with pytest.raises(ValueError, match="foot on joint 14 of 14"):
        _core.RigidContact(case.model, [foot], [], _core.RigidSettings())


@cache
def go2() -> Robot:
    return load_robot("go2")


def soled(robot: Robot, corners: list[tuple[float, float, float]]) -> Robot:
    """The robot with contacts at corners below its first calf."""
    joint = robot.contacts[0].joint_id
    contacts = [
        Contact(f"corner {i}", joint, np.array(corner), 0.005, np.array([0.8, 0.6]), "foot")
        for i, corner in enumerate(corners)
    ]
    return replace(robot, contacts=tuple(contacts))


CORNERS = [(-0.05, 0.025, -0.2), (-0.05, -0.025, -0.2), (0.12, 0.03, -0.2), (0.12, -0.03, -0.2)]


def test_a_sole_is_in_the_middle_of_its_contacts() -> None:
    (foot,) = feet_of(soled(go2(), CORNERS))
    np.testing.assert_allclose(foot.size, [0.17, 0.06])
    np.testing.assert_allclose(foot.placement.translation, [0.035, 0.0, -0.205], atol=1e-12)
    np.testing.assert_allclose(foot.placement.rotation, np.eye(3), atol=1e-12)
    assert foot.friction == 0.6


def test_forces_of_a_sole_add_up_to_its_wrench() -> None:
    (foot,) = feet_of(soled(go2(), CORNERS))
    wrench = np.array([3.0, -2.0, 100.0, 1.0, -4.0, 0.5])
    forces = (foot.spread @ wrench).reshape(4, 3)
    arms = np.array(CORNERS) - [0.035, 0.0, -0.2]
    np.testing.assert_allclose(forces.sum(axis=0), wrench[:3], atol=1e-12)
    np.testing.assert_allclose(np.cross(arms, forces).sum(axis=0), wrench[3:], atol=1e-12)


def test_contacts_on_a_line_are_no_sole() -> None:
    with pytest.raises(RobotError, match="on a line"):
        feet_of(soled(go2(), CORNERS[:2]))


def test_a_low_foot_stands() -> None:
    robot, config = go2(), load_estimator_config("pfie", ["fixed_contact.smoothing=0"])
    feet = feet_of(robot)
    q = np.tile(stance_configuration(robot_case("go2")), (20, 1))
    q[10:, 7:10] = [0.0, 1.2, -2.4]  # one leg is drawn up
    standing, ground = standing_feet(q, feet, robot, config)
    heights = foot_heights(q, feet, robot)
    assert heights[15, 0] - ground > config.fixed_contact.height
    assert standing[:10].all()
    assert standing[15].tolist() == [False, True, True, True]


def test_passive_torque_brakes() -> None:
    robot = go2()
    rates = np.full((3, 12), 2.0)
    expected = 2.0 * robot.joint_damping + robot.joint_friction
    np.testing.assert_allclose(passive_torque(rates, robot)[0], expected, rtol=1e-3)
    np.testing.assert_allclose(passive_torque(-rates, robot), -passive_torque(rates, robot))


def test_covariances_are_those_of_the_dense_problem() -> None:
    random, n, m, steps = np.random.default_rng(0), 3, 2, 4
    actions = [SimpleNamespace(Fx=np.eye(n), Fu=np.eye(n), Lxx=np.zeros((n, n)), Luu=2.0 * np.eye(n))]
    for _ in range(steps):
        root = random.standard_normal((n, n))
        actions.append(
            SimpleNamespace(
                Fx=random.standard_normal((n, n)),
                Fu=random.standard_normal((n, m)),
                Lxx=root @ root.T,
                Luu=np.diag(random.uniform(1.0, 3.0, m)),
            )
        )
    terminal = np.eye(n)
    gains, curvatures = riccati(actions, terminal)
    maps, states = [np.zeros((n, n + steps * m))], []
    hessian = np.zeros((n + steps * m, n + steps * m))
    column = 0
    for action in actions:
        size = action.Fu.shape[1]
        select = np.zeros((size, hessian.shape[0]))
        select[:, column : column + size] = np.eye(size)
        hessian += maps[-1].T @ action.Lxx @ maps[-1] + select.T @ action.Luu @ select
        maps.append(action.Fx @ maps[-1] + action.Fu @ select)
        column += size
    hessian += maps[-1].T @ terminal @ maps[-1]
    states = [each @ np.linalg.inv(hessian) @ each.T for each in maps[1:]]
    found = list(state_covariances(actions, gains, curvatures))
    for expected, covariance in zip(states, found, strict=True):
        np.testing.assert_allclose(covariance, expected, rtol=1e-9, atol=1e-12)


def riccati(actions: list[SimpleNamespace], terminal: Array) -> tuple[list[Array], list[Array]]:
    """Gains and control curvatures of the backward pass, without cross terms."""
    value, gains, curvatures = terminal, [], []
    for action in reversed(actions):
        curvature = action.Luu + action.Fu.T @ value @ action.Fu
        gain = np.linalg.solve(curvature, action.Fu.T @ value @ action.Fx)
        value = action.Lxx + action.Fx.T @ value @ action.Fx - gain.T @ curvature @ gain
        gains.append(gain)
        curvatures.append(curvature)
    return gains[::-1], curvatures[::-1]


@cache
def measurements() -> KnotMeasurements:
    config = load_estimator_config("pfie")
    return align(sources.load(BAG).cropped(3.0, 1.5), go2(), config)


@cache
def estimate() -> Estimate:
    return solve(measurements(), go2(), load_estimator_config("pfie", ["estimator=fixed-contact"]))


def test_solves_a_recording() -> None:
    found = estimate()
    assert found.certificate.converged, found.certificate.reason
    assert set(np.unique(found.contact_probability)) == {0.0, 1.0}
    in_the_air = found.contact_probability == 0.0
    assert not found.contact_force_W[in_the_air].any()
    weight = 9.81 * (sum(inertia.mass for inertia in go2().model.inertias) + 3.0)
    assert found.contact_force_W[..., 2].sum(axis=1).mean() == pytest.approx(weight, rel=0.1)
    for name, std in found.std.items():
        assert std.shape[0] == len(found.stamp_ns), name
        assert np.isfinite(std).all(), name
    base = found.links["base"]
    # On soft feet, which rigid contact cannot explain, it finds a part of the 3 kg.
    assert 0.5 < base.estimate.mass - base.nominal.mass < 3.0
    assert 0.0 < base.std.mass < 0.2


def test_identifies_nothing_if_told_so() -> None:
    config = load_estimator_config("pfie", ["estimator=fixed-contact", "links=[]"])
    found = solve(measurements(), go2(), config)
    assert dict(found.links) == {}
    assert found.certificate.cost > estimate().certificate.cost
