# SPDX-License-Identifier: Apache-2.0
"""Does the robot stand on its feet: are contacts at rest, and do the torques carry its weight?

Both need the joints in the right order and with the right signs, and a robot that touches the ground.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from prime_ros.measurements.findings import Finding
from prime_ros.measurements.footing import Footing, Moments, footing, moments
from prime_ros.measurements.joint_order import mistaken_orders
from prime_ros.measurements.samples import Floats, ImuSamples, JointSamples, MocapSamples
from prime_ros.robot import BASE_NV, Robot

BETTER = 0.65  # times the speed of the slowest contact, for another order to be believed
RESTLESS = 0.2  # [m/s] a contact that is faster in three quarters of a recording is not used to stand on
AT_REST = 0.06  # [m/s] of difference that noise does not explain
SUPPORT_HEIGHT, SUPPORT_SPEED = 0.01, 0.3  # [m, m/s] above the lowest contact, in which another carries too
TORQUES = 200  # moments at which torques are predicted
TELLING = 4.0  # [Nm] of predicted torque that says something about the sign
CONTRARY = -0.5  # correlation; joints of walking robots reach from -0.2 to 0.9
STEPS = 3.0  # [s] of a few steps; in less, what moves a leg can hide what the leg carries
CARRIED = 0.15  # share of the predicted torques below which the legs carry nothing


def support_findings(
    joints: JointSamples, imu: ImuSamples | None, mocap: MocapSamples, robot: Robot, skip: Sequence[str] = ()
) -> list[Finding]:
    """Check order of the joints, sign of the torques, and contact with the ground.

    Args:
        joints: Joints in model order.
        imu: IMU, or None.
        mocap: Valid poses on the same clock.
        robot: The robot.
        skip: Checks that are not wanted.

    Returns:
        What was found; nothing if the recording is too short to tell.
    """
    seen = moments(joints, imu, mocap, robot)
    if seen is None:
        return []
    feet = footing(seen, robot)
    above = float(np.mean(_mean_contact_height(seen, feet) > 0))
    if above > 0.5 and "ground-contact" not in skip:
        what = f"the contacts are above the base in {above:.0%} of the recording, expected below it"
        advice = "the robot lies on its back, or mocap.quat_xyzw or the order of the quaternions is wrong"
        return [Finding("ground-contact", "error", what, advice)]
    order = [] if "joint-order" in skip else _order(seen, feet, robot) or _signs(seen, feet, robot)
    return order or _torques(seen, feet, robot)


def _mean_contact_height(seen: Moments, feet: Footing) -> Floats:
    """Of the centres above the base, in the world, shape (K,) [m]."""
    return np.asarray(seen.rotation.apply(feet.position_B.mean(axis=1))[:, 2])


def _order(seen: Moments, feet: Footing, robot: Robot) -> list[Finding]:
    """Another order of the joints in which a contact is at rest much more often."""
    now = _slowest(feet)
    best, name = np.array(now), ""
    for other, order in mistaken_orders(robot):
        speed = _slowest(footing(seen, robot, order))
        if (speed < best).all():
            best, name = speed, other
    if not name or (best > BETTER * now).any() or now[1] - best[1] < AT_REST / 2:
        return []
    what = (
        f"joints: the slowest contact moves at {now[0]:.2f} m/s (median), expected nearly at rest; with"
        f" {name} it moves at {best[0]:.2f} m/s"
    )
    advice = f"the recording seems to have {name}; give each column the name of its joint"
    return [Finding("joint-order", "error", what, advice)]


def _signs(seen: Moments, feet: Footing, robot: Robot) -> list[Finding]:
    """Joints whose reversed position puts a contact at rest that otherwise never is."""
    rest = _at_rest(feet)
    found: dict[str, str] = {}
    for row in np.flatnonzero(rest > RESTLESS) if seen.duration > STEPS else ():
        contact, best = robot.contacts[row], RESTLESS / 2
        for column in (joint - 2 for joint in robot.model.supports[contact.joint_id] if joint > 1):
            sign = np.where(np.arange(seen.before.shape[1]) == column, -1.0, 1.0)
            turned = footing(replace(seen, before=sign * seen.before, after=sign * seen.after), robot)
            if (speed := float(_at_rest(turned)[row])) < min(best, BETTER * rest[row]):
                best, found[contact.name] = speed, robot.joint_names[column]
    if not found:
        return []
    names = ", ".join(dict.fromkeys(found.values()))
    what = (
        f"joints: {', '.join(found)} is never at rest, expected on the ground from time to time; with {names}"
        " reversed it is"
    )
    advice = (
        "its position and velocity, and maybe its torque, have the opposite sign of the model's: change it"
    )
    return [Finding("joint-order", "error", what, advice)]


def _at_rest(feet: Footing) -> Floats:
    """Speed that each contact stays below in a quarter of the recording, shape (C,) [m/s]."""
    return np.asarray(np.percentile(feet.speed, 25, axis=0))


def _slowest(feet: Footing) -> Floats:
    """Median and upper quartile over the moments of the speed of the slowest contact [m/s]."""
    return np.asarray(np.percentile(feet.speed.min(axis=1), [50, 75]))


def _torques(seen: Moments, feet: Footing, robot: Robot) -> list[Finding]:
    """Compare torques with those that carry the weight on the contacts near the ground."""
    rows = np.unique(np.linspace(0, len(seen.position) - 1, TORQUES).astype(np.int64))
    expected, measured = _expected_torques(seen, feet, robot, rows), seen.torque[rows]
    share = float(np.sum(expected * measured) / max(float(np.sum(expected**2)), 1e-9))
    agreement = _uncentred(expected.ravel(), measured.ravel())
    if not np.any(np.abs(measured) > 1e-9):
        what = "joints: all torques are zero, expected those that carry the robot"
        advice = "record the torque of the motors [Nm] as JointState.effort"
        return [Finding("joint-torque", "error", what, advice)]
    telling = np.sqrt(np.mean(expected**2, axis=0)) > TELLING
    per_joint = np.array([_uncentred(expected[:, i], measured[:, i]) for i in range(expected.shape[1])])
    flipped = telling & (per_joint < CONTRARY)
    if agreement < CONTRARY:
        what = (
            f"joints: the torques push the robot into the ground: {share:+.0%} of what carries it, expected"
            " about +100 %"
        )
        advice = "their sign is that of the load, not of the motor: change it"
        return [Finding("joint-torque", "error", what, advice)]
    if flipped.any() and seen.duration > STEPS:
        names = ", ".join(np.array(robot.joint_names)[flipped])
        what = f"joints: the torque of {names} has the opposite sign of what carries the robot"
        advice = "change its sign: torque is that of the motor on the joint, positive as the position is"
        return [Finding("joint-torque", "warning", what, advice)]
    if abs(share) < CARRIED and agreement < 0.3:
        what = f"the torques of the joints carry {abs(share):.0%} of the robot's weight, expected about 100 %"
        advice = (
            "the robot hangs or never touches the ground, or the torques are not in Nm; the inertia cannot be"
            " told from such a recording"
        )
        return [Finding("ground-contact", "error", what, advice)]
    if agreement > 0.5 and not 0.2 < share < 5.0:
        what = f"joints: the torques are {share:.3g} times those that carry the robot, expected about 1"
        return [Finding("joint-torque", "error", what, "check their unit (Nm at the joint, after the gear)")]
    return []


def _expected_torques(seen: Moments, feet: Footing, robot: Robot, rows: NDArray[np.int64]) -> Floats:
    """Torques that hold the robot still on the contacts near the ground, shape (len(rows), n) [Nm]."""
    model, data = robot.model, robot.model.createData()
    weight = sum(inertia.mass for inertia in model.inertias) * float(np.linalg.norm(model.gravity.linear))
    quat = seen.rotation.as_quat()
    expected = np.empty((len(rows), model.nv - BASE_NV))
    for line, row in enumerate(rows):
        q = np.concatenate([seen.position[row], quat[row], (seen.before[row] + seen.after[row]) / 2])
        torque = np.array(pin.computeGeneralizedGravity(model, data, q))
        pin.computeJointJacobians(model, data, q)
        above = (feet.height[row] - feet.height[row].min()) / SUPPORT_HEIGHT
        carries = np.exp(-above - 0.5 * (feet.speed[row] / SUPPORT_SPEED) ** 2)
        for contact, share in zip(robot.contacts, carries / max(float(carries.sum()), 1e-300), strict=True):
            jacobian = pin.getJointJacobian(model, data, contact.joint_id, pin.LOCAL_WORLD_ALIGNED)
            x, y, _ = data.oMi[contact.joint_id].rotation @ contact.offset
            # Vertical velocity of the contact: that of the joint, and its turn times the lever.
            torque -= share * weight * (jacobian[2] + jacobian[3] * y - jacobian[4] * x)
        expected[line] = torque[BASE_NV:]
    return expected


def _uncentred(one: Floats, other: Floats) -> float:
    """Correlation about zero: torques have a sign, not only a variation."""
    size = float(np.sqrt(np.sum(one**2) * np.sum(other**2)))
    return float(np.sum(one * other) / size) if size > 0 else 0.0
