# SPDX-License-Identifier: Apache-2.0
"""The simulated robot: its bodies are those of the model, its sensors say what is, its gaits stay upright."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import recordings  # finds the benchmarks
from numpy.typing import NDArray

from prime_ros.config import load_estimator_config
from prime_ros.estimation.full_information import solve
from prime_ros.exceptions import SimulationError
from prime_ros.experiments.run_metrics import run_metrics
from prime_ros.experiments.simulated import as_log
from prime_ros.measurements import Recording, align
from prime_ros.robot import FREE_BASE, Robot, load_robot
from prime_ros.simulation.engine import Engine, State
from prime_ros.simulation.gaits import Velocity
from prime_ros.simulation.mjcf import FEET
from prime_ros.simulation.payload import Payload, parse_payload
from prime_ros.simulation.recording import TruthTable, record
from prime_ros.simulation.simulator import STEP, Simulator

pytest.importorskip("mujoco")

Array = NDArray[np.float64]

ANYMAL = """
name: anymal
model: example-robot-data:anymal_c_simple_description/urdf/anymal.urdf
contacts:
  - {name: RH_FOOT, radius: 0.02}
  - {name: LH_FOOT, radius: 0.02}
  - {name: RF_FOOT, radius: 0.02}
  - {name: LF_FOOT, radius: 0.02}
joints: {armature: 0.1, damping: 0.1, friction: 0.1}
"""
PAYLOAD = Payload(3.0, (0.02, -0.03, 0.1))
GRAVITY = 9.81
G1 = """
name: g1
model: example-robot-data:g1_description/urdf/g1_29dof_rev_1_0.urdf
contacts:
  - {name: left, frame: left_ankle_roll_link, offset: [0.12, 0.03, -0.03], radius: 0.005}
  - {name: right, frame: right_ankle_roll_link, offset: [0.12, -0.03, -0.03], radius: 0.005}
