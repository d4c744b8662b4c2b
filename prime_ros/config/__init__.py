# SPDX-License-Identifier: Apache-2.0
"""Typed, strict configuration: robots and estimators as data, read from YAML."""

from prime_ros.config.estimator import EstimatorConfig
from prime_ros.config.loading import available, config_folder, load_estimator_config, load_robot_config
from prime_ros.config.robot import ContactConfig, RobotConfig

__all__ = [
    "ContactConfig",
    "EstimatorConfig",
    "RobotConfig",
    "available",
    "config_folder",
    "load_estimator_config",
    "load_robot_config",
]
