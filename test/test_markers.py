# SPDX-License-Identifier: Apache-2.0
"""What the viewers draw: friction cones open by atan(mu), boxes have the inertia they stand for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from synthetic import synthetic_estimate

from prime_ros.estimation.estimate import BodyInertia, Estimate
from prime_ros.outputs.inertia_box import inertia_box
from prime_ros.outputs.kinematics import contact_points, joint_poses
from prime_ros.outputs.markers import markers
from prime_ros.outputs.messages import frame_names, row
from prime_ros.robot import Robot, load_robot

KNOT = 5
FRICTION = np.array([0.8, 0.5])


@pytest.fixture(scope="module")
def robot() -> Robot:
    """A Go2 whose feet stick less well sideways."""
    go2 = load_robot("go2")
    return replace(go2, contacts=tuple(replace(contact, friction=FRICTION) for contact in go2.contacts))


@pytest.fixture(scope="module")
def estimate(robot: Robot) -> Estimate:
    made = synthetic_estimate()
    force = np.random.default_rng(4).normal(scale=60.0, size=made.contact_force_W.shape)
    force[..., 2] = np.abs(force[..., 2])
    return replace(
        made, joint_names=robot.joint_names, contact_names=robot.contact_names, contact_force_W=force
    )


@pytest.fixture(scope="module")
def shown(robot: Robot, estimate: Estimate) -> dict[str, list[dict[str, Any]]]:
    """Markers of one knot by namespace."""
    poses = joint_poses(robot, estimate)
    values = markers(estimate, robot, frame_names(robot), poses, contact_points(robot, estimate, poses))
    found: dict[str, list[dict[str, Any]]] = {}
    for marker in row(values, KNOT)["markers"]:
        found.setdefault(marker["ns"], []).append(marker)
    return found


def numbers(values: dict[str, Any]) -> np.ndarray:
    return np.array(list(values.values()), dtype=float)


def test_every_marker_has_a_name_of_its_own(shown: dict[str, list[dict[str, Any]]]) -> None:
    kinds = {"force": 4, "contact": 4, "friction cone": 4, "inertia nominal": 1, "inertia estimate": 1}
    assert {name: len(found) for name, found in shown.items()} == kinds
    for found in shown.values():
        assert [marker["id"] for marker in found] == list(range(len(found)))
        assert {marker["header"]["frame_id"] for marker in found} == {"world"}


def test_cones_open_by_the_friction_coefficient(shown: dict[str, list[dict[str, Any]]]) -> None:
    for cone, arrow in zip(shown["friction cone"], shown["force"], strict=True):
        tail, tip = map(numbers, arrow["points"])
        np.testing.assert_array_equal(numbers(cone["pose"]["position"]), tail)
        triangles = np.array([numbers(point) for point in cone["points"]]).reshape(-1, 3, 3)
        assert not triangles[:, 0].any()  # the apex
        rim = triangles[:, 1:].reshape(-1, 3)
        height = (tip - tail)[2]
        np.testing.assert_allclose(rim[:, 2], height)
        angle = np.arctan2(np.hypot(rim[:, 0], rim[:, 1]), rim[:, 2])
        along = [np.argmax(rim[:, 0]), np.argmax(rim[:, 1])]
        np.testing.assert_allclose(angle[along], np.arctan(FRICTION))
        np.testing.assert_allclose(np.square(rim[:, :2] / FRICTION).sum(axis=1), height**2)
        np.testing.assert_array_equal(triangles[:, 2], np.roll(triangles[:, 1], -1, axis=0))  # it is closed


def test_the_tip_of_a_force_is_in_the_opening_of_its_cone_if_it_sticks(
    shown: dict[str, list[dict[str, Any]]], estimate: Estimate
) -> None:
    stuck = []
    for cone, arrow, force in zip(
        shown["friction cone"], shown["force"], estimate.contact_force_W[KNOT], strict=True
    ):
        tail, tip = map(numbers, arrow["points"])
        rim = np.array([numbers(point) for point in cone["points"]])
        opening = rim.max(axis=0)[:2]
        inside = np.square((tip - tail)[:2] / opening).sum() <= 1.0
        assert inside == (np.linalg.norm(force[:2] / FRICTION) <= force[2])
        stuck.append(inside)
    assert set(stuck) == {True, False}  # there are both kinds


def test_a_foot_that_is_pulled_has_no_cone(robot: Robot, estimate: Estimate) -> None:
    poses = joint_poses(robot, estimate)
    pulled = replace(estimate, contact_force_W=-estimate.contact_force_W)
    values = markers(pulled, robot, frame_names(robot), poses, contact_points(robot, pulled, poses))
    cones = [m for m in row(values, KNOT)["markers"] if m["ns"] == "friction cone"]
    assert not any(numbers(point).any() for cone in cones for point in cone["points"])


@pytest.mark.parametrize("kind", ["nominal", "estimate"])
def test_boxes_in_the_world_have_the_inertia_of_the_link(
    shown: dict[str, list[dict[str, Any]]], robot: Robot, estimate: Estimate, kind: str
) -> None:
    (box,) = shown[f"inertia {kind}"]
    body = getattr(estimate.links["base"], kind)
    base = joint_poses(robot, estimate)[robot.joint_of_link("base")]
    turn = base.rotation[KNOT].as_matrix()
    np.testing.assert_allclose(
        numbers(box["pose"]["position"]), base.position[KNOT] + turn @ body.com, atol=1e-12
    )
    solid = pin.Inertia.FromBox(body.mass, *numbers(box["scale"]))  # Pinocchio's own formula
    axes = pin.Quaternion(numbers(box["pose"]["orientation"])).toRotationMatrix()
    expected = turn @ body.inertia_com @ turn.T
    np.testing.assert_allclose(axes @ solid.inertia @ axes.T, expected, atol=1e-9)
    np.testing.assert_allclose(
        np.sort(np.diag(solid.inertia)), np.linalg.eigvalsh(body.inertia_com), atol=1e-9
    )


def test_an_even_box_is_found_again() -> None:
    size, turn = np.array([0.5, 0.3, 0.1]), pin.exp3(np.array([0.3, -0.5, 0.9]))
    solid = pin.Inertia.FromBox(7.0, *size)
    found = inertia_box(BodyInertia(7.0, np.array([0.1, 0.2, 0.3]), turn @ solid.inertia @ turn.T))
    np.testing.assert_allclose(found.size, size)  # ascending moments: falling edges
    assert np.linalg.det(found.rotation.as_matrix()) == pytest.approx(1.0)
    np.testing.assert_allclose(np.abs(found.rotation.as_matrix().T @ turn), np.eye(3), atol=1e-9)
    np.testing.assert_array_equal(found.centre, [0.1, 0.2, 0.3])


def test_an_inertia_that_no_body_has_gives_a_flat_box() -> None:
    """The moments break the triangle inequality."""
    box = inertia_box(BodyInertia(1.0, np.zeros(3), np.diag([0.1, 0.1, 1.0])))
    assert box.size.min() == 0.0
    assert np.isfinite(box.size).all()
