# SPDX-License-Identifier: Apache-2.0
"""Show a replay: write it to a file, or serve it to a browser."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from prime_ros.exceptions import ConfigError, OutputError
from prime_ros.outputs.write_joint import earlier_folders
from prime_ros.robot import Robot, load_robot
from prime_ros.sources.kinds import kind_of
from prime_ros.viewing.page import render_page
from prime_ros.viewing.report_link import link_from_report
from prime_ros.viewing.result_bag import load_bag
from prime_ros.viewing.results import Results, load_directory, results_directory, robot_name
from prime_ros.viewing.scene import Scene, make_scene

PORT = 8765
ADDRESS = "127.0.0.1"


def view(
    path: str | Path,
    robot: str | Path | None = None,
    html: str | Path | None = None,
    port: int = PORT,
    open_browser: bool = True,
    announce: Callable[[str], None] = print,
    warn: Callable[[str], None] = print,
) -> None:
    """Replay an estimate in 3-D: write the page, or serve it until interrupted by Ctrl-C.

    Args:
        path: Directory of `prime solve`, its estimate.npz, or the bag of an estimate.
        robot: Shipped robot or path of its YAML; None: as the results say.
        html: File to write instead of serving.
        port: TCP port of this machine to serve on; 0 for any that is free.
        open_browser: Whether to open a browser; only when serving.
        announce: Told where the page is.
        warn: Told what could not be drawn as it is, one line each.

    Raises:
        PrimeError: If there is nothing to show, the file cannot be written or the port is taken.
    """
    scene = scene_of(path, robot)
    for note in scene.about["notes"]:
        warn(note)
    page = render_page(scene)
    if html is None:
        _serve(page, port, open_browser, announce)
        return
    target = Path(html)
    try:
        target.write_text(page, encoding="utf-8")
    except OSError as error:
        raise OutputError(f"cannot write {target}: {error}") from error
    linked = ", linked from the report" if link_from_report(target) else ""
    announce(f"{target}: {len(page.encode()) / 1e6:.1f} MB{linked}")


def scene_of(path: str | Path, robot: str | Path | None = None) -> Scene:
    """What there is to draw of an estimate; arguments and errors as of `view`."""
    path = Path(path).expanduser()
    if not path.exists():
        raise OutputError(f"{path}: no such file or folder; expected DIR of `prime solve`, or its bag")
    name = robot_name(path.resolve()) if robot is None else robot
    results = _load(path)
    return make_scene(results.thinned(), _robot(path, name, given=robot is not None), _title(path))


def _load(path: Path) -> Results:
    directory = results_directory(path)
    if directory is not None:
        return load_directory(directory)
    folders = earlier_folders(path)
    if folders:
        raise OutputError(
            f"{path}: of several recordings, expected one of them: prime view {path / folders[0]}"
        )
    if path.is_dir() and not any(path.iterdir()):
        raise OutputError(f"{path}: an empty folder; expected DIR of `prime solve`, or its bag")
    if kind_of(path) == "bag":
        return load_bag(path)
    raise OutputError(
        f"{path}: got a recording, expected an estimate; run `prime solve {path} --robot ROBOT --out DIR` and"
        " then `prime view DIR`"
    )


def _robot(path: Path, name: str | Path | None, given: bool) -> Robot:
    if name is None:
        raise OutputError(f"{path}: does not say which robot it is of; name it by --robot")
    try:
        return load_robot(name)
    except ConfigError as error:
        if given:
            raise
        raise OutputError(f"{path} is of the robot '{name}'; name its YAML by --robot ({error})") from error


def _title(path: Path) -> str:
    return path.resolve().name


def _serve(page: str, port: int, open_browser: bool, announce: Callable[[str], None]) -> None:
    """Serve one page until interrupted."""
    content = page.encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/" else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            if self.path == "/":
                self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    try:
        server = ThreadingHTTPServer((ADDRESS, port), Handler)
    except (OSError, OverflowError) as error:
        raise OutputError(f"cannot serve on port {port}: {error}; choose another by --port") from error
    with server:
        address = f"http://{ADDRESS}:{server.server_address[1]}/"
        announce(f"{address} (Ctrl-C ends it)")
        if open_browser:
            webbrowser.open(address)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
