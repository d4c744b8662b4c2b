# SPDX-License-Identifier: Apache-2.0
"""Reading the posterior of an inertia.yaml back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from prime_ros.estimation.estimate import Parameters
from prime_ros.estimation.inertia import PARAMETER_COUNT
from prime_ros.exceptions import OutputError
from prime_ros.outputs.inertia_file import INERTIA_FILE, NAMES, Source


@dataclass(frozen=True)
class PosteriorFile:
    """What an inertia.yaml says of the parameters of the links."""

    path: Path
    """The file."""
    converged: bool
    robot: str
    parameters: Parameters
    sources: tuple[Source, ...]
    """Recordings whose data are in it."""


def load_posterior(path: str | Path) -> PosteriorFile:
    """Read the posterior of an inertia.yaml.

    Args:
        path: The file, or the folder of results that it is in.

    Raises:
        OutputError: If it is absent, no such file, of an earlier version, or not a posterior.
    """
    path = Path(path)
    file = path / INERTIA_FILE if path.is_dir() else path
    document = _document(file)
    try:
        return PosteriorFile(
            path=file,
            converged=bool(document["converged"]),
            robot=str(document["robot"]),
            parameters=_parameters(document["parameters"], file),
            sources=tuple(_source(entry) for entry in document["recordings"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise OutputError(f"{file}: not the inertia.yaml of `prime solve` ({error!r})") from error


def _document(file: Path) -> Any:
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise OutputError(
            f"{file}: no such file; expected the inertia.yaml of `prime solve`, or the folder it is in"
        ) from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise OutputError(f"{file}: cannot be read: {error}") from error
    if not isinstance(document, dict) or "links" not in document:
        raise OutputError(f"{file}: not the inertia.yaml of `prime solve`: it has no links")
    if not document["links"]:
        raise OutputError(f"{file}: no inertia was identified in it; solve again without --no-identify")
    if "parameters" not in document:
        raise OutputError(
            f"{file}: has no covariance of its parameters: an earlier version of prime_ros wrote it; run"
            " `prime solve` on the recording again"
        )
    return document


def _parameters(entry: Any, file: Path) -> Parameters:
    links = _links(entry["names"])
    count = PARAMETER_COUNT * len(links)
    arrays = {}
    for key, shape in (
        ("estimate", (count,)),
        ("covariance", (count, count)),
        ("prior_mean", (count,)),
        ("prior_covariance", (count, count)),
    ):
        arrays[key] = np.array(entry[key], dtype=float)
        if arrays[key].shape != shape or not np.isfinite(arrays[key]).all():
            raise OutputError(f"{file}: parameters.{key}: expected {shape} finite numbers")
    for key in ("covariance", "prior_covariance"):
        if not np.allclose(arrays[key], arrays[key].T) or np.linalg.eigvalsh(arrays[key])[0] <= 0.0:
            raise OutputError(f"{file}: parameters.{key} is not symmetric and positive definite")
    return Parameters(
        links, arrays["estimate"], arrays["covariance"], arrays["prior_mean"], arrays["prior_covariance"]
    )


def _links(names: list[str]) -> tuple[str, ...]:
    """Links of names such as `base.com_x`, ten each in a known order."""
    links = tuple(dict.fromkeys(name.rpartition(".")[0] for name in names))
    expected = [f"{link}.{name}" for link in links for name in NAMES]
    if list(names) != expected:
        raise ValueError(f"parameters.names: got {', '.join(names)}, expected {', '.join(expected)}")
    return links


def _source(entry: Any) -> Source:
    recording = entry["recording"]
    return Source(
        None if recording is None else str(recording),
        int(entry["first_stamp_ns"]),
        int(entry["last_stamp_ns"]),
        entry.get("folder"),
    )
