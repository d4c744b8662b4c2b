# SPDX-License-Identifier: Apache-2.0
"""Definitions of messages: those that a bag carries, else those of the standard packages."""

from __future__ import annotations

from functools import cache
from typing import Any

from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore

from prime_ros.exceptions import SourceError

Definitions = dict[str, list[tuple[str, Any]]]
"""Fields of every message type: name and description, as rosbags has it."""

_IDL_SEPARATOR = "=" * 80 + "\nIDL: "


def definitions(msgtype: str, text: str) -> Definitions:
    """Fields of a message type and of all types in it.

    Args:
        msgtype: Such as ``sensor_msgs/msg/Imu``.
        text: Its definition, ros2msg or ros2idl, with those of the types in it; empty: a standard type.

    Returns:
        The fields.

    Raises:
        SourceError: If there is no definition, or it cannot be understood.
    """
    known = dict(_standard())
    if text:
        known.update({name: fields for name, (_, fields) in _parsed(msgtype, text).items()})
    if msgtype not in known:
        raise SourceError(
            f"got {msgtype} without a definition in the bag, expected one, as mcap and sqlite3 bags since"
            " ROS 2 Iron carry: convert the bag where the package is installed, with 'ros2 bag convert'"
        )
    return known


def has_field(known: Definitions, msgtype: str, path: str) -> bool:
    """Whether a type has the field that dotted `path` names, through arrays and sequences too."""
    first, _, rest = path.partition(".")
    kind = dict(known.get(msgtype, [])).get(first)
    if kind is None or not rest:
        return kind is not None
    if kind[0] in (Nodetype.ARRAY, Nodetype.SEQUENCE):
        kind = kind[1][0]
    return kind[0] == Nodetype.NAME and has_field(known, kind[1], rest)


@cache
def _standard() -> Definitions:
    types = get_typestore(Stores.LATEST).fielddefs
    return {name: fields for name, (_, fields) in types.items()}


def _parsed(msgtype: str, text: str) -> dict[str, tuple[Any, Any]]:
    try:
        if not text.startswith(_IDL_SEPARATOR) and "module " not in text:
            return get_types_from_msg(text, msgtype)
        parts = text.split(_IDL_SEPARATOR)
        texts = [part.split("\n", 1)[1] for part in parts[1:]] if len(parts) > 1 else [text]
        return {name: fields for part in texts for name, fields in get_types_from_idl(part).items()}
    except Exception as error:  # the parser raises whatever it stumbles over
        raise SourceError(
            f"got a definition of {msgtype} in the bag that cannot be understood, expected ros2msg or ros2idl"
        ) from error
