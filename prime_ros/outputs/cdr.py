# SPDX-License-Identifier: Apache-2.0
"""Messages of many knots in the wire format of ROS 2 (XCDR1, little endian), all at once.

The texts and the lengths of the lists of a topic are the same at every knot, so its messages have one layout
and differ only in numbers: each number is one column of a table of bytes.

What a message says is given as `prime_ros.outputs.messages.Values`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rosbags.interfaces import Nodetype

from prime_ros.outputs.messages import Values

Bytes = NDArray[np.uint8]

_HEADER = np.array([0, 1, 0, 0], dtype=np.uint8)  # representation: plain CDR, little endian
_NUMBERS = {
    "bool": "?",
    "byte": "u1",
    "char": "u1",
    **{f"int{bits}": f"<i{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"<u{bits // 8}" for bits in (8, 16, 32, 64)},
    "float32": "<f4",
    "float64": "<f8",
}


def encode(fields: Mapping[str, Any], msgtype: str, values: Values, count: int) -> Bytes:
    """Encode the messages of a topic at `count` knots.

    Args:
        fields: Definitions of the types, as a typestore of `rosbags` holds them (`fielddefs`).
        msgtype: Name of the type, such as ``nav_msgs/msg/Odometry``.
        values: What it says.
        count: Number of knots K.

    Returns:
        One message per row, shape (K, size).

    Raises:
        ValueError: If a field does not exist or an array does not have the shape of its field.
    """
    layout = _Layout(fields)
    layout.message(msgtype, values)
    table = np.zeros((count, len(_HEADER) + layout.size), dtype=np.uint8)
    table[:, : len(_HEADER)] = _HEADER
    for start, piece in layout.pieces:
        start += len(_HEADER)
        table[:, start : start + piece.shape[-1]] = piece
    return table


class _Layout:
    """Bytes of one message, or of all knots, and where in the message they stand."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields
        self.size = 0
        self.pieces: list[tuple[int, Bytes]] = []

    def message(self, msgtype: str, values: Values) -> None:
        """Add a message field by field."""
        members = dict(self._fields[msgtype][1])
        if unknown := set(values) - set(members):
            raise ValueError(f"{msgtype} has no {', '.join(sorted(unknown))}")
        for name, (kind, definition) in members.items():
            self._field(kind, definition, values.get(name))

    def _field(self, kind: Nodetype, definition: Any, value: Any) -> None:
        if kind == Nodetype.NAME:
            self.message(definition, value or {})
        elif kind == Nodetype.BASE and definition[0] in _NUMBERS:
            self._numbers(definition[0], np.asarray(0 if value is None else value)[..., None])
        elif kind == Nodetype.BASE:
            self._text(value or "")
        else:
            self._list(kind, definition, () if value is None else value)

    def _list(self, kind: Nodetype, definition: Any, value: Any) -> None:
        """A list of variable length says how long it is; an array is as long as its type says."""
        (of, definition), length = definition
        numbers = of == Nodetype.BASE and definition[0] in _NUMBERS
        fixed = kind == Nodetype.ARRAY
        if fixed and len(value) == 0:
            value = np.zeros(length) if numbers else [None] * length
        size = np.shape(value)[-1] if numbers else len(value)
        if fixed and size != length:
            raise ValueError(f"got {size} elements, expected {length}")
        if not fixed:
            self._numbers("uint32", np.array([size]))
        if numbers:
            self._numbers(definition[0], np.asarray(value))
            return
        for item in value:
            self._field(of, definition, item)

    def _text(self, text: str) -> None:
        data = np.frombuffer(text.encode() + b"\0", dtype=np.uint8)
        self._numbers("uint32", np.array([len(data)]))
        self._append(data, 1)

    def _numbers(self, name: str, values: NDArray[Any]) -> None:
        """Numbers of shape (n,), the same at every knot, or (K, n)."""
        if values.shape[-1] == 0:
            return
        if values.ndim > 2:
            raise ValueError(f"got numbers of shape {values.shape}, expected one row per knot")
        dtype = np.dtype(_NUMBERS[name])
        self._append(np.ascontiguousarray(values, dtype=dtype).view(np.uint8), dtype.itemsize)

    def _append(self, data: Bytes, alignment: int) -> None:
        self.size += -self.size % alignment
        self.pieces.append((self.size, data))
        self.size += data.shape[-1]
