# SPDX-License-Identifier: Apache-2.0
"""Which feet stand when, from the height that the measured kinematics give them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.ndimage import median_filter

from prime_ros.config import EstimatorConfig
from prime_ros.estimation.fixed_contact.feet import Foot
from prime_ros.estimation.problem import start_height
from prime_ros.robot import Robot

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def standing_feet(
    q: Array, feet: Sequence[Foot], robot: Robot, config: EstimatorConfig
) -> tuple[Mask, float]:
    """Call a foot standing that is less than `fixed_contact.height` above the ground.

    The ground is where the lowest contact is for half of the time. The height of a foot is that of the middle
    of its contacts; a median over `fixed_contact.smoothing` keeps noise from making it flicker.

    Args:
        q: Measured configurations, shape (M, nq).
        feet: F feet.
        robot: The robot.
        config: That height, and the length of the median.

    Returns:
        Shape (M, F), and the height of the ground [m].
    """
    ground = start_height(q, robot)
    window = 2 * round(config.fixed_contact.smoothing / (2.0 * config.dt)) + 1
    heights = median_filter(foot_heights(q, feet, robot), size=(window, 1), mode="nearest")
    return heights - ground < config.fixed_contact.height, ground


def foot_heights(q: Array, feet: Sequence[Foot], robot: Robot) -> Array:
    """World height of the middle of the lowest points of every foot, shape (M, F) [m]."""
    data = robot.model.createData()
    heights = np.empty((len(q), len(feet)))
    for k, configuration in enumerate(q):
        pin.forwardKinematics(robot.model, data, configuration)
        for f, foot in enumerate(feet):
            members = [robot.contacts[i] for i in foot.contacts]
            heights[k, f] = np.mean([data.oMi[c.joint_id].act(c.offset)[2] - c.radius for c in members])
    return heights
