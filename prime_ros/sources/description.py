# SPDX-License-Identifier: Apache-2.0
"""What is in a recording, and what would be read of it, without reading it all."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from prime_ros.exceptions import SourceError
from prime_ros.measurements.samples import NANOSECONDS, Recording
from prime_ros.sources.bag import Bag, BagTopic
from prime_ros.sources.kinds import kind_of
from prime_ros.sources.options import SourceOptions
from prime_ros.sources.roles import LOW_STATES, Choice, Role, choose, role_of
from prime_ros.sources.rosbag import STREAMS, opened
from prime_ros.sources.row_streams import MocapStream
from prime_ros.sources.tables import read_table

LOOKED_AT = 500
"""First messages of a topic that are decoded, to see whether they can be."""


@dataclass(frozen=True)
class TopicInfo:
    """A topic of a bag, or a stream of a table."""

    name: str
    """Of the topic; joints, mocap or imu in a table."""
    msgtype: str
    """Of the messages; ``table`` in a table."""
    count: int
    """Messages or samples."""
    role: Role | None
    """What its type fits; joints for a LowState, which is an IMU too; None: nothing that is read."""
    used: bool
    """Whether `load` would read it."""
    note: str = ""
    """What else is to be said."""


@dataclass(frozen=True)
class SourceDescription:
    """What is in a recording."""

    path: Path
    """The recording."""
    format: str
    """``rosbag2 mcap``, ``rosbag2 sqlite3``, ``npz``, ``csv`` or ``parquet``."""
    files: tuple[str, ...]
    """Names of its files."""
    start_ns: int
    """First receipt (bag) or stamp (table) [ns]."""
    duration: float
    """From the first to the last [s]."""
    topics: tuple[TopicInfo, ...]
    """All topics, or streams."""
    problems: tuple[str, ...] = ()
    """Why `load` would fail; empty: as far as can be seen from here, it would not."""
    notes: tuple[str, ...] = ()
    """What is wrong with it, though it can be read."""


def describe(path: str | Path, options: SourceOptions | None = None) -> SourceDescription:
    """Describe a recording.

    Args:
        path: A bag or a table, see `prime_ros.sources.load`.
        options: What would be read of it.

    Returns:
        The description. That a topic is missing or ambiguous is in its problems.

    Raises:
        SourceError: If it cannot be opened.
    """
    path = Path(path).expanduser()
    if kind_of(path) == "table":
        return _table(path)
    with opened(path) as bag:
        return _bag(path, bag, options or SourceOptions())


def _bag(path: Path, bag: Bag, options: SourceOptions) -> SourceDescription:
    choice = choose(bag.topics, options)
    looks = {role: _look(bag, role, topic, options, path) for role, topic in choice.topics.items()}
    files = [path] if path.is_file() else sorted(file for file in path.iterdir() if file.is_file())
    problems = (*choice.problems, *(problem for look in looks.values() for problem in look.problems))
    notes = (*bag.notes, *choice.notes, *(note for look in looks.values() for note in look.notes))
    return SourceDescription(
        path,
        f"rosbag2 {bag.storage}",
        tuple(file.name for file in files),
        bag.start_ns,
        (bag.end_ns - bag.start_ns) / NANOSECONDS,
        tuple(_info(topic, choice, looks) for topic in bag.topics),
        tuple(dict.fromkeys(problems)),  # one topic may serve two
        tuple(dict.fromkeys(notes)),
    )


@dataclass(frozen=True)
class _Look:
    """At the first messages of a topic."""

    frames: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def _look(bag: Bag, role: Role, topic: BagTopic, options: SourceOptions, path: Path) -> _Look:
    stream = None
    try:
        stream = STREAMS[role](topic, options, f"{path}: {topic.name}")
        messages = list(islice(bag.messages([topic]), LOOKED_AT))
        stream.add([receipt for _, receipt, _ in messages], [message for _, _, message in messages])
        stream.check()
        if topic.count <= LOOKED_AT:
            stream.samples()
        problems: tuple[str, ...] = ()
    except SourceError as error:
        problems = (str(error),)
    frames = tuple(sorted(stream.bodies)) if isinstance(stream, MocapStream) else ()
    return _Look(frames, problems, () if stream is None else tuple(stream.notes))


def _info(topic: BagTopic, choice: Choice, looks: dict[Role, _Look]) -> TopicInfo:
    used = [role for role, chosen in choice.topics.items() if chosen is topic]
    notes = [] if topic.count else ["no messages"]
    if topic.msgtype in LOW_STATES:
        notes.append("motors in the vendor's order, without names; no header, stamps from tick")
        if used:
            notes.append("read as " + " and ".join(used))
    if "mocap" in used and looks["mocap"].frames:
        notes.append(f"frames {', '.join(looks['mocap'].frames)}")
    return TopicInfo(topic.name, topic.msgtype, topic.count, role_of(topic), bool(used), "; ".join(notes))


def _table(path: Path) -> SourceDescription:
    kind = path.suffix.removeprefix(".")
    try:
        recording = read_table(path)
        start, duration = recording.start_ns, recording.duration
    except SourceError as error:
        return SourceDescription(path, kind, (path.name,), 0, 0.0, (), (str(error),))
    return SourceDescription(path, kind, (path.name,), start, duration, _streams(recording))


def _streams(recording: Recording) -> tuple[TopicInfo, ...]:
    counts: list[tuple[Role, int]] = [
        ("joints", len(recording.joints.stamp_ns)),
        ("mocap", len(recording.mocap.stamp_ns)),
    ]
    if recording.imu is not None:
        counts.append(("imu", len(recording.imu.stamp_ns)))
    return tuple(TopicInfo(role, "table", count, role, True) for role, count in counts)
