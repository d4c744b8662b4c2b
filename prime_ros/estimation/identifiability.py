# SPDX-License-Identifier: Apache-2.0
"""What a recording could not tell about the inertia, and which motion would.

A number is learned as far as the data removed its prior variance, 1 - posterior variance / prior variance.
Below `UNKNOWN` the data brought less information than the prior had: the number is dominated by the prior,
whatever its standard deviation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite, nan

import numpy as np

from prime_ros.estimation.estimate import BodyInertia, Direction, Estimate, LinkEstimate

KNOWN = 0.9
"""Learned share from which a number or direction counts as known by the data [-]."""
UNKNOWN = 0.5
"""Learned share below which it rests on the prior [-]: a std of more than 71 % of the prior's."""

MOMENTS = {"Ixx": (0, 0), "Iyy": (1, 1), "Izz": (2, 2), "Ixy": (0, 1), "Ixz": (0, 2), "Iyz": (1, 2)}
"""Entries of a rotational inertia."""

_MOTIONS = (
    (r"extent along x", "turn on the spot and pitch the base"),
    (r"extent along y", "turn on the spot and roll the base"),
    (r"extent along z", "roll and pitch the base by 10 degrees and more"),
    (r"tilt of the axes in xy|Ixy", "roll and pitch the base together"),
    (r"tilt of the axes in yz|Iyz", "turn while pitching the base"),
    (r"tilt of the axes in xz|Ixz", "turn while rolling the base"),
    (r"centre of mass z|com z", "roll and pitch the base by 10 degrees and more"),
    (r"centre of mass [xy]|com [xy]", "stand on all feet, then walk"),
    (r"mass", "stand on all feet, with nothing else touching the robot"),
    (r"Ixx", "roll the base, fast"),
    (r"Iyy", "pitch the base, fast"),
    (r"Izz", "turn on the spot, with starts and stops"),
)
"""Motions that tell about a number, or the parts of a direction, by its name."""


def learned_shares(link: LinkEstimate) -> dict[str, float]:
    """Of each of the ten numbers of a link's inertia, the share of its prior variance that the data removed.

    Returns:
        By name, `mass`, `com x`, `Ixx` ... [-]; NaN if the prior is not known.
    """
    std = values(link.std)
    prior = values(link.prior_std) if link.prior_std is not None else dict.fromkeys(std, nan)
    return {name: 1.0 - (std[name] / prior[name]) ** 2 if prior[name] > 0.0 else nan for name in std}


def values(body: BodyInertia) -> dict[str, float]:
    """Ten numbers of an inertia by name [kg, m, kg m^2]."""
    inertia = np.asarray(body.inertia_com, dtype=float)
    com = {f"com {axis}": float(value) for axis, value in zip("xyz", body.com, strict=True)}
    return {"mass": float(body.mass), **com} | {name: float(inertia[at]) for name, at in MOMENTS.items()}


def prior_dominated(link: LinkEstimate) -> list[str]:
    """Names of the numbers of a link's inertia that rest on the prior."""
    shares = learned_shares(link).items()
    return [name for name, learned in shares if isfinite(learned) and standing(learned) == "prior"]


def warnings(links: Mapping[str, LinkEstimate], base: str | None = None) -> Iterator[tuple[str, str]]:
    """For every link with numbers that rest on the prior: which, and a motion that would tell.

    Args:
        links: Estimates by name.
        base: As for `motion_for`.
    """
    for name, link in links.items():
        weak = prior_dominated(link)
        if weak:
            yield (
                f"{name}: {', '.join(weak)} {'rests' if len(weak) == 1 else 'rest'} on the prior: the data"
                f" removed less than {100 * UNKNOWN:.0f} % of the variance that was assumed",
                f"to learn more, {_motion(name, weak, base)}",
            )


def standing(learned: float) -> str:
    """`known`, `partly` or `prior`: what knowledge of a number or direction rests on."""
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
    return _motion(direction.link, re.split(r" [+-] ", direction.description), base)


def _motion(link: str, parts: Iterable[str], base: str | None) -> str:
    if link not in (base, "base"):
        return f"swing {link} freely in the air, fast and in all its directions"
    motions = (m for part in parts for pattern, m in _MOTIONS if re.fullmatch(pattern, part.strip()))
    return "; ".join(dict.fromkeys(motions)) or "record longer, with starts, stops and turns"


def least_known(estimate: Estimate) -> list[Direction]:
    """All directions, least known first."""
    return sorted(estimate.directions, key=lambda d: d.learned if isfinite(d.learned) else -1.0)


def unknown(estimate: Estimate) -> Iterator[Direction]:
    """Directions that rest on the prior."""
    yield from (d for d in least_known(estimate) if standing(d.learned) == "prior")
