# SPDX-License-Identifier: Apache-2.0
"""The bundled recording of a simulated Go2 with 3 kg on its back, against its truth."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from errors import rms, turn
from numpy.typing import NDArray
from recordings import BAG, TRUTH
from simulation import go2

from prime_ros import sources
from prime_ros.config import load_estimator_config
from prime_ros.estimation.estimate import Estimate
from prime_ros.estimation.full_information import solve
from prime_ros.measurements import KnotMeasurements, align

Array = NDArray[np.float64]


@cache
def bundled() -> tuple[KnotMeasurements, Estimate, dict[str, Array]]:
    settings = load_estimator_config("pfie")
    measurements = align(sources.load(BAG), go2(), settings)
    with np.load(TRUTH) as file:
        truth = {key: file[key] for key in file}
    np.testing.assert_array_equal(measurements.stamp_ns, truth["stamp_ns"])
    return measurements, solve(measurements, go2(), settings), truth


def test_payload_of_the_bundled_recording() -> None:
    _, estimate, truth = bundled()
    assert estimate.certificate.converged
    link = estimate.links["base"]
    assert link.estimate.mass - link.nominal.mass == pytest.approx(
        truth["mass"] - truth["nominal_mass"], abs=0.05
    )
    assert np.all(np.abs(link.estimate.com - truth["com"]) < [2e-3, 2e-3, 4e-3])


def test_motion_and_forces_of_the_bundled_recording() -> None:
    measurements, estimate, truth = bundled()
    covered = truth["covered"][: len(estimate.stamp_ns)].astype(bool)
    part = slice(0, len(estimate.stamp_ns))
    order = [list(truth["contact_names"]).index(name) for name in estimate.contact_names]
    force = truth["contact_force_W"][part][covered][:, order]
    assert rms(estimate.contact_force_W[covered] - force) < 2.8
    agreement = (estimate.contact_probability[covered] > 0.5) == (force[..., 2] > 5.0)
    assert agreement.mean() >= 0.99
    position, quat = truth["base_position_W"][part], truth["base_quat_xyzw"][part]
    error, raw = estimate.base_position_W - position, measurements.base_position_W[part] - position
    assert rms(error) < 1e-3
    assert rms(error) < rms(raw)
    error, raw = turn(quat, estimate.base_quat_xyzw), turn(quat, measurements.base_quat_xyzw[part])
    assert rms(error) < np.deg2rad(0.1)
    assert rms(error) < rms(raw)


@pytest.mark.parametrize(
    "sensor", ["mocap position", "mocap orientation", "joint position", "joint velocity", "gyroscope"]
)
def test_chi_square_of_the_bundled_recording(sensor: str) -> None:
    _, estimate, _ = bundled()
    assert 0.8 < estimate.sensors[sensor].chi_square_per_dof < 1.25
