# SPDX-License-Identifier: Apache-2.0
"""Stamps of live messages that only count milliseconds."""

from __future__ import annotations

import numpy as np
import pytest

from prime_ros.measurements.tick_clock import WRAP, TickClock

EPOCH = 1_700_000_000_000_000_000
COUNT = 20_000  # messages, 2 ms apart: 40 s


def played(drift: float, first_tick: int = 5000, seed: int = 0):
    """Time of counting [ns], tick and receipt [ns]; delays are 0.2 to some 20 ms."""
    random = np.random.default_rng(seed)
    true = EPOCH + 2_000_000 * np.arange(COUNT)
    tick = (first_tick + np.round((true - EPOCH) * (1 + drift) / 1e6).astype(np.int64)) % WRAP
    delay = (0.2 + random.exponential(2.0, COUNT)) * 1e6
    return true, tick.tolist(), (true + delay.astype(np.int64)).tolist()


def stamps(ticks, receipts):
    clock = TickClock()
    return np.array([clock.stamp(t, r) for t, r in zip(ticks, receipts, strict=True)]), clock


@pytest.mark.parametrize("drift", [0.0, 1e-4, -1e-4, 2e-3])
@pytest.mark.parametrize("first_tick", [5000, WRAP - 3000])
def test_jitter_and_drift_are_taken_out(drift, first_tick):
    true, ticks, receipts = played(drift, first_tick)
    found, clock = stamps(ticks, receipts)
    error = (found - true)[COUNT // 8 :] / 1e6  # [ms], after 5 s
    assert clock.is_usable
    assert np.abs(error).max() < 1.5  # counts are whole milliseconds, delays are 2 ms on average and up to 20
    assert abs(error[-COUNT // 4 :].mean()) < 0.5
    assert (found <= receipts).all()


def test_a_restart_of_the_robot_starts_the_map_anew():
    true, ticks, receipts = played(0.0)
    half = COUNT // 2
    again = [*ticks[:half], *(np.array(ticks[half:]) - ticks[half] + 7).tolist()]
    found, _ = stamps(again, receipts)
    assert np.abs(found[half + 1000 :] - true[half + 1000 :]).max() < 2e6


def test_a_counter_that_stands_still_gives_way_to_the_receipt():
    _, _, receipts = played(0.0)
    found, clock = stamps([7] * COUNT, receipts)
    assert not clock.is_usable
    np.testing.assert_array_equal(found[100:], receipts[100:])


def test_a_counter_of_other_units_gives_way_to_the_receipt():
    _, ticks, receipts = played(0.15)
    found, clock = stamps(ticks, receipts)
    assert not clock.is_usable
    np.testing.assert_array_equal(found[-1000:], receipts[-1000:])
