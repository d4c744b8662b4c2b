# SPDX-License-Identifier: Apache-2.0
"""The simulated logs that experiments start from: a folder, read when they are needed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from prime_ros.exceptions import SourceError
from prime_ros.experiments.simulation_logs import SimulationLog, load_log


@dataclass
class LogFolder:
    """Simulated logs with truth, ``NAME.npz``."""

    path: Path | None
    _read: dict[str, SimulationLog] = field(default_factory=dict)

    def log(self, name: str) -> SimulationLog:
        """A log of the folder.

        Raises:
            SourceError: If there is no folder or no such log in it.
        """
        if name not in self._read:
            self._read[name] = load_log(self._file(name))
        return self._read[name]

    def require(self, names: Iterable[str]) -> None:
        """Raise now, not after an hour.

        Raises:
            SourceError: If one of the logs is missing.
        """
        for name in names:
            self._file(name)

    def _file(self, name: str) -> Path:
        if self.path is None:
            raise SourceError(
                f"experiment: got no folder of simulated logs, expected one with {name}.npz; give it:"
                " --data DIR"
            )
        file = self.path / f"{name}.npz"
        if not file.is_file():
            there = ", ".join(sorted(path.stem for path in self.path.glob("*.npz"))) or "no .npz at all"
            raise SourceError(
                f"{file}: no such simulated log; {self.path} has {there}: give another --data DIR"
            )
        return file
