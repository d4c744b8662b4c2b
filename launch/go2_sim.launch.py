# SPDX-License-Identifier: Apache-2.0
"""Unitree Go2, simulated: ros2 launch prime_ros go2_sim.launch.py gait:=trot rviz:=true"""

from launch import LaunchDescription
from prime_ros.nodes import launching


def generate_launch_description() -> LaunchDescription:
    """What `ros2 launch` asks for."""
    return launching.sim("go2")
