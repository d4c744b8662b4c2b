# SPDX-License-Identifier: Apache-2.0
"""The bundled recording with what goes wrong in recordings."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from recordings import BAG, NS
from scipy.spatial.transform import Rotation
from simulation import go2

from prime_ros import sources
from prime_ros.measurements import ImuSamples, Recording
from prime_ros.measurements.cleaning import in_model_order
from prime_ros.measurements.samples import selected

Array = NDArray[np.float64]


@cache
def bundled() -> Recording:
    """As it is, the joints in model order."""
    whole = sources.load(BAG)
    return replace(whole, joints=in_model_order(whole.joints, go2().joint_names)[0])


def late(whole: Recording, seconds: float) -> Recording:
    """Motion capture whose stamps are late."""
    stamp_ns = whole.mocap.stamp_ns + round(seconds * NS)
    return replace(whole, mocap=replace(whole.mocap, stamp_ns=stamp_ns))


def with_poses(whole: Recording, position: Array | None = None, quat_xyzw: Array | None = None) -> Recording:
    """Other poses of motion capture."""
    mocap = whole.mocap
    return replace(
        whole,
        mocap=replace(
            mocap,
            position=mocap.position if position is None else position,
            quat_xyzw=mocap.quat_xyzw if quat_xyzw is None else quat_xyzw,
        ),
    )


def turned_imu(whole: Recording, rotation: Rotation) -> Recording:
    """An IMU that is mounted turned: what it measures is in other axes."""
    assert whole.imu is not None
    rate, force = (
        rotation.apply(values.copy())
        for values in (whole.imu.angular_velocity, whole.imu.linear_acceleration)
    )
    return replace(whole, imu=ImuSamples(whole.imu.stamp_ns, rate, force))


def scaled_imu(whole: Recording, rate: float = 1.0, force: float = 1.0) -> Recording:
    """An IMU in other units."""
    imu = whole.imu
    assert imu is not None
    return replace(
        whole, imu=ImuSamples(imu.stamp_ns, rate * imu.angular_velocity, force * imu.linear_acceleration)
    )


def with_joints(whole: Recording, **changes: Array) -> Recording:
    """Other values of the joints."""
    return replace(whole, joints=replace(whole.joints, **changes))  # type: ignore[arg-type]


def scaled(values: Array, column: int, factor: float) -> Array:
    """A copy with one column multiplied."""
    changed = values.copy()
    changed[:, column] *= factor
    return changed


def lost(whole: Recording, start: float, duration: float) -> tuple[Recording, NDArray[np.bool_]]:
    """Motion capture that publishes zeros for a while; also which poses are zeros."""
    time = (whole.mocap.stamp_ns - whole.start_ns) / NS
    gone = (time >= start) & (time < start + duration)
    keep = ~gone[:, None]
    return with_poses(whole, keep * whole.mocap.position, keep * whole.mocap.quat_xyzw), gone


def jumping(whole: Recording, share: float, seed: int) -> tuple[Recording, NDArray[np.bool_]]:
    """Single poses that jump by 0.05 to 1 m and 5 to 90 deg, signs of quaternions at random; which do."""
    random = np.random.default_rng(seed)
    count = len(whole.mocap.stamp_ns)
    bad = random.random(count) < share
    shift, axis = (_directions(random, count) for _ in range(2))
    shift *= random.uniform(0.05, 1.0, (count, 1))
    axis *= np.deg2rad(random.uniform(5.0, 90.0, (count, 1)))
    turn = Rotation.from_rotvec(bad[:, None] * axis)
    quat = (Rotation.from_quat(whole.mocap.quat_xyzw) * turn).as_quat()
    sign = random.choice([-1.0, 1.0], (count, 1))
    return with_poses(whole, whole.mocap.position + bad[:, None] * shift, sign * quat), bad


def without(whole: Recording, share: float, seed: int) -> Recording:
    """Joint samples lost at random."""
    random = np.random.default_rng(seed)
    return replace(whole, joints=selected(whole.joints, random.random(len(whole.joints.stamp_ns)) >= share))


def every(whole: Recording, joints: int = 1, imu: int = 1, mocap: int = 1) -> Recording:
    """Streams at a part of their rate."""
    assert whole.imu is not None
    streams = ((whole.joints, joints), (whole.mocap, mocap), (whole.imu, imu))
    return Recording(
        *(selected(stream, np.arange(len(stream.stamp_ns)) % step == 0) for stream, step in streams)
    )


def _directions(random: np.random.Generator, count: int) -> Array:
    vectors = random.standard_normal((count, 3))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
