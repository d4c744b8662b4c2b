# SPDX-License-Identifier: Apache-2.0
"""Reading damaged files in a process of its own, which has little memory and may crash or hang."""

from __future__ import annotations

import resource
from concurrent.futures import ProcessPoolExecutor, TimeoutError  # another one before Python 3.11
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

from prime_ros.exceptions import PrimeError
from prime_ros.sources import SourceOptions, describe, load

MEMORY = 1_500_000_000
"""Address space beyond what the process has after its imports [bytes]."""
SECONDS = 20
"""For one file of a few kilobytes: not a measure of speed, but an end to what would hang."""


class Confined:
    """Reads files, one after the other, in a process that is started anew when one of them has killed it."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    def read(self, path: Path, options: SourceOptions) -> str:
        """The empty string for a recording, else the message of the error; what else happens is raised."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, get_context("spawn"), initializer=_limit_memory)
        try:
            return self._pool.submit(_outcome, path, options).result(timeout=SECONDS)
        except (BrokenProcessPool, TimeoutError):
            self.close()
            raise

    def close(self) -> None:
        """End the process."""
        if self._pool is not None:
            processes = list(self._pool._processes.values())
            self._pool.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.kill()
            self._pool = None


def _limit_memory() -> None:
    import pyarrow.parquet  # noqa: F401  # before the limit, as are the other imports

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _outcome(path: Path, options: SourceOptions) -> str:
    try:
        describe(path, options)
        message = ""
    except PrimeError as error:
        message = str(error)
    try:
        load(path, options)
    except PrimeError as error:
        message = str(error)
        if str(path) not in message:
            raise AssertionError(f"does not name the file: {message}") from error
        return message
    if message:
        raise AssertionError(f"loads, but cannot be described: {message}")
    return ""
