# SPDX-License-Identifier: Apache-2.0
"""A simulated Go2 and mhe_node in two processes on real DDS: rate, latency, force error, a payload put on.

    python examples/demo_live.py [--seconds 30] [--payload-at 10] [--json FILE]

Needs an installed prime_ros with its messages, and MuJoCo. Truth is compared here; no node but the simulator
sees it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

PAYLOAD = 3.0  # [kg]
FOUND_AFTER = 3.0  # [s] in which the payload has to be found
TOLERANCE = 0.15  # [kg]
SETTLED = 3.0  # [s] after the start of which forces are not judged, nor a second around the new payload
STARTED = 45.0  # [s] that nodes may take to come up


@dataclass
class Heard:
    """What came on the topics, with the time of its arrival [s]."""

    true_force_raw: list[bytes] = field(default_factory=list)
    force_raw: list[tuple[float, bytes]] = field(default_factory=list)
    mass: list[tuple[float, float, float]] = field(default_factory=list)
    true_mass: list[tuple[float, float]] = field(default_factory=list)


def main() -> int:
    """Run; 1 if the payload is not found in time."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=30.0, help="how long the estimator runs")
    parser.add_argument("--payload-at", type=float, default=10.0, help="when 3 kg are put on")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    options = parser.parse_args()
    # A domain of its own, on this machine only: nothing else hears it, and it hears nothing else.
    os.environ |= {"ROS_DOMAIN_ID": str(30 + os.getpid() % 70), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    with node("sim_node") as simulator, node("mhe_node") as estimator:
        heard, put_on = listen(options.seconds, options.payload_at, (simulator, estimator))
    figures = judge(heard, put_on)
    for name, value in figures.items():
        print(f"{name:48s} {value:.4g}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    found = abs(figures["payload after 3 s [kg]"] - PAYLOAD) <= TOLERANCE
    print(f"payload {'found' if found else 'NOT found'} within {TOLERANCE} kg in {FOUND_AFTER:g} s")
    return 0 if found else 1


@contextmanager
def node(name: str) -> Iterator[subprocess.Popen[bytes]]:
    """A node in a process of its own."""
    code = f"from prime_ros.nodes.{name} import main; main()"
    # From the root folder: beside the sources, Python would take the package without core and messages.
    process = subprocess.Popen([sys.executable, "-c", code], cwd="/")
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=10.0)
        except subprocess.TimeoutExpired:
            process.kill()


def listen(
    seconds: float, payload_at: float, nodes: tuple[subprocess.Popen[bytes], ...]
) -> tuple[Heard, float]:
    """Hear the nodes from the first estimate on; the payload is put on meanwhile, and when [s]."""
    import rclpy
    from prime_ros.msg import ContactForceArray, InertiaEstimate
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.qos import qos_profile_sensor_data
    from std_srvs.srv import Trigger

    rclpy.init()
    listener = rclpy.create_node("demo")
    heard = Heard()

    # Taken apart afterwards: this process shall not take the time of those that it measures.
    def on_force(data: bytes) -> None:
        heard.force_raw.append((time.time(), data))

    def on_truth(data: bytes) -> None:
        heard.true_force_raw.append(data)

    def on_inertia(message: Any) -> None:
        heard.mass.append((time.time(), message.estimate[0].mass, message.std[0].mass))

    def on_true_inertia(message: Any) -> None:
        heard.true_mass.append((time.time(), message.estimate[0].mass))

    depth = 200
    quality = qos_profile_sensor_data
    quality.depth = depth
    listener.create_subscription(ContactForceArray, "/prime/contacts", on_force, quality, raw=True)
    listener.create_subscription(ContactForceArray, "/sim/truth/contacts", on_truth, quality, raw=True)
    listener.create_subscription(InertiaEstimate, "/prime/inertia", on_inertia, depth)
    listener.create_subscription(InertiaEstimate, "/sim/truth/inertia", on_true_inertia, quality)
    client = listener.create_client(Trigger, "/sim/add_payload")
    executor = SingleThreadedExecutor()
    executor.add_node(listener)
    spinning = threading.Thread(target=executor.spin, daemon=True)
    spinning.start()
    try:
        wait_for(heard, nodes)
        begin = time.time()
        time.sleep(payload_at)
        client.call_async(Trigger.Request())
        put_on = time.time()
        time.sleep(max(begin + seconds - time.time(), 0.0))
    finally:
        executor.shutdown()
        listener.destroy_node()
        rclpy.try_shutdown()
    return heard, put_on


def wait_for(heard: Heard, nodes: tuple[subprocess.Popen[bytes], ...]) -> None:
    """Until the first estimate."""
    deadline = time.monotonic() + STARTED
    while not heard.force_raw:
        if time.monotonic() > deadline or any(process.poll() is not None for process in nodes):
            sys.exit(f"a node ended, or no estimate came within {STARTED:g} s: see the messages above")
        time.sleep(0.05)


def judge(heard: Heard, put_on: float) -> dict[str, float]:
    """Figures of the run."""
    from prime_ros.msg import ContactForceArray
    from rclpy.serialization import deserialize_message

    estimates = [deserialize_message(data, ContactForceArray) for _, data in heard.force_raw]
    truths = [deserialize_message(data, ContactForceArray) for data in heard.true_force_raw]
    stamps = np.array([stamp_of(message) for message in estimates])
    arrivals = np.array([arrival for arrival, _ in heard.force_raw])
    latency = 1e3 * (arrivals - stamps / 1e9)
    quiet = (arrivals > arrivals[0] + SETTLED) & (np.abs(arrivals - put_on - 0.5) > 1.0)
    forces = {stamp_of(message): forces_of(message) for message in truths}
    error = force_errors([estimates[i] for i in np.flatnonzero(quiet)], forces)
    after = mass_at(heard.mass, put_on + FOUND_AFTER)
    nominal = heard.true_mass[0][1]
    return {
        "estimates": float(len(stamps)),
        "rate [1/s]": (len(stamps) - 1) / ((stamps[-1] - stamps[0]) / 1e9),
        "steps without an estimate": float(round((stamps[-1] - stamps[0]) / 1e7) + 1 - len(stamps)),
        "from stamp to reception, median [ms]": float(np.median(latency)),
        "from stamp to reception, 99 % [ms]": float(np.percentile(latency, 99)),
        "force RMSE of the worst foot, 3-D [N]": float(np.sqrt((error**2).sum(axis=-1).mean(axis=0)).max()),
        "payload before [kg]": mass_at(heard.mass, put_on - 0.2)[0] - nominal,
        "payload after 3 s [kg]": after[0] - nominal,
        "its standard deviation [kg]": after[1],
        "payload at the end [kg]": heard.mass[-1][1] - nominal,
    }


def force_errors(estimates: list[Any], truth: dict[int, np.ndarray]) -> np.ndarray:
    """Errors (N, C, 3) against the true forces, averaged over the triangle stamp +- 10 ms [N]."""
    errors: deque[np.ndarray] = deque()
    for message in estimates:
        offsets = np.arange(-8, 10, 2) * 1_000_000
        near = [truth.get(stamp_of(message) + int(offset)) for offset in offsets]
        if all(true is not None for true in near):
            weights = 1.0 - np.abs(offsets) / 1e7
            errors.append(forces_of(message) - np.tensordot(weights / weights.sum(), np.array(near), axes=1))
    if not errors:
        sys.exit("no estimate could be compared with the truth: its stamps are not those of the samples")
    return np.array(errors)


def mass_at(series: list[tuple[float, float, float]], when: float) -> tuple[float, float]:
    """Mass and its standard deviation of the last message before a time."""
    before = [(mass, std) for arrival, mass, std in series if arrival <= when]
    return before[-1] if before else series[0][1:]


def stamp_of(message: Any) -> int:
    """Stamp of a message [ns]."""
    return int(message.header.stamp.sec) * 1_000_000_000 + int(message.header.stamp.nanosec)


def forces_of(message: Any) -> np.ndarray:
    """Forces of all contacts, shape (C, 3) [N]."""
    return np.array([[c.force.x, c.force.y, c.force.z] for c in message.contacts])


if __name__ == "__main__":
    sys.exit(main())
