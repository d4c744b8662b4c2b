# SPDX-License-Identifier: Apache-2.0
import dataclasses
import json
from dataclasses import replace
from typing import get_args

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recordings import EPOCH, LOGS, NS, recording, stamps
from scipy.spatial.transform import Rotation

from prime_ros.config import load_estimator_config
from prime_ros.config.estimator import CheckName
from prime_ros.exceptions import MeasurementError
from prime_ros.measurements import ImuSamples, JointSamples, MocapSamples, Recording, align
from prime_ros.measurements.weights import box, interpolation, triangle
from prime_ros.robot import Robot, load_robot

DT = 10_000_000
GAP = 30_000_000
# The samples of most tests here are random numbers: checks of what a robot can do are for other tests.
UNCHECKED = [
    f"sampling.skip_checks={json.dumps(get_args(CheckName))}",
    "sampling.clock_offset.estimate=never",
]
CONFIG = load_estimator_config("pfie", UNCHECKED)
GO2 = load_robot("go2")
LOG_NAMES = ("go2_walk", "go2_payload_3kg", "go2_payload_3kg_stiff")


def at_knot(stamp_ns, knot_ns, dt_ns, max_gap_ns):
    return interpolation(stamp_ns, knot_ns, max_gap_ns)


WINDOWS = (box, triangle, at_knot)
spacings = st.lists(st.integers(1, 50_000_000), min_size=1, max_size=40)


def go2_recording(**changes) -> Recording:
    return recording(GO2.joint_names, **changes)


def shifted(whole: Recording, offset_ns: int) -> Recording:
    assert whole.imu is not None
    streams = (whole.joints, whole.mocap, whole.imu)
    return Recording(*(replace(stream, stamp_ns=stream.stamp_ns + offset_ns) for stream in streams))


# --- windows -----------------------------------------------------------------------------------------------


@given(spacings, st.integers(0, 1_000_000_000), st.sampled_from(WINDOWS))
def test_weights_are_not_negative_and_sum_to_one_or_are_none(spacing, first_knot, window):
    stamp = EPOCH + np.cumsum(spacing)
    knots = EPOCH + first_knot + DT * np.arange(20)
    average = window(stamp, knots, DT, GAP)
    weights = average.matrix.toarray()
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), average.covered, atol=1e-12)
    np.testing.assert_array_equal(np.isfinite(average.noise_gain), average.covered)


@given(spacings, st.integers(0, 1_000_000_000), st.floats(-1e3, 1e3), st.sampled_from(WINDOWS))
def test_a_constant_signal_is_reproduced(spacing, first_knot, value, window):
    stamp = EPOCH + np.cumsum(spacing)
    average = window(stamp, EPOCH + first_knot + DT * np.arange(20), DT, GAP)
    values = average.of(np.full((len(stamp), 1), value))[average.covered]
    np.testing.assert_allclose(values, value, rtol=1e-12)


@given(spacings, st.integers(0, 1_000_000_000), st.integers(-(10**18), 10**18), st.sampled_from(WINDOWS))
def test_weights_do_not_depend_on_the_epoch(spacing, first_knot, offset, window):
    stamp = EPOCH + np.cumsum(spacing)
    knots = EPOCH + first_knot + DT * np.arange(20)
    here, there = window(stamp, knots, DT, GAP), window(stamp + offset, knots + offset, DT, GAP)
    np.testing.assert_array_equal(here.matrix.toarray(), there.matrix.toarray())


@given(spacings, st.integers(0, 1_000_000_000), st.sampled_from(WINDOWS))
def test_a_window_is_missing_exactly_where_samples_around_it_are_too_far_apart(spacing, first_knot, window):
    stamp = EPOCH + np.cumsum(spacing)
    knots = EPOCH + first_knot + DT * np.arange(20)
    before, after = {box: (DT, 0), triangle: (DT, DT), at_knot: (0, 0)}[window]
    few = len(stamp) < {box: 2, triangle: 3, at_knot: 1}[window]
    for knot, covered in zip(knots, window(stamp, knots, DT, GAP).covered, strict=True):
        left = np.flatnonzero(stamp <= knot - before)
        right = np.flatnonzero(stamp >= knot + after)
        expected = not few and left.size > 0 and right.size > 0
        if expected:
            expected = not (np.diff(stamp[left[-1] : right[0] + 1]) > GAP).any()
        assert covered == expected


