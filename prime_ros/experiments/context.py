# SPDX-License-Identifier: Apache-2.0
"""What an experiment is given to work with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from prime_ros.experiments.section import Plot
from prime_ros.experiments.solving import Solves

IMAGES = "images"


@dataclass(frozen=True)
class Context:
    """Solves, seeds, and where pictures go."""

    solves: Solves
    seeds: tuple[int, ...]
    out: Path
    """Folder of the page."""

    def picture(self, name: str) -> Path:
        """File of a picture."""
        return self.out / IMAGES / f"experiment_{name}.svg"

    def plot(self, name: str, caption: str) -> Plot:
        """A picture that was written."""
        return Plot(f"{IMAGES}/{self.picture(name).name}", caption)

    @property
    def seed_words(self) -> str:
        """The seeds as the page names them."""
        return ", ".join(map(str, self.seeds))
