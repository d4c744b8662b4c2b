# SPDX-License-Identifier: Apache-2.0
"""Robot model files: where they are, and from URDF or MJCF to a Pinocchio model with a free base."""

import os
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pinocchio as pin

from prime_ros.exceptions import RobotError

#: Names that URDFs give to a root link that stands for the world.
WORLD_LINKS = ("world", "map", "odom", "universe")


def find_model_file(spec: str | Path) -> Path:
    """Find a model file.

    Args:
        spec: A path, ``package://PACKAGE/PATH``, or ``PACKAGE:PATH``; a package is a folder in the share
            directory of
            a pip, conda or ROS installation, and PATH may leave out a leading ``robots/``.

    Returns:
        Absolute path of an existing file.

    Raises:
        RobotError: If there is no such file.
    """
    text = str(spec)
    if text.startswith("package://"):
        package, _, relative = text.removeprefix("package://").partition("/")
    else:
        path = Path(text).expanduser()
        if path.is_file():
            return path.resolve()
        package, _, relative = text.partition(":")
    if not relative:
        raise RobotError(
            f"model file {text}: no such file; give a path, package://PACKAGE/PATH or PACKAGE:PATH"
        )
    return _find_in_package(package, relative, text)


def _find_in_package(package: str, relative: str, spec: str) -> Path:
    folders = [share / package for share in _share_folders() if (share / package).is_dir()]
    for folder in folders:
        for path in (folder / relative, folder / "robots" / relative):
            if path.is_file():
                return path
    if folders:
        raise RobotError(f"model file {spec}: package '{package}' has no file '{relative}' in {folders[0]}")
    raise RobotError(
        f"model file {spec}: package '{package}' is not installed, neither by pip nor by a sourced ROS"
    )


def _share_folders() -> Iterator[Path]:
    """Share folders of installations, nearest first; Pinocchio's own holds what was installed beside it."""
    prefixes = [Path(pin.__file__).parents[4], Path(sys.prefix)]
    prefixes += [Path(entry) / "cmeel.prefix" for entry in sys.path if entry]
    for variable in ("AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH", "CONDA_PREFIX"):
        prefixes += [Path(entry) for entry in os.environ.get(variable, "").split(os.pathsep) if entry]
    yield from (prefix / "share" for prefix in prefixes)
    yield from (Path(entry) for entry in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep) if entry)


def read_model(path: Path) -> pin.Model:
    """Read a URDF or MJCF file as a robot with a free base and joints of one degree of freedom.

    A root link that merely stands for the world is taken off, so that the base keeps its mass and its frame.

    Args:
        path: The file.

    Returns:
        Pinocchio model, joint 1 is the free base, nq = n + 7 and nv = n + 6.

    Raises:
        RobotError: If the file is xacro, is neither URDF nor MJCF, has no inertias, or has other joints.
    """
    xacro = f"{path}: got xacro, expected plain URDF; expand it first: xacro {path.name} > robot.urdf"
    if path.suffix == ".xacro":
        raise RobotError(xacro)
    try:
        root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ElementTree.ParseError) as error:
        raise RobotError(f"{path}: cannot be read as XML: {error}") from error
    if _uses_xacro(root):
        raise RobotError(xacro)
    if root.tag not in ("robot", "mujoco"):
        raise RobotError(
            f"{path}: got an XML file with root <{root.tag}>, expected <robot> (URDF) or <mujoco> (MJCF)"
        )
    try:
        model = _read_urdf(root) if root.tag == "robot" else pin.buildModelFromMJCF(str(path))
    except (ValueError, RuntimeError) as error:
        raise RobotError(f"{path}: cannot be read: {error}") from error
    _check(model, path)
    return model


def _uses_xacro(root: ElementTree.Element) -> bool:
    return any(
        "xacro}" in element.tag or any("${" in value for value in element.attrib.values())
        for element in root.iter()
    )


def _read_urdf(root: ElementTree.Element) -> pin.Model:
    while (joint := _joint_to_world(root)) is not None:
        parent = joint.find("parent")
        links = [
            link
            for link in root.findall("link")
            if parent is not None and link.get("name") == parent.get("link")
        ]
        for element in (joint, *links):
            root.remove(element)
    return pin.buildModelFromXML(ElementTree.tostring(root, encoding="unicode"), pin.JointModelFreeFlyer())


def _joint_to_world(root: ElementTree.Element) -> ElementTree.Element | None:
    """The only joint below a root link that has no mass and stands for the world."""
    joints = root.findall("joint")
    ends = [(joint, joint.find("parent"), joint.find("child")) for joint in joints]
    children = {child.get("link") for _, _, child in ends if child is not None}
    for link in root.findall("link"):
        name = link.get("name")
        if name in children or link.find("inertial") is not None:
            continue
        below = [joint for joint, parent, _ in ends if parent is not None and parent.get("link") == name]
        kinds = ("fixed", "floating") if name in WORLD_LINKS else ("floating",)
        if len(below) == 1 and below[0].get("type") in kinds:
            return below[0]
    return None


def _check(model: pin.Model, path: Path) -> None:
    if model.njoints < 2 or model.joints[1].shortname() != "JointModelFreeFlyer":
        raise RobotError(
            f"{path}: got a fixed base, expected a free one (MJCF: add <freejoint/> to the base body)"
        )
    other = [
        model.names[j] for j in range(2, model.njoints) if model.joints[j].nq != 1 or model.joints[j].nv != 1
    ]
    if other:
        raise RobotError(
            f"{path}: expected revolute or prismatic joints with limits; got others: {', '.join(other)}"
            " (write a continuous joint as revolute with wide limits)"
        )
    massless = [model.names[j] for j in range(1, model.njoints) if _subtree_mass(model, j) <= 0]
    if massless:
        raise RobotError(
            f"{path}: got no inertia, expected <inertial> for what these joints move: {', '.join(massless)}"
        )


def _subtree_mass(model: pin.Model, joint: int) -> float:
    return float(np.sum([model.inertias[child].mass for child in model.subtrees[joint]]))
