# SPDX-License-Identifier: Apache-2.0
"""Random estimates of consistent shapes, for tests of what is done with an estimate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from prime_ros.estimation.estimate import (
    BodyInertia,
    Certificate,
    Direction,
    Estimate,
    LinkEstimate,
    Residuals,
    SensorReport,
    StageReport,
)
from prime_ros.estimation.progress import Progress
from prime_ros.outputs.urdf import body_inertia

JOINTS, CONTACTS, KNOTS = 12, 4, 30


def random_body(rng: np.random.Generator, mass: float) -> BodyInertia:
    """A physical body: a cloud of point masses."""
    points, weights = rng.normal(scale=0.1, size=(20, 3)), rng.uniform(size=20)
    homogeneous = np.c_[points, np.ones(20)]
    return body_inertia(homogeneous.T @ (homogeneous * (mass * weights / weights.sum())[:, None]))


def synthetic_estimate(
    seed: int = 0, links: dict[str, LinkEstimate] | None = None, converged: bool = True, knots: int = KNOTS
) -> Estimate:
    """A random estimate of consistent shapes."""
    rng = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {
        "base_position_W": (knots, 3),
        "base_quat_xyzw": (knots, 4),
        "base_velocity_B": (knots, 6),
        "joint_position": (knots, JOINTS),
        "joint_velocity": (knots, JOINTS),
        "joint_torque": (knots, JOINTS),
        "contact_force_W": (knots, CONTACTS, 3),
        "contact_probability": (knots, CONTACTS),
    }
    values: dict[str, Any] = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    values["contact_probability"] = rng.uniform(size=shapes["contact_probability"])
    std = {name: rng.uniform(size=shape) for name, shape in shapes.items()}
    std["base_quat_xyzw"] = rng.uniform(size=(knots, 3))
    if links is None:
        links = {
            "base": LinkEstimate(random_body(rng, 7.277), random_body(rng, 10.28), random_body(rng, 0.01))
        }
    stages = (StageReport(20.0, 9, 12.0, 1e-9, True), StageReport(500.0, 5, 10.0, 1e-9, converged))
    return Estimate(
        stamp_ns=1_700_000_000_000_000_000 + 10_000_000 * np.arange(knots, dtype=np.int64),
        dt=0.01,
        joint_names=tuple(f"joint_{i}" for i in range(JOINTS)),
        contact_names=("FL_foot", "FR_foot", "RL_foot", "RR_foot"),
        std=std,
        links=links,
        ground_height=0.0031,
        std_ground_height=0.0004,
        certificate=Certificate(converged, "the [reason]", 14, 10.0, 1e-9, 1e-8, 1e-9, stages),
        sensors={
            "joint_position": SensorReport(360, 300.0, 310.0, 0.002, "rad"),
            "mocap_position": SensorReport(90, 80.0, 160.0, 0.004, "m"),
            "gyroscope": SensorReport(90, 80.0, 20.0, 0.01, "rad/s"),
        },
        timing={"linearise": 0.1, "sweep": 0.05},
        **values,
    )


def with_evidence(estimate: Estimate, seed: int = 0) -> Estimate:
    """The same with residuals of its sensors, a history of the solver, and directions."""
    rng = np.random.default_rng(seed)
    knots = len(estimate.stamp_ns)
    residuals = {}
    for name in estimate.sensors:
        channels = estimate.joint_names if name.startswith("joint") else ("x", "y", "z")
        whitened = rng.normal(size=(knots, len(channels)))
        whitened[rng.uniform(size=whitened.shape) < 0.05] = np.nan
        rejected = rng.uniform(size=whitened.shape) < 0.02
        residuals[name] = Residuals(estimate.stamp_ns, channels, whitened, rejected)
    history = tuple(
        Progress(1 + i // 7, 2, (20.0, 500.0)[i // 7], i + 1, 10.0 + 100.0 / (1 + i), 10.0 ** (-i))
        for i in range(14)
    )
    known = {"mass": 0.999, "centre of mass z": 0.7, "extent along y - extent along z": 0.2}
    directions = tuple(Direction("base", words, learned) for words, learned in known.items())
    return replace(estimate, residuals=residuals, history=history, directions=directions)


def assert_same_body(actual: BodyInertia, expected: BodyInertia, tolerance: float = 1e-9) -> None:
    """Require mass, centre of mass and rotational inertia to agree."""
    np.testing.assert_allclose(actual.mass, expected.mass, rtol=0, atol=tolerance)
    np.testing.assert_allclose(actual.com, expected.com, rtol=0, atol=tolerance)
    np.testing.assert_allclose(actual.inertia_com, expected.inertia_com, rtol=0, atol=tolerance)
