# SPDX-License-Identifier: Apache-2.0
"""What is in a recording, and whether it is good enough: behind `prime info`."""

from prime_ros.inspection.inspect import inspect
from prime_ros.inspection.inspection import Inspection, Use
from prime_ros.inspection.printing import print_inspection
from prime_ros.inspection.streams import Gap, StreamStatistics

__all__ = ["Gap", "Inspection", "StreamStatistics", "Use", "inspect", "print_inspection"]
