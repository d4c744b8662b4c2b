# SPDX-License-Identifier: Apache-2.0
"""Which simulated logs the experiments use."""

GO2 = ("go2_payload_3kg", "go2_com_down_0.1m")
G1 = ("g1_walk_battery_2.9kg",)
IDENTIFIED = (*GO2, *G1)
BASELINE = (
    "go2_walk",
    "go2_payload_3kg",
    "go2_payload_3kg_stiff",
    "g1_walk",
    "g1_dance",
    "g1_walk_battery_2.9kg",
)
TUNING = ("go2_walk", "g1_walk")
KAPPA = ("go2_payload_3kg", "g1_walk_battery_2.9kg")
