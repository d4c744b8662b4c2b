# SPDX-License-Identifier: Apache-2.0
"""What self-contained pages share: templates, trusted text, and data that no name can break out of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def template(path: Path) -> Any:
    """A Jinja2 template; what it is given is escaped, and a missing name is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(path.parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(path.name)


def trusted(text: str) -> Any:
    """Text that is not escaped."""
    from markupsafe import Markup

    return Markup(text)


def inline_json(store: Mapping[str, Any]) -> Any:
    """JSON for a script element, trusted, that no name can break out of."""
    plain = json.dumps(store, allow_nan=False, default=_number, separators=(",", ":"))
    return trusted(plain.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} in the data of the page")
