# SPDX-License-Identifier: Apache-2.0
"""Estimation of motion, contact forces and inertia from time-aligned measurements."""
