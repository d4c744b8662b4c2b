# SPDX-License-Identifier: Apache-2.0
"""From a name or a file to a checked configuration."""

import difflib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from prime_ros.config.errors import config_error
from prime_ros.config.estimator import EstimatorConfig
from prime_ros.config.robot import RobotConfig
from prime_ros.config.yaml_file import parse, read_mapping
from prime_ros.exceptions import ConfigError

Kind = Literal["robots", "estimators"]
Config = TypeVar("Config", bound=BaseModel)


def shipped_folder(name: str, *contents: str) -> Path:
    """A folder that comes with the package: of the source tree, or of the installation.

    Args:
        name: Name of the folder, such as ``config``.
        contents: What it must hold; other packages may have a folder of the same name.

    Raises:
        ConfigError: If there is none.
    """
    package = Path(__file__).parent.parent
    candidates = [package.parent / name, package.resolve().parent / name]
    candidates += [parent / "share" / "prime_ros" / name for parent in package.parents]
    for folder in candidates:
        if all((folder / content).exists() for content in contents):
            return folder
    looked = ", ".join(map(str, candidates))
    raise ConfigError(f"the folder {name} of the installation is missing; looked for {looked}")


def config_folder() -> Path:
    """Folder of the shipped configurations.

    Raises:
        ConfigError: If it is missing.
    """
    return shipped_folder("config", "robots", "estimators")


def available(kind: Kind) -> list[str]:
    """Names of the shipped configurations of a kind."""
    return sorted(path.stem for path in (config_folder() / kind).glob("*.yaml"))


def load_robot_config(name_or_path: str | Path) -> RobotConfig:
    """Read a robot.

    Args:
        name_or_path: Name of a shipped robot (``go2``), or a YAML file.

    Returns:
        The checked robot. A relative path of its model file is resolved if that file lies beside the YAML.

    Raises:
        ConfigError: If the robot does not exist, or for every key that is unknown, missing or wrong.
    """
    path = _locate(name_or_path, "robots")
    robot = _validate(read_mapping(path), RobotConfig, str(path))
    beside = path.parent / robot.model
    return robot.model_copy(update={"model": str(beside.resolve())}) if beside.is_file() else robot


def load_estimator_config(
    name_or_path: str | Path = "pfie",
    overrides: Sequence[str] = (),
    robot: str | Path | None = None,
) -> EstimatorConfig:
    """Read the settings of an estimator.

    Args:
        name_or_path: Name of a shipped estimator (``pfie``), or a YAML file. Keys it leaves out keep their
            default.
        overrides: Settings ``"a.b=VALUE"`` that win over the file, VALUE in YAML.
        robot: Name or YAML file of the robot. Its `estimator` section wins over the defaults and the shipped
            estimators, and a YAML file given here wins over it.

    Returns:
        The checked settings.

    Raises:
        ConfigError: If the estimator or the robot does not exist, or for every key that is unknown or wrong.
    """
    path = _locate(name_or_path, "estimators")
    base = read_mapping(path)
    checked = _validate(base, EstimatorConfig, str(path))
    if robot is not None:
        own = _own_settings(robot, path.stem)
        shipped = path.parent == config_folder() / "estimators"
        base = _merged(base, own) if shipped else _merged(own, base)
        checked = _validate(base, EstimatorConfig, f"{path} for the robot {robot}")
    if not overrides:
        return checked
    for override in overrides:
        _apply(base, override)
    return _validate(base, EstimatorConfig, f"{path} with overrides {', '.join(overrides)}")


def _locate(name_or_path: str | Path, kind: Kind) -> Path:
    path = Path(name_or_path).expanduser()
    if path.suffix in (".yaml", ".yml") or os.sep in str(name_or_path):
        if not path.is_file():
            found = "a folder" if path.is_dir() else "no such file"
            raise ConfigError(f"{path}: {found}, expected a YAML file")
        return path
    shipped = config_folder() / kind / f"{name_or_path}.yaml"
    if shipped.is_file():
        return shipped
    names = available(kind)
    close = difflib.get_close_matches(str(name_or_path), names, n=1)
    hint = f" (did you mean '{close[0]}'?)" if close else ""
    raise ConfigError(f"no {kind[:-1]} '{name_or_path}'{hint}; give a YAML file or one of {', '.join(names)}")


def _validate(content: dict[str, Any], model: type[Config], where: str) -> Config:
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise config_error(where, error, model) from error


def _own_settings(robot: str | Path, estimator: str) -> dict[str, Any]:
    """What a robot changes in an estimator."""
    where, config = _locate(robot, "robots"), load_robot_config(robot)
    unknown = config.estimators.keys() - set(available("estimators"))
    if unknown:
        names = ", ".join(available("estimators"))
        raise ConfigError(f"{where}: estimators: got {', '.join(sorted(unknown))}, expected {names}")
    for name in ("", *config.estimators):
        own = _merged(config.estimator, config.estimators.get(name, {}))
        _validate(own, EstimatorConfig, f"{where}: estimator" + (f"s.{name}" if name else ""))
    return _merged(config.estimator, config.estimators.get(estimator, {}))


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Nested mappings in which the second wins."""
    both = {**base, **over}
    for key in base.keys() & over.keys():
        if isinstance(base[key], dict) and isinstance(over[key], dict):
            both[key] = _merged(base[key], over[key])
    return both


def _apply(content: dict[str, Any], override: str) -> None:
    """Set one dotted key of nested mappings in place."""
    key, equals, text = override.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(parts):
        raise ConfigError(f"override '{override}': expected KEY=VALUE, such as solver.max_iterations=50")
    value = parse(text, f"override '{override}'")
    for part in parts[:-1]:
        child = content.get(part)
        if not isinstance(child, dict):
            child = content[part] = {}
        content = child
    content[parts[-1]] = value
