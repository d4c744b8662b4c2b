# SPDX-License-Identifier: Apache-2.0
"""One inertia from several recordings beside what each of them says alone: for terminal, page and file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from prime_ros.estimation.estimate import Direction, LinkEstimate
from prime_ros.estimation.fusion import Agreement
from prime_ros.estimation.inertia import PARAMETER_COUNT
from prime_ros.estimation.observability import NAMES
from prime_ros.outputs.inertia_entries import Entry, entries

WORTH_NAMING = 3.0
"""Difference of a parameter, in its std, from which it is named among those that contradict."""
MOST_NAMED = 3


@dataclass(frozen=True)
class Comparison:
    """What R recordings say together and alone."""

    names: tuple[str, ...]
    """Of the recordings, R."""
    links: Mapping[str, LinkEstimate]
    """Together."""
    alone: tuple[Mapping[str, LinkEstimate], ...]
    """Each, R."""
    directions: tuple[Direction, ...]
    """Of the parameters, least known first."""
    shares: NDArray[np.float64]
    """Of every recording in what is known of a direction, shape (len(directions), R) [-]."""
    agreements: tuple[Agreement, ...]
    """Of each recording with all others, R."""


@dataclass(frozen=True)
class Row:
    """One number of a link."""

    link: str
    together: Entry
    alone: tuple[Entry, ...]

    @property
    def shrinkage(self) -> float:
        """Std together over the smallest alone [-]: below 1 where another recording helped."""
        least = min(entry.std for entry in self.alone)
        return self.together.std / least if least > 0.0 else float("nan")

    def away(self, recording: int) -> float:
        """What a recording says alone minus what all say, in std of the former [-]."""
        entry = self.alone[recording]
        return (entry.estimate - self.together.estimate) / entry.std if entry.std > 0.0 else float("nan")


def rows(comparison: Comparison) -> Iterator[Row]:
    """Ten numbers of every link."""
    for name, link in comparison.links.items():
        alone = [entries(links[name]) for links in comparison.alone]
        for i, entry in enumerate(entries(link)):
            yield Row(name, entry, tuple(each[i] for each in alone))


def contradictions(comparison: Comparison) -> list[tuple[str, str]]:
    """Recordings that contradict the others: what it is, and what to do about it."""
    found = [i for i, agreement in enumerate(comparison.agreements) if agreement.contradicts]
    if len(comparison.names) == 2:
        found = found[:1]
    return [(_contradiction(comparison, i), _ADVICE) for i in found]


_ADVICE = (
    "check that all are of the same robot with the same load at the same place; a recording that the model"
    " does not fit (ground, noise, sensors) can differ too: its own report tells"
)


def _contradiction(comparison: Comparison, index: int) -> str:
    agreement = comparison.agreements[index]
    others = "the others" if len(comparison.names) > 2 else comparison.names[1 - index]
    parts = ", ".join(_largest(comparison, agreement))
    return (
        f"{comparison.names[index]} contradicts {others}: chi-square {agreement.chi_square:.0f} for"
        f" {agreement.dof} degrees of freedom"
        + (f", largest differences {parts}" if parts else "")
        + f": they would agree if all std were {agreement.birge_ratio:.1f} times as large"
    )


def _largest(comparison: Comparison, agreement: Agreement) -> Iterator[str]:
    """The parameters that differ most, in words."""
    difference = np.nan_to_num(agreement.difference)
    several = len(comparison.links) > 1
    names = [f"{link}: {name}" if several else name for link in comparison.links for name in NAMES]
    assert len(names) == PARAMETER_COUNT * len(comparison.links)
    for i in np.argsort(-np.abs(difference))[:MOST_NAMED]:
        if abs(difference[i]) >= WORTH_NAMING:
            yield f"{names[i]} {difference[i]:+.1f} std"


def share_text(share: float, digits: int = 0) -> str:
    """A share as percent, or a dash."""
    return f"{100.0 * share:.{digits}f} %" if isfinite(share) else "–"
