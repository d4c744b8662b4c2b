# SPDX-License-Identifier: Apache-2.0
"""The answer on the terminal: payload, contacts, how well the noise model fits, and what it took."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from prime_ros.estimation.estimate import Estimate, SensorReport
from prime_ros.estimation.identifiability import warnings
from prime_ros.outputs.advice import CHI_SQUARE_RANGE, NOT_CONVERGED, inertia_lines, noise_advice
from prime_ros.outputs.write import WrittenResults


def print_summary(
    estimate: Estimate,
    console: Console,
    written: WrittenResults | None = None,
    timing: Mapping[str, float] | None = None,
    base: str | None = None,
) -> None:
    """Print what an estimation found and how far to trust it.

    Args:
        estimate: What to summarise.
        console: Where to print.
        written: Result files to name at the end.
        timing: Wall time by phase [s]; of the estimation alone if None.
        base: Name of the link that the free base moves, for advice on motions.
    """
    _print_certificate(estimate, console)
    for line in inertia_lines(estimate):
        console.print(line, highlight=False, markup=False)
    for what, advice in warnings(estimate.links, base):
        console.print(f"[yellow]{escape(f'{what}; {advice}')}[/]", highlight=False)
    console.print()
    console.print(_contact_table(estimate))
    console.print(_sensor_table(estimate.sensors))
    shares = [f"{name} {s.rejected_share:.2%}" for name, s in estimate.sensors.items() if s.rejected]
    if shares:
        console.print(f"Rejected because all others contradict: {escape(', '.join(shares))}", highlight=False)
    for advice in noise_advice(estimate.sensors):
        console.print(f"[yellow]{escape(advice)}[/]", highlight=False)
    _print_timing(estimate.timing if timing is None else timing, _length(estimate), console)
    if written is not None:
        for note in written.notes:
            console.print(escape(note), highlight=False, soft_wrap=True)
        files = ", ".join(written.files)
        console.print(
            f"Results in {escape(str(written.directory))}: {escape(files)}", highlight=False, soft_wrap=True
        )


def _print_certificate(estimate: Estimate, console: Console) -> None:
    certificate = estimate.certificate
    reason = escape(certificate.reason)
    console.print()
    if certificate.converged:
        console.print(
            f"[bold green]Converged[/] in {certificate.iterations} iterations: {reason}", highlight=False
        )
        return
    console.print(
        f"[bold red]NOT CONVERGED[/] after {certificate.iterations} iterations: {reason}\n"
        f"Do not use the numbers below. {NOT_CONVERGED}",
        highlight=False,
    )
    table = Table(
        "kappa", "iterations", "cost", "largest gap", "converged", title="Stages", title_justify="left"
    )
    for stage in certificate.stages:
        done = "yes" if stage.converged else "[red]no[/]"
        table.add_row(
            f"{stage.kappa:g}", str(stage.iterations), f"{stage.cost:.6g}", f"{stage.largest_gap:.1e}", done
        )
    console.print(table)


def _contact_table(estimate: Estimate) -> Table:
    table = Table(title="Contacts: vertical force over the whole recording", title_justify="left")
    for heading in ("contact", "mean [N]", "peak [N]", "peak std [N]", "duty factor"):
        table.add_column(heading, justify="left" if heading == "contact" else "right")
    vertical = estimate.contact_force_W[:, :, 2]
    std = estimate.std["contact_force_W"][:, :, 2]
    touching = estimate.contact_probability > 0.5
    for index, name in enumerate(estimate.contact_names):
        peak = int(np.argmax(vertical[:, index]))
        table.add_row(
            escape(name),
            f"{vertical[:, index].mean():.1f}",
            f"{vertical[peak, index]:.1f}",
            f"{std[peak, index]:.1f}",
            f"{touching[:, index].mean():.2f}",
        )
    table.add_section()
    table.add_row("all", f"{vertical.sum(axis=1).mean():.1f}", f"{vertical.sum(axis=1).max():.1f}", "", "")
    return table


def _sensor_table(sensors: Mapping[str, SensorReport]) -> Table:
    table = Table(title="Sensors: residuals against stated noise", title_justify="left")
    for heading in ("sensor", "samples", "rms residual", "chi-square/dof", ""):
        table.add_column(heading, justify="left" if heading in ("sensor", "") else "right")
    for name, report in sensors.items():
        ratio = report.chi_square_per_dof
        flag = _flag(ratio) if report.measured else "setting"
        shown = (f"{ratio:.2f}", flag) if isfinite(ratio) else ("-", "not used")
        residual = f"{report.rms_residual:.3g} {report.unit}" if report.count else "-"
        table.add_row(escape(name), str(report.count), escape(residual), *shown)
    return table


def _flag(ratio: float) -> str:
    low, high = CHI_SQUARE_RANGE
    if low <= ratio <= high:
        return "[green]ok[/]"
    return "[yellow]low[/]" if ratio < low else "[yellow]high[/]"


def _print_timing(timing: Mapping[str, float], length: float, console: Console) -> None:
    total = sum(timing.values())
    phases = ", ".join(f"{name} {seconds:.2f}" for name, seconds in timing.items())
    relative = f", {total / length:.2f} x its length" if length > 0.0 else ""
    console.print(
        f"Time: {total:.2f} s for {length:.2f} s of recording{relative} ({escape(phases)})", highlight=False
    )


def _length(estimate: Estimate) -> float:
    """Time from the first knot to the last [s]."""
    return float(estimate.stamp_ns[-1] - estimate.stamp_ns[0]) * 1e-9
