# SPDX-License-Identifier: Apache-2.0
"""What the sensors delivered, and what of it the estimation sees at its knots."""

from prime_ros.measurements.alignment import align
from prime_ros.measurements.cleaning import StreamDiagnostics
from prime_ros.measurements.findings import ClockOffset, Finding
from prime_ros.measurements.knots import AlignmentDiagnostics, KnotMeasurements
from prime_ros.measurements.samples import ImuSamples, JointSamples, MocapSamples, Recording

__all__ = [
    "AlignmentDiagnostics",
    "ClockOffset",
    "Finding",
    "ImuSamples",
    "JointSamples",
    "KnotMeasurements",
    "MocapSamples",
    "Recording",
    "StreamDiagnostics",
    "align",
]
