# SPDX-License-Identifier: Apache-2.0
"""Plots as SVG by Matplotlib, an optional extra: Bokeh, which draws the report, needs a browser for that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prime_ros.exceptions import OutputError

OURS, BASELINE, TRUTH, RAW = "#1f6fb4", "#d9822b", "#222222", "#9aa0a6"
STYLE = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 8,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "lines.linewidth": 1.0,
    "svg.fonttype": "none",
    "svg.hashsalt": "prime_ros",  # the same picture is the same file
}


def load_matplotlib() -> Any:
    """The module `matplotlib`, which is optional.

    Raises:
        OutputError: If it is not installed.
    """
    try:
        import matplotlib
    except ImportError as error:
        raise OutputError(
            "plots need Matplotlib, which is not installed; install it: pip install 'prime_ros[experiments]'"
        ) from error
    return matplotlib


@contextmanager
def figure(path: Path, rows: int, columns: int, size: tuple[float, float], **options: Any) -> Iterator[Any]:
    """Axes to draw on, shape (rows, columns), which are written as SVG afterwards.

    Args:
        path: The file; its folder is made.
        rows: Of axes.
        columns: Of axes.
        size: Width and height [inch].
        options: For `matplotlib.pyplot.subplots`.

    Raises:
        OutputError: If Matplotlib is missing or the file cannot be written.
    """
    matplotlib = load_matplotlib()
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        drawn = Figure(figsize=size, layout="constrained")
        yield drawn.subplots(rows, columns, squeeze=False, **options)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            drawn.savefig(path, format="svg", metadata={"Date": None})
        except OSError as error:
            raise OutputError(f"{path}: cannot be written: {error}") from error
