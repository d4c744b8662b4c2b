# SPDX-License-Identifier: Apache-2.0
"""Mounts of IMU and marker body: the rotation between the two as they turn, against the configured one."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

from prime_ros.measurements.axes import DEGREES, angle
from prime_ros.measurements.clocks import Fit
from prime_ros.measurements.findings import Finding, Severity
from prime_ros.measurements.samples import Floats, JointSamples
from prime_ros.measurements.turning import Turning, quaternion_xyzw
from prime_ros.robot import Robot

WRONG = 30.0  # [deg] of error in a mount that makes an estimate useless
DOUBTFUL = 3.0  # [deg] of error in a mount that is worth a word
ACROSS = 60.0  # [deg] between what a sensor calls up and the direction away from the feet


def mount_findings(turning: Turning, fitted: Fit, robot: Robot, joints: JointSamples) -> list[Finding]:
    """Compare the rotation between the sensors with the configured one.

    Args:
        turning: What motion capture and IMU saw.
        fitted: The rotation between them.
        robot: Its mounts are checked.
        joints: Joints in model order: where the feet are tells which of two sensors is upside down.

    Returns:
        Nothing, or one finding with the settings that would be right.
    """
    error = Rotation.from_matrix(turning.R_MI.T @ fitted.R_MI).as_rotvec()
    off = float(np.linalg.norm(error)) * DEGREES
    along = error / max(float(np.linalg.norm(error)), 1e-12)
    std = float(np.sqrt(along @ fitted.cov_rotation @ along)) * DEGREES
    if not off > DOUBTFUL + 3.0 * std:
        return []
    severity: Severity = "error" if off > WRONG else "warning"
    R_BM = np.asarray(robot.T_BM.rotation)
    suggestions = {
        "imu": f"imu.quat_xyzw: {_suggested(R_BM @ fitted.R_MI, std)}",
        "mocap": f"mocap.quat_xyzw: {_suggested(robot.R_BI @ fitted.R_MI.T, std)}",
    }
    culprit = _not_upright(turning, robot, joints)
    advice = "in the robot's YAML set " + (
        suggestions[culprit]
        if culprit
        else f"{suggestions['imu']} if the IMU is mounted so, else {suggestions['mocap']}"
    )
    what = (
        f"the IMU is turned against the body of motion capture by {off:.1f} +- {std:.1f} deg from what the"
        " mounts in the robot's YAML say, by how both turn"
    )
    return [Finding("imu-mount", severity, what, advice, {"angle_deg": off, "std_deg": std})]


def _suggested(rotation: Floats, std: float) -> str:
    """Quaternion of a rotation, or of the turn by right angles that it means."""
    for axes in permutations(range(3)):
        for signs in product((1.0, -1.0), repeat=3):
            square = np.zeros((3, 3))
            square[axes, range(3)] = signs
            if np.linalg.det(square) > 0:
                off = np.linalg.norm(Rotation.from_matrix(square.T @ rotation).as_rotvec()) * DEGREES
                if off < DOUBTFUL + 3.0 * std:
                    return str(quaternion_xyzw(square))
    return str(quaternion_xyzw(rotation))


def _not_upright(turning: Turning, robot: Robot, joints: JointSamples) -> str | None:
    """Which of the sensors says that the feet are not below the base, if just one does."""
    finite = [column[np.isfinite(column)] for column in joints.position.T]
    posture = [float(np.median(column)) if column.size else 0.0 for column in finite]
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, np.concatenate([[0, 0, 0, 0, 0, 0, 1.0], posture]))
    up = -np.mean([data.oMi[c.joint_id].act(c.offset) for c in robot.contacts], axis=0)
    force = turning.force[np.isfinite(turning.force).all(axis=1)]
    world_up_M = Rotation.from_quat(turning.quat_xyzw).inv().apply([0, 0, 1.0]).mean(axis=0)
    seen = {
        "mocap": robot.T_BM.rotation @ world_up_M,
        "imu": robot.R_BI @ (force.mean(axis=0) if len(force) else np.zeros(3)),
    }
    off = [name for name, axis in seen.items() if angle(axis, up) > ACROSS]
    return off[0] if len(off) == 1 else None
