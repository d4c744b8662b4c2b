# SPDX-License-Identifier: Apache-2.0
"""Settings of the documentation: `make docs`, or `sphinx-build -W docs build/docs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prime_ros import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "prime_ros"
author = "The authors of prime_ros"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["**.py"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_type_aliases = {name: name for name in ("Array", "Floats", "Stamps", "Report", "Samples")}
napoleon_numpy_docstring = False

nitpicky = True
nitpick_ignore_regex = [("py:class", r"(?!prime_ros\.).*")]  # types of others and short names of arrays

ATTRIBUTES = ("attribute", "data", "property")

html_theme = "furo"
html_title = f"prime_ros {release}"
html_copy_source = False
html_show_copyright = False


def setup(app: Sphinx) -> None:
    """Keep docstrings of attributes from napoleon, which takes what stands before a colon for a type."""
    kept: list[str] = []

    def take(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
        kept[:] = lines
        lines[:] = [] if what in ATTRIBUTES else lines

    def give_back(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
        lines[:] = kept if what in ATTRIBUTES else lines

    app.connect("autodoc-process-docstring", take, priority=400)  # napoleon has 500
    app.connect("autodoc-process-docstring", give_back, priority=600)
