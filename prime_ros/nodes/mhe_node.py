# SPDX-License-Identifier: Apache-2.0
"""mhe_node: contact forces, motion and inertia live, by moving-horizon estimation. See docs/live.md."""

from __future__ import annotations

import sys
import traceback
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.clock import JumpThreshold, TimeJump
from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from std_srvs.srv import Trigger

from prime_ros.config import EstimatorConfig, load_estimator_config
from prime_ros.estimation.estimate import Estimate
from prime_ros.estimation.live import LiveEstimate, LiveEstimator
from prime_ros.exceptions import PrimeError
from prime_ros.measurements.samples import NANOSECONDS
from prime_ros.nodes import diagnostics, running
from prime_ros.nodes.inputs import Inputs
from prime_ros.nodes.parameters import Parameters
from prime_ros.nodes.publishing import EstimatePublisher
from prime_ros.nodes.settings import MheSettings
from prime_ros.nodes.worker import Worker
from prime_ros.robot import Robot, load_robot

SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE


SWITCH_INTERVAL = 0.0005
"""How long the receiving thread may hold up the estimator [s]; Python's own 5 ms are half a step."""


class MheNode(LifecycleNode):
    """Lifecycle node: configured it has its model and topics, active it listens and publishes."""

    def __init__(self) -> None:
        """Declare the parameters; with autostart, configure and activate."""
        self._worker: Worker | None = None
        super().__init__("prime")
        changing = {"marker_rate"}
        self.settings = Parameters(self, MheSettings(), fixed=MheSettings.model_fields.keys() - changing)
        self.estimator_settings = Parameters(
            self,
            load_estimator_config(self.settings.value.config, robot=self.settings.value.robot),
            fixed=(),
            on_change=self._reconfigure,
            leave_out=("solver",),
        )
        self._robot: Robot | None = None
        self._estimator: LiveEstimator | None = None
        self._inputs: Inputs | None = None
        self._publisher: EstimatePublisher | None = None
        self._held: dict[str, Any] = {}
        self._jump_handle: Any = None
        self._diagnostics = diagnostics.Diagnostics()
        self._delay: float | None = None
        self._newest: Estimate | None = None
        self._faults: dict[str, str] = {}
        if self.settings.value.autostart and self.trigger_configure() == SUCCESS:
            self.trigger_activate()

    def destroy_node(self) -> None:
        """End the thread of the estimator first."""
        if self._worker is not None:
            self._worker.stop()
        super().destroy_node()

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load the robot, and announce topics and services."""
        settings = self.settings.value
        try:
            self._robot = load_robot(settings.robot, settings.urdf or None)
            self._estimator = LiveEstimator(self._robot, self.estimator_settings.value)
            self._publisher = EstimatePublisher(self, self._robot, settings, settings.lagged)
            self._estimator.wants_lagged = False  # until somebody listens
        except (PrimeError, ImportError) as error:
            self.get_logger().error(f"cannot be configured: {error}")
            return FAILURE
        self._worker = Worker(self._estimator, self._publish, self._report)
        self._held = {
            "diagnostics": self.create_publisher(DiagnosticArray, "/diagnostics", 10),
            "reset": self.create_service(Trigger, "~/reset", self._on_reset),
        }
        threshold = JumpThreshold(
            min_forward=None, min_backward=Duration(nanoseconds=-1), on_clock_change=False
        )
        self._jump_handle = self.get_clock().create_jump_callback(threshold, post_callback=self._on_jump)
        return super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Start to listen."""
        assert self._robot is not None
        assert self._worker is not None
        assert self._estimator is not None
        try:
            self._inputs = Inputs(self, self.settings.value, self._robot, self._estimator)
        except PrimeError as error:
            self.get_logger().error(f"cannot be activated: {error}")
            return FAILURE
        self._worker.listen(self._inputs)
        self._held["timer"] = self.create_timer(1.0, self._diagnose)
        topics = ", ".join(channel.topic for channel in self._inputs.channels.values())
        self.get_logger().info(f"listens to {topics}")
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop listening, and forget what came."""
        self._stop_listening()
        if self._worker is not None:
            self._worker.reset("deactivated")
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Withdraw topics and services."""
        self._release()
        return super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Withdraw everything."""
        self._stop_listening()
        self._release()
        return super().on_shutdown(state)

    def _publish(self, found: LiveEstimate) -> None:
        assert self._publisher is not None
        assert self._estimator is not None
        if not self.context.ok():
            return
        self._publisher.settings = self.settings.value
        for estimate in (*found.earlier, found):
            self._publisher.publish(estimate.newest)
            if estimate.lagged is not None:
                self._publisher.publish_lagged(estimate.lagged)
        self._estimator.wants_lagged = self._publisher.wants_lagged
        now = self.get_clock().now().nanoseconds
        self._newest = found.newest
        self._delay = (now - int(found.newest.stamp_ns[0])) / NANOSECONDS

    def _report(self, error: Exception) -> None:
        """What went wrong in the thread of the estimator: a fault of this package, or the node is ending."""
        if not self.context.ok():
            return
        trace = "".join(traceback.format_exception(error))
        self.get_logger().error(f"the window starts anew after an error:\n{trace}", throttle_duration_sec=1.0)

    def _reconfigure(self, config: EstimatorConfig) -> None:
        if self._worker is not None:
            self._worker.reconfigure(config)

    def _on_reset(self, request: Any, response: Any) -> Any:
        assert self._worker is not None
        self._worker.reset("asked by the service reset")
        response.success, response.message = True, "the window starts anew with the next samples"
        self.get_logger().info("reset by service")
        return response

    def _on_jump(self, jump: TimeJump) -> None:
        """The clock went back, as when a bag is played again."""
        if self._worker is not None:
            seconds = -jump.delta.nanoseconds / NANOSECONDS
            self._worker.reset(f"the clock went back by {seconds:.3f} s")

    def _diagnose(self) -> None:
        assert self._worker is not None
        assert self._robot is not None
        if self._inputs is None:
            return
        force = self._inputs.mean_specific_force()
        tilt = diagnostics.tilt_of_gravity(self._robot, force, self._newest)
        entries = self._diagnostics.entries(self._inputs, self._worker.status, self._delay, tilt)
        rival = self._publisher.broadcaster.rival if self._publisher and self._publisher.broadcaster else ""
        if rival:
            entries.append(
                diagnostics.Entry("tf", [(diagnostics.ERROR, f"somebody else broadcasts {rival}")])
            )
        stamp = self.get_clock().now().to_msg()
        self._held["diagnostics"].publish(
            diagnostics.array(stamp, self.get_fully_qualified_name(), self._robot.name, entries)
        )
        self._log_changes(dict(diagnostics.summary(entries)))

    def _log_changes(self, faults: dict[str, str]) -> None:
        """Log what is newly wrong, and what is right again."""
        for name, text in faults.items():
            if name not in self._faults:
                self.get_logger().warning(f"{name}: {text}")
        for name in self._faults.keys() - faults.keys():
            self.get_logger().info(f"{name}: ok again")
        self._faults = faults

    def _stop_listening(self) -> None:
        if self._worker is not None:
            self._worker.listen(None)
        if self._inputs is not None:
            self._inputs.close()
            self._inputs = None
        if timer := self._held.pop("timer", None):
            self.destroy_timer(timer)

    def _release(self) -> None:
        if self._jump_handle is not None:
            self._jump_handle.unregister()
            self._jump_handle = None
        if publisher := self._held.pop("diagnostics", None):
            self.destroy_publisher(publisher)
        if service := self._held.pop("reset", None):
            self.destroy_service(service)
        if self._worker is not None:
            self._worker.stop()
        if self._publisher is not None:
            self._publisher.close()
        self._robot = self._estimator = self._worker = self._publisher = None


def main() -> None:
    """Entry point of mhe_node."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    running.run(MheNode)


if __name__ == "__main__":
    main()
