# SPDX-License-Identifier: Apache-2.0
"""Whatever a configuration says: settings, a robot, or an error of this package; nothing else."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from simulation import go2

from prime_ros.config import EstimatorConfig, RobotConfig, load_estimator_config, load_robot_config
from prime_ros.config.loading import config_folder
from prime_ros.config.yaml_file import MAX_SIZE, read_mapping
from prime_ros.exceptions import ConfigError, PrimeError
from prime_ros.robot import load_robot

Load = Callable[[Path], Any]
MOST_CHARACTERS = 20_000  # of a message

quick = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def assert_read_or_refused(read: Callable[[], Any]) -> Any:
    """What was read, or None if it was refused in a few words."""
    try:
        return read()
    except PrimeError as error:
        message = str(error)
    assert 0 < len(message) < MOST_CHARACTERS
    return None


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "some.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    return path


# --- values ------------------------------------------------------------------------------------------------

NUMBERS = st.one_of(
    st.integers(),
    st.sampled_from([10**400, -(10**30), 0, 1, True]),
    st.floats(),
    st.sampled_from([1e300, -1e300, 1e-300, 5e-324]),
)
WORDS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["2 mm", "1e999 s", "nan deg", "0.5 deg", "5 parsec", "~", "base", "go2", "FL_hip_joint"]
    ),
)
LEAVES = st.one_of(st.none(), NUMBERS, WORDS, st.dates(), st.binary(max_size=4))
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)

ESTIMATOR = read_mapping(config_folder() / "estimators" / "pfie.yaml")
ROBOT = read_mapping(config_folder() / "robots" / "go2.yaml")


def keys(content: dict[str, Any], prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every key, sections and values."""
    found = []
    for name, value in content.items():
        found.append((*prefix, name))
        found += keys(value, (*prefix, name)) if isinstance(value, dict) else []
    return found


def changed(content: dict[str, Any], changes: dict[tuple[str, ...], Any]) -> dict[str, Any]:
    """A copy with other values under some of its keys."""
    whole = copy.deepcopy(content)
    for path, value in changes.items():
        section = whole
        for name in path[:-1]:
            if not isinstance(section.get(name), dict):
                section[name] = {}
            section = section[name]
        section[path[-1]] = value
    return whole


def changes_of(content: dict[str, Any]) -> st.SearchStrategy[dict[tuple[str, ...], Any]]:
    unknown = st.tuples(WORDS)
    return st.dictionaries(st.sampled_from(keys(content)) | unknown, VALUES, min_size=1, max_size=4)


@quick
@given(changes_of(ESTIMATOR))
def test_settings_of_any_value_are_read_or_refused(
    tmp_path: Path, changes: dict[tuple[str, ...], Any]
) -> None:
    path = written(tmp_path, yaml.safe_dump(changed(ESTIMATOR, changes)))
    found = assert_read_or_refused(lambda: load_estimator_config(path))
    assert found is None or isinstance(found, EstimatorConfig)


@quick
@given(changes_of(ROBOT))
def test_a_robot_of_any_value_is_read_or_refused(tmp_path: Path, changes: dict[tuple[str, ...], Any]) -> None:
    path = written(tmp_path, yaml.safe_dump(changed(ROBOT, changes)))
    found = assert_read_or_refused(lambda: load_robot_config(path))
    assert found is None or isinstance(found, RobotConfig)


# --- text --------------------------------------------------------------------------------------------------

MARKS = [
    *"{}[]:,-?&*!|>'\"%@#<=~\t\n ",
    "\n  ",
    ": ",
    "- ",
    "&a ",
    "*a",
    "<<: ",
    "---\n",
    "...",
    "\ufeff",
    "\u2028",
    "\x00",
]
TAGS = ["!!int ", "!!bool ", "!!set ", "!!binary ", "!!timestamp ", "!!python/name:os.system "]
SCALARS = ["1", "1e999", ".nan", "-.inf", "0b_", "0x", "2020-99-99", "12:60:61", "\\ud800", "base"]
KEYS = ["dt", "solver", "links", "name", "contacts"]
TOKENS = st.lists(st.sampled_from([*MARKS, *TAGS, *SCALARS, *KEYS]), max_size=30).map("".join)


