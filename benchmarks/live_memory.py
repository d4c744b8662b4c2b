# SPDX-License-Identifier: Apache-2.0
"""Whether live estimation keeps up for long: memory, missed outputs, and its share of one core.

    python benchmarks/live_memory.py [--minutes 10]

A simulated Go2 trots; its samples (joints and IMU at 500 Hz, motion capture at 100 Hz) go into the estimator
as fast as both can work. Memory is that of the process with simulator, after a minute and at the end.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from child import run_single_threaded

from prime_ros.config import load_estimator_config
from prime_ros.estimation.live import LiveEstimator
from prime_ros.robot import load_robot
from prime_ros.simulation.simulator import STEP, Simulator

GROWTH_MB = 5.0
SETTLED = 60.0  # [s] after which memory must not grow


def main() -> int:
    """Run; 1 if memory grows or an output is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="of simulated time")
    options = parser.parse_args()
    return run_single_threaded(run, options.minutes)


def run(minutes: float) -> int:
    """Simulate and estimate."""
    robot, config = load_robot("go2"), load_estimator_config("mhe")
    simulator = Simulator(robot, gait="trot", feet="soft", seed=0)
    estimator = LiveEstimator(robot, config)
    first = last = count = 0
    busy, memory = 0.0, 0.0
    for k in range(round(60.0 * minutes / STEP)):
        simulator.step()
        sample = simulator.sensors()
        begin = time.thread_time()
        estimator.push_imu(sample.stamp_ns, sample.angular_velocity, sample.linear_acceleration)
        if sample.mocap is not None:
            estimator.push_mocap(sample.stamp_ns, sample.mocap.position, sample.mocap.quat_xyzw)
        estimator.push_joints(
            sample.stamp_ns,
            robot.joint_names,
            sample.joint_position,
            sample.joint_velocity,
            sample.joint_torque,
        )
        found = estimator.update()
        busy += time.thread_time() - begin
        if found is not None:
            last = int(found.newest.stamp_ns[0])
            first, count = first or last, count + 1
        if k == round(SETTLED / STEP):
            memory = resident_mb()
        if k and k % round(SETTLED / STEP) == 0:
            print(f"{k * STEP / 60.0:4.0f} min {resident_mb():.1f} MB", file=sys.stderr)
    growth = resident_mb() - memory
    missed = round((last - first) / (config.dt * 1e9)) + 1 - count
    status = estimator.status
    print(f"{minutes:g} minutes: {count} estimates, {missed} missed, {status.resets} resets")
    share, median = busy / (60.0 * minutes), 1e3 * status.solve_seconds["p50"]
    print(f"share of one core {share:.0%}, update p50 {median:.1f} ms")
    print(
        f"memory {memory:.0f} MB after {SETTLED:g} s, {growth:+.1f} MB at the end, allowed {GROWTH_MB:g} MB"
    )
    return check(growth <= GROWTH_MB and missed == 0, print)


def check(passed: bool, tell: Callable[[str], None]) -> int:
    """Say how it ended."""
    tell("met" if passed else "MISSED")
    return 0 if passed else 1


def resident_mb() -> float:
    """Resident memory of this process [MB]."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6


if __name__ == "__main__":
    sys.exit(main())
