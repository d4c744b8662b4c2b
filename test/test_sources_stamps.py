# SPDX-License-Identifier: Apache-2.0
"""Time of a sample: header, receipt, or the counter of a LowState."""

from __future__ import annotations

from dataclasses import replace

import bags
import numpy as np
import pytest
from bags import GO
from hypothesis import given, settings
from hypothesis import strategies as st
from recordings import EPOCH, recording

from prime_ros.exceptions import SourceError
from prime_ros.sources import SourceOptions, load
from prime_ros.sources.stamps import header_stamps, tick_stamps

NAMES = ("hip", "knee", "ankle")
WHOLE = recording(NAMES, 1.0)
MS = 1_000_000


def counted(seconds: float, rate: float = 500.0, start: int = 0) -> np.ndarray:
    return start + np.round(np.arange(round(seconds * rate)) * 1000 / rate).astype(np.int64)


def read(path, stamps="auto", **changes):
    return load(path, SourceOptions(stamps=stamps, vendor_joint_names=NAMES, **changes))


# --- the counter -------------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    drift=st.floats(-2e-4, 2e-4),
    jitter=st.floats(1e3, 1e6),
    start=st.integers(0, 2**32 - 1),
)
def test_the_counter_gives_time_without_jitter_and_drift(seed, drift, jitter, start):
    """Messages that come late in bursts, clocks that drift apart, a counter that may wrap around."""
    random = np.random.default_rng(seed)
    tick = counted(30.0)
    made = EPOCH + np.round(tick * MS * (1 + drift)).astype(np.int64)
    late = random.exponential(jitter, len(tick)) + 50 * MS * (random.random(len(tick)) < 0.002)
    receipt = np.maximum.accumulate(made + late.astype(np.int64))
    stamps = tick_stamps((start + tick) % 2**32, receipt)
    error = stamps - made
    early = np.quantile(receipt - made, 0.1)  # what is left of the delay, which nothing tells
    assert abs(np.median(error) - early) < 0.02 * jitter + 500
    assert np.ptp(error) < 0.06 * jitter + 500
    assert (np.diff(stamps) > 0).all()


def test_a_recorder_whose_clock_steps_once_does_not_bend_the_counter():
    tick = counted(60.0)
    receipt = EPOCH + tick * MS
    receipt[: len(tick) // 5] -= 40 * MS
    stamps = tick_stamps(tick, receipt)
    np.testing.assert_allclose(np.diff(stamps), 2 * MS, atol=2)
    np.testing.assert_allclose(stamps[-1], receipt[-1], atol=0.1 * MS)


@pytest.mark.parametrize(
    ("tick", "words"),
    [
        (np.zeros(1000, dtype=np.int64), "stands still"),
        (np.repeat(counted(1.0, 10.0), 100), "stands still"),
        (np.concatenate([counted(1.0, start=100_000), counted(1.0)]), "goes back"),
        (counted(2.0) * 1000, "got 0.001 ms"),
        (counted(2.0) // 2, "got 2 ms"),
    ],
)
def test_a_counter_that_counts_no_milliseconds_is_refused(tick, words):
    receipt = EPOCH + 2 * MS * np.arange(len(tick))
    with pytest.raises(SourceError, match=words):
        tick_stamps(tick, receipt)


# --- in bags -----------------------------------------------------------------------------------------------


def low_state_bag(path, **changes):
    delay = 3 * MS * (np.arange(501) % 7 == 0)
    streams = [
        ("/lowstate", GO, bags.low_states(WHOLE, NAMES, delay=np.minimum(delay, 1.9 * MS), **changes)),
        bags.streams_of(WHOLE)[1],
    ]
    return bags.write_bag(path, streams)


def test_low_states_take_the_counter_unless_told_otherwise(tmp_path):
    path = low_state_bag(tmp_path / "bag", tick0=2**32 - 100)
    exact = WHOLE.joints.stamp_ns
    for choice in ("auto", "tick"):
        np.testing.assert_array_equal(read(path, choice).joints.stamp_ns, exact)
    late = read(path, "receipt")
    assert set((late.joints.stamp_ns - exact).tolist()) == {0, 1_900_000}
    assert late.notes == ()
    with pytest.raises(SourceError, match=r"got --stamps header, expected auto, tick or receipt"):
        read(path, "header")


def test_a_counter_out_of_use_gives_way_to_receipt_with_a_note(tmp_path):
    messages = []
    for stamp, raw in bags.low_states(WHOLE, NAMES):
        message = bags.TYPES.deserialize_cdr(bytes(raw), GO)
        message.tick = 0
        messages.append((stamp, message))
    path = bags.write_bag(tmp_path / "bag", [("/lowstate", GO, messages), bags.streams_of(WHOLE)[1]])
    got = read(path)
    np.testing.assert_array_equal(got.joints.stamp_ns, WHOLE.joints.stamp_ns)
    assert len(got.notes) == 1
    assert "stands still" in got.notes[0]
    assert "time of receipt" in got.notes[0]
    with pytest.raises(SourceError, match=r"stands still.*use --stamps receipt"):
        read(path, "tick")


def test_without_a_low_state_there_is_no_counter(tmp_path):
    path = bags.write_bag(tmp_path / "bag", bags.streams_of(WHOLE))
    with pytest.raises(SourceError, match="got tick, expected a LowState"):
        read(path, "tick")


def test_receipt_stands_in_for_headers_that_do_not_say_when(tmp_path):
    for value, words in (
        (0, "headers without time"),
        (5, r"the same header.stamp in all 501 messages \(5 ns\)"),
    ):
        frozen = replace(WHOLE.joints, stamp_ns=np.full_like(WHOLE.joints.stamp_ns, value))
        messages = bags.ours._joint_messages(frozen)
        stream = [(stamp, m) for stamp, (_, m) in zip(WHOLE.joints.stamp_ns.tolist(), messages, strict=True)]
        streams = [("/joint_states", bags.JOINT_STATE, stream), *bags.streams_of(WHOLE)[1:]]
        path = bags.write_bag(tmp_path / f"bag{value}", streams)
        with pytest.raises(SourceError, match=f"{words}.*--stamps receipt"):
            read(path)
        np.testing.assert_array_equal(read(path, "receipt").joints.stamp_ns, WHOLE.joints.stamp_ns)


def test_headers_hold_nanoseconds():
    stamps = header_stamps(np.array([2**31 - 1, -1]), np.array([999_999_999, 0]), "here")
    assert stamps.tolist() == [(2**31 - 1) * 10**9 + 999_999_999, -(10**9)]
