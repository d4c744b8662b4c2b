# SPDX-License-Identifier: Apache-2.0
"""Build for pip: runs CMakeLists.txt and packs what it installs. ROS (colcon, ament) never runs this file.

The Python package goes to site-packages; lib/ and share/ go below sys.prefix, as in the ROS 2 wheels. The
CMake build folder is kept below build/, so that a second `pip install --no-build-isolation .` compiles only
what has changed.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCE = Path(__file__).resolve().parent
BUILD = SOURCE / "build" / f"pip-{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
STAGE = BUILD / "stage"


def search_prefixes() -> list[Path]:
    """Prefixes for CMake and ament: environments with ROS 2 wheels, and their cmeel.prefix with Pinocchio.

    pip's isolated build environment, if there is one, precedes the environment that pip runs in.
    """
    sites = [Path(p) for p in sys.path if Path(p).name == "site-packages"]
    prefixes = dict.fromkeys(p for site in sites for p in (site.parents[2], site / "cmeel.prefix"))
    contents = ("share/ament_index", "lib/cmake/pinocchio")
    return [p for p in prefixes if any((p / content).is_dir() for content in contents)]


def build_environment(prefixes: list[Path]) -> dict[str, str]:
    """The environment, with ament's packages and the cmake and ninja of the wheels first."""

    def extend(name: str, folders: list[Path]) -> str:
        return os.pathsep.join([*map(str, folders), *filter(None, [os.environ.get(name)])])

    programs = [*(p / "bin" for p in prefixes), Path(sys.executable).parent]
    return {
        **os.environ,
        "AMENT_PREFIX_PATH": extend("AMENT_PREFIX_PATH", prefixes),
        "PATH": extend("PATH", programs),
    }


def run_cmake() -> None:
    """Configure, build and install into STAGE; from scratch if the dependencies moved since last time."""
    prefixes = search_prefixes()
    found, record = "\n".join(map(str, prefixes)), BUILD / "prefixes.txt"
    if not record.is_file() or record.read_text() != found:
        shutil.rmtree(BUILD, ignore_errors=True)
    shutil.rmtree(STAGE, ignore_errors=True)
    BUILD.mkdir(parents=True, exist_ok=True)
    record.write_text(found)
    configure = [
        *("cmake", "-S", SOURCE, "-B", BUILD, "-G", "Ninja"),
        f"-DCMAKE_INSTALL_PREFIX={STAGE}",
        f"-DCMAKE_PREFIX_PATH={';'.join(map(str, prefixes))}",
        f"-DPython3_EXECUTABLE={sys.executable}",
        "-DPRIME_ROS_RELOCATABLE=ON",
        "-DBUILD_TESTING=OFF",
    ]
    env = build_environment(prefixes)
    jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count() or 1))
    subprocess.run(configure, check=True, env=env)
    subprocess.run(["cmake", "--build", BUILD, "--parallel", jobs], check=True, env=env)
    subprocess.run(["cmake", "--install", BUILD], check=True, env=env, stdout=subprocess.DEVNULL)


def staged_data_files(site: Path) -> list[tuple[str, list[str]]]:
    """What goes below sys.prefix, as (folder, files): all that is staged but `site`, the Python packages."""
    folders: dict[str, list[str]] = {}
    for path in sorted(STAGE.rglob("*")):
        if path.is_file() and site not in path.parents:
            folders.setdefault(str(path.parent.relative_to(STAGE)), []).append(str(path))
    return list(folders.items())


class CMakeBuild(build_ext):
    """Stands in for the compiler: the one extension is CMake's."""

    def run(self) -> None:
        """Build with CMake and hand the result to setuptools."""
        run_cmake()
        package = next(STAGE.rglob("prime_ros/__init__.py")).parent
        target = Path(self.build_lib) / "prime_ros"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(package, target, ignore=shutil.ignore_patterns("__pycache__", "*.c"))
        self.distribution.data_files = staged_data_files(package.parent)


setup(ext_modules=[Extension("prime_ros._core", sources=[])], cmdclass={"build_ext": CMakeBuild})
