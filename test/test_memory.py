# SPDX-License-Identifier: Apache-2.0
"""What runs for hours must not keep memory: neither in Python, nor in the C++ libraries below it."""

from __future__ import annotations

import ctypes
import gc
import platform
import sys
from collections.abc import Callable
from itertools import pairwise

import pytest

from prime_ros.config import load_estimator_config
from prime_ros.estimation.live import LiveEstimator
from prime_ros.robot import load_robot
from prime_ros.simulation.simulator import Simulator

pytest.importorskip("mujoco")
if platform.libc_ver()[0] != "glibc":
    pytest.skip("counts what glibc has handed out", allow_module_level=True)

STEPS = 500
LEAST = 2_000  # bytes: four per step, or one small object of Python every fifth
SMALL = 20  # bytes that such an object counts: some lists and caches still grow a little


class Allocated(ctypes.Structure):
    """struct mallinfo2 of glibc."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


def in_use() -> int:
    """Bytes that are handed out, by glibc and for the small objects of Python, which it does not see."""
    library = ctypes.CDLL(None)
    library.mallinfo2.restype = Allocated
    gc.collect()
    found = library.mallinfo2()
    return int(found.uordblks + found.hblkhd + SMALL * sys.getallocatedblocks())


def growth(step: Callable[[], object]) -> int:
    """Least growth over one of three spans of steps: a leak is in all of them [bytes]."""
    sizes = []
    for _ in range(4):
        for _ in range(STEPS):
            step()
        sizes.append(in_use())
    return min(after - before for before, after in pairwise(sizes))


def test_a_leak_would_be_seen() -> None:
    large: list[bytes] = []
    assert growth(lambda: large.append(bytes(1000))) > LEAST
    small: list[object] = []
    assert growth(lambda: small.append(object())) > LEAST


def test_a_simulated_robot_and_its_live_estimate_keep_nothing() -> None:
    robot = load_robot("go2")
    simulator = Simulator(robot, gait="trot", seed=0)
    estimator = LiveEstimator(robot, load_estimator_config("mhe"))

    def step() -> None:
        simulator.step()
        s = simulator.sensors()
        estimator.push_imu(s.stamp_ns, s.angular_velocity, s.linear_acceleration)
        if s.mocap is not None:
            estimator.push_mocap(s.stamp_ns, s.mocap.position, s.mocap.quat_xyzw)
        estimator.push_joints(
            s.stamp_ns, robot.joint_names, s.joint_position, s.joint_velocity, s.joint_torque
        )
        estimator.update()

    for _ in range(2600):  # 1.7 s of samples and 500 times of updates are kept on purpose
        step()
    assert growth(step) < LEAST
