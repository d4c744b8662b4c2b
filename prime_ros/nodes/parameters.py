# SPDX-License-Identifier: Apache-2.0
"""Settings as ROS parameters: declared with description and range, checked as their YAML file is.

A list that may be empty is ``[""]`` when it is: an empty list has no type in ROS 2.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.node import Node
from rclpy.parameter import Parameter

from prime_ros.config.errors import config_error
from prime_ros.exceptions import PrimeError

LARGEST_INTEGER = 2**31 - 1

Settings = TypeVar("Settings", bound=BaseModel)


class Parameters(Generic[Settings]):
    """Parameters of a node that are the fields of a section of settings."""

    def __init__(
        self,
        node: Node,
        defaults: Settings,
        fixed: Collection[str] | None = None,
        on_change: Callable[[Settings], None] | None = None,
        leave_out: Collection[str] = (),
    ) -> None:
        """Declare the parameters and read what the user set them to.

        Args:
            node: Where to declare them.
            defaults: The section with its defaults.
            fixed: Names, or first parts of dotted names, that cannot change while the node runs; None: all.
            on_change: Called with the new settings before they are accepted; what it raises as PrimeError
                refuses them.
            leave_out: Names or first parts of names that are no parameters.

        Raises:
            ConfigError: If the values do not fit together.
            Exception: Of rclpy, if one of them has the wrong type or is out of range.
        """
        self.value = defaults
        self._node = node
        self._on_change = on_change
        self._fields = {name: field for name, field in _fields(type(defaults)) if not _is(name, leave_out)}
        node.declare_parameters(
            "",
            [
                (name, to_ros(_get(defaults, name)), _descriptor(field, fixed is None or _is(name, fixed)))
                for name, field in self._fields.items()
            ],
        )
        given = [node.get_parameter(name) for name in self._fields]
        self.value = self._changed(given)
        node.add_on_set_parameters_callback(self._set)

    def _set(self, parameters: Sequence[Parameter]) -> SetParametersResult:
        ours = [parameter for parameter in parameters if parameter.name in self._fields]
        if not ours:
            return SetParametersResult(successful=True)
        try:
            value = self._changed(ours)
            if self._on_change is not None:
                self._on_change(value)
        except PrimeError as error:
            return SetParametersResult(successful=False, reason=str(error))
        self.value = value
        return SetParametersResult(successful=True)

    def _changed(self, parameters: Sequence[Parameter]) -> Settings:
        """The settings with some changed, checked."""
        content = self.value.model_dump()
        for parameter in parameters:
            *sections, key = parameter.name.split(".")
            section = content
            for name in sections:
                section = section[name]
            section[key] = from_ros(parameter.value)
        model = type(self.value)
        try:
            return model.model_validate(content)
        except ValidationError as error:
            raise config_error(
                f"parameters of {self._node.get_fully_qualified_name()}", error, model
            ) from error


def to_ros(value: Any) -> Any:
    """Value of a parameter from that of a setting."""
    if isinstance(value, tuple):
        return list(value) or [""]
    return value


def from_ros(value: Any) -> Any:
    """Value of a setting from that of a parameter."""
    if isinstance(value, str | int | float) or value is None:
        return value
    return [item for item in value if item != ""]


def _fields(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Dotted name and field of every setting, sections resolved."""
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _fields(inner, f"{prefix}{name}.")
        else:
            yield prefix + name, field


def _get(section: Any, dotted: str) -> Any:
    for name in dotted.split("."):
        section = getattr(section, name)
    return section


def _is(name: str, names: Collection[str]) -> bool:
    """Whether a dotted name or a section it is in is among some names."""
    parts = name.split(".")
    return any(".".join(parts[: end + 1]) in names for end in range(len(parts)))


def _descriptor(field: FieldInfo, read_only: bool) -> ParameterDescriptor:
    text = " ".join((field.description or "").split())
    descriptor = ParameterDescriptor(description=text, read_only=read_only)
    choices = _choices(field.annotation)
    if choices:
        descriptor.additional_constraints = "one of " + ", ".join(choices)
    low, high = _bounds(field)
    if (low, high) == (None, None):
        return descriptor
    if float in (field.annotation, *get_args(field.annotation)):
        span = FloatingPointRange(
            from_value=-float("inf") if low is None else float(low),
            to_value=float("inf") if high is None else float(high),
        )
        descriptor.floating_point_range = [span]
    elif int in (field.annotation, *get_args(field.annotation)):
        whole = IntegerRange(
            from_value=-LARGEST_INTEGER if low is None else int(low),
            to_value=LARGEST_INTEGER if high is None else int(high),
        )
        descriptor.integer_range = [whole]
    return descriptor


def _choices(annotation: Any) -> list[str]:
    """What a Literal, or a tuple of them, allows."""
    if get_origin(annotation) is Literal:
        return [str(choice) for choice in get_args(annotation)]
    if get_origin(annotation) is tuple:
        return _choices(get_args(annotation)[0])
    return []


def _bounds(field: FieldInfo) -> tuple[float | None, float | None]:
    """Least and largest value, those excluded too: the settings themselves refuse them."""
    low = high = None
    for constraint in field.metadata:
        low = next((getattr(constraint, k) for k in ("gt", "ge") if hasattr(constraint, k)), low)
        high = next((getattr(constraint, k) for k in ("lt", "le") if hasattr(constraint, k)), high)
    return low, high
