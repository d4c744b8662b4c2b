# SPDX-License-Identifier: Apache-2.0
"""Calibrated URDF: the robot's URDF with the inertia of the identified links changed to the estimate.

Inertias are added and moved as pseudo-inertias, 4x4 symmetric J = [[S, h], [h', m]] with second moments S
about the frame's origin, h = m com, and mass m. J is linear in the bodies, T J T' moves it to another frame,
and a body is physical exactly if J is positive definite (Wensing, Kim and Slotine, "Linear Matrix
Inequalities for Physically Consistent Inertial Parameter Identification", RA-L 2018).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from prime_ros.estimation.estimate import BodyInertia
from prime_ros.exceptions import OutputError
from prime_ros.outputs.urdf_text import UrdfText

Array = NDArray[np.float64]

# Share of the body that the identified link must keep for itself beside unchanged fixed links.
_LEAST_REMAINDER = 1e-6


@dataclass
class _Link:
    element: ElementTree.Element
    pseudo_inertia: Array
    """In the link's own frame, shape (4, 4)."""
    body: str
    """Link whose frame is the frame of the moving body."""
    transform: Array
    """Link frame in the body's frame, shape (4, 4)."""
    remark: str | None = None
    """Why the inertia changed; None: unchanged."""


def calibrated_urdf(
    urdf: bytes, bodies: Mapping[str, BodyInertia], directory: Path, converged: bool = True
) -> bytes:
    """Change the inertia of links so that their moving bodies have exactly the given inertia.

    The link takes the whole difference; what is fixed to it keeps its inertia. Where that leaves no physical
    link (negative mass, or principal moments that violate the triangle inequality), the inertia of everything
    fixed to it is scaled down by one factor first. It is not removed: for a link without inertia some tools
    invent one from geometry.

    Args:
        urdf: Content of the original file.
        bodies: By name of the identified link, inertia of the link and all that is fixed to it, in the frame
            of the joint that moves it.
        directory: Where the original file is; relative mesh paths are made absolute from here.
        converged: Whether the estimate converged; otherwise the file says so.

    Returns:
        Content of the calibrated file; every byte but the changed <inertial> elements and relative paths is
        kept.

    Raises:
        OutputError: If the URDF is malformed, lacks a link, or a given inertia is not physical.
    """
    text = UrdfText.parse(urdf)
    links = _read_links(text.root)
    warning = "" if converged else "NOT CONVERGED, do not use: "
    for name, inertia in bodies.items():
        if name not in links:
            raise OutputError(f"the URDF has no link {name!r}; its links are {', '.join(links)}")
        _assign(links, name, pseudo_inertia(inertia), warning)
    for link in links.values():
        if link.remark is not None:
            _write(text, link)
    text.resolve_filenames(directory)
    return text.render()


def shown_urdf(urdf: bytes) -> bytes:
    """Make absolute mesh and texture paths file:// addresses, which viewers ask for.

    Raises:
        OutputError: If the URDF is malformed.
    """
    text = UrdfText.parse(urdf)
    text.address_filenames()
    return text.render()


def pseudo_inertia(body: BodyInertia) -> Array:
    """Pseudo-inertia (4, 4) of a body about the origin of its frame [kg m^2, kg m, kg]."""
    com, inertia = np.asarray(body.com, float), np.asarray(body.inertia_com, float)
    moments = 0.5 * np.trace(inertia) * np.eye(3) - inertia + body.mass * np.outer(com, com)
    first = body.mass * com[:, None]
    return np.block([[moments, first], [first.T, np.array([[body.mass]])]])


def body_inertia(pseudo: Array) -> BodyInertia:
    """Inverse of `pseudo_inertia`; a massless body has its centre of mass at the origin."""
    mass = float(pseudo[3, 3])
    com = pseudo[:3, 3] / mass if mass != 0.0 else np.zeros(3)
    moments = pseudo[:3, :3] - mass * np.outer(com, com)
    return BodyInertia(mass, com, np.trace(moments) * np.eye(3) - moments)


def _assign(links: dict[str, _Link], name: str, target: Array, warning: str) -> None:
    """Distribute the body's pseudo-inertia `target`, in the body's frame, over its links."""
    link = links[name]
    others = {key: other for key, other in links.items() if other.body == link.body and other is not link}
    fixed = np.zeros((4, 4))
    for other in others.values():
        fixed += _moved(other.pseudo_inertia, other.transform)
    scale = _scale_of_fixed(name, target, fixed)
    link.pseudo_inertia = _moved(target - scale * fixed, np.asarray(np.linalg.inv(link.transform), float))
    link.remark = f"{warning}estimated by prime_ros{_with_others(list(others))}"
    for other in others.values():
        if scale != 1.0 and other.pseudo_inertia.any():
            other.pseudo_inertia = scale * other.pseudo_inertia
            other.remark = f"{warning}scaled by {scale:.4g} by prime_ros to fit the estimate of {name}"
        elif other.element.find("inertial") is None and other.element.find("collision") is not None:
            other.remark = f"massless: its inertia is part of {name}"


