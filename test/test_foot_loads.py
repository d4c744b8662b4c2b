# SPDX-License-Identifier: Apache-2.0
"""What a flat foot carries: statics of known corner forces, and deviations against drawn ones."""

from __future__ import annotations

from functools import cache

import numpy as np
import pinocchio as pin
import pytest

from prime_ros.estimation.foot_loads import foot_loads
from prime_ros.robot import Robot, load_robot

THRESHOLD = 5.0
LENGTH, HALF_WIDTH = 0.17, 0.0275  # of the sole; the corners of heel and toe differ by 5 mm


@cache
def g1() -> Robot:
    return load_robot("g1")


def standing(yaw: float = 0.0) -> np.ndarray:
    q = pin.neutral(g1().model)
    q[3:7] = pin.Quaternion(pin.rpy.rpyToMatrix(0.0, 0.0, yaw)).coeffs()
    return q[None]


def forces(**by_contact: tuple[float, float, float]) -> np.ndarray:
    return np.array([[by_contact.get(name, (0.0, 0.0, 0.0)) for name in g1().contact_names]])


def certain() -> np.ndarray:
    size = 3 * len(g1().contacts)
    return 1e-9 * np.eye(size)[None]


@pytest.mark.parametrize("yaw", [0.0, 1.0])
def test_a_foot_on_its_toe(yaw: float) -> None:
    load = (0.0, 0.0, 100.0)
    loads = foot_loads(standing(yaw), forces(left_c2=load, left_c3=load), certain(), g1(), THRESHOLD)
    assert loads is not None
    assert loads.names == ("left_foot", "right_foot")
    np.testing.assert_allclose(loads.wrench_W[0, 0, :3], [0.0, 0.0, 200.0])
    np.testing.assert_allclose(loads.pressure_centre_F[0, 0], [LENGTH / 2, 0.0], atol=1e-9)
    assert loads.roll[0, 0] == pytest.approx(1.0)
    assert np.isnan(loads.roll[0, 1])
    assert np.isnan(loads.pressure_centre_F[0, 1]).all()
    np.testing.assert_array_equal(loads.wrench_W[0, 1], 0.0)


def test_the_side_and_the_heel_of_a_foot() -> None:
    load = (0.0, 0.0, 50.0)
    heel = foot_loads(standing(), forces(right_c0=load, right_c1=load), certain(), g1(), THRESHOLD)
    left = foot_loads(standing(), forces(right_c0=load, right_c2=load), certain(), g1(), THRESHOLD)
    assert heel is not None
    assert left is not None
    assert heel.roll[0, 1] == pytest.approx(0.0)
    np.testing.assert_allclose(left.pressure_centre_F[0, 1], [0.0, HALF_WIDTH], atol=1e-9)


def test_corners_that_nobody_can_tell_apart_make_a_certain_sum() -> None:
    # 50 N of uncertainty in each corner, but only 1 N in what the foot carries.
    corner, whole = 50.0, 1.0
    share = np.eye(4) - 0.25
    normal = corner**2 * share + (whole / 4.0) ** 2
    covariance = np.zeros((24, 24))
    covariance[2:12:3, 2:12:3] = normal
    load = (0.0, 0.0, 25.0)
    held = forces(**{f"left_c{i}": load for i in range(4)})
    loads = foot_loads(standing(), held, covariance[None], g1(), THRESHOLD)
    assert loads is not None
    assert loads.std_wrench_W[0, 0, 2] == pytest.approx(whole)
    assert loads.std_wrench_W[0, 0, 4] > 3.0  # the moment is what the corners make of it


def test_deviations_are_those_of_drawn_forces() -> None:
    random = np.random.default_rng(5)
    root = 2.0 * random.standard_normal((24, 24))
    covariance = 0.01 * root @ root.T
    load = (3.0, -2.0, 60.0)
    held = forces(**{f"{side}_c{i}": load for side in ("left", "right") for i in range(4)})
    q = standing(0.4)
    loads = foot_loads(q, held, covariance[None], g1(), THRESHOLD)
    drawn = held.reshape(1, -1) + random.multivariate_normal(np.zeros(24), covariance, 4000)
    many = foot_loads(
        np.repeat(q, 4000, axis=0), drawn.reshape(4000, 8, 3), np.zeros((4000, 24, 24)), g1(), THRESHOLD
    )
    assert loads is not None
    assert many is not None
    np.testing.assert_allclose(many.wrench_W.std(axis=0), loads.std_wrench_W[0], rtol=0.05)
    np.testing.assert_allclose(many.pressure_centre_F.std(axis=0), loads.std_pressure_centre_F[0], rtol=0.1)


def test_points_are_no_soles() -> None:
    go2 = load_robot("go2")
    q = pin.neutral(go2.model)[None]
    assert foot_loads(q, np.zeros((1, 4, 3)), np.zeros((1, 12, 12)), go2, THRESHOLD) is None
