# SPDX-License-Identifier: Apache-2.0
"""What makes the stamps of a stream unusable or doubtful."""

from __future__ import annotations

import numpy as np

from prime_ros.measurements.findings import Finding
from prime_ros.measurements.samples import NANOSECONDS, Stamps
from prime_ros.measurements.time_order import TimeOrder

MAX_RATE_HZ = 20_000.0  # no sensor of a robot is faster; microseconds read as nanoseconds are
MANY_SHARED = 0.2  # share of samples on the stamp of another that means more than a hiccup


def stamp_findings(stream: str, stamp_ns: Stamps, order: TimeOrder) -> list[Finding]:
    """What makes the stamps of a stream unusable or doubtful.

    Args:
        stream: Name of the stream.
        stamp_ns: Stamps as recorded, shape (N,) [ns].
        order: What `time_order` made of them.

    Returns:
        Errors if the stamps are constant or much too dense, a warning if many are shared.
    """
    read = len(stamp_ns)
    if read < 2:
        return []
    advice = "set header.stamp where the message is published, or take the times of receipt: --stamps receipt"
    if order.duplicates and stamp_ns.min() == stamp_ns.max():
        what = (
            f"{stream}: all {read} samples have the stamp {int(stamp_ns[0])} ns, expected when each was taken"
        )
        return [Finding("stamps", "error", what, advice)]
    kept = stamp_ns[order.keep]
    if read > 2 and len(kept) < 3 and order.backward > order.duplicates:
        what = f"{stream}: the stamps of {order.backward} of {read} samples go back, expected increasing ones"
        return [Finding("stamps", "error", what, "write the samples in the order in which they were taken")]
    if len(kept) > 2 and (rate := NANOSECONDS / float(np.median(np.diff(kept)))) > MAX_RATE_HZ:
        what = (
            f"{stream}: got {rate:.3g} samples per second of their stamps, expected at most {MAX_RATE_HZ:.0f}"
        )
        return [Finding("stamps", "error", what, "stamps are nanoseconds; write them in that unit")]
    if order.duplicates > MANY_SHARED * read:
        shared = f"{order.duplicates} of {read} samples"
        what = f"{stream}: {shared} have the stamp of the one before and were dropped"
        return [Finding("stamps", "warning", what, advice)]
    return []
