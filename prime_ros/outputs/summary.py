# SPDX-License-Identifier: Apache-2.0
"""The answer on the terminal: payload, contacts, how well the noise model fits, and what it took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil, isfinite, log10

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from prime_ros.estimation.estimate import Estimate, LinkEstimate, SensorReport
from prime_ros.outputs.write import WrittenResults

CHI_SQUARE_RANGE = (0.8, 1.25)
"""Chi-square per degree of freedom that agrees with the stated noise [-]."""


def print_summary(
    estimate: Estimate,
    console: Console,
    written: WrittenResults | None = None,
    timing: Mapping[str, float] | None = None,
) -> None:
    """Print what an estimation found and how far to trust it.

    Args:
        estimate: What to summarise.
        console: Where to print.
        written: Result files to name at the end.
        timing: Wall time by phase [s]; of the estimation alone if None.
    """
    _print_certificate(estimate, console)
    for line in inertia_lines(estimate):
        console.print(line, highlight=False, markup=False)
    console.print()
    console.print(_contact_table(estimate))
    console.print(_sensor_table(estimate.sensors))
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


def inertia_lines(estimate: Estimate) -> Iterator[str]:
    """Lines on mass, payload and centre of mass of each identified link, and on the ground height."""
    if not estimate.links:
        yield "Inertia not identified; the nominal one was used."
    for name, link in estimate.links.items():
        yield payload_line(name, link)
        yield com_line(name, link)
        yield from payload_position(name, link)
    height, std = estimate.ground_height, estimate.std_ground_height
    yield f"ground height: {_with_std(1e3 * height, 1e3 * std, sign=True)} mm"


def payload_line(name: str, link: LinkEstimate) -> str:
    """Such as `base: 7.277 -> 10.28 +- 0.01 kg (payload +3.00 kg)`."""
    change = link.estimate.mass - link.nominal.mass
    estimate = _with_std(link.estimate.mass, link.std.mass)
    payload = f"{change:+.{_decimals(link.std.mass)}f}"
    return f"{name}: {link.nominal.mass:.3f} -> {estimate} kg (payload {payload} kg)"


def com_line(name: str, link: LinkEstimate) -> str:
    """Shift of the centre of mass, axes of the link's frame [mm]."""
    shift = 1e3 * (np.asarray(link.estimate.com) - np.asarray(link.nominal.com))
    std = 1e3 * np.asarray(link.std.com)
    axes = (f"{a} {_with_std(s, d, sign=True)}" for a, s, d in zip("xyz", shift, std, strict=True))
    return f"{name}: com shift {', '.join(axes)} mm"


def payload_position(name: str, link: LinkEstimate) -> Iterator[str]:
    """Where an added mass would explain the change, if there is a clear one: 5 std and 1 % of the link."""
    nominal, estimate = link.nominal, link.estimate
    mass = estimate.mass - nominal.mass
    if mass > max(5.0 * link.std.mass, 0.01 * nominal.mass):
        x, y, z = (estimate.mass * np.asarray(estimate.com) - nominal.mass * np.asarray(nominal.com)) / mass
        yield f"{name}: payload at x {x:+.3f}, y {y:+.3f}, z {z:+.3f} m"


def noise_advice(sensors: Mapping[str, SensorReport]) -> Iterator[str]:
    """What to do about each sensor whose residuals do not fit its stated noise."""
    low, high = CHI_SQUARE_RANGE
    for name, report in sensors.items():
        ratio = report.chi_square_per_dof
        if not report.measured or not isfinite(ratio) or low <= ratio <= high:
            continue
        factor = f"multiply its noise std by {np.sqrt(ratio):.2f}"
        if ratio > high:
            yield (
                f"{name}: residuals exceed the stated noise; check the sensor (clock, mounting, "
                f"calibration), and if it is right, {factor}"
            )
        else:
            yield f"{name}: residuals are below the stated noise; {factor} to get the most out of it"


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
        "Do not use the numbers below. Look at the sensors flagged below first; then try a part of the "
        "recording (--start, --duration) or more iterations (--set solver.max_iterations=...).",
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


def _decimals(std: float) -> int:
    """Decimals that show one to two digits of a standard deviation."""
    return min(max(ceil(-log10(std)), 0), 4) if isfinite(std) and std > 0.0 else 3


def _with_std(value: float, std: float, sign: bool = False) -> str:
    decimals = _decimals(std)
    return f"{value:{'+' if sign else ''}.{decimals}f} +- {std:.{decimals}f}"
