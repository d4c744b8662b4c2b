# SPDX-License-Identifier: Apache-2.0
"""What an estimation leaves behind: files for other tools and a summary for people."""
