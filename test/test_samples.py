# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recordings import EPOCH, NS, assert_same, recording, stamps

from prime_ros.exceptions import MeasurementError
from prime_ros.measurements import ImuSamples, JointSamples, MocapSamples, Recording
from prime_ros.measurements.cleaning import in_model_order, in_time_order
from prime_ros.measurements.masking import finite_poses, lost_poses
from prime_ros.measurements.stamps import stamp_findings
from prime_ros.measurements.time_order import time_order

NAMES = ("hip", "knee")
EMPTY = np.zeros(0, dtype=np.int64)


def joints(stamp_ns: np.ndarray, names: tuple[str, ...] = NAMES) -> JointSamples:
    values = np.arange(3.0 * len(stamp_ns) * len(names)).reshape(3, len(stamp_ns), len(names))
    return JointSamples(stamp_ns, names, *values)


def test_samples_cannot_be_changed_and_do_not_change_with_their_source():
    source = np.zeros((4, 3))
    samples = ImuSamples(np.arange(4), source, source)
    source[0] = 1.0
    assert not samples.angular_velocity.any()
    with pytest.raises(ValueError, match="read-only"):
        samples.angular_velocity[0] = 1.0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: ImuSamples(np.arange(4.0), np.zeros((4, 3)), np.zeros((4, 3))),
            "imu: stamp_ns: got float64",
        ),
        (
            lambda: ImuSamples(np.arange(4), np.zeros((4, 2)), np.zeros((4, 3))),
            r"angular_velocity.*\(4, 2\).*\(4, 3\)",
        ),
        (
            lambda: MocapSamples(np.arange(4), np.zeros((4, 3)), np.zeros((4, 3))),
            r"mocap: quat_xyzw.*\(4, 4\)",
        ),
        (
            lambda: JointSamples(np.arange(4), NAMES, *np.zeros((3, 4, 3))),
            r"joints: position.*\(4, 3\).*\(4, 2\)",
        ),
        (lambda: joints(np.arange(4), ("hip", "hip")), "hip more than once"),
    ],
)
def test_malformed_samples_are_refused(make, words):
    with pytest.raises(MeasurementError, match=words):
        make()


@given(st.lists(st.integers(0, 20), max_size=30))
def test_stamps_increase_after_cleaning_and_every_sample_is_accounted_for(times):
    samples = joints(np.array(times, dtype=np.int64))
    cleaned, counts = in_time_order(samples, 0.0)
    assert (np.diff(cleaned.stamp_ns) > 0).all()
    assert counts.read == len(times)
    assert counts.used == len(cleaned.stamp_ns)
    assert counts.read == counts.used + sum(count for _, count in counts.left_out())
    again, second = in_time_order(cleaned, 0.0)
    np.testing.assert_array_equal(again.stamp_ns, cleaned.stamp_ns)
    assert second.used == counts.used


@given(st.lists(st.integers(0, 12), max_size=9))
def test_no_increasing_choice_of_samples_is_longer(times):
    stamp = np.array(times, dtype=np.int64)
    longest = 0
    for choice in range(1 << len(times)):
        chosen = stamp[[bool(choice >> bit & 1) for bit in range(len(times))]]
        if len(chosen) > longest and (np.diff(chosen) > 0).all():
            longest = len(chosen)
    assert time_order(stamp).keep.sum() == longest


def test_one_stamp_far_ahead_costs_one_sample():
    stamp = stamps(1.0, 100.0)
    stamp[10] += 3600 * NS
    cleaned, counts = in_time_order(joints(stamp), 0.0)
    np.testing.assert_array_equal(cleaned.stamp_ns, np.delete(stamp, 10))
    assert (counts.stray_stamps, counts.backward_stamps) == (1, 0)


@pytest.mark.parametrize(("at", "stamp"), [(0, 0), (100, EPOCH + 10**6 * NS)])
def test_one_stamp_at_an_end_minutes_away_from_all_others_is_dropped(at, stamp):
    whole = stamps(1.0, 100.0)
    whole[at] = stamp
    cleaned, counts = in_time_order(joints(whole), 0.0)
    np.testing.assert_array_equal(cleaned.stamp_ns, np.delete(whole, at))
    assert counts.stray_stamps == 1


