# SPDX-License-Identifier: Apache-2.0
"""Many serialised messages of one type decoded at once.

Most messages of a topic have the same layout: strings and sequences of the same lengths, hence the same
fields at the same bytes. One of them is walked through along its definition; all that share its layout are
then columns of one array. Whether they do is checked on the bytes of the lengths and of the strings that
matter, as names do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rosbags.interfaces import Nodetype

from prime_ros.exceptions import SourceError
from prime_ros.sources.definitions import Definitions, has_field

Bytes = NDArray[np.uint8]
Rows = NDArray[np.intp]

HEADER = 4  # of the encapsulation: representation and options; offsets and alignment count from behind it
BYTE_ORDERS = {b"\x00\x00": ">", b"\x00\x01": "<"}
ZSTD = b"\x28\xb5\x2f\xfd"
MAX_STEPS = 100_000
"""Fields that one message may have: a damaged definition can state any number."""
MAX_LAYOUTS = 32
"""Layouts of one size that are remembered from block to block."""
_KINDS = {
    **{name: name for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    "float32": "float32",
    "float64": "float64",
    "bool": "uint8",
    "byte": "uint8",
    "char": "uint8",
}


@dataclass(frozen=True)
class Layout:
    """Where the fields are in all messages of one layout."""

    size: int
    """Bytes of a message."""
    fixed: NDArray[np.intp]
    """Positions of the bytes that all of them share: byte order, lengths, strings that matter."""
    shared: Bytes
    """Those bytes."""
    fields: dict[str, tuple[np.dtype[Any], tuple[int, ...]]]
    """Type and positions of the wanted numbers by their dotted path; arrays one element after the other."""
    strings: dict[str, tuple[str, ...]]
    """The wanted strings by their dotted path."""

    def count(self, path: str) -> int:
        """How many numbers there are under `path`."""
        return len(self.fields[path][1]) if path in self.fields else 0

    def values(self, path: str, messages: Bytes) -> NDArray[Any]:
        """Numbers under `path` in K messages, shape (K, size): shape (K, count), float64 or integers."""
        if path not in self.fields:
            return np.empty((len(messages), 0))
        dtype, offsets = self.fields[path]
        kept = np.float64 if dtype.kind == "f" else dtype.newbyteorder("=")
        values = np.empty((len(messages), len(offsets)), kept)
        for column, offset in enumerate(offsets):
            with np.errstate(invalid="ignore"):  # of a signalling NaN
                values[:, column] = np.ndarray((len(messages),), dtype, messages, offset, (self.size,))
        return values

    def fits(self, messages: Bytes) -> NDArray[np.bool_]:
        """Which of K messages, shape (K, size), have this layout, shape (K,)."""
        return np.asarray((messages[:, self.fixed] == self.shared).all(axis=1))


class Decoder:
    """Finds the layouts of the messages of one type."""

    def __init__(self, known: Definitions, msgtype: str, wanted: Sequence[str]) -> None:
        """Decode `wanted` fields, given by their dotted paths, of messages of `msgtype`.

        Raises:
            SourceError: If the type has no such field.
        """
        missing = [path for path in wanted if not has_field(known, msgtype, path)]
        if missing:
            raise SourceError(
                f"got {msgtype} without {', '.join(missing)}, expected all of {', '.join(wanted)}"
            )
        self._known = known
        self._msgtype = msgtype
        self._wanted = frozenset(wanted)
        self._layouts: dict[int, list[Layout]] = {}

    def blocks(self, messages: Sequence[bytes], first: int = 0) -> Iterator[tuple[Layout, Rows, Bytes]]:
        """Split messages by layout.

        Args:
            messages: Serialised messages.
            first: Number of the first one, for errors.

        Yields:
            A layout, which of the messages have it (K,), and these, shape (K, size).

        Raises:
            SourceError: If a message is not what its definition says.
        """
        sizes = np.fromiter(map(len, messages), dtype=np.intp, count=len(messages))
        for size in np.unique(sizes).tolist():
            rows = np.flatnonzero(sizes == size)
            joined = b"".join([messages[row] for row in rows.tolist()])
            data = np.frombuffer(joined, np.uint8).reshape(len(rows), size)
            yield from self._split(rows, data, first)

    def _split(self, rows: Rows, data: Bytes, first: int) -> Iterator[tuple[Layout, Rows, Bytes]]:
        """Blocks of messages of one size."""
        layouts = self._layouts.setdefault(data.shape[1], [])
        del layouts[:-MAX_LAYOUTS]
        tried = 0
        while len(rows):
            if tried == len(layouts):
                layouts.append(self._walk(data[0].tobytes(), first + int(rows[0])))
            layout = layouts[tried]
            tried += 1
            fits = layout.fits(data)
            if fits.all():
                yield layout, rows, data
                return
            if fits.any():
                yield layout, rows[fits], data[fits]
                rows, data = rows[~fits], data[~fits]

    def _walk(self, message: bytes, number: int) -> Layout:
        try:
            return _Walk(self._known, self._wanted, message).layout(self._msgtype)
        except _Misfit as error:
            raise SourceError(f"message {number}: {error}") from error


class _Misfit(Exception):
    """A message that is not what its definition says."""


class _Walk:
    """One way through one message."""

    def __init__(self, known: Definitions, wanted: frozenset[str], message: bytes) -> None:
        self.known = known
        self.wanted = wanted
        self.message = message
        self.order = BYTE_ORDERS.get(message[:2], "")
        if message[:4] == ZSTD:
            raise _Misfit("got a compressed message: metadata.yaml says how, and is missing or damaged")
        if not self.order or len(message) < HEADER:
            got = message[:HEADER].hex(" ") or "nothing"
            raise _Misfit(f"got {got} at its start, expected CDR: 00 00 or 00 01 and two more bytes")
        self.at = HEADER
        self.steps = 0
        self.fixed = [(0, 2)]
        self.fields: dict[str, tuple[np.dtype[Any], list[int]]] = {}
        self.strings: dict[str, list[str]] = {}

    def layout(self, msgtype: str) -> Layout:
        """Walk to the end."""
        self._struct(msgtype, "")
        if len(self.message) - self.at >= 8:
            raise _Misfit(f"got {len(self.message)} bytes, expected {self.at} by its definition")
        fixed = np.concatenate([np.arange(start, stop) for start, stop in self.fixed])
        return Layout(
            len(self.message),
            fixed,
            np.frombuffer(self.message, np.uint8)[fixed],
            {path: (dtype, tuple(offsets)) for path, (dtype, offsets) in self.fields.items()},
            {path: tuple(strings) for path, strings in self.strings.items()},
        )

    def _struct(self, msgtype: str, prefix: str) -> None:
        if msgtype not in self.known:
            raise _Misfit(f"{msgtype} in it is not defined")
        for name, kind in self.known[msgtype]:
            self._field(kind, prefix + name)

    def _field(self, kind: Any, path: str) -> None:
        node, detail = kind
        if node == Nodetype.NAME:
            self._step()
            self._struct(detail, path + ".")
        elif node == Nodetype.BASE:
            self._elements(kind, path, 1)
        else:
            element, count = detail
            if node == Nodetype.SEQUENCE:
                count = self._length()
            self._elements(element, path, count)

    def _elements(self, kind: Any, path: str, count: int) -> None:
        """`count` values of one kind, one after the other."""
        node, detail = kind
        if count > len(self.message):
            raise _Misfit(f"{path}: got {count} elements in {len(self.message)} bytes")
        if node == Nodetype.BASE and detail[0] in _KINDS:
            self._numbers(_KINDS[detail[0]], path, count)
            return
        if node == Nodetype.BASE and detail[0] == "string":
            if path in self.wanted:
                self.strings.setdefault(path, [])
            for _ in range(count):
                self._string(path)
            return
        if node == Nodetype.BASE:
            raise _Misfit(f"{path}: got a {detail[0]}, expected numbers or strings of bytes")
        for _ in range(count):
            self._field(kind, path)

    def _numbers(self, name: str, path: str, count: int) -> None:
        self._step()
        dtype = np.dtype(name).newbyteorder(self.order)  # type: ignore[arg-type]  # "<" or ">"
        if path in self.wanted:
            self.fields.setdefault(path, (dtype, []))
        if count == 0:  # aligns nothing
            return
        self.at += -(self.at - HEADER) % dtype.itemsize
        if path in self.wanted:
            self.fields[path][1].extend(self.at + dtype.itemsize * index for index in range(count))
        self._skip(dtype.itemsize * count, path)

    def _string(self, path: str) -> None:
        length = self._length()
        start = self.at
        self._skip(length, path)
        if path in self.wanted:
            self.fixed.append((start, self.at))
            text = self.message[start : self.at].rstrip(b"\0")
            self.strings[path].append(text.decode(errors="replace"))

    def _length(self) -> int:
        """Length of a string or sequence: part of the layout."""
        self._step()
        self.at += -(self.at - HEADER) % 4
        start = self.at
        self._skip(4, "a length")
        self.fixed.append((start, self.at))
        return int.from_bytes(self.message[start : self.at], "little" if self.order == "<" else "big")

    def _skip(self, size: int, path: str) -> None:
        self.at += size
        if self.at > len(self.message):
            raise _Misfit(f"{path}: got a message of {len(self.message)} bytes, expected {self.at} or more")

    def _step(self) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise _Misfit(f"got more than {MAX_STEPS} fields")
