# SPDX-License-Identifier: Apache-2.0
"""What to do next: everything that speaks against trusting the estimate, worst first, with advice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from prime_ros.estimation.estimate import Estimate
from prime_ros.estimation.identifiability import motion_for, unknown, warnings
from prime_ros.outputs.advice import NOT_CONVERGED, noise_advice
from prime_ros.outputs.context import RunContext

REJECTED_SHARE = 0.05
"""Share of rejected measurements of a sensor that is worth a look [-]."""


@dataclass(frozen=True)
class Action:
    """One thing to know and what to do about it."""

    severity: str
    """`error`, `warning` or `note`."""
    what: str
    advice: str = ""


def actions(estimate: Estimate, context: RunContext, base_link: str) -> list[Action]:
    """Everything to look at, errors first."""
    order = {"error": 0, "warning": 1, "note": 2}
    found = [
        *_convergence(estimate),
        *_recording(context),
        *_sensors(estimate),
        *_directions(estimate, base_link),
    ]
    return sorted(found, key=lambda action: order[action.severity])


def _convergence(estimate: Estimate) -> Iterator[Action]:
    certificate = estimate.certificate
    if not certificate.converged:
        yield Action(
            "error",
            f"The solver did not converge: {certificate.reason}.",
            NOT_CONVERGED,
        )


def _recording(context: RunContext) -> Iterator[Action]:
    """Findings as they are, and every other warning of the data layer."""
    findings = context.diagnostics.findings
    for finding in findings:
        yield Action(finding.severity, finding.what, finding.advice)
    told = {str(finding) for finding in findings}
    for line in context.diagnostics.warnings():
        if line not in told:
            yield Action("note", line)


def _sensors(estimate: Estimate) -> Iterator[Action]:
    for line in noise_advice(estimate.sensors):
        what, _, advice = line.partition("; ")
        yield Action("warning" if "exceed" in what else "note", what, advice)
    for name, report in estimate.sensors.items():
        if report.measured and report.rejected_share > REJECTED_SHARE:
            yield Action(
                "warning",
                f"{name}: {100 * report.rejected_share:.0f} % of the measurements contradict all others and "
                "were given no weight",
                "look at when it happens (residuals, below) and at the sensor",
            )


def _directions(estimate: Estimate, base_link: str) -> Iterator[Action]:
    for what, advice in warnings(estimate.links, base_link):
        yield Action("warning", what, advice)
    for direction in unknown(estimate):
        yield Action(
            "note",
            f"{direction.link}: {direction.description} rests on the prior "
            f"({100 * direction.learned:.0f} % learned)",
            f"to learn it, {motion_for(direction, base_link)}",
        )
