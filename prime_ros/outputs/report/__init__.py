# SPDX-License-Identifier: Apache-2.0
"""report.html: one self-contained, interactive page about an estimation. Plots are imported when written."""

from prime_ros.outputs.report.page import write_report

__all__ = ["write_report"]
