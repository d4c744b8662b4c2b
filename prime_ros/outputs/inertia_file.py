# SPDX-License-Identifier: Apache-2.0
"""inertia.yaml: nominal and estimated inertia of the identified links with std, and the ground height."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import yaml

from prime_ros.estimation.estimate import BodyInertia, Estimate

HEADER = """\
# Inertia estimated by prime_ros. SI units; std is one posterior standard deviation of each entry.
#   converged      false: do not use the numbers; `prime solve` said why the solver stopped
#   ground_height  height of the ground plane in the world (mocap) frame [m]
#   links          by name; a link means the moving body: the link and everything fixed to it,
#                  in the frame of the joint that moves it (for the base: the root link)
#     mass         [kg]
#     com          centre of mass, x y z [m]
#     inertia_com  rotational inertia about the centre of mass, axes of that frame, 3x3 [kg m^2]
"""


def inertia_document(estimate: Estimate) -> dict[str, Any]:
    """Content of inertia.yaml as plain Python numbers, lists and dicts (units and frames: `HEADER`)."""
    certificate = estimate.certificate
    return {
        "converged": bool(certificate.converged),
        "ground_height": {
            "estimate": float(estimate.ground_height),
            "std": float(estimate.std_ground_height),
        },
        "links": {
            name: {
                "nominal": _plain(link.nominal),
                "estimate": _plain(link.estimate),
                "std": _plain(link.std),
            }
            for name, link in estimate.links.items()
        },
    }


def save_inertia(estimate: Estimate, path: Path) -> None:
    """Write inertia.yaml; without identification `links` is empty."""
    body = yaml.safe_dump(inertia_document(estimate), sort_keys=False, default_flow_style=None, width=100)
    path.write_text(HEADER + body, encoding="utf-8")


def _plain(body: BodyInertia) -> dict[str, Any]:
    return {
        "mass": float(body.mass),
        "com": np.asarray(body.com, dtype=float).tolist(),
        "inertia_com": np.asarray(body.inertia_com, dtype=float).tolist(),
    }
