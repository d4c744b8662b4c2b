# SPDX-License-Identifier: Apache-2.0
"""What to read of a recording, where more than one answer is possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

StampSource = Literal["auto", "header", "receipt", "tick"]


@dataclass(frozen=True)
class Topics:
    """Topics to read. None: the only topic of a fitting type."""

    joints: str | None = None
    """sensor_msgs/JointState with effort in Nm, or unitree_go/LowState, unitree_hg/LowState."""
    imu: str | None = None
    """sensor_msgs/Imu, or one of the LowState."""
    mocap: str | None = None
    """Pose of the tracked body in the world: PoseStamped, PoseWithCovarianceStamped, Odometry, TFMessage."""


@dataclass(frozen=True)
class SourceOptions:
    """How to read a recording."""

    topics: Topics = Topics()
    """Which topics."""
    stamps: StampSource = "auto"
    """Time of a sample: of its header; of its receipt by the recorder; from the counter of a LowState. auto:
    the header where the message has one, else the counter, else receipt."""
    body: str | None = None
    """Frame of the tracked body in a TFMessage (``child_frame_id``); None: the only one."""
    vendor_joint_names: tuple[str, ...] = ()
    """Joints in the order of the vendor's messages, which number them; `Robot.vendor_joint_names`."""
    number_motors: bool = False
    """Call the joints motor_0, motor_1, ... where `vendor_joint_names` are needed and missing."""
