# SPDX-License-Identifier: Apache-2.0
"""What the launch files of all robots share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from launch.actions import DeclareLaunchArgument, ExecuteProcess
from launch.conditions import IfCondition
from launch.substitution import Substitution
from launch.substitutions import LaunchConfiguration, PythonExpression
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from launch import LaunchDescription
from prime_ros.config.loading import shipped_folder

PACKAGE = "prime_ros"
NAME = "prime"
INPUTS = ("joint_states", "imu", "mocap", "lowstate", "joint_torques")

AUTO = "auto"

_BAG = LaunchConfiguration("bag")
_HAS_BAG = PythonExpression(["'", _BAG, "' != ''"])
_RVIZ = LaunchConfiguration("rviz")
_TRANSFORMS = PythonExpression(
    [
        *("'", LaunchConfiguration("transforms"), f"'.replace('{AUTO}', "),
        *("'robot' if '", _RVIZ, "'.lower() in ('true', '1') else 'none')"),
    ]
)


def mhe(robot: str) -> LaunchDescription:
    """Estimate live: mhe_node, with a bag to play and RViz on request."""
    arguments = [
        *_common(robot, "mhe"),
        *_inputs(),
        DeclareLaunchArgument("bag", default_value="", description="Rosbag to play; empty: a live robot."),
        DeclareLaunchArgument(
            "bag_delay",
            default_value="5.0",
            description="Time for the nodes to start before the bag plays [s].",
        ),
        _autostart(),
        _use_sim_time(AUTO, "Take the time from /clock; auto: if a bag is played."),
    ]
    play = ExecuteProcess(
        cmd=["ros2", "bag", "play", _BAG, "--clock", "100", "--delay", LaunchConfiguration("bag_delay")],
        condition=IfCondition(_HAS_BAG),
        output="screen",
    )
    time = PythonExpression(
        ["'", LaunchConfiguration("use_sim_time"), f"'.replace('{AUTO}', str('", _BAG, "' != ''))"]
    )
    return LaunchDescription([*arguments, _mhe_node(time), play, _rviz(time)])


def pfie(robot: str) -> LaunchDescription:
    """Estimate over a bag, or over live topics when its service solve is called, and replay the result."""
    arguments = [
        *_common(robot, "pfie"),
        *_inputs(),
        DeclareLaunchArgument(
            "bag", default_value="", description="Recording to solve; empty: topics until ~/solve is called."
        ),
        DeclareLaunchArgument(
            "out", default_value="", description="Directory for the files of `prime solve`; empty: none."
        ),
        DeclareLaunchArgument("rate", default_value="1.0", description="Speed of the replay."),
        DeclareLaunchArgument("loop", default_value="false", description="Replay again and again."),
        _use_sim_time(
            "false", "Take the time of live topics from /clock; the replay publishes /clock itself."
        ),
    ]
    node = _node("pfie_node", NAME, {"bag": str, "out": str, "rate": float, "loop": bool, **_NODE_ARGUMENTS})
    return LaunchDescription([*arguments, node, _rviz(True)])


def sim(robot: str) -> LaunchDescription:
    """Simulate the robot in real time, and estimate live."""
    arguments = [
        *_common(robot, "mhe"),
        *_inputs(),
        DeclareLaunchArgument(
            "gait", default_value="trot", description="What the robot does: stand, sway, trot or hop."
        ),
        DeclareLaunchArgument("feet", default_value="soft", description="Feet: soft or stiff."),
        DeclareLaunchArgument(
            "payload", default_value="", description="Box on the base, KG[@X,Y,Z]; empty: none."
        ),
        _autostart(),
        _use_sim_time("false", "Take the time from /clock; the simulator runs on the clock of the machine."),
    ]
    simulator = _node("sim_node", "sim", {"robot": str, "gait": str, "feet": str, "payload": str})
    return LaunchDescription([*arguments, simulator, _mhe_node(), _rviz()])


_NODE_ARGUMENTS: dict[str, type] = {
    "robot": str,
    "config": str,
    "mocap_type": str,
    "lowstate_type": str,
    "torque": str,
    "stamps": str,
    "world_frame": str,
    "transforms": str,
}
"""Launch arguments that are parameters of every estimator node, and their types."""


def _common(robot: str, config: str) -> list[DeclareLaunchArgument]:
    return [
        DeclareLaunchArgument(
            "robot", default_value=robot, description="Shipped robot, or the path of a robot YAML."
        ),
        DeclareLaunchArgument(
            "config", default_value=config, description="Estimator: a shipped name, or a YAML of settings."
        ),
        DeclareLaunchArgument(
            "namespace", default_value="", description="Namespace of all nodes and topics."
        ),
        DeclareLaunchArgument("rviz", default_value="false", description="Start RViz."),
        DeclareLaunchArgument(
            "rviz_config",
            default_value=str(_layout(robot)),
            description="Configuration of RViz.",
        ),
        DeclareLaunchArgument(
            "transforms",
            default_value=AUTO,
            description="Broadcast on tf: none, base, or robot (all links); auto: robot with RViz.",
            choices=[AUTO, "none", "base", "robot"],
        ),
        DeclareLaunchArgument(
            "world_frame", default_value="world", description="Frame in which motion capture states poses."
        ),
    ]


def _layout(robot: str) -> Path:
    """Configuration of RViz for a robot; those of robots without one follow the Go2's."""
    folder = shipped_folder("config", "rviz") / "rviz"
    return next(path for name in (robot, "go2") if (path := folder / f"{name}.rviz").is_file())


