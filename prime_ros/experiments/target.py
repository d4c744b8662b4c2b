# SPDX-License-Identifier: Apache-2.0
"""What a measured figure has to be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A figure that has to lie between two limits, both included."""

    group: str
    """What was measured: a log, or a part of the benchmark."""
    name: str
    value: float
    unit: str
    lowest: float | None = None
    highest: float | None = None
    note: str = ""

    @property
    def passed(self) -> bool:
        """Whether the value respects the limits; NaN does not."""
        above = self.lowest is None or self.value >= self.lowest
        return above and (self.highest is None or self.value <= self.highest)

    @property
    def limits(self) -> str:
        """The limits in words."""
        if self.lowest is None:
            return f"<= {self.highest:g}"
        return f">= {self.lowest:g}" if self.highest is None else f"{self.lowest:g} to {self.highest:g}"
