# SPDX-License-Identifier: Apache-2.0
"""What the commands share on the terminal: progress, timing, and one clear message instead of a traceback."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import typer

from prime_ros.exceptions import PrimeError

if TYPE_CHECKING:
    from prime_ros.estimation.full_information import Progress

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130


@dataclass
class Activity:
    """What a command is doing: for the timing, and to say where it was interrupted."""

    now: str = "start"
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall time by finished phase, the sum of those of one name [s]."""

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Name and time what happens inside."""
        self.now = name
        begin = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begin


@contextmanager
def reported_errors(activity: Activity, debug: bool) -> Iterator[None]:
    """Turn errors of the domain and Ctrl-C into a message on stderr and an exit code.

    Args:
        activity: Kept up to date inside, named when interrupted.
        debug: Print the traceback of an error as well.
    """
    try:
        yield
    except PrimeError as error:
        if debug:
            traceback.print_exc()
        print(f"prime: error: {error}", file=sys.stderr)
        raise typer.Exit(EXIT_BAD_INPUT) from error
    except KeyboardInterrupt as interrupt:
        print(f"\nprime: interrupted during {activity.now}", file=sys.stderr)
        raise typer.Exit(EXIT_INTERRUPTED) from interrupt


@contextmanager
def progress_bar(activity: Activity) -> Iterator[Callable[[Progress], None]]:
    """Show the solver's stages and iterations on stderr if it is a terminal.

    Yields:
        Callback for the solver; it also tells `activity` where the solver is.
    """
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        SpinnerColumn(),
        BarColumn(bar_width=20),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("preparing", total=None)

        def show(progress: Progress) -> None:
            stage = f"stage {progress.stage} of {progress.stages}, iteration {progress.iteration}"
            where = f"{_part(progress)}{stage}"
            activity.now = f"solve, {where}"
            numbers = f"kappa {progress.kappa:g}  cost {progress.cost:.6g}  gap {progress.largest_gap:.1e}"
            done = (progress.piece - 1 + (progress.stage - 1) / progress.stages) / progress.pieces
            done += progress.recording - 1
            bar.update(task, description=f"{where}  {numbers}", completed=done, total=progress.recordings)

        yield show


def _part(progress: Progress) -> str:
    """Round, recording and piece, as far as there are several."""
    parts = []
    if progress.recordings > 1:
        parts.append(f"round {progress.round}, recording {progress.recording} of {progress.recordings}, ")
    if progress.pieces > 1:
        parts.append(f"piece {progress.piece} of {progress.pieces}, ")
    return "".join(parts)