def _inputs() -> list[DeclareLaunchArgument]:
    what = {
        "joint_states": "JointState with torque as effort",
        "imu": "Imu",
        "mocap": "pose of the robot from motion capture",
        "lowstate": "LowState, with lowstate_type",
        "joint_torques": "JointState with torque as effort, with torque:=topic",
    }
    topics = [
        DeclareLaunchArgument(name, default_value=name, description=f"Topic: {what[name]}.")
        for name in INPUTS
    ]
    return [
        *topics,
        DeclareLaunchArgument(
            "mocap_type",
            default_value="pose_stamped",
            description="Type of the topic mocap.",
            choices=["pose_stamped", "pose_with_covariance", "odometry"],
        ),
        DeclareLaunchArgument(
            "lowstate_type",
            default_value="none",
            description="Listen to lowstate instead of joint_states and imu.",
            choices=["none", "unitree_go", "unitree_hg"],
        ),
        DeclareLaunchArgument(
            "torque",
            default_value="effort",
            description="Torque of the joints: effort of joint_states, or the topic joint_torques.",
            choices=["effort", "topic"],
        ),
        DeclareLaunchArgument(
            "stamps",
            default_value="header",
            description="Time of a sample: its header, or its receipt.",
            choices=["header", "receipt"],
        ),
    ]


def _autostart() -> DeclareLaunchArgument:
    return DeclareLaunchArgument(
        "autostart",
        default_value="true",
        description="Start to listen; false: wait for `ros2 lifecycle set`.",
    )


def _use_sim_time(default: str, description: str) -> DeclareLaunchArgument:
    return DeclareLaunchArgument("use_sim_time", default_value=default, description=description)


def _mhe_node(use_sim_time: Substitution | None = None) -> Node:
    return _node("mhe_node", NAME, {**_NODE_ARGUMENTS, "autostart": bool}, use_sim_time)


def _node(
    executable: str, name: str, parameters: dict[str, type], use_sim_time: Substitution | None = None
) -> Node:
    """A node of this package whose parameters are launch arguments of the same names."""
    found = {"transforms": _TRANSFORMS, "use_sim_time": use_sim_time}
    values = {
        key: ParameterValue(found.get(key) or LaunchConfiguration(key), value_type=kind)
        for key, kind in {**parameters, "use_sim_time": bool}.items()
    }
    return Node(
        package=PACKAGE,
        executable=executable,
        name=name,
        namespace=LaunchConfiguration("namespace"),
        parameters=[values],
        remappings=_remappings(INPUTS),
        output="screen",
    )


def _remappings(topics: Sequence[str]) -> list[tuple[str, LaunchConfiguration]]:
    return [(name, LaunchConfiguration(name)) for name in topics]


def _rviz(use_sim_time: Substitution | bool | None = None) -> Node:
    """RViz beside the node, in its namespace."""
    time = LaunchConfiguration("use_sim_time") if use_sim_time is None else use_sim_time
    return Node(
        package="rviz2",
        executable="rviz2",
        namespace=LaunchConfiguration("namespace"),
        arguments=["-d", LaunchConfiguration("rviz_config")],
        parameters=[{"use_sim_time": ParameterValue(time, value_type=bool)}],
        condition=IfCondition(_RVIZ),
    )
