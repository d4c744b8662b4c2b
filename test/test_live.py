# SPDX-License-Identifier: Apache-2.0
"""Live estimation of the bundled recording, as it is and with what goes wrong on a wire."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from recordings import BAG, NS
from simulation import go2

from prime_ros.config import load_estimator_config
from prime_ros.estimation.estimate import Estimate
from prime_ros.estimation.full_information import solve
from prime_ros.estimation.live import LiveEstimate, LiveEstimator, LiveStatus
from prime_ros.measurements import Recording, align
from prime_ros.sources import load

DURATION = 2.4
FAULT = (0.8, 1.2)  # [s] when faults that pass happen
SETTLED = 2.0  # [s] less than a second after their end


@dataclass(frozen=True)
class Sample:
    """One message on its way: when it arrives, and what it says."""

    arrival_ns: int
    stream: str
    stamp_ns: int
    values: tuple[np.ndarray, ...]


Samples = list[Sample]
Fault = Callable[[Samples], Samples]


@cache
def recording() -> Recording:
    return load(BAG).cropped(1.0, DURATION)


@cache
def samples() -> tuple[Sample, ...]:
    """All messages in the order of their stamps."""
    joints, imu, mocap = recording().joints, recording().imu, recording().mocap
    assert imu is not None
    rows: list[Sample] = []
    for stream, stamps, values in (
        ("imu", imu.stamp_ns, (imu.angular_velocity, imu.linear_acceleration)),
        ("mocap", mocap.stamp_ns, (mocap.position, mocap.quat_xyzw)),
        ("joints", joints.stamp_ns, (joints.position, joints.velocity, joints.torque)),
    ):
        for i, stamp in enumerate(stamps.tolist()):
            rows.append(Sample(stamp, stream, stamp, tuple(value[i] for value in values)))
    return tuple(sorted(rows, key=lambda sample: sample.arrival_ns))


def seconds(stamp_ns: int) -> float:
    return (stamp_ns - recording().start_ns) / NS


def during(sample: Sample) -> bool:
    return FAULT[0] <= seconds(sample.stamp_ns) < FAULT[1]


def live(messages: Iterable[Sample], *settings: str, every: int = 1) -> tuple[list[LiveEstimate], LiveStatus]:
    """Push messages in the order of their arrival, and ask after every so many."""
    estimator = LiveEstimator(go2(), load_estimator_config("mhe", list(settings)))
    names, found = recording().joints.names, []
    push: dict[str, Callable[..., Any]] = {
        "joints": lambda stamp, *values: estimator.push_joints(stamp, names, *values),
        "imu": estimator.push_imu,
        "mocap": estimator.push_mocap,
    }
    for count, sample in enumerate(sorted(messages, key=lambda sample: sample.arrival_ns)):
        push[sample.stream](sample.stamp_ns, *sample.values)
        estimate = None if count % every else estimator.update()
        if estimate is not None:
            found += [*estimate.earlier, estimate]
    return found, estimator.status


@cache
def undisturbed() -> tuple[list[LiveEstimate], LiveStatus]:
    return live(samples())


@cache
def offline() -> Estimate:
    return solve(align(recording(), go2(), load_estimator_config()), go2(), load_estimator_config())


def force_difference(found: list[LiveEstimate], which: str = "lagged", start: float = 0.5) -> float:
    """Root mean square difference of forces from those of the whole recording, interpolated [N]."""
    chosen = [e for e in (getattr(each, which) for each in found) if e is not None]
    first, last = recording().start_ns + round(start * NS), offline().stamp_ns[-1]
    used = [e for e in chosen if first <= e.stamp_ns[0] <= last]
    assert len(used) > 10
    stamps = np.array([e.stamp_ns[0] for e in used]) - first
    force = np.array([e.contact_force_W[0] for e in used]).reshape(len(used), -1)
    whole = offline().contact_force_W.reshape(len(offline().stamp_ns), -1)
    expected = [np.interp(stamps, offline().stamp_ns - first, column) for column in whole.T]
    return float(np.sqrt(np.mean((force - np.transpose(expected)) ** 2)))


def assert_finite(found: list[LiveEstimate]) -> None:
    for each in found:
        for estimate in (each.newest, each.lagged):
            if estimate is not None:
                for name, std in estimate.std.items():
                    assert np.isfinite(std).all(), name
                    assert np.isfinite(getattr(estimate, name)).all(), name


def stamps_of(found: list[LiveEstimate]) -> np.ndarray:
    return np.array([each.newest.stamp_ns[0] for each in found])


def test_every_knot_is_estimated_once_and_in_order() -> None:
    found, status = undisturbed()
    np.testing.assert_array_equal(np.diff(stamps_of(found)), 10_000_000)
    assert len(found) > 100 * DURATION - 5
    assert_finite(found)
    for each in found:
        if each.lagged is not None:
            assert each.newest.stamp_ns[0] - each.lagged.stamp_ns[0] == 40_000_000
    assert (status.state, status.resets, status.missed_knots, status.degraded) == ("running", 0, 0, "")
    assert {name: stream.dropped for name, stream in status.streams.items()} == {
        "joints": {},
        "imu": {},
        "mocap": {},
    }
    assert status.streams["joints"].rate_hz == pytest.approx(500.0)
    assert status.streams["mocap"].rate_hz == pytest.approx(100.0, rel=0.01)
    assert 0.0 < status.solve_seconds["p50"] <= status.solve_seconds["p99"]
    assert 0.5 < status.chi_square["mocap position"] < 1.6


def test_live_agrees_with_the_whole_recording() -> None:
    found, _ = undisturbed()
    assert force_difference(found, "lagged") < 2.0
    assert force_difference(found, "newest") < 2.5
    base, whole = found[-1].newest.links["base"], offline().links["base"]
    assert abs(base.estimate.mass - whole.estimate.mass) < 2.0 * base.std.mass
    assert base.std.mass > whole.std.mass
    last = found[-1].newest
    index = round((last.stamp_ns[0] - offline().stamp_ns[0]) / 1e7)
    difference = last.base_position_W[0] - offline().base_position_W[index]
    assert np.all(np.abs(difference) < 4.0 * last.std["base_position_W"][0])


# What may happen to every system


def dropped(messages: Samples) -> Samples:
    random = np.random.default_rng(1)
    return [sample for sample in messages if random.random() > 0.05]


def jittered(messages: Samples) -> Samples:
    random = np.random.default_rng(2)
    delay = 20e6 * random.random(len(messages))
    return [
        Sample(s.arrival_ns + int(late), s.stream, s.stamp_ns, s.values)
        for s, late in zip(messages, delay, strict=True)
    ]


def late_mocap(messages: Samples) -> Samples:
    return [
        Sample(s.arrival_ns + 40_000_000 * (s.stream == "mocap"), s.stream, s.stamp_ns, s.values)
        for s in messages
    ]


def twice(messages: Samples) -> Samples:
    return [sample for sample in messages for _ in range(2)]


@pytest.mark.parametrize("wire", [dropped, jittered, late_mocap, twice])
def test_an_unreliable_wire_costs_little(wire: Fault) -> None:
    found, status = live(wire(list(samples())))
    assert_finite(found)
    assert status.resets == 0
    np.testing.assert_array_equal(np.diff(stamps_of(found)) % 10_000_000, 0)
    assert np.all(np.diff(stamps_of(found)) > 0)
    assert len(found) > 0.9 * len(undisturbed()[0]) / (5 if wire is jittered else 1)
    assert force_difference(found, "lagged") < 3.5
    if wire is twice:
        assert status.streams["joints"].dropped["duplicate stamps"] == len(recording().joints.stamp_ns)


# Faults that pass


def changed(stream: str, change: Callable[[tuple[np.ndarray, ...]], tuple[np.ndarray, ...]]) -> Fault:
    """A fault of one stream while it lasts."""

    def apply(messages: Samples) -> Samples:
        return [
            Sample(s.arrival_ns, s.stream, s.stamp_ns, change(s.values))
            if s.stream == stream and during(s)
            else s
            for s in messages
        ]

    return apply


def lost(stream: str) -> Fault:
    return lambda messages: [s for s in messages if not (s.stream == stream and during(s))]


def with_nan(values: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    position = values[0].copy()
    position[4] = np.nan
    return position, *values[1:]


def frozen(messages: Samples) -> Samples:
    last: dict[str, tuple[np.ndarray, ...]] = {}
    out = []
    for sample in messages:
        stuck = sample.stream == "mocap" and during(sample)
        values = last["mocap"] if stuck else sample.values
        last[sample.stream] = values
        out.append(Sample(sample.arrival_ns, sample.stream, sample.stamp_ns, values))
    return out


def stray(messages: Samples) -> Samples:
    hit = next(i for i, s in enumerate(messages) if s.stream == "joints" and during(s))
    s = messages[hit]
    return [
        *messages[:hit],
        Sample(s.arrival_ns, s.stream, s.stamp_ns + 3600 * NS, s.values),
        *messages[hit:],
    ]


FAULTS: dict[str, tuple[Fault, str, str]] = {
    "mocap lost": (lost("mocap"), "", ""),
    "imu lost": (lost("imu"), "", ""),
    "mocap zeros": (
        changed("mocap", lambda v: (0 * v[0], 0 * v[1])),
        "mocap",
        "lost (zeros or no unit quaternion)",
    ),
    "mocap NaN": (changed("mocap", lambda v: (np.nan * v[0], v[1])), "mocap", "not finite"),
    "mocap frozen": (frozen, "mocap", "frozen"),
    "encoder NaN": (changed("joints", with_nan), "joints", "not finite"),
    "gyroscope infinite": (changed("imu", lambda v: (np.inf * v[0], v[1])), "imu", "not finite"),
    "joints out of range": (changed("joints", lambda v: (57.3 * v[0], v[1], v[2])), "joints", "out of range"),
    "one stamp an hour ahead": (stray, "joints", "stray stamps"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_passes_and_is_counted(name: str) -> None:
    fault, stream, reason = FAULTS[name]
    found, status = live(fault(list(samples())))
    assert_finite(found)
    assert status.resets == 0
    np.testing.assert_array_equal(np.diff(stamps_of(found)), 10_000_000)
    assert force_difference(found, "lagged", SETTLED) < 2.0
    if reason:
        assert status.streams[stream].dropped[reason] > 0
    if name == "mocap lost":
        std = np.array([each.newest.std["base_position_W"][0, 0] for each in found])
        time = np.array([seconds(stamp) for stamp in stamps_of(found)])
        blind = std[(time > FAULT[1] - 0.1) & (time < FAULT[1])].mean()
        assert blind > 1.5 * std[(time > 0.5) & (time < FAULT[0])].mean()


WRONG: dict[str, tuple[Fault, str]] = {
    "mocap elsewhere": (changed("mocap", lambda v: (v[0] + 0.4, v[1])), "mocap position"),
    "mocap turned": (
        changed("mocap", lambda v: (v[0], v[1][[3, 2, 1, 0]] * [1, -1, 1, -1])),
        "mocap orientation",
    ),
    "IMU upside down": (changed("imu", lambda v: (v[0] * [1, -1, -1], v[1])), "gyroscope"),
    "gyroscope biased": (changed("imu", lambda v: (v[0] + 3.0, v[1])), "gyroscope"),
    "one encoder off": (
        changed("joints", lambda v: (v[0] + 0.5 * (np.arange(12) == 4), *v[1:])),
        "joint position",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_measurements_lose_their_weight(name: str) -> None:
    fault, sensor = WRONG[name]
    found, status = live(fault(list(samples())))
    assert_finite(found)
    assert status.resets == 0
    assert status.rejected[sensor] > 10
    assert force_difference(found, "lagged", SETTLED) < 2.0
    base = found[-1].newest.links["base"]
    assert abs(base.estimate.mass - offline().links["base"].estimate.mass) < 0.15


# What needs a new start


def test_clock_that_goes_back_starts_the_window_anew() -> None:
    first = [s for s in samples() if seconds(s.stamp_ns) < 1.3]
    again = [
        Sample(s.arrival_ns + 2 * NS, s.stream, s.stamp_ns, s.values)
        for s in samples()
        if seconds(s.stamp_ns) < 1.3
    ]
    found, status = live([*first, *again])
    assert status.resets == 1
    assert status.last_reset == "the clock of the joints jumped"
    back = np.flatnonzero(np.diff(stamps_of(found)) < 0)
    assert len(back) == 1
    assert len(found) - back[0] > 100
    assert_finite(found)


def test_origin_of_motion_capture_that_moves_starts_the_window_anew() -> None:
    def moved(messages: Samples) -> Samples:
        shift = np.array([0.5, 0.0, 0.0])
        return [
            Sample(s.arrival_ns, s.stream, s.stamp_ns, (s.values[0] + shift, s.values[1]))
            if s.stream == "mocap" and seconds(s.stamp_ns) > FAULT[0]
            else s
            for s in messages
        ]

    found, status = live(moved(list(samples())))
    assert status.resets == 1
    assert "origin moved" in status.last_reset
    x = found[-1].newest.base_position_W[0, 0] - undisturbed()[0][-1].newest.base_position_W[0, 0]
    assert x == pytest.approx(0.5, abs=0.01)


# What is missing from the start


def test_without_motion_capture_it_waits_and_says_why() -> None:
    found, status = live([s for s in samples() if s.stream != "mocap"])
    assert found == []
    assert (status.state, status.reason) == ("waiting", "no mocap yet")


def test_without_imu_it_runs() -> None:
    found, status = live([s for s in samples() if s.stream != "imu"])
    assert status.state == "running"
    assert force_difference(found, "lagged") < 2.5


def test_missing_joint_and_wrong_lengths_are_named() -> None:
    estimator = LiveEstimator(go2(), load_estimator_config("mhe"))
    names, zeros = go2().joint_names, np.zeros(12)
    estimator.push_joints(0, names[1:], zeros[1:], zeros[1:], zeros[1:])
    estimator.push_joints(0, names, zeros[1:], zeros, zeros)
    estimator.push_mocap(0, zeros[:2], zeros[:4])
    estimator.push_imu(0, zeros[:4], zeros[:3])
    assert estimator.update() is None
    dropped = {name: stream.dropped for name, stream in estimator.status.streams.items()}
    assert dropped["joints"] == {f"without joint {names[0]}": 1, "other lengths than names": 1}
    assert dropped["mocap"] == {"other than position and quaternion": 1}
    assert dropped["imu"] == {"other than three axes": 1}


# Settings


def test_steps_that_had_to_wait_are_estimated_all_the_same() -> None:
    """Updates come every 45 ms or so: four or five steps at once."""
    found, status = live(samples(), every=50)
    np.testing.assert_array_equal(np.diff(stamps_of(found)), 10_000_000)
    assert len(found) > 100 * DURATION - 10
    assert_finite(found)
    assert (status.missed_knots, status.unestimated) == (0, 0)
    assert {(e.newest.stamp_ns[0] - e.lagged.stamp_ns[0]) for e in found if e.lagged} == {40_000_000}
    assert force_difference(found, "lagged") < 2.0


def test_steps_that_waited_longer_than_the_window_are_counted() -> None:
    found, status = live(samples(), "horizon.steps=8", every=160)  # every 145 ms
    missing = int((np.diff(stamps_of(found)) // 10_000_000 - 1).sum())
    assert missing > 20
    assert 0 <= status.unestimated - missing < 10  # those before the first estimate count, too


def test_budget_cuts_work_and_says_so() -> None:
    found, status = live(list(samples())[:1500], "horizon.budget=1e-6")
    assert status.degraded == "no refinement, half the window"
    assert status.steps == 10
    assert_finite(found)
    assert len(found) > 100


def test_new_settings_start_the_window_anew() -> None:
    estimator = LiveEstimator(go2(), load_estimator_config("mhe"))
    estimator.reconfigure(load_estimator_config("mhe", ["horizon.steps=8"]))
    assert estimator.status.last_reset == "new settings"
