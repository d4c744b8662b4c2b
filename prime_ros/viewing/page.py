# SPDX-License-Identifier: Apache-2.0
"""The page as one HTML file that needs nothing else: no network, no server, no library.

It draws by itself, in WebGL 2: what viser exports plays a scene but cannot follow the robot or show numbers
and a timeline of forces beside it, and meshcat has had no release since 2021.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prime_ros.outputs.html import inline_json, template, trusted
from prime_ros.viewing.scene import Scene

TEMPLATE = Path(__file__).parent / "template"
SCRIPTS = (
    "algebra.js",
    "solids.js",
    "renderer.js",
    "camera.js",
    "replay.js",
    "drawing.js",
    "timeline.js",
    "page.js",
)
"""In the order in which they are run; together they are one module."""
TYPES = {"float32": "Float32Array", "uint16": "Uint16Array", "uint32": "Uint32Array"}
_ALIGNMENT = 4  # bytes


def render_page(scene: Scene) -> str:
    """HTML of a scene."""
    content, places = packed(scene.arrays)
    store = {**scene.about, "arrays": places}
    return template(TEMPLATE / "view.jinja").render(
        about=scene.about,
        style=trusted((TEMPLATE / "view.css").read_text(encoding="utf-8")),
        script=trusted("\n".join((TEMPLATE / name).read_text(encoding="utf-8") for name in SCRIPTS)),
        store=inline_json(store),
        content=trusted(base64.b64encode(content).decode("ascii")),
    )


def packed(arrays: dict[str, NDArray[Any]]) -> tuple[bytes, dict[str, dict[str, Any]]]:
    """All arrays in one piece, little-endian and row by row, and where each is in it."""
    pieces: list[bytes] = []
    places = {}
    offset = 0
    for name, array in arrays.items():
        piece = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
        places[name] = {"type": TYPES[array.dtype.name], "shape": list(array.shape), "offset": offset}
        pieces.append(piece + bytes(-len(piece) % _ALIGNMENT))
        offset += len(pieces[-1])
    return b"".join(pieces), places
