# SPDX-License-Identifier: Apache-2.0
"""One simulated recording: from what `prime simulate` is asked to the files it leaves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from prime_ros.exceptions import SimulationError
from prime_ros.robot import load_robot
from prime_ros.simulation.payload import Payload, parse_payload
from prime_ros.simulation.recording import TruthTable, record
from prime_ros.simulation.simulator import STEP, Simulator
from prime_ros.sources import write_rosbag, write_table
from prime_ros.sources.kinds import BAG_FILES, TABLE_FILES

REPORT_EVERY = 50  # steps between reports of progress


@dataclass(frozen=True)
class SimulationJob:
    """What to simulate and where to put it."""

    robot: str
    """Name or YAML file of the robot."""
    out: Path
    """Folder of a rosbag (mcap), or a table ending in .npz, .csv or .parquet."""
    gait: str = "trot"
    feet: str = "soft"
    duration: float = 10.0
    """[s]"""
    payload: str | None = None
    """``KG`` or ``KG@X,Y,Z``."""
    payload_from: float = 0.0
    """When it is put on [s]."""
    payload_until: float | None = None
    """When it is taken off [s]; None: never."""
    seed: int = 0
    mocap_rate: float = 100.0
    """[Hz]"""
    noise_free: bool = False
    truth: Path | None = None
    """``.npz`` to write the truth to; None: nowhere."""
    urdf: Path | None = None
    """Model file in place of the robot's own."""


def run(job: SimulationJob, progress: Callable[[float], None] = lambda time: None) -> TruthTable:
    """Simulate and write. Nothing is written if the robot falls.

    Args:
        job: What to do.
        progress: Called now and then with the simulated time [s].

    Returns:
        The truth.

    Raises:
        PrimeError: If something asked for makes no sense, the robot falls, or a file cannot be written.
    """
    payload = _checked(job)
    robot = load_robot(job.robot, job.urdf)
    carried = payload if payload is not None and job.payload_from == 0.0 else None
    simulator = Simulator(
        robot,
        gait=job.gait,
        feet=job.feet,
        payload=carried,
        seed=job.seed,
        noise_free=job.noise_free,
        mocap_rate=job.mocap_rate,
    )
    put_on = None if carried is not None or payload is None else round(job.payload_from / STEP)
    taken_off = None if job.payload_until is None else round(job.payload_until / STEP)

    def every_step(simulator: Simulator) -> None:
        count = round(simulator.time / STEP)
        if count == put_on and payload is not None:
            simulator.add_payload(payload)
        if count == taken_off:
            simulator.remove_payload()
        if count % REPORT_EVERY == 0:
            progress(simulator.time)

    recording, truth = record(simulator, job.duration, every_step)
    if job.out.suffix in TABLE_FILES:
        write_table(recording, job.out)
    else:
        write_rosbag(recording, job.out, "mcap")
    if job.truth is not None:
        truth.save(job.truth)
    return truth


def _checked(job: SimulationJob) -> Payload | None:
    """The payload of a job whose other values make sense; what the simulator checks is left to it."""
    _check_files(job)
    if not STEP <= job.duration < math.inf:
        raise SimulationError(f"duration: got {job.duration} s, expected at least {STEP} s")
    if job.payload is None:
        if job.payload_from != 0.0 or job.payload_until is not None:
            raise SimulationError("got a time of the payload but no payload; give one, such as --payload 3")
        return None
    until = job.duration if job.payload_until is None else job.payload_until
    if not 0.0 <= job.payload_from < until <= job.duration:
        raise SimulationError(
            f"payload: got it on from {job.payload_from} s until {until} s,"
            f" expected 0 <= from < until <= {job.duration} s, the duration"
        )
    return parse_payload(job.payload)


def _check_files(job: SimulationJob) -> None:
    out, truth = job.out, job.truth
    if out.suffix in BAG_FILES:
        raise SimulationError(
            f"{out}: a rosbag is a folder; give a name without ending, or one that ends in"
            f" {', '.join(TABLE_FILES)} for a table"
        )
    if out.suffix not in TABLE_FILES and out.exists():
        raise SimulationError(f"{out}: exists already; remove it or give another name")
    if truth is not None and (truth.suffix != ".npz" or truth.resolve() == out.resolve()):
        raise SimulationError(f"{truth}: the truth goes to an .npz of its own")
    for path in (out, truth):
        if path is not None and not path.resolve().parent.is_dir():
            raise SimulationError(f"{path}: cannot be written: there is no folder {path.resolve().parent}")
