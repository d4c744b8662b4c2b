# SPDX-License-Identifier: Apache-2.0
"""Unitree G1, a whole recording: ros2 launch prime_ros g1_pfie.launch.py bag:=walk out:=results"""

from launch import LaunchDescription
from prime_ros.nodes import launching


def generate_launch_description() -> LaunchDescription:
    """What `ros2 launch` asks for."""
    return launching.pfie("g1")
