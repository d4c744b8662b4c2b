# SPDX-License-Identifier: Apache-2.0
"""pfie_node: one estimate over a whole recording, published as if it happened now. See docs/live.md."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rclpy.clock import JumpThreshold
from rclpy.duration import Duration
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from std_srvs.srv import Trigger

from prime_ros import sources
from prime_ros.config import load_estimator_config
from prime_ros.estimation.estimate import Estimate
from prime_ros.estimation.estimators import solve
from prime_ros.estimation.progress import Progress
from prime_ros.exceptions import PrimeError
from prime_ros.measurements import Recording, align
from prime_ros.measurements.samples import NANOSECONDS
from prime_ros.nodes import running
from prime_ros.nodes.buffering import SampleStore
from prime_ros.nodes.inputs import Inputs
from prime_ros.nodes.parameters import Parameters
from prime_ros.nodes.publishing import EstimatePublisher
from prime_ros.nodes.settings import PfieSettings
from prime_ros.outputs.bag import rows
from prime_ros.outputs.context import RunContext
from prime_ros.outputs.messages import header
from prime_ros.outputs.write import check_directory, write_results
from prime_ros.robot import load_robot
from prime_ros.sources import SourceOptions

CLOCK_PERIOD = 0.01
"""Longest time from one message on /clock to the next [s]."""
PATIENCE = 0.1
"""Longest wait for a message before the receiving thread looks whether it is to end [s]."""


class _Ended(Exception):
    """The node ends while it solves."""


class PfieNode(Node):
    """Solves a recording or what topics brought, writes the files and replays the result."""

    def __init__(self) -> None:
        """Declare the parameters; solve the bag, or listen."""
        self._ending = threading.Event()
        self._job: threading.Thread | None = None
        self._closing = threading.Event()
        self._receiver: threading.Thread | None = None
        self._replaying = False
        super().__init__("prime")
        self.settings = Parameters(self, PfieSettings()).value
        self._estimator_settings = Parameters(
            self,
            load_estimator_config(self.settings.config, robot=self.settings.robot),
            fixed=(),
            leave_out=("horizon",),
        )
        if self.settings.out:
            check_directory(self.settings.out)
        self._robot = load_robot(self.settings.robot, self.settings.urdf or None)
        self._publisher = EstimatePublisher(self, self._robot, self.settings)
        self._ticker = self.create_publisher(Clock, "/clock", 10) if self.settings.publish_clock else None
        self._store = SampleStore(self.settings.keep)
        self._estimate: Estimate | None = None
        self.create_service(Trigger, "~/solve", self._on_solve)
        self.create_service(Trigger, "~/replay", self._on_replay)
        if self.settings.bag:
            self._begin(self._solve)
        else:
            self._listen()

    def destroy_node(self) -> None:
        """End the threads first."""
        self._ending.set()
        self._closing.set()
        for thread in (self._job, self._receiver):
            if thread is not None:
                thread.join()
        super().destroy_node()

    def _listen(self) -> None:
        inputs = Inputs(self, self.settings, self._robot, self._store)
        threshold = JumpThreshold(
            min_forward=None, min_backward=Duration(nanoseconds=-1), on_clock_change=False
        )
        self._jump_handle = self.get_clock().create_jump_callback(
            threshold, post_callback=lambda jump: self._store.forget()
        )
        topics = ", ".join(channel.topic for channel in inputs.channels.values())
        self.get_logger().info(f"listens to {topics}; call {self.get_fully_qualified_name()}/solve")
        self._receiver = threading.Thread(target=self._receive, args=(inputs,), daemon=True)
        self._receiver.start()

    def _receive(self, inputs: Inputs) -> None:
        while not self._closing.is_set():
            inputs.take(PATIENCE)

    def _on_solve(self, request: Any, response: Any) -> Any:
        response.success = self._begin(self._solve)
        what = self.settings.bag or "what the topics brought"
        response.message = f"solving {what}; progress on ~/status" if response.success else "busy"
        return response

    def _on_replay(self, request: Any, response: Any) -> Any:
        response.success = self._estimate is not None and self._begin(self._replay)
        response.message = "replaying" if response.success else "busy, or nothing solved yet"
        return response

    def _begin(self, job: Callable[[], None]) -> bool:
        """Start a job in a thread unless there is one; a replay makes way."""
        if self._job is not None and self._job.is_alive():
            if not self._replaying:
                return False
            self._ending.set()
            self._job.join()
        self._ending.clear()
        self._job = threading.Thread(target=self._guarded, args=(job,), daemon=True)
        self._job.start()
        return True

    def _guarded(self, job: Callable[[], None]) -> None:
        """Run a job; what goes wrong is told on status and in the log."""
        try:
            job()
        except _Ended:
            pass
        except PrimeError as error:
            self.get_logger().error(str(error))
            self._tell(str(error))
        except Exception:
            if self.context.ok():  # otherwise the node is ending
                raise

    def _solve(self) -> None:
        begin = time.perf_counter()
        self._tell("reading" if self.settings.bag else "collecting")
        recording = self._recording()
        config = self._estimator_settings.value
        measurements = align(recording, self._robot, config)
        for line in measurements.diagnostics.warnings():
            self.get_logger().warning(line)
        self._estimate = solve(measurements, self._robot, config, progress=self._progress)
        certificate = self._estimate.certificate
        verdict = "converged" if certificate.converged else f"NOT converged: {certificate.reason}"
        self.get_logger().info(
            f"{recording.duration:.1f} s solved in {time.perf_counter() - begin:.1f} s: {verdict}"
        )
        if self.settings.out:
            name = self.settings.bag or "live topics"
            context = RunContext(name, config, measurements.diagnostics, self._estimate.timing)
            written = write_results(self._estimate, self._robot, self.settings.out, context)
            for note in written.notes:
                self.get_logger().warning(note)
            self.get_logger().info(f"wrote {', '.join(written.files)} to {written.directory}")
        self._replay()

    def _recording(self) -> Recording:
        if not self.settings.bag:
            return self._store.recording()
        options = SourceOptions(vendor_joint_names=self._robot.vendor_joint_names)
        return sources.load(self.settings.bag, options)

    def _progress(self, progress: Progress) -> None:
        if self._ending.is_set():
            raise _Ended
        self._tell(
            f"stage {progress.stage} of {progress.stages}",
            iterations=progress.iteration,
            cost=progress.cost,
            largest_gap=progress.largest_gap,
        )

    def _tell(self, reason: str, **values: Any) -> None:
        """Say on status where the solve stands."""
        now = np.array([self.get_clock().now().nanoseconds])
        self._publisher.publish_status({"header": header(now, ""), "reason": reason, **values})

    def _replay(self) -> None:
        assert self._estimate is not None
        self._replaying = True
        try:
            while self._replay_once(self._estimate) and self.settings.loop:
                pass
        finally:
            self._replaying = False

    def _replay_once(self, estimate: Estimate) -> bool:
        """Publish all knots in time; False if it was told to end."""
        begin, first = time.monotonic(), int(estimate.stamp_ns[0])
        for knot, stamp in enumerate(estimate.stamp_ns.tolist()):
            due = begin + (stamp - first) / NANOSECONDS / self.settings.rate
            while (wait := due - time.monotonic()) > 0.0:
                step = min(wait, CLOCK_PERIOD)
                if self._ending.wait(step):
                    return False
                ahead = (due - time.monotonic()) * self.settings.rate
                self._tick(stamp - round(max(ahead, 0.0) * NANOSECONDS))
            self._tick(stamp)
            self._publisher.publish(rows(estimate, np.array([knot])))
        return True

    def _tick(self, stamp_ns: int) -> None:
        if self._ticker is None:
            return
        message = Clock()
        message.clock.sec, message.clock.nanosec = divmod(int(stamp_ns), NANOSECONDS)
        self._ticker.publish(message)


def main() -> None:
    """Entry point of pfie_node."""
    running.run(PfieNode)


if __name__ == "__main__":
    main()
