# SPDX-License-Identifier: Apache-2.0
"""A robot to try the estimators on: MuJoCo (optional extra ``simulation``), gaits, noisy sensors, truth."""
