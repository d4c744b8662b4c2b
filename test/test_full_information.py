# SPDX-License-Identifier: Apache-2.0
"""Full-information estimation: it recovers the truth, knows how well, and says when it failed."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from core import MAX_ITERATIONS
from errors import rms, turn
from numpy.typing import NDArray
from simulation import GROUND_HEIGHT, PAYLOAD, Truth, config, go2, loaded, measure, trot

from prime_ros import _core
from prime_ros.config import EstimatorConfig
from prime_ros.estimation import reference
from prime_ros.estimation.contact import ContactStep, NewtonOptions, SmoothedCone, StepInput
from prime_ros.estimation.estimate import Certificate, Estimate
from prime_ros.estimation.full_information import Progress, solve
from prime_ros.estimation.gate import Gate
from prime_ros.estimation.gauss_newton import solve_gauss_newton
from prime_ros.estimation.problem import build_problem, contact_step
from prime_ros.estimation.slack import slack_weight
from prime_ros.exceptions import RobotError
from prime_ros.measurements import KnotMeasurements

Array = NDArray[np.float64]

STEPS = 100


@cache
def simulated(seed: int = 0, steps: int = STEPS) -> tuple[Truth, KnotMeasurements]:
    truth = trot(steps, seed)
    return truth, measure(truth, 100 + seed)


@cache
def estimated(seed: int = 0) -> tuple[Truth, Estimate]:
    truth, measurements = simulated(seed)
    return truth, solve(measurements, go2(), config())


# The truth


def test_payload_and_ground_are_found_where_the_model_lacks_them() -> None:
    truth, estimate = estimated()
    link = estimate.links["base"]
    assert estimate.certificate.converged
    assert link.nominal.mass == pytest.approx(truth.base.mass - PAYLOAD.mass, rel=1e-9)
    assert link.std.mass < 0.05
    assert np.all(link.std.com < 0.005)
    assert estimate.std_ground_height < 1e-3
    assert abs(link.estimate.mass - truth.base.mass) < 3.0 * link.std.mass
    assert np.all(np.abs(link.estimate.com - truth.base.lever) < 3.0 * link.std.com)
    assert abs(estimate.ground_height - GROUND_HEIGHT) < 3.0 * estimate.std_ground_height


def test_forces_are_found() -> None:
    truth, estimate = estimated()
    error = estimate.contact_force_W - truth.force_W
    assert truth.force_W[..., 2].max() > 100.0
    assert rms(error) < 2.0
    whitened = error / estimate.std["contact_force_W"]
    assert 0.8 < np.sqrt((whitened**2).mean()) < 1.2
    loaded_foot = truth.force_W[..., 2] > 5.0
    assert np.mean((estimate.contact_probability > 0.5) == loaded_foot) > 0.98


def test_every_estimated_channel_is_better_than_its_sensor() -> None:
    truth, estimate = estimated()
    m, k = simulated()[1], slice(0, STEPS)
    q, v = truth.configuration[k], truth.velocity[k]
    pairs: dict[str, tuple[Array, Array]] = {
        "base position": (estimate.base_position_W - q[:, :3], m.base_position_W[k] - q[:, :3]),
        "base orientation": (turn(estimate.base_quat_xyzw, q[:, 3:7]), turn(m.base_quat_xyzw[k], q[:, 3:7])),
        "angular velocity": (
            estimate.base_velocity_B[:, 3:] - v[:, 3:6],
            m.base_angular_velocity_B[k] - v[:, 3:6],
        ),
        "joint position": (estimate.joint_position - q[:, 7:], m.joint_position[k] - q[:, 7:]),
        "joint velocity": (estimate.joint_velocity - v[:, 6:], m.joint_velocity[k] - v[:, 6:]),
        "joint torque": (estimate.joint_torque - truth.torque, m.joint_torque[k] - truth.torque),
    }
    for name, (estimated_error, raw_error) in pairs.items():
        assert rms(estimated_error) < 0.9 * rms(raw_error), name


def test_claimed_uncertainty_is_that_of_the_errors() -> None:
    # Normalised errors of mass, com (3) and ground height over 10 seeds. Their mean square has expectation 1
    # and, were all 50 independent, a standard deviation of sqrt(2 / 50) = 0.2. Of the mass alone, over 10
    # seeds, the root mean square has a standard deviation of 0.22.
    normalised = []
    for seed in range(10):
        truth, estimate = estimated(seed)
        assert estimate.certificate.converged
        link = estimate.links["base"]
        error = np.concatenate(
            [
                [link.estimate.mass - truth.base.mass],
                link.estimate.com - truth.base.lever,
                [estimate.ground_height - GROUND_HEIGHT],
            ]
        )
        normalised.append(
            error / np.concatenate([[link.std.mass], link.std.com, [estimate.std_ground_height]])
        )
    assert 0.5 < np.mean(np.square(normalised)) < 1.6
    assert 1.0 / 1.5 < np.sqrt(np.mean(np.square(normalised), axis=0))[0] < 1.5


def test_chi_square_of_every_sensor_is_one() -> None:
    # Summed over 4 seeds. Chi-square with n degrees of freedom has a relative std of sqrt(2 / n).
    reports = [estimated(seed)[1].sensors for seed in range(4)]
    for name in reports[0]:
        dof = sum(report[name].dof for report in reports)
        ratio = sum(report[name].chi_square for report in reports) / dof
        assert abs(ratio - 1.0) < 4.0 * np.sqrt(2.0 / dof), (name, ratio, dof)


# Optimality


def gaps_by_the_twin(states: Array, controls: Array, m: KnotMeasurements, settings: EstimatorConfig) -> Array:
    """Defects of a trajectory with the base identified, by the NumPy twin, shape (K, 2 nv)."""
    robot = go2()
    model, nq, nv = robot.model, robot.model.nq, robot.model.nv
    kappa = settings.contact.kappa_stages[-1]
    twin = ContactStep(
        model=model,
        contacts=robot.contacts,
        potentials=[SmoothedCone(tuple(contact.friction), kappa) for contact in robot.contacts],
        dt=settings.dt,
        joint_damping=robot.joint_damping,
        joint_friction=robot.joint_friction,
        friction_velocity=robot.friction_velocity,
        identified_joints=(1,),
        newton=NewtonOptions(max_iterations=MAX_ITERATIONS),
    )
    gaps = []
    for x, following, u, torque in zip(states[:-1], states[1:], controls, m.joint_torque, strict=False):
        q, v, theta = np.split(x, [nq, nq + nv])
        force = u[:nv] + np.concatenate([np.zeros(6), torque])
        result = twin.solve(
            StepInput(q, v, force, u[nv:], theta[:-1], theta[-1]), guess=following[nq : nq + nv]
        )
        assert result.converged
        moved = pin.integrate(model, q, settings.dt * result.velocity)
        configuration_gap = pin.difference(model, following[:nq], moved)
        gaps.append(np.concatenate([configuration_gap, result.velocity - following[nq : nq + nv]]))
    return np.array(gaps)


def solved(m: KnotMeasurements, settings: EstimatorConfig) -> tuple[_core.GaussNewton, Certificate]:
    """The solver at its last iterate, with the base identified, and its certificate."""
    problem = build_problem(m, go2(), settings)
    solver = _core.GaussNewton(problem.step, problem.knots, problem.prior, problem.prior_information)
    solver.set_trajectory(problem.states, problem.controls)
    certificate = solve_gauss_newton(
        problem.step, solver, Gate(problem.knots, settings), settings, lambda _: None
    )
    assert certificate.converged
    return solver, certificate


def test_segments_of_a_long_recording_change_nothing() -> None:
    # Ends of segments fall on all kinds of knots; 1 is the worst case, 7 does not divide the steps.
    measurements, settings = simulated(steps=40)[1], config()
    problem = build_problem(measurements, go2(), settings)
    solution, _ = solved(measurements, settings)
    found = []
    for segment in (4096, 1, 7, 40):
        solver = _core.GaussNewton(
            problem.step, problem.knots, problem.prior, problem.prior_information, 1, segment
        )
        solver.set_trajectory(problem.states, problem.controls)
        solver.set_kappa(100.0)
        first = [solver.iterate().cost for _ in range(2)]
        moved = solver.states
        solver.set_trajectory(solution.states, solution.controls)
        solver.set_kappa(settings.contact.kappa_stages[-1])
        found.append((first, moved, solver.posterior()))
    (costs, states, posterior), *others = found
    for other_costs, other_states, other in others:
        np.testing.assert_allclose(other_costs, costs, rtol=1e-7)
        np.testing.assert_allclose(other_states, states, atol=1e-7)
        assert other.expected == pytest.approx(posterior.expected, rel=1e-3, abs=1e-9)
        for name in ("position_std", "configuration_std", "velocity_std", "control_std", "impulse_std"):
            np.testing.assert_allclose(getattr(other, name), getattr(posterior, name), rtol=1e-8)
        for name in ("theta_covariance", "configuration_leverage", "control_leverage"):
            np.testing.assert_allclose(getattr(other, name), getattr(posterior, name), rtol=1e-7, atol=1e-12)


def test_certified_trajectory_obeys_the_dynamics_of_the_twin() -> None:
    measurements, settings = simulated()[1], config()
    solver, certificate = solved(measurements, settings)
    assert certificate.largest_gap <= settings.solver.gap_tolerance
    states, controls = np.asarray(solver.states).T, np.asarray(solver.controls).T
    assert np.abs(gaps_by_the_twin(states, controls, measurements, settings)).max() <= 1e-6
    np.testing.assert_array_equal(states[1:, 37:], np.tile(states[0, 37:], (STEPS, 1)))  # one theta
    assert np.max(solver.gaps()) == pytest.approx(certificate.largest_gap, abs=1e-12)
    solver.iterate()
    assert solver.evaluate().cost == pytest.approx(certificate.cost, rel=2e-6)


def rolled_out(x: Array, controls: Array, m: KnotMeasurements, settings: EstimatorConfig) -> Array:
    """Trajectory from a first state (q, v, theta) under given controls (K, nu), shape (K + 1, nx)."""
    nq, nv = go2().model.nq, go2().model.nv
    step = contact_step(go2(), settings)
    step.kappa = settings.contact.kappa_stages[-1]
    data, states = _core.ContactStepData(step), [x]
    for u, torque in zip(controls, m.joint_torque, strict=False):
        q, v, theta = np.split(states[-1], [nq, nq + nv])
        step.solve(data, q, v, u[:nv] + np.concatenate([np.zeros(6), torque]), u[nv:], theta)
        moved = pin.integrate(go2().model, q, settings.dt * data.v_next)
        states.append(np.concatenate([moved, data.v_next, theta]))
    return np.array(states)


def test_cost_is_stationary_among_motions_that_obey_the_dynamics() -> None:
    # In units of standard deviations, the gradient is nearly zero and the curvature is not.
    measurements, settings = simulated(steps=40)[1], config("solver.cost_tolerance=1e-9")
    solver, certificate = solved(measurements, settings)
    states, controls = np.asarray(solver.states).T.copy(), np.asarray(solver.controls).T.copy()
    posterior, random = solver.posterior(), np.random.default_rng(3)
    nq, nv = go2().model.nq, go2().model.nv
    tangent_std = np.concatenate(
        [
            posterior.configuration_std[:, 0],
            posterior.velocity_std[:, 0],
            np.sqrt(np.diag(posterior.theta_covariance)),
        ]
    )

    def cost(dx: Array, du: Array) -> float:
        q = pin.integrate(go2().model, states[0, :nq], dx[:nv])
        moved = rolled_out(
            np.concatenate([q, states[0, nq:] + dx[nv:]]), controls + du, measurements, settings
        )
        solver.set_trajectory(moved.T, (controls + du).T)
        report = solver.evaluate()
        assert report.largest_gap < 1e-6
        return float(report.cost)

    assert cost(np.zeros(len(tangent_std)), np.zeros_like(controls)) == pytest.approx(
        certificate.cost, rel=1e-9
    )
    for trial in range(12):
        dx, du = np.zeros(len(tangent_std)), np.zeros_like(controls)
        if trial % 2:
            dx = 0.03 * tangent_std * (np.arange(len(dx)) == random.integers(len(dx)))
        else:
            k, i = random.integers(len(du)), random.integers(du.shape[1])
            du[k, i] = 0.03 * posterior.control_std[i, k]
        up, down = cost(dx, du) - certificate.cost, cost(-dx, -du) - certificate.cost
        assert up + down > 0.0
        assert abs(up - down) < 0.2 * (up + down)


def test_estimated_motion_is_consistent_with_its_velocity() -> None:
    estimate, model = estimated()[1], go2().model
    q = np.hstack([estimate.base_position_W, estimate.base_quat_xyzw, estimate.joint_position])
    v = np.hstack([estimate.base_velocity_B, estimate.joint_velocity])
    for here, following, velocity in zip(q[:-1], q[1:], v[1:], strict=True):
        moved = pin.integrate(model, here, estimate.dt * velocity)
        np.testing.assert_allclose(pin.difference(model, following, moved), 0.0, atol=1e-6)


def test_gauss_newton_and_fddp_reach_the_same_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "STOP", 1e-6)  # both go on to where only rounding separates them
    measurements, tight = simulated(steps=40)[1], "solver.cost_tolerance=1e-9"
    one = solve(measurements, go2(), config(tight))
    other = solve(measurements, go2(), config(tight, "solver.name=fddp"))
    assert one.certificate.converged
    assert other.certificate.converged
    assert other.certificate.cost == pytest.approx(one.certificate.cost, rel=1e-6)
    for name in ("base_position_W", "base_velocity_B", "joint_position", "joint_velocity", "contact_force_W"):
        difference = np.abs(getattr(one, name) - getattr(other, name))
        assert np.all(difference < 0.01 * one.std[name]), name
    difference = one.links["base"].estimate.mass - other.links["base"].estimate.mass
    assert abs(difference) < 0.01 * one.links["base"].std.mass


@pytest.mark.parametrize("error", [-0.02, 0.02])
def test_wrong_prior_of_the_ground_changes_nothing(error: float) -> None:
    slack = "slack={tangential: 0.2, normal: 0.4}"
    estimate = solve(simulated()[1], go2(), config(slack))
    start = GROUND_HEIGHT + error
    settings = config(slack, f"ground_height.initial={start}")
    other = solve(simulated()[1], go2(), settings)
    assert estimate.certificate.converged
    assert other.certificate.converged
    # The prior mean moved with the start, by far less than the data say.
    assert abs(other.ground_height - estimate.ground_height) < 0.05 * estimate.std_ground_height
    difference = np.abs(other.contact_force_W - estimate.contact_force_W)
    assert np.all(difference < 0.1 * estimate.std["contact_force_W"])
    moved = other.links["base"].estimate.mass - estimate.links["base"].estimate.mass
    assert abs(moved) < 0.05 * estimate.links["base"].std.mass


def test_solving_twice_gives_the_same_estimate() -> None:
    estimate = estimated()[1]
    again = solve(simulated()[1], go2(), config("solver.threads=1"))
    np.testing.assert_allclose(again.contact_force_W, estimate.contact_force_W, rtol=1e-6, atol=1e-6)


# Identification


def test_nothing_is_identified_when_not_asked() -> None:
    estimate = solve(simulated(steps=40)[1], loaded(go2()), config("links=[]"))
    assert estimate.certificate.converged
    assert estimate.links == {}
    assert_finite(estimate)
    assert rms(estimate.contact_force_W - simulated(steps=40)[0].force_W) < 2.5


def test_two_links_are_identified_at_once() -> None:
    heavy = loaded(loaded(go2()), "FL_calf", pin.Inertia(0.3, np.array([0.0, 0.0, -0.15]), 1e-4 * np.eye(3)))
    truth = trot(STEPS, 3, heavy)
    estimate = solve(measure(truth, 103), go2(), config("links=[base, FL_calf]"))
    assert estimate.certificate.converged
    assert set(estimate.links) == {"base", "FL_calf"}
    for name, link in estimate.links.items():
        body = heavy.model.inertias[go2().joint_of_link(name)]
        assert abs(link.estimate.mass - body.mass) < 3.0 * link.std.mass, name
        assert np.all(np.abs(link.estimate.com - body.lever) < 3.0 * link.std.com), name
    calf = estimate.links["FL_calf"]
    assert calf.estimate.mass - calf.nominal.mass > 3.0 * calf.std.mass


def test_unknown_link_is_refused_with_the_known_ones() -> None:
    with pytest.raises(RobotError, match="FL_calff"):
        solve(simulated(steps=40)[1], go2(), config("links=[FL_calff]"))


# Missing measurements


def assert_finite(estimate: Estimate) -> None:
    for name, std in estimate.std.items():
        assert np.all(np.isfinite(std)), name
        assert np.all(np.isfinite(getattr(estimate, name))), name


def masked(m: KnotMeasurements, rows: slice, joint: int | None, **values: float) -> KnotMeasurements:
    """Measurements that lack some channels in some rows; the values left there are wrong by `values`."""
    changes: dict[str, Any] = {}
    for std_name, value in values.items():
        std, measured = getattr(m, std_name).copy(), getattr(m, std_name.removeprefix("std_")).copy()
        columns = ... if joint is None else joint
        std[rows, columns] = np.inf
        measured[rows, columns] += value
        changes |= {std_name: std, std_name.removeprefix("std_"): measured}
    return replace(m, **changes)


GAP = slice(40, 60)


def without_torque(m: KnotMeasurements) -> KnotMeasurements:
    return masked(m, GAP, 4, std_joint_torque=1.0)


def without_joint(m: KnotMeasurements) -> KnotMeasurements:
    return masked(m, GAP, 4, std_joint_position=0.05, std_joint_velocity=0.5)


def without_mocap(m: KnotMeasurements) -> KnotMeasurements:
    position, rotation = m.std_base_position.copy(), m.std_base_rotation.copy()
    position[GAP] = rotation[GAP] = np.inf
    return replace(m, std_base_position=position, std_base_rotation=rotation)


@pytest.mark.parametrize(
    ("gap", "names", "column"),
    [
        (without_torque, ["joint_torque"], 4),
        (without_joint, ["joint_position", "joint_velocity"], 4),
        (without_mocap, ["base_position_W", "base_quat_xyzw"], 0),
    ],
)
def test_gap_keeps_the_estimate_finite_and_less_certain(gap: Any, names: list[str], column: int) -> None:
    truth, whole = estimated()
    estimate = solve(gap(simulated()[1]), go2(), config())
    assert estimate.certificate.converged
    assert_finite(estimate)
    inside = slice(GAP.start + 3, GAP.stop - 3)
    for name in names:
        # Gyroscope and feet hold the orientation almost alone.
        factor = 1.0 if name == "base_quat_xyzw" else 1.1
        assert np.all(estimate.std[name][inside, column] > factor * whole.std[name][inside, column]), name
        far = slice(0, 20)
        np.testing.assert_allclose(estimate.std[name][far, column], whole.std[name][far, column], rtol=0.1)
    error = estimate.contact_force_W - truth.force_W
    assert np.sqrt(np.mean((error / estimate.std["contact_force_W"]) ** 2)) < 1.3


def test_recording_without_imu_is_estimated() -> None:
    m = simulated()[1]
    bare = replace(
        m,
        std_base_angular_velocity=np.full_like(m.std_base_angular_velocity, np.inf),
        base_angular_velocity_B=np.zeros_like(m.base_angular_velocity_B),
    )
    estimate = solve(bare, go2(), config())
    assert estimate.certificate.converged
    assert "gyroscope" not in estimate.sensors
    assert np.mean(estimate.std["base_velocity_B"]) > np.mean(estimated()[1].std["base_velocity_B"])


# Statuses


def test_the_cost_falls_from_a_start_far_away() -> None:
    # Feet that hang half a metre in the air, with hardly any slack and all but rigid contact.
    m = simulated(steps=40)[1]
    problem = build_problem(m, go2(), config("slack={tangential: 1e-4, normal: 1e-4}"))
    states = problem.states.copy()
    states[-1] -= 0.5
    solver = _core.GaussNewton(
        problem.step, problem.knots, problem.prior, problem.prior_information, threads=1
    )
    solver.set_trajectory(states, problem.controls)
    solver.set_kappa(1e7)
    costs = []
    for _ in range(60):
        before = solver.states.copy()
        report = solver.iterate()
        assert report.accepted == (report.step_length > 0.0)
        assert report.accepted or np.array_equal(solver.states, before)
        assert report.largest_gap < 1e-6
        costs.append(report.cost)
    # The first step, from states that contradict each other, is taken whatever it costs.
    assert np.all(np.diff(costs) <= 1e-9 * np.abs(costs[1:]))
    assert costs[-1] < 0.1 * costs[0]
    assert report.relative_change < 1e-6


def test_too_few_iterations_are_flagged_with_a_reason() -> None:
    estimate = solve(simulated(steps=40)[1], go2(), config("solver.max_iterations=3"))
    assert not estimate.certificate.converged
    assert "3 iterations" in estimate.certificate.reason
    assert "solver.max_iterations" in estimate.certificate.reason
    assert estimate.certificate.iterations == 3


def test_progress_counts_iterations_through_the_stages() -> None:
    seen: list[Progress] = []
    estimate = solve(simulated(steps=40)[1], go2(), config(), seen.append)
    assert [p.iteration for p in seen] == list(range(1, estimate.certificate.iterations + 1))
    assert [p.stage for p in seen] == sorted(p.stage for p in seen)
    assert {p.stage: p.kappa for p in seen} == dict(enumerate(config().contact.kappa_stages, start=1))
    assert seen[-1].cost == estimate.certificate.cost


def test_interruption_passes_through() -> None:
    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve(simulated(steps=40)[1], go2(), config(), interrupt)


def test_states_that_contradict_each_other_are_mended_by_the_first_step() -> None:
    problem = build_problem(simulated(steps=40)[1], go2(), config())
    solver = _core.GaussNewton(problem.step, problem.knots, problem.prior, problem.prior_information)
    solver.set_trajectory(problem.states, problem.controls)
    assert solver.evaluate().largest_gap > 0.1
    for _ in range(3):
        report = solver.iterate()
        assert report.accepted
        assert report.largest_gap < 1e-9
    solver.set_kappa(2000.0)  # other impulses: the controls are found anew before the next step
    assert solver.iterate().largest_gap < 1e-9


def test_feet_that_move_on_landing_have_a_wide_slack() -> None:
    truth, measurements = simulated(steps=40)
    settings = config("slack={tangential: 0.02, normal: 0.05, change: 0.3}")
    problem = build_problem(measurements, go2(), settings)
    moved = problem.states.copy()
    nq, nv = go2().model.nq, go2().model.nv
    moved[nq : nq + nv] = 0.0
    still = slack_weight(problem.step, moved, settings).reshape(-1, 3, 40)
    np.testing.assert_allclose(still[:, :2], 0.02**-2.0)
    np.testing.assert_allclose(still[:, 2], 0.05**-2.0)
    moved[nq + 2, 21:] = -0.5  # the base starts to fall within step 20, and all feet with it
    fallen = slack_weight(problem.step, moved, settings).reshape(-1, 3, 40)
    vertical = pin.Quaternion(moved[3:7, 20]).toRotationMatrix()[2, 2]
    np.testing.assert_allclose(fallen[:, 2, 20], 1.0 / (0.05**2 + (0.3 * 0.5 * vertical) ** 2), rtol=1e-6)
    np.testing.assert_allclose(np.delete(fallen, 20, axis=2), np.delete(still, 20, axis=2))
    estimate = solve(measurements, go2(), settings)
    assert estimate.certificate.converged
    assert force_rmse(estimate, truth) < 5.0


def force_rmse(estimate: Estimate, truth: Truth) -> float:
    return float(np.sqrt(np.mean((estimate.contact_force_W - truth.force_W) ** 2)))
