# SPDX-License-Identifier: Apache-2.0
"""A long recording solved piece by piece is the recording solved as a whole."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from simulation import config, go2, measure, trot

from prime_ros.estimation.estimate import Estimate
from prime_ros.estimation.full_information import solve
from prime_ros.estimation.pieces import pieces, sliced
from prime_ros.estimation.progress import Progress
from prime_ros.measurements import KnotMeasurements

STEPS = 400
PIECE = "solver.piece=1.2"


@cache
def measurements() -> KnotMeasurements:
    return measure(trot(STEPS, seed=21), seed=22)


@cache
def whole() -> Estimate:
    return solve(measurements(), go2(), config("solver.piece=0"))


@cache
def in_pieces() -> tuple[Estimate, tuple[Progress, ...]]:
    seen: list[Progress] = []
    return solve(measurements(), go2(), config(PIECE), seen.append), tuple(seen)


@pytest.mark.parametrize("steps", [2, 119, 120, 121, 1000, 60_000])
def test_pieces_cover_every_knot_once_and_look_ahead(steps: int) -> None:
    plan = pieces(steps, config(PIECE))
    assert plan[0].first == 0
    assert plan[-1].cut == plan[-1].last == steps
    for before, after in pairwise(plan):
        assert before.cut == after.first
        assert before.last == min(before.cut + 100, steps)
    assert all(piece.cut - piece.first <= 120 for piece in plan)
    assert len(pieces(steps, config("solver.piece=0"))) == 1


def test_estimate_is_that_of_the_whole() -> None:
    estimate, _ = in_pieces()
    assert whole().certificate.converged
    assert estimate.certificate.converged
    assert "4 pieces" in estimate.certificate.reason
    np.testing.assert_array_equal(estimate.stamp_ns, whole().stamp_ns)
    for name, std in whole().std.items():
        difference = getattr(estimate, name) - getattr(whole(), name)
        assert getattr(estimate, name).shape == getattr(whole(), name).shape
        if name not in ("base_quat_xyzw", "contact_probability"):  # whose std is of something else
            # An early piece does not know yet what later ones tell of ground and inertia.
            assert np.sqrt(np.mean((difference / std) ** 2)) < 0.5, name
        if name != "contact_probability":  # certain ones have none
            np.testing.assert_allclose(np.median(estimate.std[name] / std), 1.0, atol=0.02, err_msg=name)
    base, expected = estimate.links["base"], whole().links["base"]
    assert abs(base.estimate.mass - expected.estimate.mass) < 0.3 * expected.std.mass
    assert base.std.mass == pytest.approx(expected.std.mass, rel=0.02)
    np.testing.assert_array_less(np.abs(base.estimate.com - expected.estimate.com), 0.5 * expected.std.com)
    assert abs(estimate.ground_height - whole().ground_height) < 0.3 * whole().std_ground_height
    assert [d.learned for d in estimate.directions] == pytest.approx(
        [d.learned for d in whole().directions], abs=0.02
    )


def test_evidence_is_that_of_all_pieces() -> None:
    estimate, seen = in_pieces()
    assert {progress.piece for progress in seen} == {1, 2, 3, 4}
    assert {progress.pieces for progress in seen} == {4}
    assert [progress.iteration for progress in seen] == list(range(1, estimate.certificate.iterations + 1))
    assert len(estimate.history) == len(seen)
    for name, residuals in whole().residuals.items():
        joined = estimate.residuals[name]
        assert joined.whitened.shape[0] >= STEPS
        difference = np.abs(joined.whitened[:STEPS] - residuals.whitened[:STEPS])
        assert np.nanquantile(difference, 0.999) < 0.6, name
        assert np.sqrt(np.nanmean(difference**2)) < 0.1, name
    for name, report in whole().sensors.items():
        assert estimate.sensors[name].count >= report.count
        assert estimate.sensors[name].chi_square_per_dof == pytest.approx(report.chi_square_per_dof, rel=0.1)


def test_piece_that_does_not_converge_is_named() -> None:
    estimate = solve(measurements(), go2(), config(PIECE, "solver.max_iterations=3"))
    assert not estimate.certificate.converged
    assert "4 of 4 pieces did not converge (1, 2, 3, 4): piece 1: stopped" in estimate.certificate.reason


def test_slices_keep_every_row_together() -> None:
    part = sliced(measurements(), 10, 20)
    np.testing.assert_array_equal(part.stamp_ns, measurements().stamp_ns[10:21])
    np.testing.assert_array_equal(part.joint_torque, measurements().joint_torque[10:21])
    assert part.dt == measurements().dt
