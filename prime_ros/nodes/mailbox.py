# SPDX-License-Identifier: Apache-2.0
"""Messages of subscriptions, fetched by a thread of one's own instead of being brought by an executor.

For every message, an executor of rclpy lists anew all that its node waits for. At 1100 messages per second
that takes a third of a core, and holds Python's lock while an estimator could compute.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.context import Context
from rclpy.exceptions import InvalidHandle
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.subscription import Subscription

from prime_ros.measurements.samples import NANOSECONDS


class Aside(CallbackGroup):
    """Of subscriptions that no executor serves."""

    def can_execute(self, entity: Any) -> bool:
        """Never."""
        return False

    def beginning_execution(self, entity: Any) -> bool:
        """Never."""
        return False

    def ending_execution(self, entity: Any) -> None:
        """Nothing ever began."""


def wait(subscription: Subscription, context: Context, timeout: float) -> None:
    """Until a message waits or the time is over [s]."""
    try:
        with subscription.handle, context.handle:
            waiting = rclpy_implementation.WaitSet(1, 0, 0, 0, 0, 0, context.handle)
            waiting.clear_entities()
            waiting.add_subscription(subscription.handle)
            waiting.wait(round(timeout * NANOSECONDS))
    except (InvalidHandle, rclpy_implementation.RCLError):  # the subscription or ROS has ended
        time.sleep(timeout)


def messages(subscription: Subscription) -> Iterator[tuple[Any, float]]:
    """All messages that wait, and how long ago the middleware received each [s]; 0 if it does not tell."""
    while True:
        try:
            with subscription.handle:
                taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
        except InvalidHandle:  # destroyed meanwhile
            return
        if taken is None:
            return
        message, info = taken
        received = info["received_timestamp"]
        yield message, max(time.time_ns() - received, 0) / NANOSECONDS if received else 0.0
