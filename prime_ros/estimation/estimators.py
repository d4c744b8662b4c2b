# SPDX-License-Identifier: Apache-2.0
"""The estimators of whole recordings, by the name that the settings give."""

from __future__ import annotations

from prime_ros.config import EstimatorConfig
from prime_ros.estimation import full_information
from prime_ros.estimation.estimate import Estimate
from prime_ros.estimation.fixed_contact import solve as fixed_contact
from prime_ros.estimation.progress import Report
from prime_ros.measurements.knots import KnotMeasurements
from prime_ros.robot import Robot


def solve(
    measurements: KnotMeasurements,
    robot: Robot,
    config: EstimatorConfig,
    progress: Report | None = None,
) -> Estimate:
    """Estimate with the estimator of `config.estimator`; see there for arguments and errors."""
    chosen = fixed_contact.solve if config.estimator == "fixed-contact" else full_information.solve
    return chosen(measurements, robot, config, progress)
