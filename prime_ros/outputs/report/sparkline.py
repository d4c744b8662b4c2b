# SPDX-License-Identifier: Apache-2.0
"""Small drawings in the text of the page."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from prime_ros.outputs.report.whiteness import Whiteness

WIDTH, HEIGHT = 120, 28


def histogram_svg(result: Whiteness) -> Any:
    """Histogram of residuals, filled, under the outline of N(0, 1)."""
    top = max(float(result.density.max()), float(result.expected.max())) * 1.05
    bars, outline = _steps(result.density, top), _steps(result.expected, top)
    return Markup(
        f'<svg class="spark" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="histogram of residuals against the normal distribution">'
        f'<path class="bars" d="M0 {HEIGHT}{bars}L{WIDTH} {HEIGHT}Z"/>'
        f'<path class="outline" d="M0 {HEIGHT}{outline}"/></svg>'
    )


def _steps(density: NDArray[np.float64], top: float) -> str:
    edges = np.linspace(0, WIDTH, len(density) + 1)
    heights = HEIGHT * (1 - density / top)
    return "".join(f"L{edges[i]:g} {y:.1f}L{edges[i + 1]:g} {y:.1f}" for i, y in enumerate(heights))
