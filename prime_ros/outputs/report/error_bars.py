# SPDX-License-Identifier: Apache-2.0
"""Error bars of one number as several recordings say it, small enough for a table."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from markupsafe import Markup

WIDTH, STEP, MARGIN = 180, 9, 6


def error_bars_svg(values: Sequence[tuple[float, float]]) -> Any:
    """A line of two std to either side for each value, below one another; the last one is set off.

    Args:
        values: Each with its standard deviation; what is not finite is left out.
    """
    known = [(i, v, s) for i, (v, s) in enumerate(values) if isfinite(v) and isfinite(s)]
    if not known:
        return "–"
    low, high = min(v - 2 * s for _, v, s in known), max(v + 2 * s for _, v, s in known)
    scale = (WIDTH - 2 * MARGIN) / (high - low) if high > low else 0.0
    parts = []
    for i, value, std in known:
        y = STEP * (i + 0.5)
        left, middle, right = (MARGIN + scale * (x - low) for x in (value - 2 * std, value, value + 2 * std))
        kind = "together" if i == len(values) - 1 else "alone"
        parts.append(
            f'<g class="{kind}"><path d="M{left:.1f} {y:g}H{right:.1f}"/>'
            f'<circle cx="{middle:.1f}" cy="{y:g}" r="2.6"/></g>'
        )
    height = STEP * len(values)
    return Markup(
        f'<svg class="bars" viewBox="0 0 {WIDTH} {height}" style="height:{height}px" role="img" '
        f'aria-label="each alone, and at the bottom together, with two standard deviations">'
        f"{''.join(parts)}</svg>"
    )
