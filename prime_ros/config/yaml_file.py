# SPDX-License-Identifier: Apache-2.0
"""Reading YAML without its traps: ``1e-6`` is a number, a key given twice is an error, and so is all else."""

import re
from pathlib import Path
from typing import Any

import yaml

from prime_ros.exceptions import ConfigError

#: Of a file that people write; more is a recording given by mistake, and YAML is slow [bytes].
MAX_SIZE = 200_000

_FLOAT = re.compile(r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$")
#: What PyYAML lets through of values that are not what their tag or look says: 2020-99-99, 0b_, !!bool x.
_FROM_VALUES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class _Loader(yaml.SafeLoader):
    """YAML 1.1 with the floats of YAML 1.2."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except _FROM_VALUES as error:
            kind = node.tag.rpartition(":")[2]
            raise yaml.MarkedYAMLError(
                problem=f"got what cannot be read as {kind}: {error}", problem_mark=node.start_mark
            ) from error


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen = set()
    for key_node, _ in node.value:
        if key_node.tag == "tag:yaml.org,2002:merge":
            raise yaml.MarkedYAMLError(
                problem="got a merge key '<<', expected the keys themselves", problem_mark=key_node.start_mark
            )
        if not isinstance(key_node, yaml.ScalarNode):
            raise yaml.MarkedYAMLError(
                problem="got a list or mapping as a key, expected a name", problem_mark=key_node.start_mark
            )
        key = loader.construct_object(key_node)
        if key in seen:
            raise yaml.MarkedYAMLError(
                problem=f"key '{key}' is given twice", problem_mark=key_node.start_mark
            )
        seen.add(key)
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))


def parse(text: str, where: str) -> Any:
    """Parse YAML text.

    Args:
        text: The YAML.
        where: Name of its origin, for errors.

    Returns:
        Plain Python values.

    Raises:
        ConfigError: If the text is no valid YAML, is longer than a configuration, or gives a key twice.
    """
    if len(text) > MAX_SIZE:
        raise ConfigError(f"{where}: got {len(text)} characters, expected YAML of at most {MAX_SIZE}")
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        line = f" line {error.problem_mark.line + 1}:" if error.problem_mark else ""
        raise ConfigError(f"{where}:{line} {error.problem}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{where}: not valid YAML: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{where}: got lists or mappings in one another without end") from error


def read_mapping(path: Path) -> dict[str, Any]:
    """Read a YAML file whose top level is a mapping; an empty file is an empty mapping.

    Raises:
        ConfigError: If the file cannot be read, is no YAML, or is not a mapping of names.
    """
    try:
        with path.open(encoding="utf-8") as file:
            content = parse(file.read(MAX_SIZE + 1), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: got {type(content).__name__}, expected a mapping of keys to values")
    for key in content:
        if not isinstance(key, str):
            raise ConfigError(f"{path}: got the key {key!r}, expected a mapping of names to values")
    return content
