# SPDX-License-Identifier: Apache-2.0
"""Reading YAML without its traps: ``1e-6`` is a number and a key given twice is an error."""

import re
from pathlib import Path
from typing import Any

import yaml

from prime_ros.exceptions import ConfigError

_FLOAT = re.compile(r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$")


class _Loader(yaml.SafeLoader):
    """YAML 1.1 with the floats of YAML 1.2."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [loader.construct_object(key) for key, _ in node.value]
    for index, key in enumerate(keys):
        if key in keys[:index]:
            raise yaml.MarkedYAMLError(
                problem=f"key '{key}' is given twice", problem_mark=node.value[index][0].start_mark
            )
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
        ConfigError: If the text is no valid YAML or gives a key twice.
    """
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        line = f" line {error.problem_mark.line + 1}:" if error.problem_mark else ""
        raise ConfigError(f"{where}:{line} {error.problem}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{where}: not valid YAML: {error}") from error


def read_mapping(path: Path) -> dict[str, Any]:
    """Read a YAML file whose top level is a mapping; an empty file is an empty mapping.

    Raises:
        ConfigError: If the file cannot be read, is no YAML, or is not a mapping of names.
    """
    try:
        content = parse(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise ConfigError(f"{path}: got {type(content).__name__}, expected a mapping of keys to values")
    return content
