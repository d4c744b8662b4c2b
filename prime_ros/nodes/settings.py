# SPDX-License-Identifier: Apache-2.0
"""Settings of the nodes, besides those of the estimator: ROS parameters, described by their docstrings."""

from typing import Literal

from pydantic import Field

from prime_ros.config.units import Number, Section

LowStateType = Literal["none", "unitree_go", "unitree_hg"]


class ModelSettings(Section):
    """The robot and the estimator."""

    robot: str = "go2"
    """Shipped robot, such as go2, or the path of a robot YAML."""

    urdf: str = ""
    """URDF or MJCF to use instead of the robot's own; empty: the robot's own."""


class InputSettings(ModelSettings):
    """What to listen to."""

    mocap_type: Literal["pose_stamped", "pose_with_covariance", "odometry"] = "pose_stamped"
    """Type of the topic mocap: pose_stamped, pose_with_covariance (geometry_msgs) or odometry (nav_msgs)."""

    lowstate_type: LowStateType = "none"
    """Listen to lowstate instead of joint_states and imu: none, or the package of its type."""

    torque: Literal["effort", "topic"] = "effort"
    """Torque of the joints: effort of joint_states, or effort of the topic joint_torques (JointState)."""

    stamps: Literal["header", "receipt"] = "header"
    """Time of a sample: its header, or its receipt by this node for publishers that do not stamp."""


class OutputSettings(InputSettings):
    """What to publish."""

    world_frame: str = Field("world", min_length=1)
    """Name of the frame in which motion capture states its poses."""

    transforms: Literal["none", "base", "robot"] = "none"
    """Broadcast on tf: none, base (world_frame to base), or robot (all links, and robot_description)."""

    marker_rate: Number = Field(50.0, ge=0)
    """Most markers and robot transforms per second [1/s]; 0: none."""


class MheSettings(OutputSettings):
    """Settings of mhe_node."""

    config: str = "mhe"
    """Estimator: a shipped name or a YAML file with the settings that differ."""

    lagged: bool = True
    """Publish the estimate of horizon.lag steps ago too, on lagged/odometry and lagged/contacts."""

    autostart: bool = True
    """Configure and activate the node at its start; otherwise wait for its lifecycle services."""


class PfieSettings(OutputSettings):
    """Settings of pfie_node."""

    config: str = "pfie"
    """Estimator: a shipped name or a YAML file with the settings that differ."""

    bag: str = ""
    """Recording to solve at once: rosbag2 folder or file, or a table; empty: topics until solve is called."""

    out: str = ""
    """Directory for the files that `prime solve` writes; empty: no files."""

    rate: Number = Field(1.0, gt=0)
    """Speed of the replay in multiples of real time [-]."""

    loop: bool = False
    """Start the replay again when it is over."""

    publish_clock: bool = True
    """Publish /clock during the replay; listeners set use_sim_time."""

    keep: Number = Field(600.0, gt=0)
    """Longest time of live topics to keep until solve is called [s]; older samples are dropped."""


class BridgeSettings(ModelSettings):
    """Settings of unitree_bridge."""

    message: Literal["unitree_go", "unitree_hg"] = "unitree_go"
    """Messages of the robot: unitree_go (Go2, B2, H1) or unitree_hg (G1)."""

    dds_topic: str = "rt/lowstate"
    """DDS topic of the robot."""

    interface: str = ""
    """Network interface to the robot, such as eth0; empty: that of CycloneDDS."""

    domain: int = Field(0, ge=0, le=232)
    """DDS domain of the robot."""

    imu_frame: str = "imu"
    """Frame of the published Imu messages."""
