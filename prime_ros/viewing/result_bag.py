# SPDX-License-Identifier: Apache-2.0
"""What a replay shows, read from the bag of `prime solve` or from a recording of a live estimator."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np

from prime_ros.estimation.estimate import BodyInertia, LinkEstimate
from prime_ros.exceptions import OutputError
from prime_ros.outputs.bag import typestore
from prime_ros.outputs.topics import NAMESPACE, TYPES
from prime_ros.sources.bag import BagTopic
from prime_ros.sources.bag_rosbags import RosbagsBag
from prime_ros.viewing.results import Results, shown_frames

MOVING = ("joint_states", "odometry", "contacts")
KNOWN = ("inertia", "status")
Raw = dict[str, dict[int, bytes]]


def load_bag(path: Path) -> Results:
    """Read the bag of an estimate, only the frames that are shown.

    Args:
        path: A rosbag2 folder or one file of it.

    Raises:
        SourceError: If the bag cannot be opened.
        OutputError: If it has no estimate in it, as a recording has none.
    """
    bag = RosbagsBag(path)
    try:
        raw = _raw(bag, _topics(path, bag.topics))
    finally:
        bag.close()
    stamps = sorted(set.intersection(*(set(raw[name]) for name in MOVING)))
    if not stamps:
        raise OutputError(f"{path}: no instant at which {', '.join(MOVING)} are all there")
    shown = [stamps[index] for index in shown_frames(np.array(stamps))]
    messages = {name: [_decoded(name, raw[name][stamp]) for stamp in shown] for name in MOVING}
    last = {name: _decoded(name, raw[name][max(raw[name])]) for name in KNOWN}
    return _results(np.array(shown, dtype=np.int64), messages, last["inertia"], last["status"])


def _topics(path: Path, topics: tuple[BagTopic, ...]) -> dict[str, BagTopic]:
    """The topics of an estimate by name; its namespace is that of the contact forces, of `prime` if there."""
    filled = {topic.name: topic for topic in topics if topic.count}
    forces = [
        t.name for t in filled.values() if t.msgtype == TYPES["contacts"] and t.name.endswith("/contacts")
    ]
    default = f"{NAMESPACE}/contacts"
    if not forces:
        raise OutputError(
            f"{path}: got a bag without {default} ({TYPES['contacts']}): a recording, not an estimate;"
            f" run `prime solve {path} --robot ROBOT --out DIR` and then `prime view DIR`"
        )
    namespace = (default if default in forces else forces[0]).removesuffix("/contacts")
    found = {name: filled.get(f"{namespace}/{name}") for name in (*MOVING, *KNOWN)}
    for name, topic in found.items():
        if topic is None or topic.msgtype != TYPES[name]:
            raise OutputError(
                f"{path}: got a bag without {namespace}/{name} ({TYPES[name]}), which a replay needs beside"
                f" {namespace}/contacts; record all topics in {namespace}"
            )
    return {name: topic for name, topic in found.items() if topic is not None}


def _raw(bag: RosbagsBag, topics: dict[str, BagTopic]) -> Raw:
    """Messages of each topic, not decoded, by the time of measurement [ns]."""
    names = {topic.name: name for name, topic in topics.items()}
    raw: Raw = {name: {} for name in topics}
    for topic, _, message in bag.messages(list(topics.values())):
        raw[names[topic.name]][_stamp_ns(message)] = bytes(message)
    return raw


def _stamp_ns(message: bytes) -> int:
    """Of the header that a message begins with, after the four bytes that say how it is encoded."""
    order: Literal["little", "big"] = "little" if message[1] & 1 else "big"
    seconds = int.from_bytes(message[4:8], order, signed=True)
    return 1_000_000_000 * seconds + int.from_bytes(message[8:12], order)


def _decoded(name: str, message: bytes) -> Any:
    try:
        return typestore().deserialize_cdr(message, TYPES[name])
    except Exception as error:  # whatever the decoder stumbles over
        raise OutputError(f"a message of {name} cannot be decoded: {error}") from error


def _results(stamp_ns: np.ndarray, messages: dict[str, list[Any]], inertia: Any, status: Any) -> Results:
    poses = [message.pose.pose for message in messages["odometry"]]
    contacts = [message.contacts for message in messages["contacts"]]
    return Results(
        stamp_ns=stamp_ns,
        base_position_W=np.array([_xyz(pose.position) for pose in poses]),
        base_quat_xyzw=np.array([[*_xyz(pose.orientation), pose.orientation.w] for pose in poses]),
        joint_names=tuple(messages["joint_states"][0].name),
        joint_position=np.array([message.position for message in messages["joint_states"]]),
        contact_names=tuple(entry.contact for entry in contacts[0]),
        contact_force_W=np.array([[_xyz(entry.force) for entry in row] for row in contacts]),
        contact_force_W_std=np.array([[_xyz(entry.force_std) for entry in row] for row in contacts]),
        contact_probability=np.array([[entry.probability for entry in row] for row in contacts]),
        links={
            name: LinkEstimate(
                nominal=_body(inertia.nominal[index]),
                estimate=_body(inertia.estimate[index]),
                std=_body(inertia.std[index]),
            )
            for index, name in enumerate(inertia.links)
        },
        ground_height=float(inertia.ground_height),
        std_ground_height=float(inertia.ground_height_std),
        converged=bool(status.converged),
    )


def _xyz(vector: Any) -> list[float]:
    return [vector.x, vector.y, vector.z]


def _body(body: Any) -> BodyInertia:
    inertia = np.array(body.inertia_com, dtype=float).reshape(3, 3)
    return BodyInertia(float(body.mass), np.array(_xyz(body.com)), inertia)