@given(spacings)
def test_box_means_over_touching_windows_add_up_to_the_whole(spacing):
    stamp = EPOCH + np.concatenate([[0], np.cumsum(spacing)])
    values = np.sin(np.arange(len(stamp)))[:, None]
    knots = np.arange(stamp[0] + DT, stamp[-1] + 1, DT)
    pieces = box(stamp, knots, DT, 10 * GAP)
    if len(knots):
        whole = box(stamp, knots[-1:], len(knots) * DT, 10 * GAP)
        np.testing.assert_allclose(pieces.of(values).mean(), whole.of(values).item(), atol=1e-12)


@given(st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_the_triangle_mean_of_acceleration_is_the_difference_of_box_means_of_velocity(samples, seed):
    spacing = DT // 20 * samples
    dt = spacing * 5
    stamp = EPOCH + spacing * np.arange(101)
    acceleration = np.random.default_rng(seed).standard_normal((101, 2))
    step = acceleration[:-1] * spacing / NS  # semi-implicit: a sample is the state before its step
    velocity = np.concatenate([np.zeros((1, 2)), np.cumsum(step, axis=0)])
    knots = stamp[10:90:5]
    change = np.diff(box(stamp, knots, dt, GAP).of(velocity), axis=0) / (dt / NS)
    np.testing.assert_allclose(triangle(stamp, knots[:-1], dt, GAP).of(acceleration), change, atol=1e-9)


@given(st.integers(1, 20))
def test_the_triangle_over_n_samples_is_one_to_n_to_one(count):
    stamp = EPOCH + 1000 * np.arange(4 * count + 1)
    weights = triangle(stamp, stamp[2 * count : 2 * count + 1], 1000 * count, GAP).matrix.toarray()[0]
    shape = np.maximum(count - np.abs(np.arange(4 * count + 1) - 2 * count), 0)
    np.testing.assert_allclose(weights, shape / shape.sum(), atol=1e-15)


def test_a_torque_slower_than_the_knots_is_interpolated():
    stamp = EPOCH + 2 * DT * np.arange(10)
    knots = EPOCH + DT * np.arange(2, 16)
    average = triangle(stamp, knots, DT, GAP)
    assert average.covered.all()
    line = ((stamp - EPOCH) / NS)[:, None]
    np.testing.assert_allclose(average.of(line)[:, 0], (knots - EPOCH) / NS, atol=1e-15)


# --- alignment ---------------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(st.integers(-(10**17), 10**17))
def test_measurements_do_not_depend_on_the_epoch(offset):
    whole = go2_recording()
    here, there = align(whole, GO2, CONFIG), align(shifted(whole, offset), GO2, CONFIG)
    np.testing.assert_array_equal(there.stamp_ns - offset, here.stamp_ns)
    for field in dataclasses.fields(here):
        if isinstance(value := getattr(here, field.name), np.ndarray) and field.name != "stamp_ns":
            np.testing.assert_array_equal(value, getattr(there, field.name), err_msg=field.name)


@given(st.permutations(range(12)))
@settings(max_examples=10, deadline=None)
def test_measurements_do_not_depend_on_the_order_of_recorded_joints(order):
    whole = go2_recording()
    names = tuple(whole.joints.names[i] for i in order)
    columns = [getattr(whole.joints, field)[:, order] for field in ("position", "velocity", "torque")]
    mixed = replace(whole, joints=JointSamples(whole.joints.stamp_ns, names, *columns))
    one, other = align(whole, GO2, CONFIG), align(mixed, GO2, CONFIG)
    for field in ("joint_position", "joint_velocity", "joint_torque"):
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field))