joints: {armature: 0.01, damping: 0.1, friction: 0.2}
"""


@cache
def go2() -> Robot:
    return load_robot("go2")


def run(simulator: Simulator, seconds: float) -> tuple[Recording, TruthTable]:
    return record(simulator, seconds)


@pytest.mark.parametrize("name", ["go2", "g1"])
def test_mass_matrix_and_gravity_equal_those_of_pinocchio(name: str, tmp_path: Path) -> None:
    (tmp_path / "g1.yaml").write_text(G1)
    robot = load_robot(name if name == "go2" else tmp_path / "g1.yaml")
    model, data = robot.model, robot.model.createData()
    base = model.inertias[FREE_BASE] + PAYLOAD.inertia
    engine = Engine(robot, base, FEET["soft"], STEP)
    model = model.copy()
    model.inertias[FREE_BASE] = base
    random = np.random.default_rng(0)
    for _ in range(5):
        q = pin.integrate(model, pin.neutral(model), random.standard_normal(model.nv))
        state = State(q, random.standard_normal(model.nv))
        engine.state = state
        np.testing.assert_allclose(engine.state.q, state.q, atol=1e-12)
        np.testing.assert_allclose(engine.state.v, state.v, atol=1e-12)
        upper = np.triu(pin.crba(model, data, q))
        mass = upper + np.triu(upper, 1).T
        assert mass[6, 6] > robot.model.armature[6] > 0.0
        np.testing.assert_allclose(engine.mass_matrix(), mass, atol=1e-9)
        gravity = pin.computeGeneralizedGravity(model, data, q)
        np.testing.assert_allclose(engine.gravity_forces(), gravity, atol=1e-9)


def test_friction_acts_along_the_axes_it_is_stated_for() -> None:
    contacts = tuple(replace(contact, friction=np.array([0.8, 0.1])) for contact in go2().contacts)
    robot = replace(go2(), contacts=contacts)
    engine = Engine(robot, robot.model.inertias[FREE_BASE], FEET["stiff"], STEP)
    q = np.concatenate([[0, 0, 0, 0, 0, 0, 1.0], np.tile([0.0, 0.8, -1.5], 4)])
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q)
    foot = data.oMi[contacts[0].joint_id].act(contacts[0].offset)
    q[2] = contacts[0].radius - foot[2]
    sliding = np.zeros(18)
    sliding[:2] = 2.0
    engine.state = State(q, sliding)
    force = engine.step(np.zeros(12)).contact_force_W
    assert (force[:, 2] > 10.0).all()
    assert (force[:, 0] < -0.4 * force[:, 2]).all()
    assert (force[:, 1] < 0.0).all()
    assert (force[:, 1] >= -0.101 * force[:, 2]).all()


def test_payload_is_a_box_on_the_base() -> None:
    inertia = PAYLOAD.inertia
    assert inertia.mass == 3.0
    np.testing.assert_allclose(inertia.lever, PAYLOAD.position)
    assert inertia.inertia[0, 0] == pytest.approx(3.0 / 12 * (0.15**2 + 0.08**2))
    assert parse_payload("3@0.02,-0.03,0.1") == PAYLOAD
    assert parse_payload("2.5") == Payload(2.5)


@pytest.mark.parametrize(
    "text", ["", "x", "-1", "nan", "inf", "3@", "3@1,2", "3@a,b,c", "3@0,0,nan", "3@1,2,3,4"]
)
def test_payload_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(SimulationError, match="payload: got"):
        parse_payload(text)


@pytest.mark.parametrize("feet", FEET)
@pytest.mark.parametrize("gait", ["stand", "sway", "trot", "hop"])
def test_gait_stays_upright_and_feet_carry_the_weight(gait: str, feet: str) -> None:
    simulator = Simulator(go2(), gait, feet, PAYLOAD, seed=3)
    _, truth = run(simulator, 2.0)
    used = slice(300, None)  # after it has started to move
    forces = truth.contact_force_W[used]
    mass = sum(inertia.mass for inertia in go2().model.inertias) + PAYLOAD.mass
    speed = np.diff(truth.base_position_W[used, 2]) / STEP
    acceleration = (speed[-1] - speed[0]) / (len(forces) * STEP)  # of the base, nearly that of all
    mean = forces[..., 2].sum(axis=1).mean()
    assert mean == pytest.approx(mass * (GRAVITY + acceleration), rel=0.01)
    assert (forces[..., 2] >= 0.0).all()
    assert (np.hypot(forces[..., 0], forces[..., 1]) <= 0.8 * forces[..., 2] + 1e-3).all()
    standing = (forces[..., 2] > 5.0).sum(axis=1)
    expected = {"stand": {4}, "sway": {4}, "trot": {2, 4}, "hop": {0, 4}}[gait]
    assert expected <= set(standing.tolist())
    if gait in ("stand", "sway"):
        assert set(standing.tolist()) == {4}


def test_gaits_differ_by_seed_and_repeat_by_seed() -> None:
    first, again, other = (Simulator(go2(), "trot", seed=seed) for seed in (5, 5, 6))
    one, two, three = (run(simulator, 1.2) for simulator in (first, again, other))
    np.testing.assert_array_equal(one[1].joint_position, two[1].joint_position)
    recordings.assert_same(one[0], two[0])
    assert np.abs(one[1].joint_position - three[1].joint_position).max() > 1e-3
    assert np.abs(one[0].joints.position - three[0].joints.position).max() > 1e-3


def test_trot_goes_where_it_is_told() -> None:
    simulator = Simulator(go2(), "trot")
    simulator.command(Velocity(forward=0.3))
    _, truth = run(simulator, 3.0)
    forward, left, _ = truth.base_position_W[-1] - truth.base_position_W[-1001]
    assert forward == pytest.approx(0.6, abs=0.1)
    assert abs(left) < 0.1


def test_other_quadrupeds_walk_whatever_the_order_of_their_contacts(tmp_path: Path) -> None:
    path = tmp_path / "anymal.yaml"
    path.write_text(ANYMAL)
    simulator = Simulator(load_robot(path), "trot")
    simulator.command(Velocity(forward=0.3))
    _, truth = run(simulator, 2.0)
    assert truth.base_position_W[-1, 0] > 0.2
    forces = truth.contact_force_W[500:, :, 2]
    both = (forces[:, [0, 3]] > 5.0).all(axis=1) | (forces[:, [1, 2]] > 5.0).all(axis=1)
    assert both.mean() > 0.9  # right rear with left front, left rear with right front
    assert (forces > 5.0).all(axis=1).mean() < 0.5


def test_gaits_can_follow_one_another() -> None:
    simulator = Simulator(go2(), "trot")
    for gait in ("stand", "hop", "sway", "trot"):
        _, truth = run(simulator, 0.8)
        simulator.change_gait(gait)
    _, truth = run(simulator, 0.8)
    up = 1 - 2 * (truth.base_quat_xyzw[:, :2] ** 2).sum(axis=1)
    assert up.min() > np.cos(0.3)


def test_a_payload_put_on_while_running_is_carried_by_the_feet() -> None:
    simulator = Simulator(go2(), "stand", "soft")

    def carried() -> float:
        _, truth = run(simulator, 2.0)
        return float(truth.contact_force_W[500:, :, 2].sum(axis=1).mean())

    before = carried()
    position = simulator.truth().base_position_W
    simulator.add_payload(PAYLOAD)
    simulator.step()
    np.testing.assert_allclose(simulator.truth().base_position_W, position, atol=1e-4)
    assert simulator.truth().base_inertia.mass == pytest.approx(go2().model.inertias[1].mass + 3.0)
    assert carried() - before == pytest.approx(3.0 * GRAVITY, rel=0.01)
    simulator.remove_payload()
    assert simulator.payloads == ()
    assert carried() - before == pytest.approx(0.0, abs=0.01 * 3.0 * GRAVITY)


def test_sensors_without_noise_say_what_is() -> None:
    mounted = replace(
        go2(),
        R_BI=pin.rpy.rpyToMatrix(np.pi, 0.0, 0.3),
        T_BM=pin.SE3(pin.rpy.rpyToMatrix(0.1, 0.2, 0.3), np.array([0.1, 0.0, 0.05])),
    )
    simulator = Simulator(mounted, "sway", noise_free=True, mocap_rate=120.0)
    seen = 0
    for _ in range(600):
        simulator.step()
        sample, truth = simulator.sensors(), simulator.truth()
        assert sample.stamp_ns == truth.stamp_ns
        np.testing.assert_array_equal(sample.joint_position, truth.joint_position)
        np.testing.assert_array_equal(sample.joint_velocity, truth.joint_velocity)
        np.testing.assert_array_equal(sample.joint_torque, truth.joint_torque)
        np.testing.assert_allclose(
            sample.angular_velocity, mounted.R_BI.T @ truth.base_velocity_B[3:], atol=1e-9
        )
        if sample.mocap is not None:
            seen += 1
            base = pin.XYZQUATToSE3(np.concatenate([truth.base_position_W, truth.base_quat_xyzw]))
            body = pin.XYZQUATToSE3(np.concatenate([sample.mocap.position, sample.mocap.quat_xyzw]))
            assert body.isApprox(base * mounted.T_BM, 1e-9)
    assert seen == 144  # of 1.2 s at 120 Hz


def test_accelerometer_at_rest_feels_gravity_upwards() -> None:
    for R_BI, up in ((np.eye(3), 1.0), (pin.rpy.rpyToMatrix(np.pi, 0.0, 0.0), -1.0)):
        recording, _ = run(Simulator(replace(go2(), R_BI=R_BI), "stand", noise_free=True), 1.0)
        assert recording.imu is not None
        at_rest = recording.imu.linear_acceleration[-100:].mean(axis=0)
        np.testing.assert_allclose(at_rest, [0.0, 0.0, up * GRAVITY], atol=0.05)


def test_noise_has_the_stated_size_and_is_white() -> None:
    noisy, _ = run(Simulator(go2(), "stand", seed=1), 1.0)
    clean, _ = run(Simulator(go2(), "stand", seed=1, noise_free=True), 1.0)
    assert noisy.imu is not None
    assert clean.imu is not None
    noise = go2().noise
    pairs = [
        (noisy.joints.position - clean.joints.position, noise.joint_position[0]),
        (noisy.joints.velocity - clean.joints.velocity, noise.joint_velocity[0]),
        (noisy.joints.torque - clean.joints.torque, noise.joint_torque[0]),
        (noisy.imu.angular_velocity - clean.imu.angular_velocity, noise.angular_velocity),
        (noisy.imu.linear_acceleration - clean.imu.linear_acceleration, noise.linear_acceleration),
        (noisy.mocap.position - clean.mocap.position, noise.mocap_position),
    ]
    for error, std in pairs:
        assert error.std() == pytest.approx(std, rel=0.1)
        assert abs(np.mean(error[1:] * error[:-1])) < 0.1 * std**2
    assert len(noisy.joints.stamp_ns) == 500
    assert len(noisy.mocap.stamp_ns) == 100


def test_what_is_simulated_can_be_estimated() -> None:
    recording, truth = run(Simulator(go2(), "trot", "soft", PAYLOAD, seed=0), 6.0)
    config = load_estimator_config("pfie")
    measurements = align(recording, go2(), config)
    estimate = solve(measurements, go2(), config)
    figures = run_metrics(estimate, measurements, as_log(truth), go2(), config.contact_threshold)
    assert figures["converged"] == 1.0
    assert abs(figures["mass_error"]) < 0.15
    assert figures["force"] < 3.0
    assert figures["contact_agreement"] > 0.98
    assert max(abs(figures[f"com_{axis}_error"]) for axis in "xyz") < 3.0  # [mm]


class Limp:
    """A controller that does nothing."""

    def torque(self, time: float, state: State, contact_force_W: Array) -> Array:
        return np.zeros(len(state.v) - 6)


def test_a_robot_that_falls_ends_the_recording() -> None:
    initial = State(np.array([0, 0, 0.4, 0, 0, 0, 1.0, *np.tile([0.0, 0.8, -1.5], 4)]), np.zeros(18))
    simulator = Simulator(go2(), controller=Limp(), initial=initial)
    with pytest.raises(SimulationError, match="the robot fell at"):
        run(simulator, 3.0)
    assert simulator.fallen


def test_what_makes_no_sense_is_refused() -> None:
    three_legs = replace(go2(), contacts=go2().contacts[:3])
    with pytest.raises(SimulationError, match="3 contacts"):
        Simulator(three_legs)
    with pytest.raises(SimulationError, match=r"gait: got 'fly', expected one of stand"):
        Simulator(go2(), "fly")
    with pytest.raises(SimulationError, match="feet: got 'hard'"):
        Simulator(go2(), feet="hard")
    with pytest.raises(SimulationError, match="mocap rate"):
        Simulator(go2(), mocap_rate=0.0)
    with pytest.raises(SimulationError, match="initial"):
        Simulator(go2(), controller=Limp())
    with pytest.raises(SimulationError, match="seed: got -1"):
        Simulator(go2(), seed=-1)
    simulator = Simulator(go2(), "stand")
    with pytest.raises(SimulationError, match=r"step\(\) first"):
        simulator.sensors()
    with pytest.raises(SimulationError, match="finite"):
        simulator.command(Velocity(np.nan))
    with pytest.raises(SimulationError, match="gait: got 'fly'"):
        simulator.change_gait("fly")
    with pytest.raises(SimulationError, match="duration"):
        record(simulator, 0.0)


def test_without_mujoco_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(SimulationError, match=r"pip install 'prime_ros\[simulation\]'"):
        Simulator(go2(), "stand")
