# SPDX-License-Identifier: Apache-2.0
"""Real ROS 2 for tests: nodes and players as processes, and a node in this one that listens and calls."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import rclpy
from geometry_msgs.msg import TransformStamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.srv import DescribeParameters, GetParameters, SetParameters
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String

__all__ = [
    "LATCHED",
    "ChangeState",
    "Clock",
    "DescribeParameters",
    "GetParameters",
    "GetState",
    "JointState",
    "Parameter",
    "Session",
    "SetParameters",
    "String",
    "TransformStamped",
    "Transition",
    "stamp",
    "until",
]
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)

TIMEOUT = 30.0
"""Of whatever is waited for [s]."""
PLAYER = Path(__file__).with_name("live_player.py")


class Session:
    """A domain of its own."""

    def __init__(self) -> None:
        self._domain = 101 + os.getpid() % 100
        self.environment = {
            **os.environ,
            "ROS_DOMAIN_ID": str(self._domain),
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        }
        self._context = Context()
        rclpy.init(context=self._context, domain_id=self._domain)
        self.node = rclpy.create_node("listener", context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()
        self.received: dict[str, list[Any]] = defaultdict(list)

    @contextmanager
    def stranger(self) -> Iterator[Any]:
        """A node that the middleware takes for another process."""
        context = Context()
        rclpy.init(context=context, domain_id=self._domain)
        node = rclpy.create_node("stranger", context=context)
        try:
            yield node
        finally:
            node.destroy_node()
            context.try_shutdown()

    def listen(self, topic: str, kind: Any, quality: QoSProfile | int = 1000) -> list[Any]:
        """Messages of a topic from now on."""
        self.node.create_subscription(kind, topic, self.received[topic].append, quality)
        return self.received[topic]

    def call(self, service: str, kind: Any, **fields: Any) -> Any:
        """Response of a service."""
        client = self.node.create_client(kind, service)
        assert client.wait_for_service(TIMEOUT), service
        future = client.call_async(kind.Request(**fields))
        until(future.done, f"response of {service}")
        self.node.destroy_client(client)
        return future.result()

    @contextmanager
    def process(self, *command: str) -> Iterator[subprocess.Popen[str]]:
        """A Python program that runs meanwhile, and ends on Ctrl-C with status 0."""
        program = subprocess.Popen(
            [sys.executable, *command], env=self.environment, cwd="/", stderr=subprocess.PIPE, text=True
        )
        try:
            yield program
            program.send_signal(signal.SIGINT)
            _, errors = program.communicate(timeout=TIMEOUT)
            assert program.returncode == 0, errors
            assert "Traceback" not in errors, errors
        finally:
            program.kill()

    def play(self, table: Path, *options: str) -> None:
        """Play a table to the end, once all who listen to the joints have found the player."""
        listeners = max(self.node.count_subscribers("/joint_states"), 1)
        command = [sys.executable, str(PLAYER), str(table), "--listeners", str(listeners), *options]
        subprocess.run(command, env=self.environment, cwd="/", check=True, timeout=2 * TIMEOUT)

    def close(self) -> None:
        """End it."""
        self._context.try_shutdown()
        self._thread.join()

    def _spin(self) -> None:
        with suppress(ExternalShutdownException):
            self._executor.spin()


def until(condition: Callable[[], Any], what: str, timeout: float = TIMEOUT) -> Any:
    """Wait for a condition; its value."""
    end = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < end, f"no {what} within {timeout} s"
        time.sleep(0.02)
    return value


def stamp(message: Any) -> int:
    """Time of a message [ns]."""
    return int(message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec)
