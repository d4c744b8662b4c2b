# SPDX-License-Identifier: Apache-2.0
"""The same log in every format gives the same recording and the same estimate."""

from __future__ import annotations

from dataclasses import replace

import bags
import numpy as np
import pytest
from recordings import BAG, assert_same

from prime_ros.config import load_estimator_config
from prime_ros.estimation.full_information import solve
from prime_ros.measurements import align
from prime_ros.robot import load_robot
from prime_ros.sources import SourceOptions, load, write_rosbag, write_table

TRAJECTORIES = (
    "base_position_W",
    "base_quat_xyzw",
    "base_velocity_B",
    "joint_position",
    "joint_velocity",
    "joint_torque",
    "contact_force_W",
    "contact_probability",
)


@pytest.fixture(scope="module")
def log():
    """Two seconds with every bit of float64 in use: the bundled recording itself has float32 numbers."""
    random = np.random.default_rng(0)
    part = load(BAG).cropped(2.0, 2.0)

    def with_all_bits(samples, *fields):
        values = {field: getattr(samples, field) for field in fields}
        return replace(
            samples, **{f: v * (1 + 3e-8 * random.uniform(-1, 1, v.shape)) for f, v in values.items()}
        )

    return replace(
        part,
        joints=with_all_bits(part.joints, "position", "velocity", "torque"),
        imu=with_all_bits(part.imu, "angular_velocity", "linear_acceleration"),
    )


@pytest.fixture(scope="module")
def robot():
    return load_robot("go2")


def estimated(recording, robot):
    config = load_estimator_config("pfie")
    return solve(align(recording, robot, config), robot, config)


@pytest.fixture(scope="module")
def estimate(log, robot):
    return estimated(log, robot)


def assert_same_estimate(one, other, tolerance=1e-6):
    """Require equality to a tolerance, of the largest value where that is above one."""
    (link,) = one.links
    pairs = {name: (getattr(one, name), getattr(other, name)) for name in TRAJECTORIES}
    inertias = (one.links[link].estimate, other.links[link].estimate)
    pairs |= {name: tuple(getattr(i, name) for i in inertias) for name in ("mass", "com", "inertia_com")}
    pairs |= {f"std of {name}": (value, other.std[name]) for name, value in one.std.items()}
    for name, (first, second) in pairs.items():
        np.testing.assert_allclose(
            second, first, rtol=0, atol=tolerance * max(1.0, np.abs(first).max()), err_msg=name
        )
    assert other.certificate.converged


def permuted(log):
    """Joints in another order, as a driver may publish them."""
    order = np.random.default_rng(1).permutation(len(log.joints.names))
    names = tuple(log.joints.names[i] for i in order)
    tables = (log.joints.position, log.joints.velocity, log.joints.torque)
    joints = type(log.joints)(log.joints.stamp_ns, names, *(table[:, order] for table in tables))
    return replace(log, joints=joints)


WRITERS = {
    "npz": lambda log, folder: write_table(log, folder / "log.npz"),
    "csv": lambda log, folder: write_table(log, folder / "log.csv"),
    "parquet": lambda log, folder: write_table(log, folder / "log.parquet"),
    "sqlite3": lambda log, folder: write_rosbag(log, folder / "log", "sqlite3"),
    "mcap": lambda log, folder: write_rosbag(log, folder / "log", "mcap"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_log_is_the_same_in_every_format(tmp_path, log, name):
    WRITERS[name](log, tmp_path)
    (path,) = tmp_path.iterdir()
    assert_same(load(path), log)


def test_the_estimate_is_the_same_from_the_same_recording(tmp_path, log, robot, estimate):
    """Once is enough: the test above shows that the recordings do not differ in a single bit."""
    write_table(log, tmp_path / "log.csv")
    assert_same_estimate(estimate, estimated(load(tmp_path / "log.csv"), robot))


def test_the_order_of_the_joints_does_not_matter(tmp_path, log, robot, estimate):
    write_rosbag(permuted(log), tmp_path / "log", "mcap")
    assert_same_estimate(estimate, estimated(load(tmp_path / "log"), robot))


@pytest.mark.parametrize("msgtype", [bags.GO, bags.HG])
def test_a_low_state_in_the_vendors_order_gives_the_same_estimate(tmp_path, log, robot, estimate, msgtype):
    order = robot.vendor_joint_names
    assert order != robot.joint_names
    streams = [("/lowstate", msgtype, bags.low_states(log, order, msgtype)), bags.streams_of(log)[1]]
    got = load(bags.write_bag(tmp_path / "log", streams), SourceOptions(vendor_joint_names=order))
    np.testing.assert_array_equal(got.joints.stamp_ns, log.joints.stamp_ns)
    columns = [log.joints.names.index(name) for name in order]
    np.testing.assert_array_equal(got.joints.torque, log.joints.torque[:, columns].astype(np.float32))
    assert (got.joints.torque != log.joints.torque[:, columns]).mean() > 0.5
    if msgtype == bags.GO:
        # Rounding of the input, times what the problem makes of it.
        assert_same_estimate(estimate, estimated(got, robot), 64 * np.finfo(np.float32).eps)