def test_knots_are_dt_apart_and_their_windows_lie_inside_all_streams():
    whole = go2_recording()
    late = replace(whole, mocap=replace(whole.mocap, stamp_ns=whole.mocap.stamp_ns + 13_000_001))
    knots = align(late, GO2, CONFIG)
    assert (np.diff(knots.stamp_ns) == DT).all()
    assert knots.stamp_ns[0] in late.joints.stamp_ns
    assert 0 <= knots.stamp_ns[0] - DT - late.mocap.stamp_ns[0] < 2_000_000
    assert 0 <= late.joints.stamp_ns[-1] - knots.stamp_ns[-1] < DT


def test_standard_deviations_are_those_of_averages():
    knots = align(go2_recording(), GO2, CONFIG)
    np.testing.assert_allclose(knots.std_joint_position, 0.002)
    np.testing.assert_allclose(knots.std_joint_velocity, 0.1 / np.sqrt(5))
    triangular = np.array([1, 2, 3, 4, 5, 4, 3, 2, 1]) / 25
    np.testing.assert_allclose(knots.std_joint_torque[:-1], 0.5 * np.linalg.norm(triangular))
    np.testing.assert_allclose(knots.std_base_angular_velocity, 0.02 / np.sqrt(5))
    np.testing.assert_allclose(knots.std_base_position, 0.002)
    np.testing.assert_allclose(knots.std_base_rotation, np.deg2rad(0.5))


def test_noise_averages_to_the_claimed_standard_deviation():
    """On irregular stamps the spread of the averages of white noise is what `noise_gain` claims."""
    random = np.random.default_rng(0)
    stamp = EPOCH + np.cumsum(random.integers(500_000, 4_000_000, 400))
    knots = stamp[20] + DT * np.arange(60)
    for window in WINDOWS:
        average = window(stamp, knots, DT, GAP)
        spread = average.of(random.standard_normal((400, 2000))).std(axis=1)
        np.testing.assert_allclose(spread, average.noise_gain, rtol=0.1)


def test_a_dead_encoder_masks_only_its_joint():
    whole = go2_recording()
    position = whole.joints.position.copy()
    position[100:200, 3] = np.nan
    knots = align(replace(whole, joints=replace(whole.joints, position=position)), GO2, CONFIG)
    missing = np.isinf(knots.std_joint_position)
    assert missing[:, 3].any()
    assert not missing[:, 3].all()
    assert not np.delete(missing, 3, axis=1).any()
    assert np.isfinite(knots.joint_position).all()
    assert knots.diagnostics.streams["joints"].non_finite == 100
    assert knots.diagnostics.knots_without["joint_position"] == missing[:, 3].sum()
    assert not np.isinf(knots.std_joint_velocity).any()


def test_a_single_bad_sample_is_bridged():
    whole = go2_recording()
    velocity, torque = whole.joints.velocity.copy(), whole.joints.torque.copy()
    velocity[100], torque[100] = np.nan, np.inf
    knots = align(replace(whole, joints=replace(whole.joints, velocity=velocity, torque=torque)), GO2, CONFIG)
    assert knots.diagnostics.knots_without["joint_velocity"] == 0
    assert knots.diagnostics.knots_without["joint_torque"] == 0
    assert np.isfinite(knots.joint_velocity).all()


def test_a_channel_that_was_never_measured_is_named():
    whole = go2_recording()
    velocity = whole.joints.velocity.copy()
    velocity[:, 2] = np.nan
    knots = align(replace(whole, joints=replace(whole.joints, velocity=velocity)), GO2, CONFIG)
    assert knots.diagnostics.notes == (f"joint_velocity: never measured for {GO2.joint_names[2]}",)
    assert knots.diagnostics.notes[0] in list(knots.diagnostics.warnings())
    assert not knots.joint_velocity[:, 2].any()


