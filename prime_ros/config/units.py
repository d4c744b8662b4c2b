# SPDX-License-Identifier: Apache-2.0
"""Quantities with units.

A bare number is in the SI unit of its field. A string carries its own unit, ``"0.5 deg"``, and is converted;
a unit of another dimension is refused.
"""

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainValidator

DEGREE = math.pi / 180

#: SI unit -> the units that may be written in its place, with their size in that SI unit.
UNITS: dict[str, dict[str, float]] = {
    "-": {"%": 1e-2},
    "s": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "m": {"m": 1.0, "cm": 1e-2, "mm": 1e-3},
    "rad": {"rad": 1.0, "mrad": 1e-3, "deg": DEGREE},
    "m/s": {"m/s": 1.0, "cm/s": 1e-2, "mm/s": 1e-3},
    "rad/s": {"rad/s": 1.0, "mrad/s": 1e-3, "deg/s": DEGREE},
    "m/s^2": {"m/s^2": 1.0},
    "N": {"N": 1.0, "kN": 1e3},
    "Nm": {"Nm": 1.0, "N m": 1.0},
    "kg m^2": {"kg m^2": 1.0, "kg*m^2": 1.0},
    "Nm s/rad": {"Nm s/rad": 1.0},
}

#: What no quantity exceeds: squares stay finite, and times fit integer nanoseconds (a century is 3e9 s).
LARGEST = {unit: 4e9 if unit == "s" else 1e12 for unit in UNITS}


def to_si(value: Any, unit: str) -> float:
    """Convert a number, or a string with a unit, to SI.

    Args:
        value: Number in `unit`, or a string such as ``"2 mm"``.
        unit: SI unit of the field, a key of `UNITS`.

    Returns:
        The value in `unit`, finite.

    Raises:
        ValueError: If it is no number, not finite or absurdly large, or its unit is of another dimension.
    """
    if isinstance(value, str):
        value = _parse(value, unit)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < math.inf:
        raise ValueError(f"a finite number [{unit}]")
    if abs(value) > LARGEST[unit]:
        raise ValueError(f"a number of at most {LARGEST[unit]:g} [{unit}]")
    return float(value)


def _parse(text: str, unit: str) -> float:
    number, _, symbol = text.strip().partition(" ")
    factor = UNITS[unit].get(symbol.strip())
    if factor is None:
        raise ValueError(
            f"a number in SI units [{unit}], or a string with one of the units {', '.join(UNITS[unit])}"
        )
    try:
        return float(number) * factor
    except ValueError:
        raise ValueError(f"a number followed by a unit, such as '1.5 {symbol}'") from None


def _scalar(unit: str) -> Callable[[Any], float]:
    return lambda value: to_si(value, unit)


def _vector(unit: str, size: int) -> Callable[[Any], tuple[float, ...]]:
    def convert(value: Any) -> tuple[float, ...]:
        if not isinstance(value, (list, tuple)) or len(value) != size:
            raise ValueError(f"a list of {size} numbers [{unit}]")
        return tuple(to_si(item, unit) for item in value)

    return convert


def _per_joint(unit: str, positive: bool = False) -> Callable[[Any], float | dict[str, float] | None]:
    def convert(value: Any) -> float | dict[str, float] | None:
        if value is None:
            return None
        converted = {str(k): to_si(v, unit) for k, v in value.items()} if isinstance(value, Mapping) else None
        numbers = [to_si(value, unit)] if converted is None else list(converted.values())
        if any(number < 0 or (positive and number == 0) for number in numbers):
            raise ValueError(f"numbers {'>' if positive else '>='} 0 [{unit}]")
        return numbers[0] if converted is None else converted

    return convert


def _friction(value: Any) -> tuple[float, float] | None:
    if value is None:
        return None
    pair = value if isinstance(value, (list, tuple)) else [value, value]
    if len(pair) != 2 or any(to_si(item, "-") <= 0 for item in pair):
        raise ValueError("a friction coefficient > 0, or two: along world x and along world y")
    return to_si(pair[0], "-"), to_si(pair[1], "-")


def _quaternion(value: Any) -> tuple[float, ...]:
    numbers = _vector("-", 4)(value)
    norm = math.hypot(*numbers)
    if abs(norm - 1) > 1e-3:
        raise ValueError(f"a unit quaternion x y z w; this one has norm {norm:.6g}")
    return tuple(number / norm for number in numbers)


Number = Annotated[float, BeforeValidator(_scalar("-"))]
Seconds = Annotated[float, BeforeValidator(_scalar("s"))]
Meters = Annotated[float, BeforeValidator(_scalar("m"))]
Radians = Annotated[float, BeforeValidator(_scalar("rad"))]
MetersPerSecond = Annotated[float, BeforeValidator(_scalar("m/s"))]
RadiansPerSecond = Annotated[float, BeforeValidator(_scalar("rad/s"))]
MetersPerSecondSquared = Annotated[float, BeforeValidator(_scalar("m/s^2"))]
Newtons = Annotated[float, BeforeValidator(_scalar("N"))]
NewtonMeters = Annotated[float, BeforeValidator(_scalar("Nm"))]

Position = Annotated[tuple[float, float, float], PlainValidator(_vector("m", 3))]
Quaternion = Annotated[tuple[float, float, float, float], PlainValidator(_quaternion)]
Friction = Annotated[tuple[float, float], PlainValidator(_friction)]

PerJoint = float | dict[str, float]
NoiseRadians = Annotated[PerJoint, PlainValidator(_per_joint("rad", positive=True))]
NoiseRadiansPerSecond = Annotated[PerJoint, PlainValidator(_per_joint("rad/s", positive=True))]
NoiseNewtonMeters = Annotated[PerJoint, PlainValidator(_per_joint("Nm", positive=True))]
JointNewtonMeters = Annotated[PerJoint, PlainValidator(_per_joint("Nm"))]
JointInertia = Annotated[PerJoint, PlainValidator(_per_joint("kg m^2"))]
JointDamping = Annotated[PerJoint, PlainValidator(_per_joint("Nm s/rad"))]


class Section(BaseModel):
    """A frozen part of a configuration that refuses unknown keys; field docstrings become descriptions."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)
