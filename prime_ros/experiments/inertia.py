# SPDX-License-Identifier: Apache-2.0
"""Identified inertia against the truth: the Go2's base (PRIME's Table I), the G1's torso (Table II)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from prime_ros.experiments.context import Context
from prime_ros.experiments.logs import G1, GO2
from prime_ros.experiments.section import Section, Table
from prime_ros.experiments.simulation_logs import Floats
from prime_ros.experiments.solving import Case, identified

NAMES = ("mass", "com x", "com y", "com z", "Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
UNITS = ("kg", *3 * ("mm",), *6 * ("g m^2",))
COLUMNS = (
    "log",
    "parameter",
    "unit",
    "nominal",
    "truth",
    "estimate",
    "std",
    "error, mean",
    "error, worst",
    "worst / std",
)


def parameters(mass: float, com: Any, inertia_com: Any) -> Floats:
    """The ten parameters of a body by `NAMES` in `UNITS`, shape (10,)."""
    tensor = 1e3 * np.asarray(inertia_com)
    products = [tensor[0, 1], tensor[0, 2], tensor[1, 2]]
    return np.array([mass, *(1e3 * np.asarray(com)), *np.diag(tensor), *products])


def inertia_go2(context: Context) -> Section:
    """The Go2 with a payload, and with a centre of mass that is too low."""
    return _section(
        context,
        "inertia-go2",
        "Go2: payload of 3 kg, centre of mass 0.1 m lower (as PRIME's Table I)",
        "Base of the Go2 in MuJoCo, 10 s of walking, 1000 knots. The estimator starts from the nominal"
        " inertia.",
        GO2,
    )


def inertia_g1(context: Context) -> Section:
    """The G1 with a battery on its torso."""
    return _section(
        context,
        "inertia-g1",
        "G1: battery of 2.9 kg on the torso (as PRIME's Table II)",
        "Torso of the G1 in MuJoCo (with all that is fixed to it, in the frame of the waist's last joint),"
        " 15 s of"
        " walking, 1500 knots. The paper has no truth for its robot: it found 3.4 kg where the scale says"
        " 2.9 kg more"
        " than the model; here the truth is known.",
        G1,
    )


def _section(context: Context, name: str, title: str, text: str, logs: Sequence[str]) -> Section:
    rows: list[tuple[str, ...]] = []
    notes: list[str] = []
    for log in logs:
        added, note = _rows(context, log)
        rows += added
        notes.append(note)
    seeds = context.seed_words
    return Section(
        name=name,
        title=title,
        text=(
            f"{text} Seeds {seeds}; estimate and std (posterior) of seed {context.seeds[0]}, errors over"
            " all seeds."
        ),
        command=f"prime experiments {name} --data DIR --seeds {seeds.replace(' ', '')} --out DIR",
        parts=(Table(COLUMNS, tuple(rows)),),
        notes=tuple(notes),
    )


def _rows(context: Context, log: str) -> tuple[list[tuple[str, ...]], str]:
    """Rows of one log, and how its solves ended."""
    outcomes = [context.solves.of(Case(log, seed)) for seed in context.seeds]
    truth = context.solves.logs.log(log).truth
    link = identified(log)[1]
    found = [outcome.estimate.links[link] for outcome in outcomes]
    true = _of(truth["true"])
    estimates = np.array([parameters(**vars(each.estimate)) for each in found])
    std = parameters(**vars(found[0].std))
    errors = estimates - true
    worst = np.abs(errors).max(axis=0)
    numbers = (_of(truth["nominal"]), true, estimates[0], std, errors.mean(axis=0), worst)
    rows = [
        (log, name, unit, *(f"{value:.3f}" for value in row), f"{row[-1] / row[3]:.1f}")
        for name, unit, row in zip(NAMES, UNITS, zip(*numbers, strict=True), strict=True)
    ]
    converged = sum(outcome.estimate.certificate.converged for outcome in outcomes)
    feet = max(outcome.forces.worst for outcome in outcomes)
    note = (
        f"`{log}`: {converged} of {len(outcomes)} solves converged; force of the worst foot {feet:.1f} N"
        " RMS (3-D,"
        " worst seed)."
    )
    return rows, note


def _of(body: Mapping[str, Any]) -> Floats:
    return parameters(body["mass"], body["com"], body["inertia_com"])
