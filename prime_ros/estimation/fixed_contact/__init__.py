# SPDX-License-Identifier: Apache-2.0
"""Baseline for comparison: which feet stand is settled beforehand by their height, and contact is rigid."""
