# SPDX-License-Identifier: Apache-2.0
"""Time of live messages that count milliseconds but carry no stamp."""

from __future__ import annotations

from collections import deque

import numpy as np

MILLISECOND = 1_000_000  # [ns]
WRAP = 2**32
RESTART = 1000
"""Counts by which a counter goes back or ahead of the clock when the robot was restarted [ms]."""
PIECE = 1000
"""Counts over which the smallest delay is kept [ms]."""
PIECES = 30
"""Pieces that the line goes through: half a minute, in which clocks drift by a millisecond or so."""
STILL = 10
"""Messages with the same count after which it counts nothing, and the receipt has to do."""
MAX_RATE_ERROR = 0.01
"""How far a counter of milliseconds may be off the clock [-]; beyond, the receipt has to do."""


class TickClock:
    """Maps a counter to the clock of the receiver, without the jitter of the delay and without drifting off.

    The delay of a message between counting and receipt is never negative and sometimes small. A line through
    the smallest delay of each second therefore takes out both the jitter and the drift between the clocks; it
    is laid anew every second. `prime_ros.sources.stamps` does the same for a recording as a whole.
    """

    def __init__(self) -> None:
        self._last: int | None = None
        self._count = self._still = self._first_ns = 0
        self._ahead = 0.0
        self._pieces: deque[tuple[int, int]] = deque(maxlen=PIECES)
        self._piece: tuple[int, int] | None = None  # count and smallest delay since the last whole piece
        self._piece_end = PIECE
        self._line = (0.0, 0.0)

    def stamp(self, tick: int, receipt_ns: int) -> int:
        """Time of a message.

        Args:
            tick: Milliseconds since some time, as uint32 that wraps around.
            receipt_ns: When it came [ns].

        Returns:
            Time on the clock of the receiver, never after the receipt [ns].
        """
        if self._last is not None:
            step = (tick - self._last + WRAP // 2) % WRAP - WRAP // 2
            self._count += step
            self._still = self._still + 1 if step == 0 else 0
            ahead = (receipt_ns - self._first_ns) / MILLISECOND - self._count
            if step < -RESTART or abs(ahead - self._ahead) > RESTART:
                self._forget()
            else:
                self._ahead = ahead
        if self._last is None:
            self._first_ns = receipt_ns
        self._last = tick
        stamp = self._first_ns + self._count * MILLISECOND + self._delay(receipt_ns)
        return min(stamp, receipt_ns) if self.is_usable else receipt_ns

    @property
    def is_usable(self) -> bool:
        """Whether the counter counts milliseconds; otherwise stamps are those of receipt, with jitter."""
        return self._still <= STILL and abs(self._line[0]) <= MAX_RATE_ERROR * MILLISECOND

    def _forget(self) -> None:
        self._count = self._still = self._first_ns = 0
        self._ahead = 0.0
        self._line = (0.0, 0.0)
        self._pieces.clear()
        self._last, self._piece, self._piece_end = None, None, PIECE

    def _delay(self, receipt_ns: int) -> int:
        """Smallest delay at the present count, on the clock of the receiver [ns]."""
        delay = receipt_ns - self._first_ns - self._count * MILLISECOND
        if self._piece is None or delay < self._piece[1]:
            self._piece = (self._count, delay)
        if self._count >= self._piece_end:
            self._pieces.append(self._piece)
            self._piece, self._piece_end = None, self._count + PIECE
            self._line = _line(np.array(self._pieces, dtype=float))
        if not self._pieces:
            assert self._piece is not None
            return self._piece[1]
        slope, offset = self._line
        return round(offset + slope * self._count)


def _line(points: np.ndarray) -> tuple[float, float]:
    """Slope [ns per count] and offset [ns] of a robust line through points (count, delay)."""
    one, other = np.triu_indices(len(points), 1)
    slope = 0.0
    if one.size:
        rise = points[other, 1] - points[one, 1]
        slope = float(np.median(rise / (points[other, 0] - points[one, 0])))
    return slope, float(np.median(points[:, 1] - slope * points[:, 0]))
