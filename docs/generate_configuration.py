# SPDX-License-Identifier: Apache-2.0
"""Write docs/configuration.md from the typed configuration: its docstrings, types, limits and defaults.

python docs/generate_configuration.py            rewrite it
python docs/generate_configuration.py --check    exit 1 if it is out of date
"""

import argparse
import sys
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "configuration.md"

INTRODUCTION = """\
<!-- Written by docs/generate_configuration.py from prime_ros/config; do not edit. -->
# Configuration

Two YAML files describe everything: a **robot** (`--robot NAME` or `--robot FILE.yaml`) and an **estimator**
(`--config NAME` or `--config FILE.yaml`, default `pfie`). Shipped ones are `config/robots/*.yaml` and
`config/estimators/*.yaml`. Both are strict: an unknown key, a wrong type, unit or shape is an error that
names the file and the key, what was got, and what was expected or which keys are valid.

- Keys that a file leaves out keep the default below; only keys marked *required* must be given.
- `--set KEY=VALUE` changes one key of the estimator for a run: the key dotted, the value in YAML, for example
  `--set solver.max_iterations=200` or `--set "links=[base, FL_calf]"`.
- A bare number is in the SI unit given in brackets. A string may carry one of the units below, `"0.5 deg"`;
  a unit of another dimension is an error.
- A robot's section `estimator` (and `estimators`, by the name of one of them) changes the defaults for that
  robot: it wins over the shipped estimators, and a file given by `--config FILE.yaml` wins over it.
- Weights are standard deviations and nothing else; the cost takes their inverse squares.
"""


def render() -> str:
    """The whole page."""
    from prime_ros.config import EstimatorConfig, RobotConfig

    return "\n".join(
        [
            INTRODUCTION,
            *_units(),
            *_page("Robot", "config/robots/NAME.yaml", RobotConfig),
            *_page("Estimator", "config/estimators/NAME.yaml", EstimatorConfig),
        ]
    )


def _units() -> Iterator[str]:
    from prime_ros.config.units import UNITS

    yield "| SI unit | also accepted in a string |"
    yield "|---|---|"
    for unit, accepted in UNITS.items():
        yield f"| {unit} | {', '.join(f'`{name}`' for name in accepted)} |"
    yield ""


def _page(title: str, file: str, model: type[BaseModel]) -> Iterator[str]:
    yield f"## {title}: `{file}`\n"
    yield from _section("", model)


def _section(prefix: str, model: type[BaseModel]) -> Iterator[str]:
    """Table of the values of a section, then its subsections."""
    if prefix:
        yield f"### `{prefix.removesuffix('.')}`\n"
    yield f"{(model.__doc__ or '').strip()}\n"
    values = {name: field for name, field in model.model_fields.items() if _section_in(field) is None}
    if values:
        yield "| key | value | default | meaning |"
        yield "|---|---|---|---|"
        for name, field in values.items():
            cells = (f"`{prefix}{name}`", _type(field), _default(field), _cell(field.description or ""))
            yield f"| {' | '.join(cells)} |"
        yield ""
    for name, field in model.model_fields.items():
        section = _section_in(field)
        if section is not None:
            many = typing.get_origin(field.annotation) is tuple
            yield from _section(f"{prefix}{name}{'[]' if many else ''}.", section)


def _section_in(field: FieldInfo) -> type[BaseModel] | None:
    candidates = [field.annotation, *typing.get_args(field.annotation)]
    return next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)


def _type(field: FieldInfo) -> str:
    limits = [
        f"{sign} {limit:g}"
        for item in field.metadata
        for sign, name in ((">", "gt"), (">=", "ge"), ("<=", "le"))
        if (limit := getattr(item, name, None)) is not None
    ]
    return " ".join([_type_name(field.annotation), *limits])


def _type_name(annotation: Any) -> str:
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _type_name(args[0])
    if origin is typing.Literal:
        return " or ".join(f"`{value}`" for value in args)
    if origin in (types.UnionType, typing.Union):
        return " or ".join(dict.fromkeys(_type_name(arg) for arg in args if arg is not type(None)))
    if origin is dict:
        if args[1] is Any:
            return "mapping of settings"
        return "mapping by estimator" if typing.get_origin(args[1]) is dict else "mapping by joint"
    if origin is tuple and args[-1] is Ellipsis:
        names = args[0] is str or typing.get_origin(args[0]) is typing.Literal
        return "list of names" if names else "list of numbers"
    if origin is tuple:
        return "number or 2 numbers" if len(args) == 2 else f"{len(args)} numbers"
    return {float: "number", int: "integer", str: "text"}[annotation]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "*required*"
    value = field.get_default(call_default_factory=True)
    return "" if value is None or value == {} else f"`{_plain(value)}`"


def _plain(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_plain, value))}]"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main() -> int:
    """Write the page, or compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    arguments = parser.parse_args()
    text = render()
    if not arguments.check:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{PAGE} is out of date; run: python docs/generate_configuration.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    raise SystemExit(main())
