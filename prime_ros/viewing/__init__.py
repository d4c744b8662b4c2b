# SPDX-License-Identifier: Apache-2.0
"""3-D replay of an estimate in the browser: robot, contact forces, and inertia before and after."""

from prime_ros.viewing.view import view

__all__ = ["view"]
