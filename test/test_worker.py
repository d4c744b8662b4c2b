# SPDX-License-Identifier: Apache-2.0
"""The thread of the estimator: fetches, updates, publishes, obeys; without ROS."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from prime_ros.exceptions import ConfigError
from prime_ros.nodes.worker import Worker


class Estimator:
    """Sums what is pushed, and wants no 13."""

    def __init__(self) -> None:
        self.pushed: list[int] = []
        self.resets: list[str] = []
        self.settings: list[Any] = []
        self.threads: set[int] = set()

    @property
    def status(self) -> Any:
        return SimpleNamespace(samples=len(self.pushed))

    def update(self) -> int | None:
        self.threads.add(threading.get_ident())
        if self.pushed and self.pushed[-1] == 13:
            raise ValueError("unlucky")
        return sum(self.pushed) if self.pushed else None

    def reset(self, reason: str) -> None:
        self.resets.append(reason)
        self.pushed = []

    def reconfigure(self, config: Any) -> None:
        if config == "wrong":
            raise ConfigError("wrong settings")
        self.settings.append(config)


class Source:
    """Pushes numbers as they are put."""

    def __init__(self, estimator: Estimator) -> None:
        self.estimator, self.waiting = estimator, [1]

    def take(self, timeout: float) -> None:
        time.sleep(0.001)
        while self.waiting:
            self.estimator.pushed.append(self.waiting.pop(0))


@contextmanager
def working() -> Iterator[tuple[Worker, Estimator, list[Any], list[Exception]]]:
    estimator, published, failed = Estimator(), [], []
    worker = Worker(estimator, published.append, failed.append)  # type: ignore[arg-type]
    try:
        yield worker, estimator, published, failed
    finally:
        worker.stop()


def until(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + 20.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_what_is_taken_is_estimated_and_published_in_one_thread() -> None:
    with working() as (worker, estimator, published, _):
        worker.listen(Source(estimator))
        until(lambda: published)
        assert published[0] == 1
        assert estimator.threads == {worker._thread.ident}
        until(lambda: worker.status.samples == 1)  # type: ignore[attr-defined]


def test_without_a_source_it_waits_and_still_obeys() -> None:
    with working() as (worker, estimator, published, _):
        worker.reset("asked")
        until(lambda: estimator.resets)
        worker.reconfigure("new")  # type: ignore[arg-type]
        assert (estimator.resets, estimator.settings, published) == (["asked"], ["new"], [])


def test_wrong_settings_are_told_to_who_gave_them() -> None:
    with working() as (worker, estimator, published, failed):
        source = Source(estimator)
        worker.listen(source)
        with pytest.raises(ConfigError, match="wrong settings"):
            worker.reconfigure("wrong")  # type: ignore[arg-type]
        source.waiting.append(2)
        until(lambda: 3 in published)  # it goes on as before
        assert not failed


def test_after_an_error_it_starts_anew() -> None:
    with working() as (worker, estimator, published, failed):
        source = Source(estimator)
        worker.listen(source)
        source.waiting.append(13)
        until(lambda: estimator.resets)
        assert estimator.resets == ["ValueError: unlucky"]
        assert [str(error) for error in failed] == ["unlucky"]
        source.waiting.append(4)
        until(lambda: 4 in published)


def test_it_ends_when_told_so() -> None:
    with working() as (worker, estimator, _, _):
        worker.listen(Source(estimator))
        worker.stop()
        assert not worker._thread.is_alive()
