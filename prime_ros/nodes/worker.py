# SPDX-License-Identifier: Apache-2.0
"""The estimator in a thread of its own, so that no message is lost while it computes.

Samples wait in a queue. When the thread is free it takes all of them at once: on a machine that is too slow,
estimates come less often, and none of the samples is missing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from prime_ros.config import EstimatorConfig
from prime_ros.estimation.live import LiveEstimate, LiveEstimator, LiveStatus
from prime_ros.measurements.samples import Floats

NOTED_AGAIN = 0.5
"""Age of the status at which it is taken again while the estimator is busy [s]."""
Entry = tuple[Callable[..., None], tuple[Any, ...]]


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
        self._queue: list[Entry] = []
        self._arrived = threading.Condition()
        self._in_use = threading.Lock()
        self._running = True
        self._note_status()
        self._thread = threading.Thread(target=self._run, name="estimator", daemon=True)
        self._thread.start()

    def push_joints(
        self, stamp_ns: int, names: Sequence[str], position: Floats, velocity: Floats, torque: Floats
    ) -> None:
        """See `prime_ros.nodes.inputs.Sink`."""
        self._put(self._estimator.push_joints, stamp_ns, names, position, velocity, torque)

    def push_imu(self, stamp_ns: int, angular_velocity: Floats, linear_acceleration: Floats) -> None:
        """See `prime_ros.nodes.inputs.Sink`."""
        self._put(self._estimator.push_imu, stamp_ns, angular_velocity, linear_acceleration)

    def push_mocap(self, stamp_ns: int, position: Floats, quat_xyzw: Floats) -> None:
        """See `prime_ros.nodes.inputs.Sink`."""
        self._put(self._estimator.push_mocap, stamp_ns, position, quat_xyzw)

    def reset(self, reason: str) -> None:
        """Start anew with samples that come from now on."""
        with self._arrived:
            self._queue = [(self._estimator.reset, (reason,))]
            self._arrived.notify()

    def reconfigure(self, config: EstimatorConfig) -> None:
        """Change settings; waits for the update that is under way.

        Raises:
            PrimeError: If they do not fit the robot.
        """
        with self._in_use:
            self._estimator.reconfigure(config)

    def status(self) -> LiveStatus:
        """State of the estimator, half a second old at most: who asks must not wait while messages come."""
        if self._in_use.acquire(blocking=False):
            try:
                self._note_status()
            finally:
                self._in_use.release()
        return self._status

    def stop(self) -> None:
        """End the thread; what is in the queue is lost."""
        with self._arrived:
            self._running = False
            self._arrived.notify()
        self._thread.join()

    def _put(self, push: Callable[..., None], *sample: Any) -> None:
        with self._arrived:
            self._queue.append((push, sample))
            self._arrived.notify()

    def _run(self) -> None:
        while True:
            with self._arrived:
                self._arrived.wait_for(lambda: self._queue or not self._running)
                if not self._running:
                    return
                batch, self._queue = self._queue, []
            try:
                self._process(batch)
            except Exception as error:  # a node that stops silently helps nobody
                self._fail(error)
                with self._in_use:
                    self._estimator.reset(f"{type(error).__name__}: {error}")

    def _process(self, batch: list[Entry]) -> None:
        with self._in_use:
            for push, sample in batch:
                push(*sample)
            found = self._estimator.update()
            if time.monotonic() - self._noted > NOTED_AGAIN:
                self._note_status()
        if found is not None:
            self._publish(found)

    def _note_status(self) -> None:
        self._status, self._noted = self._estimator.status, time.monotonic()
