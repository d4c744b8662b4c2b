# SPDX-License-Identifier: Apache-2.0
"""Write all results of an estimation into a directory, as one atomic change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prime_ros.estimation.estimate import BodyInertia, Estimate
from prime_ros.exceptions import OutputError, PrimeError
from prime_ros.outputs import exchange
from prime_ros.outputs.bag import write_bag
from prime_ros.outputs.context import RunContext
from prime_ros.outputs.estimate_file import save_estimate
from prime_ros.outputs.exchange import FILE
from prime_ros.outputs.inertia_file import save_inertia
from prime_ros.outputs.parquet import save_parquet
from prime_ros.outputs.report import write_report
from prime_ros.outputs.urdf import calibrated_urdf, shown_urdf

if TYPE_CHECKING:
    from prime_ros.robot import Robot

ESTIMATE_FILE = "estimate.npz"
TABLE_FILE = "estimate.parquet"
INERTIA_FILE = "inertia.yaml"
URDF_FILE = "calibrated.urdf"
BAG_FOLDER = "estimate_bag"
REPORT_FILE = "report.html"
RESULTS: exchange.Entries = {
    REPORT_FILE: FILE,
    ESTIMATE_FILE: FILE,
    TABLE_FILE: FILE,
    INERTIA_FILE: FILE,
    URDF_FILE: FILE,
    BAG_FOLDER: frozenset({f"{BAG_FOLDER}.mcap", "metadata.yaml", "metadata.yaml.tmp"}),
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
    job = _Job(estimate, robot, context)
    try:
        files, notes = exchange.replace_directory(target, MAY_HOLD, job.fill)
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
class _Job:
    estimate: Estimate
    robot: Robot
    context: RunContext | None

    def fill(self, folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Write everything into a folder; the names written, and notes."""
        save_estimate(self.estimate, folder / ESTIMATE_FILE)
        save_parquet(self.estimate, self.robot, folder / TABLE_FILE)
        save_inertia(self.estimate, folder / INERTIA_FILE)
        optional: dict[str, Callable[[Path], None]] = {
            URDF_FILE: self._write_urdf,
            BAG_FOLDER: self._write_bag,
        }
        if self.context is not None:
            optional[REPORT_FILE] = self._write_report
        notes = [note for name, write in optional.items() if (note := _attempt(write, folder / name))]
        present = [name for name in RESULTS if (folder / name).exists()]
        return tuple(f"{name}/" if RESULTS[name] else name for name in present), tuple(notes)

    def _write_urdf(self, path: Path) -> None:
        """Calibrate the robot's URDF."""
        if not self.estimate.links:
            raise OutputError("no inertia was identified")
        path.write_bytes(self._urdf(self._bodies()))

    def _write_bag(self, path: Path) -> None:
        write_bag(self.estimate, self.robot, path, self._description())

    def _description(self) -> bytes | None:
        """Model that viewers show: calibrated if possible, else the original, none if that is no URDF."""
        for bodies in (self._bodies(), {}):
            try:
                return shown_urdf(self._urdf(bodies))
            except (OSError, OutputError):
                continue
        return None

    def _bodies(self) -> dict[str, BodyInertia]:
        """Estimated inertia by the name of the link; ``base`` may stand for the base link of any robot."""
        robot, links = self.robot, self.estimate.links.items()
        return {name if name in robot.link_names else robot.base_link: link.estimate for name, link in links}

    def _urdf(self, bodies: dict[str, BodyInertia]) -> bytes:
        """The robot's URDF with the inertia of some bodies changed.

        Raises:
            OutputError: If the robot's model is no URDF or lacks a link.
        """
        path = Path(self.robot.urdf_path)
        converged = self.estimate.certificate.converged
        try:
            return calibrated_urdf(path.read_bytes(), bodies, path.resolve().parent, converged)
        except OutputError as error:
            raise OutputError(f"{path}: {error}") from error

    def _write_report(self, path: Path) -> None:
        assert self.context is not None
        write_report(self.estimate, self.robot, self.context, path)


def _attempt(write: Callable[[Path], None], path: Path) -> str:
    """Write one result; if that fails, remove what there is of it and say why."""
    try:
        write(path)
    except Exception as error:
        inner = RESULTS[path.name]
        if inner:
            exchange.discard(path, dict.fromkeys(inner, FILE))
        else:
            path.unlink(missing_ok=True)
        kind = "" if isinstance(error, OSError | PrimeError) else f"{type(error).__name__}: "
        return f"no {path.name}: {kind}{error}"
    return ""
