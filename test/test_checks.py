# SPDX-License-Identifier: Apache-2.0
"""Every check finds what it is for, names the cause, and is silent on good recordings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from perturbed import (
    bundled,
    jumping,
    late,
    lost,
    scaled,
    scaled_imu,
    turned_imu,
    with_joints,
    with_poses,
)
from recordings import LOGS, NS, stamps
from scipy.spatial.transform import Rotation
from simulation import go2

from prime_ros.config import load_estimator_config
from prime_ros.exceptions import MeasurementError
from prime_ros.measurements import ImuSamples, JointSamples, MocapSamples, Recording, align
from prime_ros.measurements.findings import Finding
from prime_ros.measurements.jumps import jumping_poses
from prime_ros.measurements.masking import frozen_poses
from prime_ros.measurements.preparation import Prepared, prepare
from prime_ros.measurements.samples import selected
from prime_ros.robot import Robot

Array = NDArray[np.float64]
Change = Callable[[Recording], Recording]
CONFIG = load_estimator_config("pfie")
DEGREES = 180.0 / np.pi
LEGS_SWAPPED = [3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8]


def checked(whole: Recording, *overrides: str, robot: Robot | None = None) -> Prepared:
    return prepare(whole, robot or go2(), load_estimator_config("pfie", overrides))


def worth_saying(prepared: Prepared) -> list[Finding]:
    return [finding for finding in prepared.findings if finding.severity != "note"]


def turned(axis: str, angle: float) -> Rotation:
    return Rotation.from_euler(axis, angle, degrees=True)


def read_as(order: list[int], inverse: bool = False) -> Change:
    sign = np.array([-1.0, -1, -1, 1]) if inverse else np.ones(4)
    return lambda whole: with_poses(whole, quat_xyzw=(sign * whole.mocap.quat_xyzw)[:, order])


def y_up(whole: Recording) -> Recording:
    world = turned("x", -90)
    quat = (world * Rotation.from_quat(whole.mocap.quat_xyzw)).as_quat()
    return with_poses(whole, world.apply(whole.mocap.position.copy()), quat)


def mocap_turned(rotation: Rotation) -> Change:
    return lambda whole: with_poses(
        whole, quat_xyzw=(Rotation.from_quat(whole.mocap.quat_xyzw) * rotation).as_quat()
    )


def reordered(*channels: str) -> Change:
    return lambda whole: with_joints(
        whole, **{name: getattr(whole.joints, name)[:, LEGS_SWAPPED] for name in channels}
    )


def times(factor: float, *channels: str, column: int | None = None) -> Change:
    def change(whole: Recording) -> Recording:
        values = {name: getattr(whole.joints, name) for name in channels}
        return with_joints(
            whole,
            **{n: factor * v if column is None else scaled(v, column, factor) for n, v in values.items()},
        )

    return change


# --- what is wrong is named --------------------------------------------------------------------------------

WRONG: dict[str, tuple[Change, str, str, list[str]]] = {
    "w x y z": (
        read_as([3, 0, 1, 2]),
        "quaternion-order",
        "error",
        ["w x y z read as x y z w", "in the order x y z w"],
    ),
    "inverse": (read_as([0, 1, 2, 3], inverse=True), "quaternion-order", "error", ["world to body"]),
    "w x y z and inverse": (
        read_as([3, 0, 1, 2], inverse=True),
        "quaternion-order",
        "error",
        ["w x y z read as x y z w, and world to body"],
    ),
    "IMU upside down": (
        lambda whole: turned_imu(whole, turned("x", 180)),
        "imu-mount",
        "error",
        ["180.0 +- 0.2 deg", "set imu.quat_xyzw: [1.0, 0.0, 0.0, 0.0]"],
    ),
    "IMU turned": (
        lambda whole: turned_imu(whole, turned("z", 90)),
        "imu-mount",
        "error",
        ["imu.quat_xyzw: [0.0, 0.0, -0.7071, 0.7071] if", "else mocap.quat_xyzw: [0.0, 0.0, 0.7071, 0.7071]"],
    ),
    "IMU askew": (
        lambda whole: turned_imu(whole, turned("y", 6)),
        "imu-mount",
        "warning",
        ["5.9 +- 0.2 deg"],
    ),
    "marker body upside down": (
        mocap_turned(turned("x", 180)),
        "imu-mount",
        "error",
        ["set mocap.quat_xyzw: [1.0, 0.0, 0.0, 0.0]"],
    ),
    "y up": (
        y_up,
        "world-up",
        "error",
        ["gravity points along -y", "set the up axis of motion capture to z"],
    ),
    "accelerometer negative": (
        lambda whole: scaled_imu(whole, force=-1.0),
        "imu-units",
        "warning",
        ["points down at rest", "change the sign"],
    ),
    "accelerometer in g": (
        lambda whole: scaled_imu(whole, force=1 / 9.81),
        "imu-units",
        "warning",
        ["in g: multiply by 9.81"],
    ),
    "gyroscope in deg/s": (
        lambda whole: scaled_imu(whole, rate=DEGREES),
        "imu-units",
        "error",
        ["in deg/s: divide by 57.3"],
    ),
    "clock seconds late": (
        lambda whole: late(whole, 2.0),
        "imu-mount",
        "error",
        ["do not turn together", "sampling.clock_offset.mocap=-2.00"],
    ),
    "positions in millimetres": (
        lambda whole: with_poses(whole, 1e3 * whole.mocap.position),
        "sensor-range",
        "error",
        ["millimetres", "publish metres"],
    ),
    "positions in degrees": (
        times(DEGREES, "position"),
        "joint-limits",
        "error",
        ["FL_calf_joint", "degrees for radians"],
    ),
    "one velocity negative": (
        times(-1.0, "velocity", column=4),
        "joint-velocity",
        "error",
        ["velocity of FR_thigh_joint has the opposite sign"],
    ),
    "velocities zero": (
        times(0.0, "velocity"),
        "joint-velocity",
        "error",
        ["is zero although the position changes", "NaN"],
    ),
    "one velocity in deg/s": (
        times(DEGREES, "velocity", column=0),
        "joint-velocity",
        "error",
        ["FL_hip_joint is 57", "deg/s"],
    ),
    "velocities in another order": (
        reordered("velocity"),
        "joint-order",
        "error",
        ["FL_hip_joint has that of FR_hip_joint"],
    ),
    "all in the vendor's order": (
        reordered("position", "velocity", "torque"),
        "joint-order",
        "error",
        ["the vendor's order under the names of the model", "it moves at 0.05 m/s"],
    ),
    "one axis reversed": (
        times(-1.0, "position", "velocity", column=1),
        "joint-order",
        "error",
        ["FL_foot is never at rest", "with FL_thigh_joint reversed"],
    ),
    "torques negative": (times(-1.0, "torque"), "joint-torque", "error", ["push the robot into the ground"]),
    "one torque negative": (
        times(-1.0, "torque", column=2),
        "joint-torque",
        "warning",
        ["torque of FL_calf_joint has the opposite sign"],
    ),
    "torques zero": (times(0.0, "torque"), "joint-torque", "error", ["all torques are zero", "effort"]),
    "torques of the motor": (times(1 / 9.0, "torque"), "joint-torque", "error", ["after the gear"]),
    "torques of nothing": (
        lambda whole: with_joints(whole, torque=0.3 * np.random.default_rng(0).standard_normal((5000, 12))),
        "ground-contact",
        "error",
        ["of the robot's weight", "never touches the ground"],
    ),
    "world moved": (
        lambda whole: with_poses(
            whole, whole.mocap.position + np.where(np.arange(1000)[:, None] >= 700, [0.3, 0, 0.1], 0.0)
        ),
        "mocap-jumps",
        "warning",
        ["jumped by 0.31 m", "7.00 s", "the 300 poses of the shorter part"],
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named(case: str) -> None:
    change, check, severity, words = WRONG[case]
    found = worth_saying(checked(change(bundled())))
    assert [(finding.check, finding.severity) for finding in found] == [(check, severity)]
    missing = [word for word in words if word not in str(found[0])]
    assert not missing, str(found[0])


def test_degrees_per_second_are_seen_even_where_the_robot_hardly_turns() -> None:
    walking = scaled_imu(bundled().cropped(4.0, 1.5), rate=DEGREES)
    (finding,) = worth_saying(checked(walking))
    assert (finding.check, finding.severity) == ("imu-units", "error")
    assert "over 8 times as fast" in str(finding)
    assert "divide by 57.3" in str(finding)


def test_errors_are_raised_together_one_per_line() -> None:
    whole = times(-1.0, "velocity", column=4)(read_as([3, 0, 1, 2])(bundled()))
    with pytest.raises(MeasurementError) as raised:
        align(whole, go2(), CONFIG)
    lines = str(raised.value).splitlines()
    assert len(lines) == 2
    assert "quaternions" in lines[0]
    assert "FR_thigh_joint" in lines[1]


def test_a_check_can_be_skipped() -> None:
    whole = times(-1.0, "velocity", column=4)(bundled())
    assert not worth_saying(checked(whole, "sampling.skip_checks=[joint-velocity]"))


def test_a_robot_without_ground_is_refused() -> None:
    """It hangs still and swings its legs."""
    with pytest.raises(MeasurementError, match=r"the robot hangs or never touches the ground"):
        align(hanging(), go2(), CONFIG)


def hanging() -> Recording:
    robot, random = go2(), np.random.default_rng(0)
    stamp, mocap_stamp = stamps(4.0, 500.0), stamps(4.0, 100.0)
    time = (stamp - stamp[0])[:, None] / NS
    phase = np.linspace(0, 6, 12)
    swing = np.tile([0.1, 0.3, 0.4], 4)
    angle = np.tile([0.0, 0.8, -1.5], 4) + swing * np.sin(6 * time + phase)
    speed, gain = 6 * swing * np.cos(6 * time + phase), -36 * swing * np.sin(6 * time + phase)
    data = robot.model.createData()
    base, still = np.array([0, 0, 1.0, 0, 0, 0, 1]), np.zeros(6)
    torque = np.array(
        [
            pin.rnea(robot.model, data, np.r_[base, q], np.r_[still, v], np.r_[still, a])[6:]
            for q, v, a in zip(angle, speed, gain, strict=True)
        ]
    )
    position = base[:3] + 0.001 * random.standard_normal((len(mocap_stamp), 3))
    quat = Rotation.from_rotvec(0.005 * random.standard_normal((len(mocap_stamp), 3))).as_quat()
    rate = 0.02 * random.standard_normal((len(stamp), 3))
    force = np.array([0, 0, 9.81]) + 0.1 * random.standard_normal((len(stamp), 3))
    return Recording(
        JointSamples(stamp, robot.joint_names, angle, speed, torque),
        MocapSamples(mocap_stamp, position, quat),
        ImuSamples(stamp, rate, force),
    )


def test_an_unknown_joint_is_reported_with_what_there_is_and_the_closest_name() -> None:
    whole = bundled()
    names = tuple(name.replace("FL_calf_joint", "FL_calf") for name in whole.joints.names)
    with pytest.raises(
        MeasurementError, match=r"missing in the recording: FL_calf_joint; it has: .*'FL_calf' meant"
    ):
        align(replace(whole, joints=replace(whole.joints, names=names)), go2(), CONFIG)


# --- good recordings are left alone ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "part",
    [(0.0, None), (0.0, 1.0), (2.0, 0.5), (5.0, 2.0), (1.0, 4.0)],
    ids=lambda part: f"{part[0]}+{part[1]}",
)
@pytest.mark.parametrize("imu", [True, False])
def test_nothing_is_found_or_left_out_in_a_good_recording(
    part: tuple[float, float | None], imu: bool
) -> None:
    whole = bundled().cropped(*part)
    prepared = checked(whole if imu else replace(whole, imu=None))
    assert worth_saying(prepared) == []
    assert not [left for counts in prepared.counts.values() for left in counts.left_out()]


@cache
def simulated(name: str, seed: int, noisy: bool) -> Recording:
    from prime_ros.experiments import simulation_logs

    path = LOGS / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"needs the simulated log {name}")
    log = simulation_logs.load_log(path)
    return simulation_logs.noisy_recording(log, seed, noise=None if noisy else simulation_logs.NOISE_FREE)


@pytest.mark.parametrize("name", ["go2_walk", "go2_payload_3kg_stiff", "go2_com_down_0.1m"])
@pytest.mark.parametrize("noisy", [True, False])
def test_nothing_is_found_or_left_out_in_simulated_logs(name: str, noisy: bool) -> None:
    prepared = checked(simulated(name, 3, noisy))
    assert worth_saying(prepared) == []
    assert not [left for counts in prepared.counts.values() for left in counts.left_out()]


def test_joints_in_another_order_with_their_names_are_fine() -> None:
    whole = bundled()
    joints = whole.joints
    order = np.random.default_rng(0).permutation(12)
    shuffled = JointSamples(
        joints.stamp_ns,
        tuple(joints.names[column] for column in order),
        joints.position[:, order],
        joints.velocity[:, order],
        joints.torque[:, order],
    )
    assert worth_saying(checked(replace(whole, joints=shuffled))) == []


def test_a_robot_that_stands_still_is_fine() -> None:
    whole = bundled().cropped(0.0, 1.0)
    assert checked(whole).clock is None or abs(checked(whole).clock.seconds) < 0.02  # type: ignore[union-attr]
    assert worth_saying(checked(whole)) == []


# --- anything at all ---------------------------------------------------------------------------------------

SPECIAL = np.array([0.0, np.nan, np.inf, -np.inf, 1e308, 1e-320, -1.0, 1e6])


def garbled(values: Array, random: np.random.Generator) -> Array:
    """Numbers that no one expects, in a part of an array."""
    changed = values.copy()
    part = random.random(values.shape) < random.choice([0.001, 0.1, 0.6, 1.0])
    kind = random.integers(5)
    if kind == 0:
        changed[part] = random.choice(SPECIAL, part.sum())
    elif kind == 1:
        changed[part] *= random.choice([1e3, DEGREES, -1.0, 1e200])
    elif kind == 2:
        changed = random.standard_normal(values.shape) * random.choice([1e-3, 1.0, 1e3])
    elif kind == 3:
        changed = np.tile(values[:1], (len(values), 1))
    else:
        changed = values[:, random.permutation(values.shape[1])]
    return changed


def garbled_stamps(stamp_ns: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
    changed = stamp_ns.copy()
    kind = random.integers(5)
    if kind == 0:
        changed[:] = stamp_ns[0]
    elif kind == 1:
        changed = random.permutation(stamp_ns)
    elif kind == 2:
        changed[random.integers(len(changed))] = random.choice([0, 1 << 62])
    elif kind == 3:
        changed //= random.choice([1_000, 1_000_000, NS])
    else:
        changed = np.sort(random.integers(0, 1 << 62, len(changed)))
    return changed


@pytest.mark.filterwarnings("error")
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_anything_is_aligned_or_refused(seed: int) -> None:
    random = np.random.default_rng(seed)
    whole = bundled().cropped(2.0, 1.1)
    streams = []
    for stream in (whole.joints, whole.mocap, whole.imu):
        assert stream is not None
        if random.random() < 0.1:
            stream = selected(stream, np.arange(len(stream.stamp_ns)) < random.integers(4))
        changes = {
            name: (garbled_stamps if name == "stamp_ns" else garbled)(values, random)
            for name, values in vars(stream).items()
            if isinstance(values, np.ndarray) and len(values) and random.random() < 0.15
        }
        streams.append(replace(stream, **changes))
    try:
        knots = align(Recording(*streams), go2(), CONFIG)
    except MeasurementError:
        return
    for name, values in vars(knots).items():
        if isinstance(values, np.ndarray) and not name.startswith("std"):
            assert np.isfinite(values).all(), name


# --- values out of range -----------------------------------------------------------------------------------


def test_single_absurd_values_are_left_out_and_counted() -> None:
    whole = bundled()
    position, velocity = whole.joints.position.copy(), whole.joints.velocity.copy()
    position[100:110, 3], velocity[200, 5], position[300, 1] = 12.0, 1e4, np.nan
    assert whole.imu is not None
    rate = whole.imu.angular_velocity.copy()
    rate[7] = 1e3
    broken = replace(
        with_joints(whole, position=position, velocity=velocity),
        imu=replace(whole.imu, angular_velocity=rate),
    )
    prepared = checked(broken)
    assert worth_saying(prepared) == []
    assert dict(prepared.counts["joints"].left_out()) == {"out of range": 11, "not finite": 1}
    assert dict(prepared.counts["imu"].left_out()) == {"out of range": 1}
    assert np.isnan(prepared.joints.position[100:110, 3]).all()


def test_an_encoder_a_little_beyond_its_limit_is_kept() -> None:
    whole = bundled()
    position = whole.joints.position.copy()
    position[10, 0] = go2().model.upperPositionLimit[7] + 0.2
    assert not list(checked(with_joints(whole, position=position)).counts["joints"].left_out())


# --- poses that are none -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_jumps_are_masked_and_nothing_else(seed: int) -> None:
    whole, bad = jumping(bundled(), 0.01, seed)
    mask, findings = jumping_poses(whole.mocap, go2().noise)
    np.testing.assert_array_equal(mask, bad)
    assert findings == []


def test_a_piece_that_jumps_and_comes_back_is_masked() -> None:
    whole = bundled()
    block = slice(400, 450)
    position = whole.mocap.position.copy()
    position[block] += [0.08, -0.05, 0.02]
    mask, findings = jumping_poses(with_poses(whole, position).mocap, go2().noise)
    assert np.flatnonzero(mask).tolist() == list(range(block.start, block.stop))
    assert findings == []


@pytest.mark.parametrize("seed", range(3))
def test_a_piece_elsewhere_is_masked_among_single_jumps(seed: int) -> None:
    whole, bad = jumping(bundled(), 0.02, seed)
    position = whole.mocap.position.copy()
    position[400:450] += [0.1, 0.0, 0.05]
    bad[400:450] = True
    np.testing.assert_array_equal(jumping_poses(with_poses(whole, position).mocap, go2().noise)[0], bad)


def test_motion_capture_that_jumps_all_the_time_is_refused() -> None:
    whole, _ = jumping(bundled(), 0.5, 0)
    (finding,) = jumping_poses(whole.mocap, go2().noise)[1]
    assert (finding.check, finding.severity) == ("mocap-jumps", "error")
    assert "times the stated noise" in str(finding)


def test_zeros_are_masked_and_counted() -> None:
    whole, gone = lost(bundled(), 4.0, 0.5)
    prepared = checked(whole)
    assert dict(prepared.counts["mocap"].left_out()) == {"lost (zeros or no unit quaternion)": gone.sum()}
    assert gone.sum() == 50


def test_frozen_poses_are_masked_while_the_robot_moves() -> None:
    whole = bundled()
    position, quat = whole.mocap.position.copy(), whole.mocap.quat_xyzw.copy()
    position[500:560], quat[500:560] = position[499], quat[499]
    mask = frozen_poses(with_poses(whole, position, quat).mocap, whole.joints, go2())
    assert not mask[:500].any()
    assert not mask[560:].any()
    assert mask[500:560].sum() > 50  # a few of the first may come before the joints have moved enough


def test_equal_poses_of_a_robot_that_stands_still_are_kept() -> None:
    whole = bundled()
    still = replace(whole.joints, position=np.tile(whole.joints.position[0], (len(whole.joints.stamp_ns), 1)))
    position, quat = whole.mocap.position.copy(), whole.mocap.quat_xyzw.copy()
    position[500:560], quat[500:560] = position[499], quat[499]
    assert not frozen_poses(with_poses(whole, position, quat).mocap, still, go2()).any()
