# SPDX-License-Identifier: Apache-2.0
"""Estimation problems of any length for timing, from one recording."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from prime_ros.config import EstimatorConfig, load_estimator_config
from prime_ros.experiments.solved import Solved, solve_problem
from prime_ros.measurements import KnotMeasurements, Recording, align
from prime_ros.robot import Robot, load_robot
from prime_ros.sources import load

RECORDING = Path(__file__).resolve().parent.parent / "examples" / "go2_payload_3kg"
ROBOT = "go2"
LONGEST = 1000
"""Knots that the recording holds at the configured spacing, about; more need a finer spacing."""


@cache
def recording() -> Recording:
    """The bundled recording of ten seconds."""
    return load(RECORDING)


@cache
def robot() -> Robot:
    """The robot of the recording."""
    return load_robot(ROBOT)


def scaled_config(knots: int) -> EstimatorConfig:
    """Configuration that gives the recording about this many knots, a multiple of `LONGEST` if more.

    A finer spacing keeps the stiffness of the contact (kappa ~ 1/dt) and the density of the noise that slack
    and disturbance stand for (std ~ 1/sqrt(dt)): the problem stays the same but for its length.
    """
    shipped = load_estimator_config()
    factor = max(1.0, knots / LONGEST)
    if factor == 1.0:
        return shipped
    kappas = [factor * kappa for kappa in shipped.contact.kappa_stages]
    overrides = [f"dt={shipped.dt / factor}", f"contact.kappa_stages={kappas}"]
    for section in ("slack", "disturbance"):
        for key, std in getattr(shipped, section).model_dump().items():
            overrides.append(f"{section}.{key}={std * factor**0.5}")
    return load_estimator_config(overrides=overrides)


def measurements_of(knots: int) -> tuple[KnotMeasurements, EstimatorConfig]:
    """About this many knots from the start of the recording, and the configuration to solve them with."""
    config = scaled_config(knots)
    whole = recording()
    duration = min(whole.duration, (knots + 1) * config.dt)
    return align(whole.cropped(0.0, duration), robot(), config), config


@cache
def solved_problem(knots: int) -> Solved:
    """Solve a problem of about this many knots.

    Raises:
        RuntimeError: If the solver does not converge: its figures would mean little.
    """
    measurements, config = measurements_of(knots)
    return solve_problem(measurements, robot(), config)
