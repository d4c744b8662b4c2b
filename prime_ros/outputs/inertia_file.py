# SPDX-License-Identifier: Apache-2.0
"""inertia.yaml: inertia of the identified links with std, the whole posterior, and the ground height."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from prime_ros.estimation.estimate import BodyInertia, Estimate, LinkEstimate, Parameters
from prime_ros.estimation.identifiability import prior_dominated
from prime_ros.estimation.inertia import PARAMETER_COUNT

INERTIA_FILE = "inertia.yaml"

HEADER = """\
# Inertia estimated by prime_ros. SI units; std is one posterior standard deviation of each entry.
#   converged      false: do not use the numbers; `prime solve` said why the solver stopped
#   robot          name of its configuration
#   ground_height  height of the ground plane in the world (mocap) frame [m]
#   links          by name; a link means the moving body: the link and everything fixed to it,
#                  in the frame of the joint that moves it (for the base: the root link)
#     mass         [kg]
#     com          centre of mass, x y z [m]
#     inertia_com  rotational inertia about the centre of mass, axes of that frame, 3x3 [kg m^2]
#     prior_std        what was assumed before the data
#     prior_dominated  numbers of which the data removed less than half of the prior variance
#   parameters     log-Cholesky parameters of all links: the whole posterior and its prior, for `prime fuse`
#   recordings     what the data are from; stamps of the first and last knot [ns]
"""
NAMES = (
    "log_mass",
    *("log_size_x", "log_size_y", "log_size_z"),
    *("shear_xy", "shear_yz", "shear_xz"),
    *("com_x", "com_y", "com_z"),
)
"""Log-Cholesky parameters of a link, in their order (docs/concept.md)."""


@dataclass(frozen=True)
class Source:
    """A recording whose data are in a posterior."""

    recording: str | None
    """As the user named it; None: not known."""
    first_stamp_ns: int
    last_stamp_ns: int
    folder: str | None = None
    """Where its own results are, beside the file; None: the file's own folder, or none."""

    @classmethod
    def of(cls, estimate: Estimate, recording: str | None, folder: str | None = None) -> Source:
        """The recording of an estimate."""
        return cls(recording, int(estimate.stamp_ns[0]), int(estimate.stamp_ns[-1]), folder)


def inertia_document(estimate: Estimate, robot: str, sources: Sequence[Source]) -> dict[str, Any]:
    """Content of inertia.yaml as plain Python numbers, lists and dicts (units and frames: `HEADER`)."""
    return {
        "converged": bool(estimate.certificate.converged),
        "robot": robot,
        "ground_height": {
            "estimate": float(estimate.ground_height),
            "std": float(estimate.std_ground_height),
        },
        **body_document(estimate.links, estimate.parameters, sources),
    }


def body_document(
    links: Mapping[str, LinkEstimate], parameters: Parameters | None, sources: Sequence[Source]
) -> dict[str, Any]:
    """What belongs to the body, whatever was measured of it."""
    document: dict[str, Any] = {"links": {name: _link(link) for name, link in links.items()}}
    if parameters is not None:
        document["parameters"] = _parameters(parameters)
    document["recordings"] = [_source(source) for source in sources]
    return document


def _source(source: Source) -> dict[str, Any]:
    document: dict[str, Any] = asdict(source)
    if source.folder is None:
        del document["folder"]
    return document


def save_document(document: Mapping[str, Any], path: Path) -> None:
    """Write an inertia.yaml."""
    body = yaml.safe_dump(dict(document), sort_keys=False, default_flow_style=None, width=100)
    path.write_text(HEADER + body, encoding="utf-8")


def save_inertia(estimate: Estimate, path: Path, robot: str, sources: Sequence[Source]) -> None:
    """Write inertia.yaml; without identification `links` is empty."""
    save_document(inertia_document(estimate, robot, sources), path)


def _link(link: LinkEstimate) -> dict[str, Any]:
    document = {"nominal": link.nominal, "estimate": link.estimate, "std": link.std}
    plain: dict[str, Any] = {key: _plain(body) for key, body in document.items()}
    if link.prior_std is not None:
        plain["prior_std"] = _plain(link.prior_std)
        plain["prior_dominated"] = prior_dominated(link)
    return plain


def _plain(body: BodyInertia) -> dict[str, Any]:
    return {"mass": float(body.mass), "com": _list(body.com), "inertia_com": _list(body.inertia_com)}


def _parameters(parameters: Parameters) -> dict[str, Any]:
    assert len(NAMES) == PARAMETER_COUNT
    return {
        "names": [f"{link}.{name}" for link in parameters.links for name in NAMES],
        "estimate": _list(parameters.mean),
        "covariance": _list(parameters.covariance),
        "prior_mean": _list(parameters.prior_mean),
        "prior_covariance": _list(parameters.prior_covariance),
    }


def _list(values: NDArray[np.float64]) -> Any:
    return np.asarray(values, dtype=float).tolist()
