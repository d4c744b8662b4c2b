# SPDX-License-Identifier: Apache-2.0
"""Figures of many seeds: medians, worst values, spreads, and what they have to be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from report import Better, Metric, Target
from rich.table import Table
from scipy.stats import chi2

from prime_ros.experiments.run_metrics import SENSORS
from prime_ros.experiments.simulation_logs import Floats


@dataclass(frozen=True)
class Quantity:
    """What a figure is."""

    unit: str
    tolerance: float
    """Accepted worsening of the worst seed against the baseline, in `unit`."""
    better: Better = "lower"
    """Of its absolute value."""
    soft: float | None = None
    """Limit for the worst seed on logs with soft feet, in `unit`."""
    stiff: float | None = None
    """The same for stiff feet."""
    humanoid: float | None = None
    """The same for a humanoid with stiff, flat feet."""

    def limit(self, log: str) -> float | None:
        """Limit for the worst seed on a log, by its name."""
        if log.startswith("g1"):
            return self.humanoid
        return self.stiff if log.endswith("_stiff") else self.soft


QUANTITIES = {
    "converged": Quantity("", 0.0, "higher", 1.0, 1.0, 1.0),
    "iterations": Quantity("", 8.0),
    "mass_error": Quantity("kg", 0.01, soft=0.03, stiff=0.1, humanoid=0.05),
    "mass_error_over_std": Quantity("", 1.0, humanoid=3.0),
    "com_x_error": Quantity("mm", 0.5, soft=2.0, humanoid=3.0),
    "com_y_error": Quantity("mm", 0.5, soft=2.0, humanoid=3.0),
    "com_z_error": Quantity("mm", 1.0, soft=4.0, humanoid=3.0),
    "inertia_error": Quantity("", 0.05),
    "force": Quantity("N", 0.1, soft=2.8, stiff=3.5, humanoid=8.0),
    "contact_agreement": Quantity("", 0.002, "higher", 0.99, humanoid=0.985),
    "force_error_over_std": Quantity("", 0.2),
}
CHANNELS = {
    "base_position": Quantity("mm", 0.05, soft=1.0),
    "base_orientation": Quantity("deg", 0.01, soft=0.1),
    "base_linear_velocity": Quantity("m/s", 0.001),
    "base_angular_velocity": Quantity("rad/s", 0.001),
    "joint_position": Quantity("rad", 0.0001),
    "joint_velocity": Quantity("rad/s", 0.002),
    "joint_torque": Quantity("Nm", 0.01),
}
CHI_SQUARE_LIMITS = (0.8, 1.25)
STD_FACTOR = 1.5


@dataclass(frozen=True)
class LogSummary:
    """All runs of one log."""

    name: str
    runs: tuple[dict[str, float], ...]

    def with_run(self, figures: dict[str, float]) -> LogSummary:
        """The summary with one more run."""
        return replace(self, runs=(*self.runs, figures))

    @property
    def stiff(self) -> bool:
        """Whether the feet of the log are stiff: impacts are then shorter than a knot."""
        return self.name.endswith("_stiff")

    def values(self, figure: str) -> Floats:
        """One figure over the seeds."""
        return np.array([run[figure] for run in self.runs])

    def median(self, figure: str) -> float:
        """Median of the absolute value."""
        return float(np.median(np.abs(self.values(figure))))

    def worst(self, figure: str, better: Better = "lower") -> float:
        """Worst absolute value; NaN if any is."""
        values = np.abs(self.values(figure))
        return float(values.max() if better == "lower" else values.min())

    def spread(self, figure: str) -> float:
        """Standard deviation over the seeds; NaN for a single one."""
        values = self.values(figure)
        return float(values.std(ddof=1)) if len(values) > 1 else float("nan")

    @property
    def mass_std_ratio(self) -> float:
        """Mean posterior standard deviation of the mass over the spread of its estimate."""
        return float(self.values("mass_std").mean() / self.spread("mass_error"))

    def as_dict(self) -> dict[str, object]:
        """Statistics by figure."""
        return {
            figure: {
                "median": float(np.median(self.values(figure))),
                "mean": float(np.mean(self.values(figure))),
                "min": float(np.min(self.values(figure))),
                "max": float(np.max(self.values(figure))),
                "spread": self.spread(figure),
            }
            for figure in self.runs[0]
        }


def metrics_of(summaries: Sequence[LogSummary]) -> dict[str, Metric]:
    """Worst seeds, for the baseline."""
    metrics = {}
    for summary in summaries:
        for figure, q in _figures():
            worst = summary.worst(figure, q.better)
            metrics[f"{summary.name}/{figure}"] = Metric(worst, q.unit, q.better, q.tolerance)
    return metrics


def targets_of(summaries: Sequence[LogSummary]) -> list[Target]:
    """Everything that is required, log by log."""
    targets = []
    for summary in summaries:
        targets += [*_error_targets(summary), *_covariance_targets(summary)]
    return targets


def _error_targets(summary: LogSummary) -> Iterator[Target]:
    for figure, q in _figures():
        limit = q.limit(summary.name)
        if limit is None:
            continue
        limits = {"highest": limit} if q.better == "lower" else {"lowest": limit}
        note = f"median {summary.median(figure):.3g}"
        worst = summary.worst(figure, q.better)
        yield Target(summary.name, _in_words(figure), worst, q.unit, **limits, note=note)
    if not summary.stiff:
        ratio, channel = max((_worst_ratio(summary, channel), channel) for channel in CHANNELS)
        note = _in_words(channel)
        yield Target(summary.name, "estimate over raw sensor", ratio, "", highest=1.0, note=note)


def _covariance_targets(summary: LogSummary) -> Iterator[Target]:
    if len(summary.runs) > 1:
        lowest, highest = _ratio_interval(len(summary.runs))
        note = f"95 %: {lowest:.2f} to {highest:.2f}"
        name = "mass: posterior std over spread"
        yield Target(summary.name, name, summary.mass_std_ratio, "", 1.0 / STD_FACTOR, STD_FACTOR, note)
    for sensor in SENSORS:
        values = summary.values(f"chi_square/{sensor}")
        farthest = float(values[np.argmax(np.abs(np.log(values)))])
        note = f"median {np.median(values):.3f}"
        name = f"chi-square per dof: {sensor}"
        yield Target(summary.name, name, farthest, "", *CHI_SQUARE_LIMITS, note)


def _ratio_interval(seeds: int) -> tuple[float, float]:
    """Where the ratio of the true std to the sample std of this many seeds lies in 95 % of all cases."""
    freedom = seeds - 1
    low, high = chi2.ppf([0.025, 0.975], freedom) / freedom
    return float(high**-0.5), float(low**-0.5)


def _figures() -> Iterator[tuple[str, Quantity]]:
    yield from QUANTITIES.items()
    for channel, q in CHANNELS.items():
        yield f"{channel}/estimate", q


def _in_words(figure: str) -> str:
    return figure.replace("/estimate", "").replace("_", " ").replace("/", ": ")


def _worst_ratio(summary: LogSummary, channel: str) -> float:
    return float((summary.values(f"{channel}/estimate") / summary.values(f"{channel}/raw")).max())


def tables_of(summaries: Sequence[LogSummary]) -> list[Table]:
    """Errors, channels against raw sensors, and how honest the uncertainties are; a column per log."""
    return [_error_table(summaries), _channel_table(summaries), _covariance_table(summaries)]


def _table(title: str, summaries: Sequence[LogSummary]) -> Table:
    table = Table("", "unit", title=title)
    for summary in summaries:
        table.add_column(f"{summary.name} ({len(summary.runs)})", justify="right")
    return table


def _error_table(summaries: Sequence[LogSummary]) -> Table:
    table = _table("Errors: median / worst of (seeds)", summaries)
    failed = [str(sum(run["converged"] == 0.0 for run in summary.runs)) for summary in summaries]
    table.add_row("not converged", "runs", *failed)
    feet = [figure for figure in summaries[0].runs[0] if figure.startswith("force/")]
    rows = {
        **{figure: q.unit for figure, q in QUANTITIES.items() if figure != "converged"},
        **dict.fromkeys(feet, "N"),
        "ground_height": "m",
        "seconds": "s",
        "largest_gap": "",
    }
    for figure, unit in rows.items():
        better = QUANTITIES[figure].better if figure in QUANTITIES else "lower"
        cells = [f"{s.median(figure):.4g} / {s.worst(figure, better):.4g}" for s in summaries]
        table.add_row(_in_words(figure), unit, *cells)
    return table


def _channel_table(summaries: Sequence[LogSummary]) -> Table:
    table = _table("RMS error: estimate / raw sensor (medians), worst ratio", summaries)
    for channel, q in CHANNELS.items():
        cells = []
        for s in summaries:
            ratio = _worst_ratio(s, channel)
            colour = "green" if ratio <= 1.0 else "bold red"
            medians = f"{s.median(channel + '/estimate'):.3g} / {s.median(channel + '/raw'):.3g}"
            cells.append(f"{medians}, [{colour}]{ratio:.2f}[/{colour}]")
        table.add_row(_in_words(channel), q.unit, *cells)
    return table


def _covariance_table(summaries: Sequence[LogSummary]) -> Table:
    table = _table("Posterior std / spread over seeds; chi-square per degree of freedom", summaries)
    for name, unit in (("mass", "kg"), ("com_x", "mm"), ("com_y", "mm"), ("com_z", "mm")):
        cells = [f"{s.median(name + '_std'):.4f} / {s.spread(name + '_error'):.4f}" for s in summaries]
        table.add_row(f"std of {_in_words(name)}", unit, *cells)
    for figure in (figure for figure in summaries[0].runs[0] if figure.startswith("chi_square/")):
        table.add_row(_in_words(figure), "", *_ranges(figure, summaries))
    return table


def _ranges(figure: str, summaries: Sequence[LogSummary]) -> list[str]:
    return [f"{s.values(figure).min():.3f} to {s.values(figure).max():.3f}" for s in summaries]