def test_a_joint_whose_torque_is_mostly_missing_is_refused():
    whole = go2_recording()
    torque = whole.joints.torque.copy()
    torque[: len(torque) * 2 // 3, 2] = np.nan
    with pytest.raises(
        MeasurementError, match=rf"too few joint torques: {GO2.joint_names[2]} \(6\d% missing\)"
    ):
        align(replace(whole, joints=replace(whole.joints, torque=torque)), GO2, CONFIG)


def test_a_pause_of_all_joints_masks_the_knots_it_touches():
    whole = go2_recording()
    keep = np.ones(len(whole.joints.stamp_ns), dtype=bool)
    keep[101:120] = False
    fields = (whole.joints.position[keep], whole.joints.velocity[keep], whole.joints.torque[keep])
    joints = JointSamples(whole.joints.stamp_ns[keep], whole.joints.names, *fields)
    knots = align(replace(whole, joints=joints), GO2, CONFIG)
    begin, end = whole.joints.stamp_ns[100], whole.joints.stamp_ns[120]
    at = knots.stamp_ns
    np.testing.assert_array_equal(np.isinf(knots.std_joint_position[:, 0]), (at > begin) & (at < end))
    np.testing.assert_array_equal(np.isinf(knots.std_joint_velocity[:, 0]), (at > begin) & (at < end + DT))
    touched = (at > begin - DT) & (at < end + DT)
    np.testing.assert_array_equal(np.isinf(knots.std_joint_torque[:-1, 0]), touched[:-1])


def test_every_pose_is_used_once_by_the_knot_whose_interval_holds_it():
    whole = go2_recording(mocap_rate=240.0)
    knots = align(whole, GO2, CONFIG)
    for k, knot in enumerate(knots.stamp_ns):
        inside = (whole.mocap.stamp_ns > knot - DT) & (whole.mocap.stamp_ns <= knot)
        mean = whole.mocap.position[inside].mean(axis=0)
        np.testing.assert_allclose(knots.base_position_W[k], mean, atol=1e-12)
        offset = (whole.mocap.stamp_ns[inside] - knot).mean() / NS
        assert knots.base_time_offset[k] == pytest.approx(offset, abs=1e-12)
        assert knots.std_base_position[k] == pytest.approx(0.002 / np.sqrt(inside.sum()))
    assert (knots.base_time_offset > -knots.dt).all()
    assert (knots.base_time_offset <= 0).all()


def test_an_occluded_body_is_missing_and_filled_in():
    whole = go2_recording()
    position, quat = whole.mocap.position.copy(), whole.mocap.quat_xyzw.copy()
    position[10:20], quat[10:20] = 0.0, 0.0
    knots = align(replace(whole, mocap=MocapSamples(whole.mocap.stamp_ns, position, quat)), GO2, CONFIG)
    assert np.isinf(knots.std_base_position).sum() == 10
    assert knots.diagnostics.streams["mocap"].lost == 10
    assert knots.diagnostics.knots_without["base_pose"] == 10
    np.testing.assert_allclose(np.linalg.norm(knots.base_quat_xyzw, axis=1), 1.0)
    yaw = Rotation.from_quat(knots.base_quat_xyzw).as_euler("xyz")[:, 2]
    np.testing.assert_allclose(np.diff(yaw), 0.5 / 50, rtol=1e-3)


def test_quaternions_do_not_jump_in_sign():
    whole = go2_recording(mocap_rate=240.0)
    signs = np.where(np.random.default_rng(0).random(len(whole.mocap.stamp_ns)) < 0.5, -1.0, 1.0)[:, None]
    flipped = replace(whole, mocap=replace(whole.mocap, quat_xyzw=signs * whole.mocap.quat_xyzw))
    one, other = align(whole, GO2, CONFIG), align(flipped, GO2, CONFIG)
    assert (np.sum(other.base_quat_xyzw[1:] * other.base_quat_xyzw[:-1], axis=1) > 0).all()
    same = np.abs(np.sum(one.base_quat_xyzw * other.base_quat_xyzw, axis=1))
    np.testing.assert_allclose(same, 1.0, atol=1e-12)


def test_mounts_turn_measurements_into_the_base_frame():
    """A robot whose sensors are mounted differently, and measure accordingly, is measured the same."""
    whole = go2_recording()
    assert whole.imu is not None
    T_BM = pin.SE3(Rotation.from_rotvec([0.3, -0.2, 0.5]).as_matrix(), np.array([0.1, 0.2, 0.3]))
    R_BI = Rotation.from_euler("x", np.pi)
    R_WB = Rotation.from_quat(whole.mocap.quat_xyzw)
    turned = R_WB * Rotation.from_matrix(T_BM.rotation)
    mocap = MocapSamples(
        whole.mocap.stamp_ns, whole.mocap.position + R_WB.apply(T_BM.translation), turned.as_quat()
    )
    imu = ImuSamples(
        whole.imu.stamp_ns, whole.imu.angular_velocity @ R_BI.as_matrix(), whole.imu.linear_acceleration
    )
    mounted: Robot = replace(GO2, T_BM=T_BM, R_BI=R_BI.as_matrix())
    one = align(whole, GO2, CONFIG)
    other = align(Recording(whole.joints, mocap, imu), mounted, CONFIG)
    np.testing.assert_allclose(other.base_position_W, one.base_position_W, atol=1e-12)
    np.testing.assert_allclose(other.base_quat_xyzw, one.base_quat_xyzw, atol=1e-12)
    np.testing.assert_allclose(other.base_angular_velocity_B, one.base_angular_velocity_B, atol=1e-12)
    assert (other.std_base_position > one.std_base_position).all()


def test_clock_offsets_undo_a_wrong_clock():
    whole = go2_recording()
    wrong = replace(whole, mocap=replace(whole.mocap, stamp_ns=whole.mocap.stamp_ns + NS))
    config = load_estimator_config("pfie", ["sampling.clock_offset.mocap=-1", *UNCHECKED])
    one, other = align(whole, GO2, CONFIG), align(wrong, GO2, config)
    np.testing.assert_array_equal(one.base_position_W, other.base_position_W)
    np.testing.assert_array_equal(one.stamp_ns, other.stamp_ns)


def test_without_imu_the_angular_velocity_is_missing():
    knots = align(replace(go2_recording(), imu=None), GO2, CONFIG)
    assert np.isinf(knots.std_base_angular_velocity).all()
    assert not knots.base_angular_velocity_B.any()
    assert any("no IMU" in note for note in knots.diagnostics.notes)


def test_joints_the_robot_lacks_are_ignored_and_reported():
    whole = recording((*GO2.joint_names, "gripper"))
    knots = align(whole, GO2, CONFIG)
    assert knots.joint_position.shape[1] == 12
    assert knots.diagnostics.ignored_joints == ("gripper",)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: r.cropped(0, 0.025), "got 2 knots of 0.01 s, expected at least 3"),
        (
            lambda r: replace(r, mocap=replace(r.mocap, stamp_ns=r.mocap.stamp_ns + NS)),
            "mocap 1.000 to 1.500",
        ),
        (
            lambda r: replace(r, mocap=replace(r.mocap, quat_xyzw=0 * r.mocap.quat_xyzw)),
            "no valid sample of mocap",
        ),
        (lambda r: recording(GO2.joint_names[1:]), f"missing in the recording: {GO2.joint_names[0]}"),
    ],
)
def test_what_cannot_be_aligned_is_refused_with_the_reason(change, words):
    with pytest.raises(MeasurementError, match=words):
        align(change(go2_recording()), GO2, CONFIG)


