# SPDX-License-Identifier: Apache-2.0
"""What several commands of `prime` share, and commands that are more than a few lines."""
