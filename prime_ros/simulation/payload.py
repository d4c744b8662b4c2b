# SPDX-License-Identifier: Apache-2.0
"""A box of even density that rides on the base."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from prime_ros.exceptions import SimulationError

Vector = tuple[float, float, float]


@dataclass(frozen=True)
class Payload:
    """A box fixed to the base, its sides parallel to the axes of the base."""

    mass: float
    """[kg]"""
    position: Vector = (0.0, 0.0, 0.1)
    """Centre of the box in the base frame [m]."""
    size: Vector = (0.2, 0.15, 0.08)
    """Lengths of its sides along the axes of the base [m]."""

    def __post_init__(self) -> None:
        if not 0.0 < self.mass < math.inf:
            raise SimulationError(f"payload: got a mass of {self.mass} kg, expected a positive number")
        for name, vector in (("position", self.position), ("size", self.size)):
            if len(vector) != 3 or not all(map(math.isfinite, vector)):
                raise SimulationError(f"payload: got {name} {vector}, expected three numbers [m]")
        if min(self.size) <= 0.0:
            raise SimulationError(f"payload: got size {self.size}, expected three positive lengths [m]")

    @property
    def inertia(self) -> pin.Inertia:
        """Inertia in the base frame."""
        x, y, z = np.square(self.size)
        about_centre = self.mass / 12.0 * np.diag([y + z, x + z, x + y])
        return pin.Inertia(self.mass, np.array(self.position, dtype=float), about_centre)


def parse_payload(text: str) -> Payload:
    """A payload as it is written on a command line.

    Args:
        text: ``KG`` or ``KG@X,Y,Z``, position of its centre in the base frame in metres.

    Raises:
        SimulationError: If it is written otherwise or makes no sense.
    """
    mass, at, position = text.partition("@")
    try:
        numbers = [float(number) for number in position.split(",")] if at else [*Payload(1.0).position]
        x, y, z = numbers
        return Payload(float(mass), (x, y, z))
    except ValueError as error:
        raise SimulationError(f"payload: got '{text}', expected KG or KG@X,Y,Z such as 3@0,0,0.1") from error
