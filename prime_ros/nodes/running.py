# SPDX-License-Identifier: Apache-2.0
"""What the programs of all nodes share: start, spin, end, and errors as one line."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable

import rclpy
from rclpy.exceptions import ParameterException
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node

from prime_ros.exceptions import PrimeError

EXIT_BAD_INPUT = 2


def run(make: Callable[[], Node], arguments: list[str] | None = None) -> None:
    """Run a node until it is told to end; bad settings end the process with a message and exit code 2.

    Args:
        make: Makes the node.
        arguments: Of the command line; None: those of the process.
    """
    rclpy.init(args=arguments)
    node = None
    try:
        node = make()
        rclpy.spin(node)
    except (PrimeError, ParameterException) as error:
        print(f"{sys.argv[0]}: error: {error}", file=sys.stderr)
        sys.exit(EXIT_BAD_INPUT)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except Exception:
        if rclpy.ok():  # otherwise Ctrl-C came while it published
            raise
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C comes twice below ros2 launch
        if node is not None:
            node.destroy_node()
        rclpy.try_shutdown()
