# SPDX-License-Identifier: Apache-2.0
"""How a robot looks: the visual shapes of its URDF on its moving bodies, simple rods where there are none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from prime_ros.exceptions import PrimeError
from prime_ros.model_file import find_model_file
from prime_ros.robot import Robot
from prime_ros.viewing import meshes
from prime_ros.viewing.meshes import Colour, Mesh, Part

Array = NDArray[np.float64]

GREY = (0.78, 0.80, 0.83)
ROD_RADIUS = 0.018
"""Of the rods that stand for a body without a visual shape [m]."""
MOST_FACES = 150_000
"""Triangles of all different meshes of a robot: about 2 MB in the page."""


@dataclass(frozen=True)
class Shape:
    """A mesh on a body."""

    joint: int
    """The joint that moves it, in `Robot.model`."""
    placement: pin.SE3
    """In the frame of the joint."""
    mesh: int
    """Index into `Look.meshes`."""
    colour: Colour


@dataclass(frozen=True)
class Look:
    """All that is drawn of a robot."""

    meshes: list[Mesh]
    shapes: list[Shape]
    notes: list[str]
    """What could not be drawn as it is."""


def look_of(robot: Robot) -> Look:
    """Shapes of all moving bodies; every body has at least one. Missing meshes are noted, not an error."""
    builder = _Builder(robot)
    root = _urdf(robot.urdf_path)
    materials = {} if root is None else {m.get("name", ""): m for m in root.findall("material")}
    for element in [] if root is None else root.findall("link"):
        builder.add_visuals(element, materials)
    if root is None:
        builder.note(f"{robot.urdf_path.name} is no URDF, drawn without its shapes")
    builder.add_rods()
    return Look(meshes.thinned(builder.meshes, MOST_FACES), builder.shapes, builder.notes)


def _urdf(path: Path) -> ElementTree.Element | None:
    """Root of a URDF; None if the file is another one."""
    try:
        root = ElementTree.fromstring(path.read_bytes())
    except (OSError, ElementTree.ParseError):
        return None
    return root if root.tag == "robot" else None


class _Builder:
    """Collects shapes; the same mesh file is kept once."""

    def __init__(self, robot: Robot) -> None:
        self.meshes: list[Mesh] = []
        self.shapes: list[Shape] = []
        self.notes: list[str] = []
        self._robot = robot
        self._read: dict[tuple[str, ...], list[tuple[int, Colour | None]]] = {}
        frames = (frame for frame in robot.model.frames if frame.type == pin.FrameType.BODY)
        self._frames = {frame.name: frame for frame in frames if frame.parentJoint > 0}

    def add_visuals(self, element: ElementTree.Element, materials: Mapping[str, ElementTree.Element]) -> None:
        """Add the visual shapes of a link; those that cannot be read are noted."""
        link = element.get("name", "")
        frame = self._frames.get(link)
        if frame is None:
            return
        for visual in element.findall("visual"):
            geometry = visual.find("geometry")
            try:
                parts = self._parts(None if geometry is None else next(iter(geometry), None))
                placement = frame.placement * _origin(visual.find("origin"))
                painted = _colour(visual, materials)
            except (OSError, ValueError, PrimeError) as error:
                self.note(str(error))
                continue
            for mesh, own in parts:
                self.shapes.append(Shape(frame.parentJoint, placement, mesh, painted or own or GREY))

    def add_rods(self) -> None:
        """Draw bodies that have no shape as rods from their joint to the joints and contacts on them."""
        model = self._robot.model
        drawn = {shape.joint for shape in self.shapes}
        for joint in range(1, model.njoints):
            if joint in drawn:
                continue
            ends = [
                model.jointPlacements[c].translation
                for c in range(2, model.njoints)
                if model.parents[c] == joint
            ]
            ends += [contact.offset for contact in self._robot.contacts if contact.joint_id == joint]
            for end in ends or [model.inertias[joint].lever]:
                self.meshes.append(meshes.rod(np.zeros(3), np.asarray(end, dtype=float), ROD_RADIUS))
                self.shapes.append(Shape(joint, pin.SE3.Identity(), len(self.meshes) - 1, GREY))

    def _parts(self, element: ElementTree.Element | None) -> list[tuple[int, Colour | None]]:
        """Indices of the meshes of a geometry element, and their colours."""
        if element is None:
            raise ValueError("a <visual> without geometry")
        key = (element.tag, *(f"{name}={value}" for name, value in sorted(element.items())))
        if key not in self._read:
            parts = _geometry(element, self._robot.urdf_path.parent)
            first = len(self.meshes)
            self.meshes += [part.mesh for part in parts]
            self._read[key] = [(first + index, part.colour) for index, part in enumerate(parts)]
        return self._read[key]

    def note(self, note: str) -> None:
        """Note something once."""
        if note not in self.notes:
            self.notes.append(note)


def _geometry(element: ElementTree.Element, directory: Path) -> list[Part]:
    if element.tag == "box":
        return [Part(meshes.box(_numbers(element, "size", "1 1 1")))]
    if element.tag in ("cylinder", "capsule"):
        radius, length = (float(_numbers(element, name, "0", 1)[0]) for name in ("radius", "length"))
        return [Part(meshes.cylinder(radius, length))]
    if element.tag == "sphere":
        return [Part(meshes.sphere(float(_numbers(element, "radius", "0", 1)[0])))]
    if element.tag == "mesh":
        scale = _numbers(element, "scale", "1 1 1")
        parts = meshes.read_parts(_mesh_file(element.get("filename", ""), directory))
        return [Part(part.mesh.scaled(scale), part.colour) for part in parts]
    raise ValueError(f"got <{element.tag}>, expected <box>, <cylinder>, <sphere> or <mesh>")


def _mesh_file(name: str, directory: Path) -> Path:
    """Where a mesh is that a URDF names by path, file:// or package://."""
    path = Path(name.removeprefix("file://"))
    if not name.startswith("package://") and (directory / path).is_file():
        return directory / path
    return find_model_file(name if name.startswith("package://") else path)


def _origin(element: ElementTree.Element | None) -> pin.SE3:
    if element is None:
        return pin.SE3.Identity()
    roll, pitch, yaw = _numbers(element, "rpy", "0 0 0")
    return pin.SE3(pin.rpy.rpyToMatrix(roll, pitch, yaw), _numbers(element, "xyz", "0 0 0"))


def _colour(visual: ElementTree.Element, materials: Mapping[str, ElementTree.Element]) -> Colour | None:
    """Of the material; None if there is none, or white, which means: as in the mesh file."""
    material = visual.find("material")
    name = "" if material is None else material.get("name", "")
    candidates = [found for found in (material, materials.get(name)) if found is not None]
    element = next((found for each in candidates if (found := each.find("color")) is not None), None)
    if element is None:
        return None
    colour = np.clip(_numbers(element, "rgba", "1 1 1 1", 4)[:3], meshes.DARKEST, 1.0)
    red, green, blue = colour.tolist()
    return None if colour.min() > 0.95 else (red, green, blue)


def _numbers(element: ElementTree.Element, name: str, default: str, count: int = 3) -> Array:
    values = np.array([float(text) for text in element.get(name, default).split()])
    if values.shape != (count,) or not np.isfinite(values).all():
        raise ValueError(f"<{element.tag} {name}=...>: expected {count} numbers, got {element.get(name)!r}")
    return values
