# SPDX-License-Identifier: Apache-2.0
"""Triangle meshes of a robot's links: read from files, made of simple solids, and thinned for a page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prime_ros.exceptions import OutputError

Array = NDArray[np.float64]
Faces = NDArray[np.int64]
Colour = tuple[float, float, float]
"""Red, green, blue, 0 to 1."""

FINEST = 5e-4
"""Vertices closer than about this are one [m]."""
AROUND = 24  # sides of what is round
GAMMA = 2.2
DARKEST = 0.13
"""Black is drawn as bright as this, so that its shape is seen [-]."""
EXTRA = "pip install 'prime_ros[view]'"


@dataclass(frozen=True)
class Mesh:
    """Triangles."""

    vertices: Array
    """Shape (V, 3) [m]."""
    faces: Faces
    """Indices of the corners, counterclockwise from outside, shape (F, 3)."""

    def scaled(self, scale: Array) -> Mesh:
        """Stretched along the axes; a mirrored one is turned inside out again."""
        faces = self.faces if np.prod(scale) > 0 else self.faces[:, ::-1]
        return Mesh(self.vertices * scale, faces)


@dataclass(frozen=True)
class Part:
    """Triangles of one colour."""

    mesh: Mesh
    colour: Colour | None = None
    """None: not known."""


def read_parts(path: Path) -> list[Part]:
    """Read a mesh file: STL, COLLADA, OBJ, glTF or what else trimesh knows.

    Raises:
        ValueError: If the file cannot be read or has no triangles.
        OutputError: If the libraries that read it are not installed.
    """
    try:
        import trimesh
    except ImportError as error:
        raise OutputError(f"meshes need trimesh: {EXTRA}") from error
    if path.suffix.lower() == ".dae" and find_spec("collada") is None:
        raise OutputError(f"COLLADA meshes need pycollada: {EXTRA}")
    try:
        scene = trimesh.load_scene(path)
        found = [(scene.geometry[name], scene.graph[node][0]) for node, name in _nodes(scene)]
        scale = trimesh.units.unit_conversion(scene.units, "meters") if scene.units else 1.0
    except Exception as error:  # whatever a reader stumbles over
        raise ValueError(f"{path.name}: cannot be read as a mesh: {type(error).__name__}: {error}") from error
    parts = [
        Part(
            Mesh(scale * trimesh.transform_points(part.vertices, pose), np.array(part.faces)),
            _colour(part, path),
        )
        for part, pose in found
    ]
    if not parts or not all(np.isfinite(part.mesh.vertices).all() for part in parts):
        raise ValueError(f"{path.name}: no triangles, or some that are not finite")
    return parts


def _nodes(scene: Any) -> Iterator[tuple[str, str]]:
    """Node and geometry of everything with triangles in a scene of trimesh."""
    for node in scene.graph.nodes_geometry:
        name = scene.graph[node][1]
        if len(getattr(scene.geometry[name], "faces", ())):
            yield node, name


def _colour(part: Any, path: Path) -> Colour | None:
    """Of the material in the file, None if there is none; COLLADA states it without gamma."""
    material = getattr(part.visual, "material", None)
    if material is None:
        return None
    colour = np.asarray(material.main_color, dtype=float)[:3] / 255.0
    if path.suffix.lower() == ".dae":
        colour = colour ** (1.0 / GAMMA)
    red, green, blue = np.maximum(colour, DARKEST).tolist()
    return red, green, blue


def thinned(meshes: list[Mesh], most_faces: int) -> list[Mesh]:
    """Join vertices that are close together, ever coarser until all meshes have few enough triangles."""
    cell = FINEST
    result = [clustered(mesh, cell) for mesh in meshes]
    while sum(len(mesh.faces) for mesh in result) > most_faces:
        cell *= 1.5
        result = [clustered(mesh, cell) for mesh in result]
    return result


def clustered(mesh: Mesh, cell: float) -> Mesh:
    """Join the vertices in each cube of a grid to their mean; triangles that vanish are left out."""
    grid = np.floor((mesh.vertices - mesh.vertices.min(axis=0)) / cell).astype(np.int64)
    sizes = grid.max(axis=0) + 1
    keys = (grid[:, 0] * sizes[1] + grid[:, 1]) * sizes[2] + grid[:, 2]
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    vertices = np.stack([np.bincount(inverse, mesh.vertices[:, axis]) / counts for axis in range(3)], axis=1)
    faces = inverse[mesh.faces]
    a, b, c = faces.T
    faces = faces[(a != b) & (b != c) & (c != a)]
    _, first = np.unique(np.sort(faces, axis=1), axis=0, return_index=True)
    return Mesh(vertices, faces[np.sort(first)])


def box(size: Array) -> Mesh:
    """A box about the origin with edges of these lengths [m]."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * 0.5 * size
    sides = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return Mesh(corners, np.array([(a, b, c) for a, b, c, _ in sides] + [(a, c, d) for a, _, c, d in sides]))


def sphere(radius: float) -> Mesh:
    """A sphere about the origin."""
    polar = np.linspace(0.0, np.pi, AROUND // 2 + 1)
    return _turned(radius * np.sin(polar), -radius * np.cos(polar))


def cylinder(radius: float, length: float) -> Mesh:
    """A cylinder about the origin along z."""
    return _turned(np.array([0.0, radius, radius, 0.0]), 0.5 * length * np.array([-1.0, -1.0, 1.0, 1.0]))


def rod(start: Array, end: Array, radius: float) -> Mesh:
    """A straight rod with round ends."""
    polar = np.linspace(0.0, 0.5 * np.pi, AROUND // 4 + 1)
    around, along = radius * np.sin(polar), radius * np.cos(polar)
    length = float(np.linalg.norm(end - start))
    upright = _turned(np.r_[around, around[::-1]], np.r_[-along, length + along[::-1]])
    return Mesh(start + upright.vertices @ _axes_along(end - start).T, upright.faces)


def _axes_along(direction: Array) -> Array:
    """Rotation whose z axis points along a direction; any if there is none."""
    length = float(np.linalg.norm(direction))
    if length == 0.0:
        return np.eye(3)
    z = direction / length
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)


def _turned(radius: Array, height: Array) -> Mesh:
    """Solid of revolution about z of an outline that rises; radius and height of its M points."""
    angle = 2.0 * np.pi * np.arange(AROUND) / AROUND
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    vertices = np.concatenate(
        [np.c_[r * ring, np.full(AROUND, h)] for r, h in zip(radius, height, strict=True)]
    )
    this, following = np.arange(AROUND), (np.arange(AROUND) + 1) % AROUND
    faces = []
    for low in range(len(radius) - 1):
        a, b = low * AROUND, (low + 1) * AROUND
        faces.append(np.stack([a + this, a + following, b + following], axis=1))
        faces.append(np.stack([a + this, b + following, b + this], axis=1))
    return Mesh(vertices, np.concatenate(faces))
