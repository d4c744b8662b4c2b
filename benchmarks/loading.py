# SPDX-License-Identifier: Apache-2.0
"""How fast recordings load and what memory that takes, against the deserialiser of rosbags in the same run.

    python benchmarks/loading.py [--seconds 600] [--storage mcap] [--storage sqlite3]

Bags in a temporary folder: a quadruped with JointState and Imu at 500 Hz and PoseStamped at 100 Hz, and one
with the vendor's LowState at 500 Hz. The reference deserialises the first messages of each topic.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from child import run_alone
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test"))

import bags
from recordings import EPOCH, recording

from prime_ros import sources
from prime_ros.sources.cdr import Decoder
from prime_ros.sources.definitions import definitions

NAMES = tuple(f"joint_with_a_name_{index}" for index in range(12))
RATES = {bags.JOINT_STATE: 500, bags.IMU: 500, bags.ours.POSE_STAMPED: 100, bags.GO: 500}
REFERENCE_MESSAGES = 2000

Message = tuple[int, bytes]


def many(msgtype: str, first: bytes, seconds: int) -> Iterator[Message]:
    """Copies of a message at its rate, each with its own stamp or count."""
    count = seconds * RATES[msgtype]
    stamps = EPOCH + np.arange(count) * (10**9 // RATES[msgtype])
    text = bags.LOW_STATES.get(msgtype, "")
    clock = ("tick",) if text else ("header.stamp.sec", "header.stamp.nanosec")
    ((layout, _, _),) = Decoder(definitions(msgtype, text), msgtype, clock).blocks([first])
    message = np.frombuffer(bytearray(first), np.uint8)
    fields = [np.ndarray((), layout.fields[path][0], message, layout.fields[path][1][0]) for path in clock]
    for index, stamp in enumerate(stamps.tolist()):
        values = (index * 1000 // RATES[msgtype],) if text else divmod(stamp, 10**9)
        for field, value in zip(fields, values, strict=True):
            field[...] = value
        yield stamp, message.tobytes()


def write(path: Path, kind: str, seconds: int, storage: str) -> Path:
    """One of the bags."""
    short = recording(NAMES, 0.01)
    streams = bags.streams_of(short)
    if kind == "LowState":
        streams = [("/lowstate", bags.GO, bags.low_states(short, NAMES)), streams[1]]
    firsts = [(topic, msgtype, next(iter(messages))[1]) for topic, msgtype, messages in streams]
    raw = [
        (topic, msgtype, many(msgtype, bytes(bags.serialised(message, msgtype)), seconds))
        for topic, msgtype, message in firsts
    ]
    return bags.write_bag(path, raw, storage, "storage" if storage == "mcap" else "none")


def memory(key: str) -> float:
    """Of this process [MiB]: resident now (VmRSS) or at most so far (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(key))) / 1024


def load(path: Path) -> tuple[float, float, int]:
    """Wall time [s], peak memory above that of the imports [MiB], and samples."""
    before = memory("VmRSS")
    start = time.perf_counter()
    whole = sources.load(path, sources.SourceOptions(vendor_joint_names=NAMES))
    seconds = time.perf_counter() - start
    peak = memory("VmHWM") - before
    assert whole.imu is not None
    return seconds, peak, sum(len(s.stamp_ns) for s in (whole.joints, whole.mocap, whole.imu))


def reference(path: Path) -> float:
    """Messages per second of rosbags, reading and deserialising the first messages of each topic."""
    from rosbags.rosbag2 import Reader

    with Reader(path) as reader:
        taken = 0
        start = time.perf_counter()
        for connection in reader.connections:
            for _, _, message in islice(reader.messages([connection]), REFERENCE_MESSAGES):
                bags.TYPES.deserialize_cdr(message, connection.msgtype)
                taken += 1
        return taken / (time.perf_counter() - start)


def main() -> None:
    """Write, load and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seconds", type=int, default=600, help="length of the first bag; the other has 60 s"
    )
    parser.add_argument("--storage", action="append", choices=("mcap", "sqlite3"))
    options = parser.parse_args()
    table = Table("bag", "messages", "load [s]", "messages/s", "over rosbags", "peak memory [MiB]")
    with tempfile.TemporaryDirectory() as folder:
        for kind, seconds in (("LowState", 60), ("JointState, Imu", options.seconds)):
            for storage in options.storage or ("mcap", "sqlite3"):
                path = Path(folder) / f"{kind[:5]}_{storage}"
                run_alone(write, path, kind, seconds, storage)
                with sources.rosbag.opened(path) as bag:
                    messages = sum(topic.count for topic in bag.topics)
                elapsed, peak, _ = run_alone(load, path)
                ratio = messages / elapsed / run_alone(reference, path)
                name = f"{seconds} s of {kind}, {storage}"
                figures = (f"{elapsed:.2f}", f"{messages / elapsed:,.0f}", f"{ratio:.1f}", f"{peak:.0f}")
                table.add_row(name, f"{messages:,}", *figures)
    Console().print(table)


if __name__ == "__main__":
    main()
