# SPDX-License-Identifier: Apache-2.0
"""Unitree G1, live: ros2 launch prime_ros g1_mhe.launch.py --show-args"""

from launch import LaunchDescription
from prime_ros.nodes import launching


def generate_launch_description() -> LaunchDescription:
    """What `ros2 launch` asks for."""
    return launching.mhe("g1")
