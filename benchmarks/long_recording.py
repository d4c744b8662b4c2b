# SPDX-License-Identifier: Apache-2.0
"""How long and how much memory `prime solve` takes for a recording of many minutes.

Simulates a Go2 that trots in place with a payload of 3 kg, writes the bag, solves it in a process of its own
and prints what that took:

    python benchmarks/long_recording.py                 10 minutes
    python benchmarks/long_recording.py --minutes 2
    python benchmarks/long_recording.py --keep DIR      leaves bag and results there
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pinocchio as pin
import yaml
from child import run_alone
from trot import Shaking, loaded, noisy_sensors, trot

from prime_ros.config import load_estimator_config
from prime_ros.robot import load_robot
from prime_ros.sources import write_rosbag

PAYLOAD = pin.Inertia(3.0, np.array([0.04, -0.03, 0.12]), 3.0 * np.diag([0.002, 0.003, 0.004]))
GROUND_HEIGHT = 0.01  # [m]
DT = 0.002  # [s] of the simulation and its joint sensors
TARGET_MB = 1000.0


def main() -> int:
    """Run the benchmark; 1 if the solve fails or takes more memory than the target."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="length of the recording")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where to leave bag and results")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        bag = folder / "bag"
        if not bag.exists():
            run_alone(make_bag, bag, options.minutes)
        return solve(bag, folder / "results", options.minutes)


def make_bag(path: Path, minutes: float) -> None:
    """Simulate and record."""
    robot = load_robot("go2")
    config = load_estimator_config("pfie", [f"dt={DT}"])
    truth = trot(
        loaded(robot, PAYLOAD), config, round(60.0 * minutes / DT), GROUND_HEIGHT, Shaking(force=1.0), seed=0
    )
    write_rosbag(noisy_sensors(truth, robot, DT, seed=1), path, "mcap")


def solve(bag: Path, results: Path, minutes: float) -> int:
    """Run `prime solve` as a user would and print what it took."""
    command = [sys.executable, "-m", "prime_ros.cli", "solve", str(bag.resolve())]
    command += ["--robot", "go2", "--out", str(results.resolve())]
    started = time.perf_counter()
    # From the root folder: beside the sources, Python would take the package without its compiled core.
    process = subprocess.Popen(command, cwd="/")
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds, megabytes = time.perf_counter() - started, usage.ru_maxrss * 1024 / 1e6
    if process.returncode:
        print(f"prime solve failed with exit code {process.returncode}", file=sys.stderr)
        return 1
    found = yaml.safe_load((results / "inertia.yaml").read_text())
    base = found["links"]["base"]
    mass, std = base["estimate"]["mass"] - base["nominal"]["mass"], base["std"]["mass"]
    met = "met" if megabytes <= TARGET_MB else "MISSED"
    share = seconds / (60.0 * minutes)
    print(f"{minutes:g} minutes, {6000 * minutes:.0f} knots: {seconds:.0f} s, {share:.2f} x its length")
    print(f"peak memory {megabytes:.0f} MB, target {TARGET_MB:.0f} MB: {met}")
    print(f"payload {mass:.3f} +- {std:.3f} kg, truth {PAYLOAD.mass:.3f} kg")
    return 0 if megabytes <= TARGET_MB else 1


if __name__ == "__main__":
    sys.exit(main())
