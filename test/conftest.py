# SPDX-License-Identifier: Apache-2.0
"""What tests of several files share and is expensive to make."""

from __future__ import annotations

import importlib.util

import pytest
from recordings import BAG

from prime_ros import sources


@pytest.fixture(scope="session")
def recorded_bag(tmp_path_factory):
    """Bag of 3 s of the bundled recording that went through real rclpy, and what was published."""
    if importlib.util.find_spec("rclpy") is None:
        pytest.skip("needs rclpy")
    from record_bag import record_bag

    published = sources.load(BAG).cropped(2.0, 3.0)
    return record_bag(published, tmp_path_factory.mktemp("recorded") / "bag"), published
