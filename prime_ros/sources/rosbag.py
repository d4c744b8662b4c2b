# SPDX-License-Identifier: Apache-2.0
"""Recordings in rosbag2 (sqlite3 or mcap)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prime_ros.exceptions import PrimeError, SourceError
from prime_ros.measurements.samples import Recording
from prime_ros.sources.bag import Bag, BagTopic
from prime_ros.sources.bag_ros import open_with_ros
from prime_ros.sources.bag_rosbags import RosbagsBag
from prime_ros.sources.options import SourceOptions
from prime_ros.sources.roles import Choice, Role, choose
from prime_ros.sources.row_streams import ImuStream, MocapStream
from prime_ros.sources.streams import JointStream, Stream

STREAMS: dict[Role, Any] = {"joints": JointStream, "mocap": MocapStream, "imu": ImuStream}
"""What decodes the topic of a role."""
BATCH = 1024
"""Messages of a topic that are decoded together."""
BATCH_BYTES = 4_000_000
"""And their size at which they are decoded before that."""


def read_rosbag(path: str | Path, options: SourceOptions | None = None) -> Recording:
    """Read a bag.

    Joints are told apart by their names, message by message; what a message leaves out becomes NaN. A
    LowState has its joints in the vendor's order and neither names nor stamps: see `SourceOptions`.

    Args:
        path: A rosbag2 folder, or an ``.mcap`` or ``.db3`` file.
        options: What to read; default: topics found by their type.

    Returns:
        The samples, in the order of receipt; without IMU if the bag has no topic of its type.

    Raises:
        SourceError: If the bag cannot be read, a topic is missing, ambiguous or of another type, or its
            messages make no sense.
    """
    options = options or SourceOptions()
    path = Path(path)
    with opened(path) as bag:
        choice = choose(bag.topics, options)
        if choice.problems:
            raise SourceError("\n".join(f"{path}: {problem}" for problem in choice.problems))
        return _recording(bag, choice, options, path)


@contextmanager
def opened(path: Path) -> Iterator[Bag]:
    """An open bag, whose failures are errors of this package; opened with ROS where that is installed.

    Raises:
        SourceError: If it cannot be opened, or whatever goes wrong while it is open.
    """
    try:
        bag = open_with_ros(path) or RosbagsBag(path)
        try:
            yield bag
        finally:
            bag.close()
    except PrimeError:
        raise
    except Exception as error:  # a damaged bag surfaces as whatever its storage raises
        reason = str(error) or type(error).__name__
        raise SourceError(
            f"{path}: cannot be read as a rosbag2: {reason}; copy it again, or repair it with 'mcap recover'"
            " (mcap) or 'sqlite3 FILE .recover' (db3)"
        ) from error


def _recording(bag: Bag, choice: Choice, options: SourceOptions, path: Path) -> Recording:
    streams = {
        role: STREAMS[role](topic, options, f"{path}: {topic.name}") for role, topic in choice.topics.items()
    }
    _read(bag, [(topic, streams[role]) for role, topic in choice.topics.items()])
    samples = {role: stream.samples() for role, stream in streams.items()}
    notes = dict.fromkeys(note for stream in streams.values() for note in stream.notes)  # one may serve two
    notes = dict.fromkeys(f"{path}: {note}" for note in (*bag.notes, *choice.notes)) | notes
    return Recording(samples["joints"], samples["mocap"], samples.get("imu"), tuple(notes))


def _read(bag: Bag, streams: Sequence[tuple[BagTopic, Stream]]) -> None:
    """Pass the messages of a bag on to the streams of their topics, batch by batch."""
    batches: dict[BagTopic, tuple[list[int], list[bytes]]] = {topic: ([], []) for topic, _ in streams}
    sizes = dict.fromkeys(batches, 0)

    def flush(topic: BagTopic) -> None:
        receipt, messages = batches[topic]
        for wanted, stream in streams:
            if wanted is topic and messages:
                stream.add(receipt, messages)
        batches[topic] = ([], [])
        sizes[topic] = 0

    for topic, stamp, message in bag.messages(tuple(batches)):
        receipt, messages = batches[topic]
        receipt.append(stamp)
        messages.append(message)
        sizes[topic] += len(message)
        if len(messages) >= BATCH or sizes[topic] >= BATCH_BYTES:
            flush(topic)
    for topic in batches:
        flush(topic)
