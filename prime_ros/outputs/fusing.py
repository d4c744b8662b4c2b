# SPDX-License-Identifier: Apache-2.0
"""Fusing the posteriors of earlier results: reading, checking and writing them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from prime_ros.estimation.covariance import link_estimates
from prime_ros.estimation.estimate import BodyInertia, LinkEstimate, Parameters
from prime_ros.estimation.fusion import Fusion, fuse
from prime_ros.estimation.inertia import PARAMETER_COUNT, body_inertia
from prime_ros.estimation.observability import contributions, link_directions
from prime_ros.exceptions import OutputError
from prime_ros.outputs import exchange
from prime_ros.outputs.comparison import Comparison
from prime_ros.outputs.inertia_file import INERTIA_FILE, Source, body_document, save_document
from prime_ros.outputs.posterior_file import PosteriorFile, load_posterior
from prime_ros.outputs.report.joint_page import JointPage, Part, agreement_cells, columns_of, render_joint
from prime_ros.outputs.robot_urdf import calibrated
from prime_ros.outputs.write import REPORT_FILE, URDF_FILE, WrittenResults, attempt
from prime_ros.outputs.write_joint import SHARED, folder_names

if TYPE_CHECKING:
    from prime_ros.robot import Robot


@dataclass(frozen=True)
class Fused:
    """Several earlier results as one."""

    files: tuple[PosteriorFile, ...]
    fusion: Fusion

    @property
    def robot(self) -> str:
        """Name of the robot of all."""
        return self.files[0].robot

    @property
    def sources(self) -> tuple[Source, ...]:
        """Recordings whose data are in it."""
        sources = (replace(source, folder=None) for file in self.files for source in file.sources)
        return tuple(dict.fromkeys(sources))

    @property
    def comparison(self) -> Comparison:
        """For the eye."""
        parameters = self.fusion.parameters
        return Comparison(
            names=folder_names([_named(file.path) for file in self.files]),
            links=_links(parameters),
            alone=tuple(_links(file.parameters) for file in self.files),
            directions=link_directions(parameters),
            shares=contributions(parameters, [data.matrix for data in self.fusion.data]),
            agreements=self.fusion.agreements,
        )


def fuse_files(paths: Sequence[str | Path]) -> Fused:
    """Read and fuse the inertia.yaml of several results.

    Args:
        paths: The files, or the folders they are in.

    Raises:
        OutputError: If there are less than two, one cannot be read or did not converge, or they are not of
            the same links of the same robot with the same prior.
    """
    if len(paths) < 2:
        raise OutputError(f"got {len(paths)} file, expected at least two to fuse")
    files = tuple(load_posterior(path) for path in paths)
    first = files[0]
    for file in files:
        if not file.converged:
            raise OutputError(
                f"{file.path}: did not converge: its numbers are not to be used; solve it again"
            )
        if file.robot != first.robot:
            raise OutputError(
                f"{file.path}: is of {file.robot}, {first.path} of {first.robot}; expected one robot"
            )
    _same_body(files)
    return Fused(files, fuse([file.parameters for file in files]))


def _same_body(files: Sequence[PosteriorFile]) -> None:
    first = files[0]
    for file in files[1:]:
        try:
            fuse([first.parameters, file.parameters])
        except ValueError as error:
            raise OutputError(
                f"{first.path} and {file.path} do not fit together: {error}; expected the same links, model"
                " and inertia_prior: solve with the same settings"
            ) from error


def counted_twice(fused: Fused) -> Iterator[str]:
    """Warnings on recordings that seem to be in several of the files."""
    for one, other in combinations(fused.files, 2):
        for a in one.sources:
            for b in other.sources:
                overlap = a.first_stamp_ns < b.last_stamp_ns and b.first_stamp_ns < a.last_stamp_ns
                if overlap and (a.recording or "") == (b.recording or ""):
                    yield (
                        f"{one.path} and {other.path} are both from {a.recording or 'a recording'} at the"
                        " same time: its data count twice, and the standard deviations are too small"
                    )


def write_fused(fused: Fused, robot: Robot | None, directory: str | Path) -> WrittenResults:
    """Write inertia.yaml, calibrated.urdf and report.html, replacing earlier ones as a set.

    Args:
        fused: What to write.
        robot: The robot, whose URDF is calibrated; None: no URDF.
        directory: New, or with earlier results of a fusion.

    Raises:
        OutputError: If the results are of another robot, or the directory holds other files or cannot be
            written; it is unchanged then.
    """
    if robot is not None and robot.name != fused.robot:
        raise OutputError(f"--robot: got {robot.name}, expected {fused.robot}, which the results are of")
    target = exchange.check_directory(directory, SHARED)
    job = _Job(fused, robot)
    try:
        files, notes = exchange.replace_directory(target, SHARED, job.fill)
    except OSError as error:
        raise OutputError(f"cannot write results to {directory}: {error}") from error
    return WrittenResults(target, files, notes)


@dataclass(frozen=True)
class _Job:
    fused: Fused
    robot: Robot | None

    def fill(self, folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Write everything into a folder; the names written, and notes."""
        comparison = self.fused.comparison
        shared = {"converged": True, "robot": self.fused.robot}
        body = body_document(comparison.links, self.fused.fusion.parameters, self.fused.sources)
        save_document({**shared, **body}, folder / INERTIA_FILE)
        optional: dict[str, Callable[[Path], None]] = {
            URDF_FILE: self._write_urdf,
            REPORT_FILE: self._write_report,
        }
        notes = [note for name, write in optional.items() if (note := attempt(write, folder / name))]
        return tuple(name for name in SHARED if (folder / name).exists()), tuple(notes)

    def _write_urdf(self, path: Path) -> None:
        if self.robot is None:
            raise OutputError("which robot it is was not said; add --robot")
        path.write_bytes(calibrated(self.robot, self.fused.comparison.links, converged=True))

    def _write_report(self, path: Path) -> None:
        comparison = self.fused.comparison
        page = JointPage(
            robot=self.fused.robot,
            base=None if self.robot is None else self.robot.base_link,
            comparison=comparison,
            converged=True,
            verdict="Fused",
            reason=f"{len(self.fused.files)} earlier results, their common prior counted once",
            parts_title="Results",
            columns=columns_of(["file", "recordings"]),
            parts=tuple(
                Part(name, None, (str(file.path), str(len(file.sources)), *agreement_cells(agreement)))
                for name, file, agreement in zip(
                    comparison.names, self.fused.files, comparison.agreements, strict=True
                )
            ),
        )
        path.write_text(render_joint(page), encoding="utf-8")


def _links(parameters: Parameters) -> dict[str, LinkEstimate]:
    """Inertia of every link; the nominal one is the mean of the prior."""
    nominal: dict[str, BodyInertia] = {}
    for i, link in enumerate(parameters.links):
        block = slice(PARAMETER_COUNT * i, PARAMETER_COUNT * (i + 1))
        nominal[link] = body_inertia(parameters.prior_mean[block])
    return link_estimates(nominal, parameters.mean, parameters.covariance, parameters.prior_covariance)


def _named(path: Path) -> Path:
    """What names a result: its folder, or the file if it has a name of its own."""
    return path.resolve().parent if path.name == INERTIA_FILE else path
