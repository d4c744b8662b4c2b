# SPDX-License-Identifier: Apache-2.0
"""How long the simulated Go2 stays on its feet, and how fast it is simulated on one core.

Every gait with 0 and 3 kg on the back and with soft and stiff feet:

    python benchmarks/gaits.py                  60 s of each, about five minutes
    python benchmarks/gaits.py --seconds 10 --gait trot
    python benchmarks/gaits.py --robot my_quadruped.yaml
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from dataclasses import dataclass

import numpy as np

from prime_ros.robot import Robot, load_robot
from prime_ros.simulation.gaits import GAITS
from prime_ros.simulation.mjcf import FEET
from prime_ros.simulation.payload import Payload
from prime_ros.simulation.simulator import STEP, Simulator

PAYLOADS = (0.0, 3.0)  # [kg]
FASTER_THAN_REAL_TIME = 2.0


@dataclass(frozen=True)
class Run:
    """What one run showed."""

    seconds: float
    """Until it fell or the run ended [s]."""
    height: tuple[float, float]
    """Least and largest height of the base [mm]."""
    tilt: float
    """Largest tilt [deg]."""
    away: float
    """Largest distance from the start [m]."""
    peak: float
    """Largest normal force of one foot [N]."""
    weight: float
    """Mean of the sum of the normal forces over the weight [-]."""
    factor: float
    """Simulated over processor time of one core, with controller, sensors and truth [-]."""


def main() -> int:
    """Run the benchmark; 1 if a robot fell or the simulation is too slow."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robot", default="go2", help="name or YAML file")
    parser.add_argument("--seconds", type=float, default=60.0, help="length of each run")
    parser.add_argument("--gait", choices=GAITS, help="only this one")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    robot = load_robot(options.robot)
    print(
        "gait   feet   payload kg  stands s  height mm  tilt deg  away m  peak N  forces/weight  x real time"
    )
    good = True
    for gait, feet, mass in itertools.product([options.gait] if options.gait else GAITS, FEET, PAYLOADS):
        result = run(robot, gait, feet, mass, options.seconds, options.seed)
        print(
            f"{gait:6} {feet:6} {mass:10g} {result.seconds:9.1f}"
            f" {result.height[0]:5.0f}-{result.height[1]:<4.0f}{result.tilt:9.1f}"
            f" {result.away:7.2f} {result.peak:7.0f} {result.weight:14.4f} {result.factor:12.1f}",
            flush=True,
        )
        good &= result.seconds >= options.seconds - STEP and result.factor > FASTER_THAN_REAL_TIME
    return 0 if good else 1


def run(robot: Robot, gait: str, feet: str, mass: float, seconds: float, seed: int) -> Run:
    """Simulate one combination."""
    simulator = Simulator(robot, gait, feet, Payload(mass) if mass else None, seed)
    weight = 9.81 * (sum(inertia.mass for inertia in robot.model.inertias) + mass)
    rows, start = [], time.process_time()
    for _ in range(round(seconds / STEP)):
        simulator.step()
        truth = simulator.truth()
        simulator.sensors()
        if simulator.fallen:
            break
        (x, y, z), (qx, qy, _, _) = truth.base_position_W, truth.base_quat_xyzw
        normal = truth.contact_force_W[:, 2]
        rows.append([z, 1 - 2 * (qx**2 + qy**2), np.hypot(x, y), normal.max(), normal.sum()])
    spent = time.process_time() - start
    z, up, away, peak, total = np.array(rows).T
    return Run(
        seconds=len(rows) * STEP,
        height=(1e3 * z.min(), 1e3 * z.max()),
        tilt=float(np.degrees(np.arccos(np.clip(up.min(), -1, 1)))),
        away=away.max(),
        peak=peak.max(),
        weight=total.mean() / weight,
        factor=len(rows) * STEP / spent,
    )


if __name__ == "__main__":
    sys.exit(main())
