# SPDX-License-Identifier: Apache-2.0
"""How uncertain the contact slack is: more so in the step in which a contact changes its velocity.

The contact model sees one velocity per step, the mean. Where a foot lands, its velocity changes within the
step by dV, at a time that is not known; if any time is as likely, the mean is uncertain by dV / sqrt(12).
Feet that stand keep the small slack that tells apart what each of them carries.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prime_ros import _core
from prime_ros.config import EstimatorConfig

Array = NDArray[np.float64]


def slack_weight(step: _core.ContactStep, states: Array, config: EstimatorConfig) -> Array:
    """Inverse variances of the contact slack along a motion.

    Args:
        step: The contact step.
        states: States (q, v, theta) of the motion, shape (nx, K + 1).
        config: `slack` is used.

    Returns:
        Shape (3 C, K) [s^2/m^2]; both tangential axes of a contact have the same.
    """
    data = _core.ContactStepData(step)
    q, v = states[: step.nq], states[step.nq : step.nq + step.nv]
    changes = [
        step.contact_velocity(data, q[:, k], v[:, k + 1] - v[:, k]).reshape(-1, 3)
        for k in range(states.shape[1] - 1)
    ]
    change = np.array(changes).reshape(-1, step.ncontacts, 3)
    slack = config.slack
    along = slack.tangential**2 + (slack.change * np.linalg.norm(change[..., :2], axis=2)) ** 2
    across = slack.normal**2 + (slack.change * change[..., 2]) ** 2
    return (1.0 / np.stack([along, along, across], axis=2)).reshape(len(changes), -1).T
