# SPDX-License-Identifier: Apache-2.0
"""What a recording could not tell, and which motion would."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isfinite

from prime_ros.estimation.estimate import Direction, Estimate

KNOWN = 0.9
"""Learned share from which a direction counts as known by the data [-]."""
UNKNOWN = 0.5
"""Learned share below which a direction rests on the prior [-]."""

_MOTIONS = (
    (r"extent along x", "turn on the spot and pitch the base"),
    (r"extent along y", "turn on the spot and roll the base"),
    (r"extent along z", "roll and pitch the base by 10 degrees and more"),
    (r"tilt of the axes in xy", "roll and pitch the base together"),
    (r"tilt of the axes in yz", "turn while pitching the base"),
    (r"tilt of the axes in xz", "turn while rolling the base"),
    (r"centre of mass z", "roll and pitch the base by 10 degrees and more"),
    (r"centre of mass [xy]", "stand on all feet, then walk"),
    (r"mass", "stand on all feet, with nothing else touching the robot"),
)
"""Motions that tell about the parts of a direction, by the words of its description."""


def standing(learned: float) -> str:
    """`known`, `partly` or `prior`: what knowledge of a direction rests on."""
    if learned >= KNOWN:
        return "known"
    return "partly" if learned >= UNKNOWN else "prior"


def percent(direction: Direction) -> int:
    """Learned share for a bar [%]."""
    return round(100 * min(max(direction.learned, 0.0), 1.0)) if isfinite(direction.learned) else 0


def motion_for(direction: Direction, base: str | None = None) -> str:
    """A motion that tells about a direction.

    Args:
        direction: What is not known.
        base: Name of the link that the free base moves; other links have to swing themselves.
    """
    if direction.link not in (base, "base"):
        return f"swing {direction.link} freely in the air, fast and in all its directions"
    parts = re.split(r" [+-] ", direction.description)
    motions = (m for part in parts for pattern, m in _MOTIONS if re.fullmatch(pattern, part.strip()))
    return "; ".join(dict.fromkeys(motions)) or "record longer, with starts, stops and turns"


def least_known(estimate: Estimate) -> list[Direction]:
    """All directions, least known first."""
    return sorted(estimate.directions, key=lambda d: d.learned if isfinite(d.learned) else -1.0)


def unknown(estimate: Estimate) -> Iterator[Direction]:
    """Directions that rest on the prior."""
    yield from (d for d in least_known(estimate) if standing(d.learned) == "prior")
