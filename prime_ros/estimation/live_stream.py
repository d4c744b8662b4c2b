# SPDX-License-Identifier: Apache-2.0
"""Samples of one live stream: in time order, however they arrive, for as long as they are needed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from prime_ros.measurements.samples import NANOSECONDS

Array = NDArray[np.float64]

CONSISTENT = 5  # samples in a row on another clock that make it the clock


@dataclass
class StreamStatus:
    """What became of the samples of one stream."""

    received: int = 0
    """Samples pushed."""
    used: int = 0
    """Samples taken into the buffer."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Samples or values left out, by reason."""
    newest_ns: int | None = None
    """Latest stamp taken [ns]."""
    rate_hz: float = 0.0
    """Samples per second of their own time, over about the last second; 0: unknown."""
    largest_gap_s: float = 0.0
    """Longest pause between neighbours in the buffer [s]."""

    def drop(self, reason: str, count: int = 1) -> None:
        """Count what is left out."""
        self.dropped[reason] = self.dropped.get(reason, 0) + count


class SampleBuffer:
    """Rows of one width by stamp, sorted; older than `keep` they are forgotten."""

    def __init__(self, width: int, keep_ns: int, jump_ns: int) -> None:
        """For rows of `width` numbers; a stamp `jump_ns` from the newest is another clock or a stray."""
        self.status = StreamStatus()
        self._width, self._keep_ns, self._jump_ns = width, keep_ns, jump_ns
        self._stamps: list[int] = []
        self._rows: list[Array] = []
        self._elsewhere: list[tuple[int, Array]] = []
        self._late_ns: int | None = None

    def __len__(self) -> int:
        return len(self._stamps)

    @property
    def newest_ns(self) -> int | None:
        """Latest stamp [ns]."""
        return self._stamps[-1] if self._stamps else None

    @property
    def jumped(self) -> bool:
        """Whether the last samples agree on another clock: time went back, or far ahead."""
        return len(self._elsewhere) >= CONSISTENT

    def push(self, stamp_ns: int, row: Array) -> bool:
        """Take a sample.

        Args:
            stamp_ns: Its time [ns].
            row: Its values, shape (width,).

        Returns:
            Whether it was taken; if not, the status says why.
        """
        self.status.received += 1
        newest = self.newest_ns
        if newest is not None and abs(stamp_ns - newest) > self._jump_ns:
            self._note_elsewhere(stamp_ns, row)
            return False
        place = bisect_left(self._stamps, stamp_ns)
        if place < len(self._stamps) and self._stamps[place] == stamp_ns:
            self.status.drop("duplicate stamps")
            return False
        self._elsewhere.clear()
        if place < len(self._stamps):
            self._late_ns = min(stamp_ns, self._late_ns or stamp_ns)
        self._stamps.insert(place, stamp_ns)
        self._rows.insert(place, row)
        self.status.used += 1
        self._forget()
        return True

    def take_late(self) -> int | None:
        """Earliest stamp of what came out of order since the last call [ns], or None."""
        late, self._late_ns = self._late_ns, None
        return late

    def follow_jump(self) -> None:
        """Start anew with the samples on the other clock."""
        samples = sorted(self._elsewhere, key=lambda sample: sample[0])
        self._stamps = [stamp for stamp, _ in samples]
        self._rows = [row for _, row in samples]
        self._elsewhere = []

    def clear(self) -> None:
        """Forget all samples."""
        self._stamps, self._rows, self._elsewhere = [], [], []

    def between(self, first_ns: int, last_ns: int) -> tuple[NDArray[np.int64], Array]:
        """Samples from `first_ns` to `last_ns`, ends included, and one more on either side if there is one.

        Returns:
            Stamps (N,) and rows (N, width).
        """
        first = max(bisect_left(self._stamps, first_ns) - 1, 0)
        last = min(bisect_right(self._stamps, last_ns) + 1, len(self._stamps))
        rows = self._rows[first:last]
        stamps = np.array(self._stamps[first:last], dtype=np.int64)
        return stamps, np.array(rows) if rows else np.empty((0, self._width))

    def measure(self) -> StreamStatus:
        """The status with rate and gaps of now."""
        self.status.newest_ns = self.newest_ns
        if len(self._stamps) > 2:
            gaps = np.diff(self._stamps) / NANOSECONDS
            self.status.rate_hz = float(1.0 / np.median(gaps))
            self.status.largest_gap_s = float(gaps.max())
        return self.status

    def _note_elsewhere(self, stamp_ns: int, row: Array) -> None:
        self.status.drop("stray stamps")
        if self._elsewhere and abs(stamp_ns - self._elsewhere[-1][0]) > self._jump_ns:
            self._elsewhere = []
        if not any(stamp == stamp_ns for stamp, _ in self._elsewhere):
            self._elsewhere.append((stamp_ns, row))

    def _forget(self) -> None:
        oldest = self._stamps[-1] - self._keep_ns
        if self._stamps[0] < oldest:
            keep = bisect_left(self._stamps, oldest)
            del self._stamps[:keep], self._rows[:keep]