@pytest.mark.parametrize("load", [load_estimator_config, load_robot_config])
@quick
@given(content=TOKENS | st.text(max_size=60) | st.binary(max_size=60))
def test_any_text_is_read_or_refused(tmp_path: Path, load: Load, content: str | bytes) -> None:
    path = written(tmp_path, content)
    assert_read_or_refused(lambda: load(path))


@quick
@given(st.lists(TOKENS | st.text(max_size=40), min_size=1, max_size=3), st.data())
def test_any_override_is_applied_or_refused(texts: list[str], data: st.DataObject) -> None:
    known = data.draw(st.lists(st.sampled_from(keys(ESTIMATOR)), min_size=len(texts), max_size=len(texts)))
    overrides = [f"{'.'.join(key)}={text}" for key, text in zip(known, texts, strict=True)]
    assert_read_or_refused(lambda: load_estimator_config("pfie", overrides))
    assert_read_or_refused(lambda: load_estimator_config("pfie", texts))


def nested_aliases(depth: int) -> str:
    """Nine to the power of the depth values in a few lines."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    for level in range(1, depth):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]")
    return "\n".join(lines) + "\n"


HOSTILE = {
    "aliases": nested_aliases(12) + "dt: *a11\n",
    "aliases in a list": nested_aliases(12) + "links: *a11\ncontacts: *a11\n",
    "merges": "a: &a {dt: 1}\n" + "".join(f"b{i}: &b{i} {{<<: [*a, *a]}}\n" for i in range(20)),
    "a list in itself": "dt: &a [*a]\n",
    "a mapping in itself": "&a {solver: *a}\n",
    "lists in lists": f"dt: {'[' * 2000}{']' * 2000}\n",
    "mappings in mappings": f"{'{dt: ' * 2000}1{'}' * 2000}\n",
    "digits": f"dt: {'9' * 5000}\n",
    "a value of a wrong tag": "dt: !!int x\n",
    "a date that is none": "dt: 2020-99-99\n",
    "a list as a key": "? [1, 2]\n: 3\n",
    "nothing as a key": "~: 1\n",
    "two documents": "dt: 1\n---\ndt: 2\n",
    "a tab": "solver:\n\tmax_iterations: 3\n",
    "a key twice": "dt: 0.01\ndt: 0.02\n",
    "many keys": "".join(f"k{number}:\n" for number in range(MAX_SIZE // 8)),
    "a recording": b"\x89MCAP0\r\n" + bytes(1000),
    "not UTF-8": b"dt: \xff\xfe\n",
    "too much": "# x\n" * MAX_SIZE,
}


@pytest.mark.parametrize("load", [load_estimator_config, load_robot_config])
@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_are_refused_with_their_name(tmp_path: Path, load: Load, case: str) -> None:
    path = written(tmp_path, HOSTILE[case])

    def read() -> Any:
        with pytest.raises(ConfigError, match=r"some\.yaml"):
            load(path)
        return ()

    assert assert_read_or_refused(read) == ()


@pytest.mark.parametrize("case", [case for case, text in HOSTILE.items() if isinstance(text, str)])
def test_hostile_values_of_settings_are_refused(case: str) -> None:
    with pytest.raises(ConfigError):
        load_estimator_config("pfie", [f"dt={str(HOSTILE[case]).removeprefix('dt: ')}"])


# --- joints by name ----------------------------------------------------------------------------------------

NAMES = st.lists(st.sampled_from([*go2().joint_names, "FL_hip", "", "root_joint"]), max_size=14)


@settings(quick, max_examples=40)
@given(
    NAMES | st.permutations(go2().joint_names),
    st.sampled_from(["armature", "damping", "friction"]),
    st.data(),
)
def test_joints_mapped_by_name_are_all_there_or_the_robot_is_refused(
    tmp_path: Path, names: list[str], drive: str, data: st.DataObject
) -> None:
    values = data.draw(st.lists(st.floats(0.0, 1.0), min_size=len(names), max_size=len(names)))
    mapping = dict(zip(names, values, strict=True))
    complete = sorted(names) == sorted(go2().joint_names)
    for changes in ({("joints", drive): mapping}, {("vendor_joint_order",): names}):
        path = written(tmp_path, yaml.safe_dump(changed(ROBOT, changes)))  # type: ignore[arg-type]
        robot = assert_read_or_refused(lambda path=path: load_robot(path))
        if "vendor_joint_order" in str(changes):
            assert (robot is not None) == (complete or not names)
        else:
            assert (robot is not None) == (set(names) == set(go2().joint_names))
