# SPDX-License-Identifier: Apache-2.0
"""Write the pictures of docs/: solve the bundled recording, take pictures of its report and its 3-D replay.

python docs/make_screenshots.py

Needs Pillow, and Chromium or Chrome: $CHROMIUM, or the first of `BROWSERS` in PATH.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORDING = ROOT / "examples" / "go2_payload_3kg"
IMAGES = ROOT / "docs" / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    # WebGL on any machine, the same everywhere
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--allow-file-access-from-files",
    "--enable-logging=stderr",
    "--virtual-time-budget=20000",
)
GAP = 16
PICTURES = {
    "report_desktop": (("",), 1280, 1540),
    "report_residuals": (("#residuals",), 1280, 1130),
    "report_phone": (("", "#forces", "#inertia"), 390, 1180),
}
"""Parts of the page that a picture shows side by side, and the width and height of each [px]."""
REPLAY = "t=3.6&cones=1&azimuth=-0.8&elevation=0.25"
"""What the picture of the replay shows, as its address says it."""
REPLAY_SIZE = (1200, 750)
LARGEST = 400_000
"""Bytes of a picture above which its colours are reduced."""


def browser() -> str | None:
    """The browser to use, or None."""
    named = os.environ.get("CHROMIUM")
    return named or next(filter(None, map(shutil.which, BROWSERS)), None)


def picture(program: str, page: str, image: Path, width: int, height: int) -> list[str]:
    """Take a picture of a page.

    Args:
        program: The browser.
        page: Its URL.
        image: PNG to write.
        width: Of the window [px].
        height: Of the window [px].

    Returns:
        What the page wrote to the console.

    Raises:
        RuntimeError: If the browser took no picture.
    """
    with tempfile.TemporaryDirectory() as profile:
        command = [program, *FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"]
        result = subprocess.run(
            [*command, f"--screenshot={image}", page],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    if not image.is_file():
        raise RuntimeError(f"{program} took no picture of {page}: {result.stderr[-2000:]}")
    return [line for line in result.stderr.splitlines() if "CONSOLE" in line]


def complaints(console: list[str]) -> list[str]:
    """Lines of the console that are no plain notes of the plot library."""
    return [line for line in console if "[bokeh" not in line]


def side_by_side(report: Path, parts: tuple[str, ...], width: int, height: int) -> Path:
    """A page that shows parts of a report in frames: they can be narrower than a window can, and scrolled."""
    style = f"width:{width}px;height:{height}px;border:0"
    frames = "".join(f'<iframe src="{report.name}{part}" style="{style}"></iframe>' for part in parts)
    page = report.with_name("frames.html")
    page.write_text(f'<body style="margin:0;display:flex;gap:{GAP}px;background:#8a8f94">{frames}</body>')
    return page


def make_results(directory: Path) -> Path:
    """Solve the bundled recording; the directory with its report and its 3-D replay."""
    from prime_ros import sources
    from prime_ros.config import load_estimator_config
    from prime_ros.estimation.full_information import solve
    from prime_ros.measurements import align
    from prime_ros.outputs.context import RunContext
    from prime_ros.outputs.write import VIEW_FILE, write_results
    from prime_ros.robot import load_robot
    from prime_ros.viewing import view

    robot, config = load_robot("go2"), load_estimator_config("pfie")
    measurements = align(sources.load(RECORDING), robot, config)
    estimate = solve(measurements, robot, config)
    results = directory / RECORDING.name
    write_results(estimate, robot, results, RunContext(RECORDING.name, config, measurements.diagnostics))
    view(results, html=results / VIEW_FILE)
    return results


def compress(image: Path) -> None:
    """Make the file of a picture small."""
    from PIL import Image

    with Image.open(image) as opened:
        full = opened.convert("RGB")
    full.save(image, optimize=True)
    if image.stat().st_size > LARGEST:
        full.quantize(256).save(image, optimize=True)


def main() -> int:
    """Write all pictures; 1 if the page complained or there is no browser."""
    program = browser()
    if program is None:
        print("no browser: install Chromium or name one with CHROMIUM=...", file=sys.stderr)
        return 1
    IMAGES.mkdir(exist_ok=True)
    console = []
    with tempfile.TemporaryDirectory() as folder:
        results = make_results(Path(folder))
        report = results / "report.html"
        for name, (parts, width, height) in PICTURES.items():
            page = side_by_side(report, parts, width, height).as_uri()
            window = len(parts) * (width + GAP) - GAP
            console += picture(program, page, IMAGES / f"{name}.png", window, height)
        replay = f"{(results / 'view.html').as_uri()}#{REPLAY}"
        console += picture(program, replay, IMAGES / "view_desktop.png", *REPLAY_SIZE)
    for image in sorted(IMAGES.glob("*.png")):
        compress(image)
        print(f"{image.relative_to(ROOT)}: {image.stat().st_size / 1e3:.0f} kB")
    for line in complaints(console):
        print(line, file=sys.stderr)
    return 1 if complaints(console) else 0


if __name__ == "__main__":
    sys.exit(main())
