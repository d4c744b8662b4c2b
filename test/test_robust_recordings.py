# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in recordings and can be coped with: the payload is found all the same, the user told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from perturbed import bundled, every, jumping, late, lost, with_joints, without
from simulation import go2

from prime_ros.config import load_estimator_config
from prime_ros.estimation.full_information import solve
from prime_ros.measurements import JointSamples, Recording, align

PAYLOAD = 3.0  # [kg]


def permuted(whole: Recording) -> Recording:
    joints, order = whole.joints, np.random.default_rng(1).permutation(12)
    columns = (values[:, order] for values in (joints.position, joints.velocity, joints.torque))
    names = tuple(joints.names[column] for column in order)
    return replace(whole, joints=JointSamples(joints.stamp_ns, names, *columns))


def broken_encoder(whole: Recording) -> Recording:
    position = whole.joints.position.copy()
    position[2000:2500, 4] = np.nan
    return with_joints(whole, position=position)


def shared_stamps(whole: Recording) -> Recording:
    """One joint sample in ten bears the stamp of the one before."""
    stamp_ns = whole.joints.stamp_ns.copy()
    stamp_ns[9::10] = stamp_ns[8::10]
    return replace(whole, joints=replace(whole.joints, stamp_ns=stamp_ns))


CASES: dict[str, tuple[Callable[[Recording], Recording], str]] = {
    "joints permuted": (permuted, ""),
    "an encoder NaN for 1 s": (broken_encoder, "joints: left out of 5000 samples: 500 not finite"),
    "motion capture zero for 0.5 s": (
        lambda whole: lost(whole, 4.0, 0.5)[0],
        "mocap: left out of 1000 samples: 50 lost (zeros or no unit quaternion)",
    ),
    "1 % of poses jump": (lambda whole: jumping(whole, 0.01, 5)[0], " jumps"),
    "duplicated stamps": (shared_stamps, "joints: left out of 5000 samples: 500 duplicate stamps"),
    "20 % of joint samples lost": (lambda whole: without(whole, 0.2, 3), ""),
    "motion capture 30 ms late": (lambda whole: late(whole, 0.03), "the stamps of motion capture are late"),
    "motion capture 100, joints 250, IMU 500 Hz": (lambda whole: every(whole, joints=2), ""),
    "motion capture 50, joints 500, IMU 100 Hz": (
        lambda whole: every(whole, imu=5, mocap=2),
        "base_pose: not measured at",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_payload_is_found_all_the_same(case: str) -> None:
    change, warning = CASES[case]
    settings = load_estimator_config("pfie")
    measurements = align(change(bundled()), go2(), settings)
    warnings = list(measurements.diagnostics.warnings())
    assert any(warning in line for line in warnings) or not warning
    assert not [
        line for line in warnings if "not measured at" not in line and (not warning or warning not in line)
    ]
    estimate = solve(measurements, go2(), settings)
    assert estimate.certificate.converged
    link = estimate.links["base"]
    assert link.estimate.mass - link.nominal.mass == pytest.approx(PAYLOAD, abs=0.1)