def test_rates_need_not_be_multiples_of_the_knots():
    """A line is a line at every rate: sampled at 333 Hz, its box mean lags by half a window."""
    stamp = stamps(1.0, 333.0)
    time = (stamp - EPOCH) / NS
    line = np.tile(time[:, None], (1, 12))
    mocap = go2_recording(duration=1.0).mocap
    knots = align(Recording(JointSamples(stamp, GO2.joint_names, line, line, line), mocap), GO2, CONFIG)
    at = ((knots.stamp_ns - EPOCH) / NS)[:, None]
    np.testing.assert_allclose(knots.joint_position, np.tile(at, (1, 12)), atol=1e-8)
    # held backward, the mean of a sampled line lags by up to a sample
    assert np.abs(knots.joint_velocity - (at - 0.005)).max() < 1 / 333
    assert np.abs(knots.joint_torque[:-1] - at[:-1]).max() < 1e-3


# --- simulated logs ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=LOG_NAMES)
def log(request):
    from prime_ros.experiments import simulation_logs

    path = LOGS / f"{request.param}.npz"
    if not path.exists():
        pytest.skip(f"needs the simulated log {request.param}")
    return simulation_logs.load_log(path)


@pytest.fixture(scope="module")
def noise_free(log):
    from prime_ros.experiments import simulation_logs

    return simulation_logs.noisy_recording(log, seed=0, noise=simulation_logs.NOISE_FREE)


