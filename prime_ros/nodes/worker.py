# SPDX-License-Identifier: Apache-2.0
"""The estimator in a thread of its own, which also fetches its samples.

Receiving and estimating in one thread do not wait for each other's hold of Python's lock. Messages that come
while an update is computed wait in the middleware, and the next updates catch up with them. On a machine that
is always too slow the oldest are lost: estimates go on, late by what can wait.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol

from prime_ros.config import EstimatorConfig
from prime_ros.estimation.live import LiveEstimate, LiveEstimator, LiveStatus

NOTED_AGAIN = 0.5
"""Age of the status at which it is taken again while the estimator is busy [s]."""
PATIENCE = 0.02
"""Longest wait for a message before the thread looks for something else to do [s]."""
Command = tuple[Callable[[], None], Future[None]]


class Source(Protocol):
    """Brings samples to the estimator; `prime_ros.nodes.inputs.Inputs` is one."""

    def take(self, timeout: float) -> None:
        """Push all samples that have come, waiting for one at most for a time [s]."""


class Worker:
    """Feeds an estimator; all methods may be called from any thread."""

    def __init__(
        self,
        estimator: LiveEstimator,
        publish: Callable[[LiveEstimate], None],
        fail: Callable[[Exception], None],
    ) -> None:
        """Wait for samples.

        Args:
            estimator: Nobody else may use it.
            publish: Called in the thread with every estimate.
            fail: Called in the thread with what an update or `publish` raised; the window starts anew then.
        """
        self._estimator, self._publish, self._fail = estimator, publish, fail
        self._source: Source | None = None
        self._commands: list[Command] = []
        self._changed = threading.Condition()
        self._running = True
        self._note_status()
        self._thread = threading.Thread(target=self._run, name="estimator", daemon=True)
        self._thread.start()

    def listen(self, source: Source | None) -> None:
        """Take samples from a source that pushes them to the estimator; None: wait."""
        with self._changed:
            self._source = source
            self._changed.notify()

    def reset(self, reason: str) -> None:
        """Start anew with the next samples."""
        self._order(lambda: self._estimator.reset(reason))

    def reconfigure(self, config: EstimatorConfig) -> None:
        """Change settings; waits for the update that is under way.

        Raises:
            PrimeError: If they do not fit the robot.
        """
        self._order(lambda: self._estimator.reconfigure(config)).result()

    @property
    def status(self) -> LiveStatus:
        """State of the estimator, half a second old at most."""
        return self._status

    def stop(self) -> None:
        """End the thread; messages that wait are lost."""
        with self._changed:
            self._running = False
            self._changed.notify()
        self._thread.join()

    def _order(self, action: Callable[[], None]) -> Future[None]:
        """Have the thread do something between two updates."""
        done: Future[None] = Future()
        with self._changed:
            self._commands.append((action, done))
            self._changed.notify()
        return done

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._source or self._commands or not self._running)
                if not self._running:
                    return
                source, commands, self._commands = self._source, self._commands, []
            _obey(commands)
            try:
                self._turn(source)
            except Exception as error:  # a node that stops silently helps nobody
                self._fail(error)
                self._estimator.reset(f"{type(error).__name__}: {error}")

    def _turn(self, source: Source | None) -> None:
        if source is not None:
            source.take(PATIENCE)
        found = self._estimator.update()
        if found is not None:
            self._publish(found)
        if source is None or time.monotonic() - self._noted > NOTED_AGAIN:
            self._note_status()

    def _note_status(self) -> None:
        self._status, self._noted = self._estimator.status, time.monotonic()


def _obey(commands: list[Command]) -> None:
    for action, done in commands:
        try:
            action()
        except Exception as error:
            done.set_exception(error)
        else:
            done.set_result(None)
