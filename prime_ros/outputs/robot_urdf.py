# SPDX-License-Identifier: Apache-2.0
"""The URDF of a robot with the estimated inertia of its links."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from prime_ros.estimation.estimate import BodyInertia, LinkEstimate
from prime_ros.exceptions import OutputError
from prime_ros.outputs.urdf import calibrated_urdf, shown_urdf

if TYPE_CHECKING:
    from prime_ros.robot import Robot


def calibrated(robot: Robot, links: Mapping[str, LinkEstimate], converged: bool) -> bytes:
    """The robot's URDF with the estimated inertia.

    Args:
        robot: Its model file is the one that is calibrated.
        links: Estimates by name.
        converged: Whether they converged; otherwise the file says so.

    Raises:
        OutputError: If there is no estimate, or the robot's model is no URDF or lacks a link.
        OSError: If the model file cannot be read.
    """
    if not links:
        raise OutputError("no inertia was identified")
    return _urdf(robot, _bodies(robot, links), converged)


def shown(robot: Robot, links: Mapping[str, LinkEstimate], converged: bool) -> bytes | None:
    """Model that viewers show: calibrated if possible, else the original, none if that is no URDF."""
    for bodies in (_bodies(robot, links), {}):
        try:
            return shown_urdf(_urdf(robot, bodies, converged))
        except (OSError, OutputError):
            continue
    return None


def _bodies(robot: Robot, links: Mapping[str, LinkEstimate]) -> dict[str, BodyInertia]:
    """Estimated inertia by the name of the link; ``base`` may stand for the base link of any robot."""
    names = {name: name if name in robot.link_names else robot.base_link for name in links}
    return {names[name]: link.estimate for name, link in links.items()}


def _urdf(robot: Robot, bodies: Mapping[str, BodyInertia], converged: bool) -> bytes:
    path = Path(robot.urdf_path)
    try:
        return calibrated_urdf(path.read_bytes(), bodies, path.resolve().parent, converged)
    except OutputError as error:
        raise OutputError(f"{path}: {error}") from error