def _scale_of_fixed(name: str, target: Array, fixed: Array) -> float:
    """Factor on the fixed links that leaves a physical remainder: 1 if possible, else half of the largest."""
    try:
        factor = np.linalg.inv(np.linalg.cholesky(target))
    except np.linalg.LinAlgError as error:
        raise OutputError(f"the inertia of {name!r} is not physical: {body_inertia(target)}") from error
    # target - s fixed > 0 exactly if s times the largest eigenvalue of fixed relative to target is below 1.
    largest = float(np.linalg.eigvalsh(factor @ fixed @ factor.T)[-1])
    return 1.0 if largest < 1.0 - _LEAST_REMAINDER else 0.5 / largest


def _with_others(others: list[str]) -> str:
    return f": this inertia plus that of {', '.join(others)}" if others else ""


def _read_links(root: ElementTree.Element) -> dict[str, _Link]:
    elements = {element.get("name", ""): element for element in root.findall("link")}
    mounts: dict[str, tuple[str, Array]] = {}
    for joint in root.findall("joint"):
        parent, child = joint.find("parent"), joint.find("child")
        if joint.get("type") == "fixed" and parent is not None and child is not None:
            mounts[child.get("link", "")] = (parent.get("link", ""), _transform(joint.find("origin")))
    links = {}
    for name, element in elements.items():
        body, transform = _body_frame(name, mounts)
        links[name] = _Link(element, _read_inertial(element), body, transform)
    return links


def _body_frame(name: str, mounts: Mapping[str, tuple[str, Array]]) -> tuple[str, Array]:
    """Climb fixed joints to the link that a joint moves."""
    transform = np.eye(4)
    for _ in mounts:
        if name not in mounts:
            break
        name, mount = mounts[name]
        transform = mount @ transform
    return name, transform


def _read_inertial(link: ElementTree.Element) -> Array:
    inertial = link.find("inertial")
    if inertial is None:
        return np.zeros((4, 4))
    mass, inertia = inertial.find("mass"), inertial.find("inertia")
    if mass is None or inertia is None:
        raise OutputError(
            f"link {link.get('name')!r} of the URDF has an <inertial> without <mass> or <inertia>"
        )
    axes = ("xx", "xy", "xz", "yy", "yz", "zz")
    xx, xy, xz, yy, yz, zz = (float(inertia.get(f"i{pair}", "0")) for pair in axes)
    about_com = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    body = BodyInertia(float(mass.get("value", "0")), np.zeros(3), about_com)
    return _moved(pseudo_inertia(body), _transform(inertial.find("origin")))


def _transform(origin: ElementTree.Element | None) -> Array:
    """Homogeneous transform (4, 4) of an <origin>; rpy turn about the fixed axes x, y, z in this order."""
    transform = np.eye(4)
    if origin is None:
        return transform
    transform[:3, 3] = [float(value) for value in origin.get("xyz", "0 0 0").split()]
    angles = [float(value) for value in origin.get("rpy", "0 0 0").split()]
    (cr, cp, cy), (sr, sp, sy) = np.cos(angles), np.sin(angles)
    transform[:3, :3] = [
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ]
    return transform


def _moved(pseudo: Array, transform: Array) -> Array:
    return np.asarray(transform @ pseudo @ transform.T)


def _write(text: UrdfText, link: _Link) -> None:
    body = body_inertia(link.pseudo_inertia)
    (ixx, ixy, ixz), (_, iyy, iyz), (_, _, izz) = body.inertia_com.tolist()
    lines = [
        "<inertial>",
        f"  <!-- {(link.remark or '').replace('--', '- -')} -->",  # "--" would end the comment
        f'  <origin xyz="{" ".join(map(repr, body.com.tolist()))}" rpy="0 0 0"/>',
        f'  <mass value="{body.mass!r}"/>',
        f'  <inertia ixx="{ixx!r}" ixy="{ixy!r}" ixz="{ixz!r}" iyy="{iyy!r}" iyz="{iyz!r}" izz="{izz!r}"/>',
        "</inertial>",
    ]
    inertial = link.element.find("inertial")
    if inertial is None:
        text.insert_first(link.element, lines)
    else:
        text.replace(inertial, lines)
