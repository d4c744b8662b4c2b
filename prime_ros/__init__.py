# SPDX-License-Identifier: Apache-2.0
"""Contact forces, dynamically consistent motion and link inertia of legged robots, with their uncertainty."""

__version__ = "0.1.0"
