# SPDX-License-Identifier: Apache-2.0
"""Recordings and logs that the tests of the data layer share."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from prime_ros.measurements import ImuSamples, JointSamples, MocapSamples, Recording

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT.parent / "shared" / "data" / "sim"
BAG = ROOT / "examples" / "go2_payload_3kg"
TRUTH = ROOT / "test" / "data" / "go2_payload_3kg_truth.npz"
NS = 1_000_000_000
EPOCH = 1_700_000_000 * NS

sys.path += [str(ROOT / "benchmarks"), str(ROOT / "examples")]  # scripts, no part of the package


def stamps(duration: float, rate: float, start: float = 0.0) -> np.ndarray:
    """Regular stamps from `start` on, ends included [ns]."""
    return EPOCH + np.round((start + np.arange(round(duration * rate) + 1) / rate) * NS).astype(np.int64)


def recording(
    names: tuple[str, ...],
    duration: float = 0.5,
    joint_rate: float = 500.0,
    mocap_rate: float = 100.0,
    seed: int = 0,
) -> Recording:
    """Random samples of every stream on regular stamps; poses turn slowly."""
    random = np.random.default_rng(seed)
    joint_stamps, mocap_stamps = stamps(duration, joint_rate), stamps(duration, mocap_rate)
    size = (len(joint_stamps), len(names))
    angle = 0.5 * np.linspace(0, 1, len(mocap_stamps))
    quat = np.column_stack([0 * angle, 0 * angle, np.sin(angle / 2), np.cos(angle / 2)])
    return Recording(
        JointSamples(joint_stamps, names, *random.standard_normal((3, *size))),
        MocapSamples(mocap_stamps, random.standard_normal((len(mocap_stamps), 3)), quat),
        ImuSamples(joint_stamps, *random.standard_normal((2, len(joint_stamps), 3))),
    )


def assert_same(one: Recording, other: Recording) -> None:
    """Require two recordings to be equal to the last bit, NaN equal to NaN."""
    assert one.joints.names == other.joints.names
    assert (one.imu is None) == (other.imu is None)
    for first, second in ((one.joints, other.joints), (one.mocap, other.mocap), (one.imu, other.imu)):
        for field, value in vars(first).items() if first is not None else ():
            if isinstance(value, np.ndarray):
                np.testing.assert_array_equal(value, getattr(second, field), err_msg=field)
