# SPDX-License-Identifier: Apache-2.0
"""Contact forces of an estimate against the truth of its log, foot by foot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prime_ros.estimation.estimate import Estimate
from prime_ros.estimation.fixed_contact.feet import feet_of
from prime_ros.experiments.simulation_logs import Floats, SimulationLog, truth_at
from prime_ros.robot import Robot

EDGE_KNOTS = 20
"""Knots left out at both ends of a recording, where only one side has data."""


@dataclass(frozen=True)
class ForceErrors:
    """Forces of K knots and F feet: the sum over the contacts of a foot."""

    feet: tuple[str, ...]
    estimated_W: Floats
    """Shape (K, F, 3) [N]."""
    true_W: Floats
    """Shape (K, F, 3) [N]."""
    standing: NDArray[np.bool_]
    """Whether the estimate has the foot in contact, shape (K, F)."""
    truly_standing: NDArray[np.bool_]
    """Shape (K, F)."""

    @property
    def rmse(self) -> Floats:
        """Of the 3-D force of every foot without the ends of the recording, shape (F,) [N]."""
        return np.sqrt((self._error**2).sum(axis=2).mean(axis=0))

    @property
    def rmse_by_axis(self) -> Floats:
        """Over all feet, along x, y and z of the world, shape (3,) [N]."""
        return np.sqrt((self._error**2).mean(axis=(0, 1)))

    @property
    def worst(self) -> float:
        """Of the worst foot [N]."""
        return float(self.rmse.max())

    @property
    def agreement(self) -> float:
        """Share of knots and feet whose contact state is right [-]."""
        used = slice(EDGE_KNOTS, -EDGE_KNOTS)
        return float(np.mean(self.standing[used] == self.truly_standing[used]))

    @property
    def _error(self) -> Floats:
        return (self.estimated_W - self.true_W)[EDGE_KNOTS:-EDGE_KNOTS]


def force_errors(estimate: Estimate, log: SimulationLog, robot: Robot, threshold: float) -> ForceErrors:
    """Compare.

    Args:
        estimate: Of the robot of the log.
        log: The truth, seen through the windows that the estimate states.
        robot: Its feet.
        threshold: Normal force of a foot that counts as standing [N].
    """
    truth = truth_at(log, estimate.stamp_ns, estimate.dt)["contact_force_W"]
    columns = [log.contact_names.index(name) for name in estimate.contact_names]
    true_W = truth[:, columns]
    feet = feet_of(robot)
    members = [list(foot.contacts) for foot in feet]

    def summed(forces: Floats) -> Floats:
        return np.stack([forces[:, places].sum(axis=1) for places in members], axis=1)

    estimated, true = summed(estimate.contact_force_W), summed(true_W)
    return ForceErrors(
        tuple(foot.name for foot in feet),
        estimated,
        true,
        estimated[..., 2] > threshold,
        true[..., 2] > threshold,
    )
