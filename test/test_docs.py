# SPDX-License-Identifier: Apache-2.0
"""The documents are true: generated page, marked snippets, links, keys of files, stub of the core."""

import ast
import contextlib
import importlib
import inspect
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
import yaml

from prime_ros import _core
from prime_ros.cli import app
from prime_ros.outputs.estimate_file import KEYS
from prime_ros.sources.tables import STREAMS

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
DOCS = ROOT / "docs"
ROBOT_PAGE = DOCS / "adding_a_robot.md"
API_PAGE = DOCS / "api.md"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md")])
STUB = ROOT / "prime_ros" / "_core.pyi"

RUNNABLE = re.compile(r"^<!-- runnable -->\n```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OUTPUT = re.compile(r"\s*prints\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)

#: What eigenpy and Boost.Python put into every module.
FOREIGN = {"boost_type_index", "std_type_index", "seed", "sharedMemory"}


def snippets(page: Path, language: str) -> list[str]:
    return [text for kind, text in RUNNABLE.findall(page.read_text()) if kind == language]


def documented_output(page: Path, code: str) -> str:
    """What the page says that a Python snippet prints, directly below it."""
    text = page.read_text()
    match = OUTPUT.match(text, text.index(code) + len(code) + len("```"))
    assert match is not None
    return match[1]


def printed(code: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(directory)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "snippet", "exec"), {"__name__": "snippet"})
    return out.getvalue()


def test_configuration_page_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    generator = importlib.import_module("generate_configuration")
    assert generator.PAGE.read_text(encoding="utf-8") == generator.render(), (
        "run: python docs/generate_configuration.py"
    )


def prime_commands(page: Path) -> list[list[str]]:
    """Arguments of every `prime` that a page shows in a block of shell commands."""
    blocks = SHELL.findall(page.read_text())
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("prime ")]
    return [shlex.split(line.partition(" | ")[0], comments=True)[1:] for line in lines]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_parse(page: Path) -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    shown = prime_commands(page)
    if "simulate" not in commands and any(words[0] == "simulate" for words in shown):
        pytest.skip("there is no prime simulate yet")
    for command, *arguments in shown:
        commands[command].make_context(command, arguments)


def test_readme_commands_name_what_is_there() -> None:
    recordings = [words[1] for words in prime_commands(README) if words[1].startswith("examples/")]
    assert recordings
    assert not [name for name in recordings if not (ROOT / name).exists()]


def test_readme_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^make ([a-z]+)$|`make ([a-z]+)`", README.read_text(), re.MULTILINE)
    for target in filter(None, sum(targets, ())):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_readme_python_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = snippets(README, "python")
    text = printed(code, ROOT, monkeypatch)
    assert text.startswith("True ")
    assert text.splitlines()[-1] == documented_output(README, code).splitlines()[-1]


def test_robot_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (robot,) = snippets(ROBOT_PAGE, "yaml")
    (code,) = snippets(ROBOT_PAGE, "python")
    (tmp_path / f"{yaml.safe_load(robot)['name']}.yaml").write_text(robot)
    assert printed(code, tmp_path, monkeypatch) == documented_output(ROBOT_PAGE, code)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_resolve(page: Path) -> None:
    for link in LINK.findall(re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        if anchor:
            assert anchor in {anchor_of(title) for title in HEADING.findall(target.read_text())}, link


def test_api_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = snippets(API_PAGE, "python")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    text = printed(code, tmp_path, monkeypatch)
    assert text.splitlines()[-1] == documented_output(API_PAGE, code).splitlines()[-1]


def test_pages_are_built_without_warnings(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_parser")
    pytest.importorskip("furo")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", ROOT / "docs", tmp_path / "site"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", timeout=300)
    assert done.returncode == 0, done.stderr
    assert {path.stem for path in (tmp_path / "site").glob("*.html")} > {
        path.stem for path in DOCS.glob("*.md")
    }


def anchor_of(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def test_outputs_page_names_every_key() -> None:
    text = (ROOT / "docs" / "outputs.md").read_text()
    assert not [key for key in KEYS if f"| `{key}` |" not in text]


def test_recording_page_names_every_key_of_a_table() -> None:
    text = (ROOT / "docs" / "recording.md").read_text()
    keys = [key for stream, columns in STREAMS.items() for key in (f"{stream}_stamp_ns", *columns)]
    assert not [key for key in (*keys, "joint_names") if f"| `{key}` |" not in text]


def public(scope: ast.Module | ast.ClassDef) -> dict[str, ast.stmt]:
    """Public classes, functions and attributes that a stub declares in a scope."""
    names: dict[str, ast.stmt] = {}
    for node in scope.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names[node.name] = node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] = node
    return {name: node for name, node in names.items() if not name.startswith("_")}


def test_stub_declares_what_the_core_has() -> None:
    declared = public(ast.parse(STUB.read_text()))
    assert set(declared) == {name for name in vars(_core) if not name.startswith("_")} - FOREIGN
    for name, node in declared.items():
        if isinstance(node, ast.ClassDef):
            members = {member for member in vars(getattr(_core, name)) if not member.startswith("_")}
            assert set(public(node)) == members, name


def test_stub_names_the_arguments_of_the_core() -> None:
    checked = 0
    for name, node in public(ast.parse(STUB.read_text())).items():
        owner = getattr(_core, name)
        body = node.body if isinstance(node, ast.ClassDef) else [node]
        for function in body:
            if not isinstance(function, ast.FunctionDef) or function.args.posonlyargs:
                continue
            bound = inspect.getattr_static(owner, function.name) if inspect.isclass(owner) else owner
            arguments = documented_arguments(getattr(bound, "__doc__", None) or "")
            declared = [argument.arg for argument in function.args.args if argument.arg != "self"]
            if arguments:
                assert declared == arguments, f"{name}.{function.name}"
                checked += 1
    assert checked > 10


def documented_arguments(text: str) -> list[str]:
    """Names of the arguments in a signature that Boost.Python writes, such as `f( (T)arg1, (float)x)`."""
    signature = next((line for line in text.splitlines() if "(" in line), "")
    names = re.findall(r"\([^()]*\)(\w+)", signature.partition("->")[0])
    return [name for name in names if not re.fullmatch(r"arg\d+", name)]
