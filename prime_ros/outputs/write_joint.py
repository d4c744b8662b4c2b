# SPDX-License-Identifier: Apache-2.0
"""Results of several recordings of one body: a folder for each, and the shared inertia above them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from prime_ros.estimation.joint import JointEstimate
from prime_ros.exceptions import OutputError
from prime_ros.outputs import exchange
from prime_ros.outputs.comparison import Comparison
from prime_ros.outputs.context import RunContext
from prime_ros.outputs.exchange import FILE
from prime_ros.outputs.inertia_file import INERTIA_FILE, Source, body_document, save_document
from prime_ros.outputs.report.joint_page import JointPage, Part, agreement_cells, columns_of, render_joint
from prime_ros.outputs.robot_urdf import calibrated
from prime_ros.outputs.write import MAY_HOLD, REPORT_FILE, URDF_FILE, ResultSet, WrittenResults, attempt

if TYPE_CHECKING:
    from prime_ros.robot import Robot

SHARED: exchange.Entries = {REPORT_FILE: FILE, INERTIA_FILE: FILE, URDF_FILE: FILE}
"""What lies above the folders of the recordings."""
_FOLDER = r"[\w-][\w.-]*"
COLUMNS = columns_of(["length", "iterations (last round)", "ground height", "distance [std]"])


def comparison_of(joint: JointEstimate, names: Sequence[str]) -> Comparison:
    """A joint estimate for the eye; `names` of its recordings."""
    alone = tuple(estimate.links for estimate in joint.alone)
    return Comparison(tuple(names), joint.links, alone, joint.directions, joint.shares, joint.agreements)


def folder_names(paths: Sequence[Path]) -> tuple[str, ...]:
    """A folder for each recording, named like it; a number tells those of one name apart."""
    names: list[str] = []
    for path in paths:
        stem = re.sub(r"[^\w.-]", "_", path.resolve().stem).lstrip(".") or "recording"
        if stem in SHARED or stem in MAY_HOLD:
            stem = f"{stem}_recording"
        name, count = stem, 1
        while name in names:
            count += 1
            name = f"{stem}_{count}"
        names.append(name)
    return tuple(names)


def write_joint_results(
    joint: JointEstimate,
    robot: Robot,
    directory: str | Path,
    names: Sequence[str],
    contexts: Sequence[RunContext],
) -> WrittenResults:
    """Write the results of all recordings and the shared inertia, replacing earlier ones as a set.

    Args:
        joint: What to write.
        robot: The robot it was estimated with.
        directory: As `check_joint_directory` allows it.
        names: Of the folders of the recordings, as `folder_names` makes them.
        contexts: Where each recording comes from.

    Returns:
        The files written, and notes on those that could not be.

    Raises:
        OutputError: If the directory holds other files or cannot be written; it is unchanged then.
    """
    target = check_joint_directory(directory, names)
    job = _Job(joint, robot, tuple(names), tuple(contexts))
    try:
        files, notes = exchange.replace_directory(target, _may_hold(target, names), job.fill)
    except OSError as error:
        raise OutputError(f"cannot write results to {directory}: {error}") from error
    return WrittenResults(target, files, notes)


def check_joint_directory(directory: str | Path, names: Sequence[str]) -> Path:
    """Check that joint results may be written to a directory, before the work that leads to them.

    It may be new, or hold an earlier result of one or several recordings, and nothing else.

    Returns:
        The directory, absolute, symbolic links resolved.

    Raises:
        OutputError: If it is a file, holds other files, or cannot be exchanged as a whole.
    """
    path = Path(directory)
    earlier = {**MAY_HOLD, **dict.fromkeys(earlier_folders(path), MAY_HOLD)}
    return exchange.check_directory(path, earlier)


def earlier_folders(directory: Path) -> tuple[str, ...]:
    """Folders that an earlier joint solve left in a directory, as its inertia.yaml says."""
    try:
        document: Any = yaml.safe_load((directory / INERTIA_FILE).read_text(encoding="utf-8"))
        folders = [entry.get("folder") for entry in document["recordings"]]
    except (OSError, UnicodeDecodeError, yaml.YAMLError, KeyError, TypeError, AttributeError):
        return ()
    return tuple(name for name in folders if isinstance(name, str) and re.fullmatch(_FOLDER, name))


def _may_hold(target: Path, names: Sequence[str]) -> exchange.Entries:
    folders = (*earlier_folders(target), *names)
    return {**MAY_HOLD, **SHARED, **dict.fromkeys(folders, MAY_HOLD)}


@dataclass(frozen=True)
class _Job:
    joint: JointEstimate
    robot: Robot
    names: tuple[str, ...]
    contexts: tuple[RunContext, ...]

    def fill(self, folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Write everything into a folder; the names written, and notes."""
        notes: list[str] = []
        for index, name in enumerate(self.names):
            (folder / name).mkdir()
            _, missing = self._result_set(index).fill(folder / name)
            notes += [f"{name}: {note}" for note in missing]
        self._write_inertia(folder / INERTIA_FILE)
        optional: dict[str, Callable[[Path], None]] = {
            URDF_FILE: self._write_urdf,
            REPORT_FILE: self._write_report,
        }
        notes += [note for name, write in optional.items() if (note := attempt(write, folder / name))]
        shared = [name for name in SHARED if (folder / name).exists()]
        return (*shared, *(f"{name}/" for name in self.names)), tuple(notes)

    def _result_set(self, index: int) -> ResultSet:
        others = tuple(c.recording for i, c in enumerate(self.contexts) if i != index)
        context = replace(self.contexts[index], together_with=others)
        sources = tuple(replace(source, folder=None) for source in self._sources())
        return ResultSet(self.joint.recordings[index], self.robot, context, sources)

    def _sources(self) -> tuple[Source, ...]:
        parts = zip(self.joint.recordings, self.contexts, self.names, strict=True)
        return tuple(Source.of(estimate, context.recording, name) for estimate, context, name in parts)

    def _write_inertia(self, path: Path) -> None:
        shared = {"converged": self.joint.certificate.converged, "robot": self.robot.name}
        body = body_document(self.joint.links, self.joint.parameters, self._sources())
        save_document({**shared, **body}, path)

    def _write_urdf(self, path: Path) -> None:
        path.write_bytes(calibrated(self.robot, self.joint.links, self.joint.certificate.converged))

    def _write_report(self, path: Path) -> None:
        joint, certificate = self.joint, self.joint.certificate
        page = JointPage(
            robot=self.robot.name,
            base=self.robot.base_link,
            comparison=comparison_of(joint, self.names),
            converged=certificate.converged,
            verdict=f"Converged in {joint.rounds} rounds, {certificate.iterations} iterations",
            reason=certificate.reason,
            parts_title="Recordings",
            columns=COLUMNS,
            parts=tuple(self._part(index) for index in range(len(self.names))),
            settings=yaml.safe_dump(self.contexts[0].config.model_dump(mode="json"), sort_keys=False),
        )
        path.write_text(render_joint(page), encoding="utf-8")

    def _part(self, index: int) -> Part:
        estimate = self.joint.recordings[index]
        height, std = 1e3 * estimate.ground_height, 1e3 * estimate.std_ground_height
        cells = (
            f"{(len(estimate.stamp_ns) - 1) * estimate.dt:.2f} s",
            str(estimate.certificate.iterations),
            f"{height:+.2f} ± {std:.2f} mm",
            f"{self.joint.distances[index]:.1e}",
            *agreement_cells(self.joint.agreements[index]),
        )
        return Part(self.names[index], f"{self.names[index]}/{REPORT_FILE}", cells)
