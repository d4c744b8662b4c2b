# SPDX-License-Identifier: Apache-2.0
"""How a node and its estimator do, as diagnostic_msgs: entries for each input, the window and the sensors."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from scipy.spatial.transform import Rotation

from prime_ros.estimation.estimate import Estimate
from prime_ros.estimation.live import LiveStatus
from prime_ros.measurements.samples import NANOSECONDS, Floats
from prime_ros.nodes.inputs import Channel, Inputs
from prime_ros.outputs.advice import CHI_SQUARE_RANGE
from prime_ros.robot import Robot

SILENT = 0.5
"""Pause of a topic that is a fault [s]."""
DROPPED = 0.01
"""Share of dropped samples of a period that is worth a warning [-]."""
REJECTED = 50
"""Rejected scalar measurements per second that are worth a warning: several per cent of a sensor."""
MISSING = 0.02
"""Share of missing messages of a period that is worth a warning [-]."""
LONGEST_NS = 5_000_000_000
"""Longest period whose missing messages are counted [ns]."""
TILT = 0.5
"""Angle of gravity, averaged over a period, that motion does not explain [rad]."""
GAPS = 5.0
"""Longest pause in a stream, in multiples of its period, that is worth a warning [-]."""

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR

STREAMS = {
    "joint_states": ("joints",),
    "imu": ("imu",),
    "mocap": ("mocap",),
    "lowstate": ("joints", "imu"),
    "joint_torques": (),
}
"""Streams of the estimator that a topic feeds."""


@dataclass
class Entry:
    """One diagnostic: what is wrong, if anything, and the figures."""

    name: str
    faults: list[tuple[bytes, str]] = field(default_factory=list)
    """Level and text."""
    values: dict[str, Any] = field(default_factory=dict)

    def fault(self, level: bytes, text: str) -> None:
        """Add what is wrong."""
        self.faults.append((level, text))

    def message(self, node: str, hardware: str) -> DiagnosticStatus:
        """As message; the worst fault gives the level, all are told."""
        return DiagnosticStatus(
            level=max((level for level, _ in self.faults), default=OK),
            name=f"{node}: {self.name}",
            message="; ".join(text for _, text in self.faults) or "ok",
            hardware_id=hardware,
            values=[KeyValue(key=key, value=_text(value)) for key, value in self.values.items()],
        )


class Diagnostics:
    """Compares the state of an estimator with what it was a period before."""

    def __init__(self) -> None:
        self._before: dict[str, int] = {}
        self._newest: dict[str, int] = {}
        self._counted_at = time.monotonic()

    def entries(
        self, inputs: Inputs, status: LiveStatus, delay: float | None, tilt: float | None = None
    ) -> list[Entry]:
        """Everything there is to tell.

        Args:
            inputs: Topics.
            status: Of the estimator.
            delay: Time from measurement to publication of the last estimate [s]; None: none yet.
            tilt: Angle between gravity as the IMU feels it and as the estimate has it [rad]; None: unknown.
        """
        now = time.monotonic()
        period, self._counted_at = max(now - self._counted_at, 1e-3), now
        topics = [self._topic(name, inputs, status, period) for name in inputs.channels]
        return [*topics, self._window(status, delay), self._sensors(status, tilt)]

    def _topic(self, name: str, inputs: Inputs, status: LiveStatus, period: float) -> Entry:
        channel = inputs.channels[name]
        entry = Entry(name, values={"topic": channel.topic, "type": channel.msgtype})
        vital = name != "imu"
        received = self._new(f"{name} received", channel.received)
        silence = time.monotonic() - channel.last
        if silence > SILENT:
            text = "no message yet" if math.isinf(silence) else f"silent for {silence:.1f} s"
            entry.fault(ERROR if vital else WARN, text)
        for problem in inputs.problems(name):
            entry.fault(WARN, problem)
        entry.values |= {"messages": channel.received, "rate [1/s]": received / period, "age [s]": silence}
        missing = 0.0
        for stream in STREAMS[name]:
            self._stream(entry, stream, status)
            missing = max(missing, self._missing(name, channel, received, status.streams[stream].rate_hz))
        if refused := self._new(f"{name} refused", channel.refused):
            entry.fault(WARN, f"{refused} of {received} messages refused: {channel.complaint}")
        elif missing > MISSING:
            entry.fault(WARN, f"{100 * missing:.0f} % of the messages are missing")
        disordered = self._new(f"{name} disordered", channel.disordered)
        if disordered > DROPPED * received:
            entry.fault(WARN, f"{disordered} of {received} messages out of order")
        entry.values |= {"refused": channel.refused, "out of order": channel.disordered}
        return entry

    def _stream(self, entry: Entry, stream: str, status: LiveStatus) -> None:
        """Samples of the estimator that a topic brought."""
        told = status.streams[stream]
        received = self._new(f"{stream} pushed", told.received)
        for reason, count in told.dropped.items():
            entry.values[f"{stream}: {reason}"] = count
            new = self._new(f"{stream} {reason}", count)
            if new > DROPPED * max(received, 1):
                entry.fault(WARN, f"{stream}: {new} of {received} samples: {reason}")
        entry.values |= {
            f"{stream}: used": told.used,
            f"{stream}: rate of the stamps [1/s]": told.rate_hz,
            f"{stream}: longest gap [s]": told.largest_gap_s,
        }
        if told.rate_hz > 0.0 and told.largest_gap_s * told.rate_hz > GAPS:
            entry.fault(
                WARN, f"{stream}: a gap of {1e3 * told.largest_gap_s:.0f} ms at {told.rate_hz:.0f} per second"
            )

    def _missing(self, name: str, channel: Channel, received: int, rate: float) -> float:
        """Share of messages that never came, by the time between those that did [-]."""
        newest, before = channel.newest_ns, self._newest.get(name, 0)
        self._newest[name] = newest
        if rate <= 0.0 or not before < newest < before + LONGEST_NS:
            return 0.0
        return 1.0 - received * NANOSECONDS / (rate * (newest - before))

    def _window(self, status: LiveStatus, delay: float | None) -> Entry:
        entry = Entry("window", values={"state": status.state, "steps": status.steps})
        if status.state != "running":
            entry.fault(ERROR, f"waiting: {status.reason}")
        if status.degraded:
            entry.fault(WARN, f"over budget: {status.degraded}")
        if self._new("resets", status.resets):
            entry.fault(WARN, f"started anew: {status.last_reset}")
        if missed := self._new("missed knots", status.missed_knots):
            entry.fault(WARN, f"{missed} knots without joint samples")
        if lost := self._new("unestimated", status.unestimated):
            entry.fault(
                WARN, f"{lost} steps without an estimate: their samples waited longer than the window"
            )
        entry.values |= {
            "resets": status.resets,
            "last reset": status.last_reset,
            "missed knots": status.missed_knots,
            "steps without an estimate": status.unestimated,
        }
        entry.values |= {f"update {name} [ms]": 1e3 * s for name, s in status.solve_seconds.items()}
        if delay is not None:
            entry.values["from stamp to publication [ms]"] = 1e3 * delay
        return entry

    def _sensors(self, status: LiveStatus, tilt: float | None) -> Entry:
        """How well each sensor is explained; a ratio below the range is no danger live."""
        entry = Entry("sensors")
        if tilt is not None:
            entry.values["accelerometer: gravity against the estimate [deg]"] = math.degrees(tilt)
            if tilt > TILT:
                entry.fault(
                    WARN,
                    f"accelerometer: gravity comes from {math.degrees(tilt):.0f} degrees beside"
                    " where it should; see imu.quat_xyzw in the robot's YAML",
                )
        for sensor, ratio in status.chi_square.items():
            entry.values[f"{sensor}: chi-square [-]"] = ratio
            if ratio > 2.0 * CHI_SQUARE_RANGE[1]:
                entry.fault(WARN, f"{sensor}: residuals {math.sqrt(ratio):.1f} times the stated noise")
        for sensor, count in status.rejected.items():
            entry.values[f"{sensor}: rejected"] = count
            new = self._new(f"{sensor} rejected", count)
            if new > REJECTED:
                entry.fault(WARN, f"{sensor}: {new} measurements contradict the others and are left out")
        return entry

    def _new(self, name: str, total: int) -> int:
        """Growth of a count since the last time."""
        before = self._before.get(name, 0)
        self._before[name] = total
        return total - before if total >= before else total


def tilt_of_gravity(robot: Robot, force: Floats | None, estimate: Estimate | None) -> float | None:
    """Angle between the mean specific force of the IMU and up by the estimate [rad]; None: one is unknown."""
    if force is None or estimate is None or not np.linalg.norm(force) > 0.0:
        return None
    up = Rotation.from_quat(estimate.base_quat_xyzw[0]).inv().apply([0.0, 0.0, 1.0])
    cosine = robot.R_BI @ force @ up / np.linalg.norm(force)
    return float(np.arccos(np.clip(cosine, -1.0, 1.0)))


def array(stamp: Any, node: str, hardware: str, entries: Iterable[Entry]) -> DiagnosticArray:
    """The message of `/diagnostics`."""
    message = DiagnosticArray(status=[entry.message(node, hardware) for entry in entries])
    message.header.stamp = stamp
    return message


def summary(entries: Iterable[Entry]) -> Mapping[str, str]:
    """What is wrong, by the name of the entry."""
    return {entry.name: "; ".join(text for _, text in entry.faults) for entry in entries if entry.faults}


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