def test_mean_rates_of_a_log_are_differences_of_its_positions(noise_free):
    """q+ = q + dt v+ holds between knots to the precision of the log's 32-bit floats."""
    knots = align(noise_free, GO2, CONFIG)
    assert (np.diff(knots.joint_position, axis=0) / knots.dt) == pytest.approx(
        knots.joint_velocity[1:], abs=5e-5
    )


def test_the_mean_angular_rate_of_a_log_is_the_difference_of_its_orientations(noise_free):
    knots = align(noise_free, GO2, CONFIG)
    rotation = Rotation.from_quat(knots.base_quat_xyzw)
    rate = (rotation[:-1].inv() * rotation[1:]).as_rotvec() / knots.dt
    assert np.sqrt(np.mean((rate - knots.base_angular_velocity_B[1:]) ** 2)) < 5e-3


def test_poses_of_a_log_are_met_at_the_knots(log, noise_free):
    knots = align(noise_free, GO2, CONFIG)
    rows = np.searchsorted(log.stamp_ns, knots.stamp_ns)
    np.testing.assert_array_equal(log.stamp_ns[rows], knots.stamp_ns)
    np.testing.assert_allclose(knots.base_position_W, log.base_position_W[rows], atol=1e-12)
    same = np.abs(np.sum(knots.base_quat_xyzw * log.base_quat_xyzw[rows], axis=1))
    np.testing.assert_allclose(same, 1.0, atol=1e-12)
    order = [log.joint_names.index(name) for name in GO2.joint_names]
    np.testing.assert_allclose(knots.joint_position, log.joint_position[rows][:, order], atol=1e-12)


def test_momentum_of_a_log_changes_by_the_triangle_mean_of_its_forces(log, noise_free):
    """Mass times the second difference of the centre of mass is gravity plus the forces on the feet."""
    from prime_ros.experiments import simulation_logs

    dt = CONFIG.dt
    knots = align(noise_free, GO2, CONFIG)
    truth = simulation_logs.truth_at(log, knots.stamp_ns, dt)
    true = log.truth["true"]
    model = GO2.model.copy()
    model.inertias[1] = pin.Inertia(true["mass"], np.array(true["com"]), np.array(true["inertia_com"]))
    data = model.createData()
    poses = np.hstack([knots.base_position_W, knots.base_quat_xyzw, knots.joint_position])
    com = np.array([pin.centerOfMass(model, data, pose).copy() for pose in poses])
    acceleration = np.diff(com, n=2, axis=0) / dt**2
    force = truth["contact_force_W"].sum(axis=1)[1:-1]
    error = pin.computeTotalMass(model) * (acceleration - model.gravity.linear) - force
    assert np.sqrt(np.mean(error**2)) < 0.2
