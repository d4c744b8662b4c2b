# SPDX-License-Identifier: Apache-2.0
"""Validation errors in the words of the YAML file: the key, what was got, and what was expected."""

import difflib
import reprlib
import typing
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from prime_ros.exceptions import ConfigError

Location = Sequence[int | str]

MOST_LINES = 20

# What was got, in a line or two: aliases make short YAML long beyond all memory.
_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother, _SHORT.maxlong = 2, 80, 80, 40


def config_error(where: str, error: ValidationError, model: type[BaseModel]) -> ConfigError:
    """Rewrite a validation error.

    Args:
        where: The file, and what else names the origin of the values.
        error: What pydantic raised for `model`.
        model: Class of the whole configuration.

    Returns:
        An error with one line per offending key, up to `MOST_LINES`.
    """
    items = error.errors()
    lines = [f"{where}: {_describe(item, model)}" for item in items[:MOST_LINES]]
    more = len(items) - len(lines)
    return ConfigError("\n".join([*lines, f"{where}: and {more} more"] if more else lines))


def dotted(location: Location) -> str:
    """``("contacts", 0, "radius")`` as ``contacts[0].radius``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return text.removeprefix(".") or "(top level)"


def _describe(item: ErrorDetails, model: type[BaseModel]) -> str:
    location = item["loc"]
    if item["type"] == "extra_forbidden":
        return f"{dotted(location)}: {unknown_key(str(location[-1]), _keys(model, location[:-1]))}"
    meaning = _description(model, location)
    if item["type"] == "missing":
        return f"{dotted(location)}: missing{meaning}"
    return f"{dotted(location)}: got {_SHORT.repr(item['input'])}, expected {_expectation(item)}{meaning}"


def unknown_key(key: str, valid: Sequence[str]) -> str:
    """Say that a key does not exist, which one comes close, and which ones exist."""
    close = difflib.get_close_matches(key, valid, n=1)
    hint = f" (did you mean '{close[0]}'?)" if close else ""
    return f"unknown key '{key}'{hint}; valid keys here: {', '.join(valid) or 'none'}"


def _expectation(item: ErrorDetails) -> str:
    if item["type"] == "value_error":
        return str(item["ctx"]["error"])
    if item["type"] in ("model_type", "model_attributes_type", "dict_type"):
        return "a mapping of keys to values"
    if item["type"] == "tuple_type":
        return "a list"
    return item["msg"].removeprefix("Input should be ").removeprefix("Input should ")


def _description(model: type[BaseModel], location: Location) -> str:
    names = [part for part in location if isinstance(part, str)]
    owner = _model_at(model, location[: location.index(names[-1])]) if names else None
    field = owner.model_fields.get(names[-1]) if owner else None
    return f" ({field.description})" if field and field.description else ""


def _keys(model: type[BaseModel], location: Location) -> list[str]:
    owner = _model_at(model, location)
    return list(owner.model_fields) if owner else []


def _model_at(model: type[BaseModel], location: Location) -> type[BaseModel] | None:
    """Class of the section that `location` points to, or None if it points to a value."""
    current: Any = model
    for part in location:
        if isinstance(part, int):
            continue
        field = current.model_fields.get(part) if _is_model(current) else None
        if field is None:
            return None
        current = _section_in(field.annotation)
    return current if _is_model(current) else None


def _section_in(annotation: Any) -> Any:
    """The section class inside ``Section``, ``Section | None`` or ``tuple[Section, ...]``."""
    if _is_model(annotation):
        return annotation
    return next((found for arg in typing.get_args(annotation) if (found := _section_in(arg))), None)


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
