# SPDX-License-Identifier: Apache-2.0
"""Write all results of an estimation into a directory, as one atomic change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prime_ros.estimation.estimate import Estimate
from prime_ros.exceptions import OutputError, PrimeError
from prime_ros.outputs import exchange
from prime_ros.outputs.bag import write_bag
from prime_ros.outputs.context import RunContext
from prime_ros.outputs.estimate_file import save_estimate
from prime_ros.outputs.exchange import FILE
from prime_ros.outputs.inertia_file import INERTIA_FILE, Source, save_inertia
from prime_ros.outputs.parquet import save_parquet
from prime_ros.outputs.report import write_report
from prime_ros.outputs.robot_urdf import calibrated, shown

if TYPE_CHECKING:
    from prime_ros.robot import Robot

ESTIMATE_FILE = "estimate.npz"
TABLE_FILE = "estimate.parquet"
URDF_FILE = "calibrated.urdf"
BAG_FOLDER = "estimate_bag"
REPORT_FILE = "report.html"
RESULTS: exchange.Entries = {
    REPORT_FILE: FILE,
    ESTIMATE_FILE: FILE,
    TABLE_FILE: FILE,
    INERTIA_FILE: FILE,
    URDF_FILE: FILE,
    BAG_FOLDER: dict.fromkeys((f"{BAG_FOLDER}.mcap", "metadata.yaml", "metadata.yaml.tmp"), FILE),
}
"""What is written."""
VIEW_FILE = "view.html"
MAY_HOLD: exchange.Entries = {**RESULTS, VIEW_FILE: FILE}
"""What a results directory may hold: also the replay of `prime view`, which goes with the results that it
shows. A directory with anything else is not replaced."""


@dataclass(frozen=True)
class WrittenResults:
    """Where the results are."""

    directory: Path
    files: tuple[str, ...]
    """Names in the directory; that of a folder ends in a slash."""
    notes: tuple[str, ...]
    """Results that could not be written, and why."""


def write_results(
    estimate: Estimate, robot: Robot, directory: str | Path, context: RunContext | None = None
) -> WrittenResults:
    """Write all results, replacing earlier ones as a set.

    What cannot be made of a model (no URDF for a robot from MJCF), the bag and the report must not cost the
    estimate: if one of them fails, it is left out and a note says why.

    Args:
        estimate: What to write.
        robot: The robot it was estimated with; its URDF is the one that is calibrated.
        directory: Created with its parents if absent; otherwise may hold only earlier results.
        context: Where the estimate comes from, for the report; without it there is none.

    Returns:
        The files written, and notes on those that could not be.

    Raises:
        OutputError: If the directory holds other files or cannot be written; it is unchanged then.
    """
    target = check_directory(directory)
    results = ResultSet(estimate, robot, context)
    try:
        files, notes = exchange.replace_directory(target, MAY_HOLD, results.fill)
    except OSError as error:
        raise OutputError(f"cannot write results to {directory}: {error}") from error
    return WrittenResults(target, files, notes)


def check_directory(directory: str | Path) -> Path:
    """Check that results may be written to a directory, before the work that leads to them.

    Returns:
        The directory, absolute, symbolic links resolved.

    Raises:
        OutputError: If it is a file, holds files that are not results, or cannot be exchanged as a whole.
    """
    return exchange.check_directory(directory, MAY_HOLD)


@dataclass(frozen=True)
class ResultSet:
    """All results of one estimate."""

    estimate: Estimate
    robot: Robot
    context: RunContext | None
    sources: tuple[Source, ...] | None = None
    """Recordings that the inertia is from; None: that of the estimate."""

    def fill(self, folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Write everything into a folder; the names written, and notes."""
        save_estimate(self.estimate, folder / ESTIMATE_FILE)
        save_parquet(self.estimate, self.robot, folder / TABLE_FILE)
        save_inertia(self.estimate, folder / INERTIA_FILE, self.robot.name, self._sources())
        optional: dict[str, Callable[[Path], None]] = {
            URDF_FILE: self._write_urdf,
            BAG_FOLDER: self._write_bag,
        }
        if self.context is not None:
            optional[REPORT_FILE] = self._write_report
        notes = [note for name, write in optional.items() if (note := attempt(write, folder / name))]
        present = [name for name in RESULTS if (folder / name).exists()]
        return tuple(f"{name}/" if RESULTS[name] else name for name in present), tuple(notes)

    def _sources(self) -> tuple[Source, ...]:
        if self.sources is not None:
            return self.sources
        return (Source.of(self.estimate, None if self.context is None else self.context.recording),)

    def _write_urdf(self, path: Path) -> None:
        """Calibrate the robot's URDF."""
        converged = self.estimate.certificate.converged
        path.write_bytes(calibrated(self.robot, self.estimate.links, converged))

    def _write_bag(self, path: Path) -> None:
        converged = self.estimate.certificate.converged
        write_bag(self.estimate, self.robot, path, shown(self.robot, self.estimate.links, converged))

    def _write_report(self, path: Path) -> None:
        assert self.context is not None
        write_report(self.estimate, self.robot, self.context, path)


def attempt(write: Callable[[Path], None], path: Path) -> str:
    """Write one result; if that fails, remove what there is of it and say why."""
    try:
        write(path)
    except Exception as error:
        inner = RESULTS[path.name]
        if inner:
            exchange.discard(path, inner)
        else:
            path.unlink(missing_ok=True)
        kind = "" if isinstance(error, OSError | PrimeError) else f"{type(error).__name__}: "
        return f"no {path.name}: {kind}{error}"
    return ""
