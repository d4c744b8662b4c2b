# SPDX-License-Identifier: Apache-2.0
"""Make the bundled recording of a Go2 that carries 3 kg, from a simulated log.

    python examples/make_go2_recording.py LOG.npz

writes `examples/go2_payload_3kg`, a rosbag2 with what the robot and motion capture would have measured, and
`test/data/go2_payload_3kg_truth.npz`, what no sensor measures, for the tests. The noise is seeded: the same
log gives the same recording.
"""

import argparse
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from prime_ros.config import load_estimator_config  # noqa: E402
from prime_ros.experiments.simulation_logs import SimulationLog, load_log, noisy_recording, truth_at  # noqa: E402
from prime_ros.measurements import Recording, align  # noqa: E402
from prime_ros.measurements.samples import Samples  # noqa: E402
from prime_ros.robot import load_robot  # noqa: E402
from prime_ros.sources import write_rosbag  # noqa: E402

BAG = ROOT / "examples" / "go2_payload_3kg"
TRUTH = ROOT / "test" / "data" / "go2_payload_3kg_truth.npz"
SEED = 2024
MOCAP_RATE = 100.0  # [Hz]
MOCAP_JITTER = 2e-4  # [s]


def main() -> None:
    """Write the bag and its truth."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("log", type=Path, help="simulated log of a Go2 with 3 kg on its back (.npz)")
    parser.add_argument("--duration", type=float, default=10.0, help="length of the recording [s]")
    arguments = parser.parse_args()
    log = load_log(arguments.log)
    recording = make_recording(log, arguments.duration)
    shutil.rmtree(BAG, ignore_errors=True)
    write_rosbag(recording, BAG, storage="mcap")
    write_truth(log, recording)


def make_recording(log: SimulationLog, duration: float) -> Recording:
    """What the sensors would have recorded in the first `duration` seconds of a log."""
    whole = noisy_recording(log, SEED, mocap_rate=MOCAP_RATE, mocap_jitter=MOCAP_JITTER)
    part = whole.cropped(0.0, duration)
    imu = None if part.imu is None else single_precision(part.imu)
    return Recording(single_precision(part.joints), single_precision(part.mocap), imu)


def single_precision(samples: Samples) -> Samples:
    """Round as the robot's own messages do, which carry 32-bit floats; the bag also compresses better."""
    arrays = {name: value for name, value in vars(samples).items() if isinstance(value, np.ndarray)}
    floats: Any = {
        name: array.astype(np.float32) for name, array in arrays.items() if array.dtype.kind == "f"
    }
    return replace(samples, **floats)


def write_truth(log: SimulationLog, recording: Recording) -> None:
    """Write true forces, poses and inertia at the knots at which the recording is estimated."""
    knots = align(recording, load_robot("go2"), load_estimator_config("pfie"))
    truth = truth_at(log, knots.stamp_ns, knots.dt)
    inertia = log.truth["true"]
    TRUTH.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        TRUTH,
        stamp_ns=knots.stamp_ns,
        contact_names=np.array(truth["contact_names"]),
        contact_force_W=truth["contact_force_W"].astype(np.float32),
        base_position_W=truth["base_position_W"].astype(np.float32),
        base_quat_xyzw=truth["base_quat_xyzw"].astype(np.float32),
        mass=inertia["mass"],
        com=np.array(inertia["com"]),
        inertia_com=np.array(inertia["inertia_com"]),
        nominal_mass=log.truth["nominal"]["mass"],
        covered=truth["covered"],
        settings=json.dumps({"seed": SEED, "mocap_rate_hz": MOCAP_RATE, "mocap_jitter_s": MOCAP_JITTER}),
    )


if __name__ == "__main__":
    main()