@pytest.mark.parametrize(
    ("make", "severity", "words"),
    [
        (
            lambda s: 0 * s,
            "error",
            ["all 501 samples have the stamp 0 ns, expected when each was taken", "--stamps receipt"],
        ),
        (lambda s: s // 1000, "error", ["5e+05 samples per second", "stamps are nanoseconds"]),
        (
            lambda s: s // 10_000_000 * 10_000_000,
            "warning",
            ["have the stamp of the one before", "header.stamp"],
        ),
    ],
)
def test_stamps_that_cannot_be_times_of_measurement_are_found(make, severity, words):
    stamp = make(stamps(1.0, 500.0))
    (finding,) = stamp_findings("joints", stamp, time_order(stamp))
    assert finding.severity == severity
    assert all(word in str(finding) for word in words)


def test_good_stamps_give_no_finding():
    stamp = stamps(1.0, 500.0)
    stamp[7] = stamp[6]
    assert stamp_findings("joints", stamp, time_order(stamp)) == []


def test_of_duplicates_the_first_is_kept():
    cleaned, counts = in_time_order(joints(np.array([0, 1, 1, 2, 1, 0, 3])), 0.0)
    np.testing.assert_array_equal(cleaned.stamp_ns, [0, 1, 2, 3])
    np.testing.assert_array_equal(cleaned.position[:, 0], [0, 2, 6, 12])
    assert (counts.duplicate_stamps, counts.backward_stamps) == (1, 2)


def test_a_looped_bag_is_played_once():
    once = stamps(0.1, 100.0)
    cleaned, counts = in_time_order(joints(np.concatenate([once, once, once])), 0.0)
    np.testing.assert_array_equal(cleaned.stamp_ns, once)
    assert counts.backward_stamps + counts.duplicate_stamps == 2 * len(once)


def test_a_clock_offset_is_added_to_the_stamps():
    cleaned, _ = in_time_order(joints(np.array([EPOCH, EPOCH + 5])), -0.25)
    np.testing.assert_array_equal(cleaned.stamp_ns - EPOCH, [-NS // 4, 5 - NS // 4])


@given(st.permutations(["hip", "knee", "ankle", "wheel"]))
def test_joints_are_found_by_name_in_any_order(names):
    samples = joints(np.arange(3), tuple(names))
    ordered, extra = in_model_order(samples, NAMES)
    assert extra == tuple(name for name in names if name not in NAMES)
    for column, name in enumerate(NAMES):
        for field in ("position", "velocity", "torque"):
            expected = getattr(samples, field)[:, names.index(name)]
            np.testing.assert_array_equal(getattr(ordered, field)[:, column], expected)


def test_a_missing_joint_is_named_with_those_there_are():
    with pytest.raises(MeasurementError, match="missing in the recording: knee; it has: hip, ankle"):
        in_model_order(joints(np.arange(3), ("hip", "ankle")), NAMES)


def test_poses_of_a_lost_body_are_recognised():
    quat = np.array([[0, 0, 0, 1.0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, np.nan], [0, 0, 0, 2]])
    position = np.ones((5, 3))
    position[2] = np.inf
    samples = MocapSamples(np.arange(5), position, quat)
    np.testing.assert_array_equal(finite_poses(samples), [1, 1, 0, 0, 1])
    np.testing.assert_array_equal(finite_poses(samples) & ~lost_poses(samples), [1, 0, 0, 0, 0])


def test_a_pose_exactly_at_the_origin_is_a_lost_body():
    samples = MocapSamples(
        np.arange(2), np.array([[0.0, 0, 0], [0, 0, 1e-9]]), np.tile([0, 0, 0, 1.0], (2, 1))
    )
    np.testing.assert_array_equal(lost_poses(samples), [True, False])


def test_a_crop_holds_the_samples_of_its_time_and_no_others():
    whole = recording(NAMES, duration=1.0)
    part = whole.cropped(0.25, 0.5)
    assert part.start_ns == whole.start_ns + NS // 4
    assert part.duration == 0.5
    kept = (whole.joints.stamp_ns >= part.start_ns) & (whole.joints.stamp_ns <= part.end_ns)
    np.testing.assert_array_equal(part.joints.torque, whole.joints.torque[kept])
    assert part.imu is not None
    assert len(part.mocap.stamp_ns) == 51


def test_a_crop_of_everything_is_the_whole():
    whole = recording(NAMES)
    assert_same(whole.cropped(), whole)
    assert_same(whole.cropped(0.0, 100.0), whole)


@pytest.mark.parametrize(
    ("start", "duration"), [(-0.1, None), (0.5, None), (0.0, 0.0), (0.1, -1.0), (np.nan, None)]
)
def test_a_crop_outside_the_recording_is_refused(start, duration):
    with pytest.raises(MeasurementError, match=r"expected 0 <= start < 0\.500 s"):
        recording(NAMES).cropped(start, duration)


def test_an_empty_recording_says_so():
    nothing = Recording(joints(EMPTY), MocapSamples(EMPTY, np.zeros((0, 3)), np.zeros((0, 4))))
    with pytest.raises(MeasurementError, match="no stream has a sample"):
        nothing.cropped()
