# SPDX-License-Identifier: Apache-2.0
"""What a check of a recording found: what it is, how bad it is, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["note", "warning", "error"]


@dataclass(frozen=True)
class Finding:
    """One result of a check."""

    check: str
    """What was checked, in kebab-case, such as ``quaternion-order``: for scripts."""
    severity: Severity
    """note: good to know; warning: the estimate may suffer; error: it would be wrong, and is refused."""
    what: str
    """What was got, with figures, and what was expected."""
    advice: str = ""
    """What to do: the setting to change with its value, or the thing to look at."""
    values: dict[str, float | str | list[float]] = field(default_factory=dict)
    """The figures, for scripts."""

    def __str__(self) -> str:
        return f"{self.what}; {self.advice}" if self.advice else self.what


@dataclass(frozen=True)
class ClockOffset:
    """Constant offset of motion capture against the robot's clock, from angular rates."""

    seconds: float
    """To be added to the stamps of motion capture [s]."""
    std: float
    """Its standard deviation [s]."""
    applied: bool
    """Whether it was added."""
