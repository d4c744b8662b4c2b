# SPDX-License-Identifier: Apache-2.0
"""Puts the page together. Bokeh and Jinja2 are imported when a page is written, not before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prime_ros.estimation.estimate import Estimate
from prime_ros.outputs.context import RunContext
from prime_ros.outputs.html import inline_json, template, trusted

if TYPE_CHECKING:
    from bokeh.plotting import figure

    from prime_ros.outputs.report.whiteness import Whiteness
    from prime_ros.robot import Robot

TEMPLATE = Path(__file__).parent / "template"
LIMIT = 5_600_000
"""Bytes that plots and their data may take in the page, which is to stay below 6 MB."""


def write_report(estimate: Estimate, robot: Robot, context: RunContext, path: Path) -> None:
    """Write report.html: one file that needs nothing else, neither network nor this package.

    Args:
        estimate: What to report; values that are not finite are left out of plots and shown as a dash.
        robot: The robot it was estimated with.
        context: Where it comes from.
        path: File to write.

    Raises:
        OSError: If the file cannot be written.
    """
    path.write_text(render(estimate, robot, context), encoding="utf-8")


def render(estimate: Estimate, robot: Robot, context: RunContext) -> str:
    """The page as HTML."""
    from prime_ros.outputs.report.detail import detail
    from prime_ros.outputs.report.residuals import statistics

    found = statistics(estimate)
    plots, store = _plots_and_store(estimate, context, found)
    script, places = _embedded(plots)
    library = _library()
    room = LIMIT - len(script) - len(library) - len(inline_json(store))
    store |= detail(estimate, room)
    return template(TEMPLATE / "page.jinja").render(
        estimate=estimate,
        robot=robot,
        run=context,
        places=places,
        heights={name: plot.height for name, plot in plots.items()},
        library=library,
        plots_script=script,
        style=_text("page.css"),
        script=_text("page.js"),
        store=inline_json(store),
        detailed=bool(store["plots"]),
        **_facts(estimate, robot, context, found),
    )


def knot_times(estimate: Estimate) -> NDArray[np.float64]:
    """Time since the first knot, shape (K,) [s]."""
    return 1e-9 * (estimate.stamp_ns - estimate.stamp_ns[0])


def _facts(
    estimate: Estimate, robot: Robot, context: RunContext, found: dict[str, Whiteness]
) -> dict[str, Any]:
    """Everything the template says."""
    from prime_ros.estimation import identifiability
    from prime_ros.outputs.advice import CHI_SQUARE_RANGE
    from prime_ros.outputs.report import facts, series
    from prime_ros.outputs.report.actions import actions
    from prime_ros.outputs.report.sparkline import histogram_svg

    return {
        "facts": facts,
        "directions": identifiability,
        "cards": list(facts.cards(estimate, robot)),
        "actions": actions(estimate, context, robot.base_link),
        "chi_square_range": CHI_SQUARE_RANGE,
        "whiteness": found,
        "histograms": {name: histogram_svg(result) for name, result in found.items()},
        "thinned": len(estimate.stamp_ns) > series.POINTS,
        "points": series.POINTS,
    }


def _plots_and_store(
    estimate: Estimate, context: RunContext, found: dict[str, Whiteness]
) -> tuple[dict[str, figure], dict[str, Any]]:
    """All figures by name, and what the page's script puts into them."""
    from bokeh.models import Range1d

    from prime_ros.outputs.report.convergence import convergence_plots
    from prime_ros.outputs.report.forces import force_plots
    from prime_ros.outputs.report.inertia import inertia_plots
    from prime_ros.outputs.report.motion import base_plots, joint_plots
    from prime_ros.outputs.report.residuals import residual_plots, residual_store

    time = knot_times(estimate)
    end = max(float(time[-1]), estimate.dt)
    shared = Range1d(0.0, end, bounds=(-estimate.dt, end + estimate.dt), name="page:time")
    plots = {
        **force_plots(estimate, time, shared),
        **base_plots(estimate, time, shared),
        **joint_plots(estimate, time, shared),
        **convergence_plots(estimate, context.config.solver.gap_tolerance),
    }
    for index, link in enumerate(estimate.links.values()):
        plots |= inertia_plots(link, index)
    if found:
        plots |= residual_plots(shared)
    store = {
        "dt": estimate.dt,
        "residuals": residual_store(estimate, found),
    }
    return plots, store


def _embedded(plots: Mapping[str, figure]) -> tuple[Any, dict[str, Any]]:
    """Script that draws the figures, and the place of each in the page."""
    from bokeh.document import Document
    from bokeh.embed import components

    if not plots:
        return trusted(""), {}
    document = Document()
    # Frozen, or the document looks through all of its models again for every figure.
    with document.models.freeze():
        for plot in plots.values():
            document.add_root(plot)
    script, places = components(dict(plots))
    return trusted(script), {name: trusted(place) for name, place in places.items()}


def _library() -> Any:
    """BokehJS, without widgets, tables and WebGL."""
    from bokeh.resources import Resources

    return trusted(Resources(mode="inline", components=["bokeh"]).render_js())


def _text(name: str) -> Any:
    return trusted((TEMPLATE / name).read_text(encoding="utf-8"))
