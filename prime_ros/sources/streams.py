# SPDX-License-Identifier: Apache-2.0
"""Streams of a recording from the serialised messages of a topic, without an object per message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prime_ros.exceptions import SourceError
from prime_ros.measurements.samples import Floats, JointSamples, Stamps
from prime_ros.sources.bag import BagTopic
from prime_ros.sources.cdr import Bytes, Decoder, Layout, Rows
from prime_ros.sources.definitions import definitions
from prime_ros.sources.options import SourceOptions, StampSource
from prime_ros.sources.roles import LOW_STATES
from prime_ros.sources.stamps import header_stamps, tick_stamps


class Stream:
    """What the streams share: decoding in blocks, and stamps."""

    prefix = ""
    """Path of what has the header, with its dot."""

    def __init__(self, topic: BagTopic, fields: Sequence[str], options: SourceOptions, where: str) -> None:
        """Decode `fields` of the messages of a topic.

        Raises:
            SourceError: If its type has no such fields, or no stamps of the kind asked for.
        """
        self.where = where
        self.notes: list[str] = []
        self.messages = 0
        self._stamps = _stamp_source(topic, options.stamps, where)
        stamp = f"{self.prefix}header.stamp"
        self._clock = {"header": (f"{stamp}.sec", f"{stamp}.nanosec"), "tick": ("tick",)}.get(
            self._stamps, ()
        )
        self._strict = options.stamps == "tick"
        if topic.encoding != "cdr":
            raise SourceError(f"{where}: got messages in {topic.encoding}, expected cdr")
        try:
            known = definitions(topic.msgtype, topic.definition)
            self._decoder = Decoder(known, topic.msgtype, (*self._clock, *fields))
        except SourceError as error:
            raise SourceError(f"{where}: {error}") from error
        self._receipt: list[Stamps] = []
        self._rows: list[Rows] = []
        self._counts: list[NDArray[Any]] = []

    def add(self, receipt: Sequence[int], messages: Sequence[bytes]) -> None:
        """Take the next messages of the topic, with their time of receipt [ns]."""
        self._receipt.append(np.array(receipt, dtype=np.int64))
        try:
            for layout, rows, block in self._decoder.blocks(messages, self.messages):
                self._take(layout, rows + self.messages, block)
        except SourceError as error:
            raise SourceError(f"{self.where}: {error}") from error
        self.messages += len(messages)

    def check(self) -> None:
        """Whether the messages so far are enough to say what the samples are.

        Raises:
            SourceError: If they are not.
        """

    def _take(self, layout: Layout, rows: Rows, block: Bytes) -> None:
        """Keep what is needed of a block of messages."""
        raise NotImplementedError

    def _keep_clock(self, layout: Layout, rows: Rows, block: Bytes, column: int = 0) -> None:
        """Keep which messages these are, and what their time is made of."""
        self._rows.append(rows)
        self._counts.append(
            np.array([layout.values(path, block)[:, column] for path in self._clock], dtype=np.int64)
        )

    def _finish(self) -> tuple[Stamps, Rows]:
        """Stamps in the order of the messages, and the place in it of every sample as it was kept."""
        if not self._rows:
            raise SourceError(f"{self.where}: got no messages that can be used, expected some")
        rows = np.concatenate(self._rows)
        order = np.argsort(rows, kind="stable")
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        receipt = np.concatenate(self._receipt)[rows[order]]
        if self._stamps == "receipt":
            return receipt, places
        counts = np.concatenate(self._counts, axis=1)[:, order]
        if self._stamps == "header":
            return header_stamps(counts[0], counts[1], self.where), places
        try:
            return tick_stamps(counts[0], receipt), places
        except SourceError as error:
            if self._strict:
                raise SourceError(f"{self.where}: {error}; use --stamps receipt") from error
            self.notes.append(f"{self.where}: {error}; took the time of receipt, with its delays, instead")
            return receipt, places


class JointStream(Stream):
    """Joints of JointState, told apart by name in every message, or of a LowState, in the vendor's order."""

    def __init__(self, topic: BagTopic, options: SourceOptions, where: str) -> None:
        """See `Stream`."""
        self._vendor = topic.msgtype in LOW_STATES
        self._vendor_names = options.vendor_joint_names
        self._number_motors = options.number_motors
        self._fields = ("motor_state.q", "motor_state.dq", "motor_state.tau_est")
        if not self._vendor:
            self._fields = ("position", "velocity", "effort")
        super().__init__(topic, self._fields if self._vendor else ("name", *self._fields), options, where)
        self._names: list[tuple[str, ...]] = []
        self._values: list[Floats] = []

    def _take(self, layout: Layout, rows: Rows, block: Bytes) -> None:
        names = self._motor_names(layout) if self._vendor else self._joint_names(layout, int(rows[0]))
        values = np.full((len(self._fields), len(block), len(names)), np.nan)
        for row, path in enumerate(self._fields):
            if layout.count(path):
                values[row] = layout.values(path, block)[:, : len(names)]
        self._keep_clock(layout, rows, block)
        self._names.append(names)
        self._values.append(values)

    def samples(self) -> JointSamples:
        """The samples."""
        by_first = sorted(zip(self._rows, self._names, strict=True), key=lambda block: block[0][0])
        names = tuple(dict.fromkeys(name for _, block in by_first for name in block))
        stamps, places = self._finish()
        column = {name: index for index, name in enumerate(names)}
        tables = [np.full((len(stamps), len(names)), np.nan) for _ in self._fields]
        start = 0
        self._names.reverse()
        self._values.reverse()
        while self._values:  # let go of each block once it is in the table
            block, block_names = self._values.pop(), self._names.pop()
            at = places[start : start + block.shape[1]]
            columns = [column[name] for name in block_names]
            for table, values in zip(tables, block, strict=True):
                table[at[:, None], columns] = values
            start += block.shape[1]
        for table in tables:
            table.flags.writeable = False
        return JointSamples(stamps, names, *tables)

    def _joint_names(self, layout: Layout, message: int) -> tuple[str, ...]:
        names = layout.strings.get("name", ())
        if len(set(names)) != len(names):
            raise SourceError(f"message {message}: name: got {', '.join(names)}, expected different names")
        for path in self._fields:
            if layout.count(path) not in (0, len(names)):
                raise SourceError(
                    f"message {message}: {path}: got {layout.count(path)} values, expected {len(names)},"
                    " one per name, or none"
                )
        return names

    def _motor_names(self, layout: Layout) -> tuple[str, ...]:
        motors = layout.count(self._fields[0])
        if not self._vendor_names and self._number_motors:
            return tuple(f"motor_{index}" for index in range(motors))
        if not self._vendor_names:
            raise SourceError(
                f"got {motors} motors without names, expected the names of the joints in the vendor's order:"
                " state vendor_joint_order in the robot's YAML"
            )
        if len(self._vendor_names) > motors:
            raise SourceError(
                f"got {motors} motors, expected one for each of the {len(self._vendor_names)} joints of"
                " vendor_joint_order in the robot's YAML"
            )
        return self._vendor_names


def _stamp_source(topic: BagTopic, wanted: StampSource, where: str) -> StampSource:
    """How this topic gets its stamps: only a LowState has a counter, and it has no header."""
    vendor = topic.msgtype in LOW_STATES
    if wanted == "header" and vendor:
        raise SourceError(
            f"{where}: got --stamps header, expected auto, tick or receipt: {topic.msgtype} has no header"
        )
    if wanted in ("auto", "tick"):
        return "tick" if vendor else "header"
    return wanted
