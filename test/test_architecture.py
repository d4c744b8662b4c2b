# SPDX-License-Identifier: Apache-2.0
"""What holds of the package as a whole: imports point downward, no ROS outside the nodes, one version."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from recordings import BAG, ROOT

import prime_ros

PACKAGE = Path(prime_ros.__file__).parent
# A module may import its own part of the package and parts of a lower layer.
LAYERS = {
    "exceptions": 0,
    "_core": 0,
    "config": 1,
    "model_file": 2,
    "robot": 3,
    "measurements": 4,
    "sources": 5,
    "estimation": 5,
    "outputs": 6,
    "inspection": 7,
    "terminal": 7,
    "viewing": 7,
    "simulation": 8,
    "commands": 8,
    "experiments": 9,
    "cli": 10,
    "nodes": 9,
}
ROS_PARTS = ("nodes", "msg")  # the only ones that may import ROS
ROS_MODULE = re.compile(
    r"(rclpy\w*|rosidl\w*|rosbag2\w*|ament\w*|launch\w*|tf2\w*|rpyutils|builtin_interfaces|\w+_msgs)(\.|$)"
)


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Dotted name below the package and syntax tree of every module that is not generated."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[0] != "msg" and parts != ("__init__",):
            yield ".".join(parts).removesuffix(".__init__"), ast.parse(path.read_text())


def imports(tree: ast.Module) -> Iterator[str]:
    """Dotted names of everything imported anywhere in a module, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide what is imported"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def part(dotted: str) -> str:
    """First name below the package: the unit of the layers."""
    return dotted.removeprefix("prime_ros.").split(".")[0]


def test_every_part_of_the_package_has_a_layer() -> None:
    parts = {part(name) for name, _ in modules()}
    assert len(parts) > 5
    assert parts <= set(LAYERS)


def test_imports_point_downward() -> None:
    upward = [
        f"{module} imports {name}"
        for module, tree in modules()
        for name in imports(tree)
        if name.startswith("prime_ros.") and name != "prime_ros.__version__"
        if part(name) not in ("msg", part(module)) and not LAYERS[part(name)] < LAYERS[part(module)]
    ]
    assert upward == []


def test_only_nodes_import_ros() -> None:
    ros = [
        f"{module} imports {name}"
        for module, tree in modules()
        for name in imports(tree)
        if part(module) not in ROS_PARTS and (ROS_MODULE.match(name) or name.startswith("prime_ros.msg"))
    ]
    assert ros == []


WITHOUT_ROS = """
import importlib, importlib.abc, pkgutil, re, sys

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if re.match(sys.argv[1], name):
            raise ModuleNotFoundError(f"blocked: {name}", name=name)

sys.meta_path.insert(0, Blocked())
import prime_ros
found = pkgutil.walk_packages(prime_ros.__path__, "prime_ros.", onerror=lambda name: None)
names = [m.name for m in found if m.name.split(".")[1] not in ("nodes", "msg", "_core")]
for name in names:
    importlib.import_module(name)
assert len(names) > 20, names

from prime_ros import sources
from prime_ros.config import load_estimator_config
from prime_ros.estimation.full_information import solve
from prime_ros.measurements import align
from prime_ros.robot import load_robot

robot, config = load_robot("go2"), load_estimator_config("pfie", ["solver.max_iterations=3"])
measurements = align(sources.load(sys.argv[2]).cropped(0.0, 0.3), robot, config)
assert solve(measurements, robot, config).certificate.iterations == 3
assert not any(re.match(sys.argv[1], name) for name in sys.modules)
print("done")
"""


def test_everything_but_the_nodes_works_without_ros() -> None:
    arguments = [sys.executable, "-c", WITHOUT_ROS, ROS_MODULE.pattern, str(BAG)]
    result = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False, cwd="/")
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr


def test_package_itself_imports_nothing() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    assert list(imports(tree)) == []


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("package.xml", r"<version>([^<]+)</version>"),
        ("pyproject.toml", r'(?m)^version = "([^"]+)"$'),
        ("CMakeLists.txt", r"project\([^)]*VERSION\s+([0-9.]+)"),
    ],
)
def test_version_is_the_same_everywhere(file: str, pattern: str) -> None:
    versions = re.findall(pattern, (ROOT / file).read_text())
    assert versions == [prime_ros.__version__]


def test_every_source_file_states_its_licence() -> None:
    files = [
        path
        for folder in ("prime_ros", "cpp", "test", "cmake", "benchmarks", "examples", "launch")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".hpp", ".cpp", ".cmake")
    ]
    assert len(files) > 50
    assert [
        str(p.relative_to(ROOT))
        for p in files
        if "SPDX-License-Identifier: Apache-2.0" not in p.read_text()[:200]
    ] == []
