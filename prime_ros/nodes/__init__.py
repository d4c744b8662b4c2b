# SPDX-License-Identifier: Apache-2.0
"""ROS 2 nodes: thin, and the only part of the package that imports ROS."""
