# SPDX-License-Identifier: Apache-2.0
"""What an inspection found, and as what a script reads."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from prime_ros.inspection.streams import StreamStatistics
from prime_ros.measurements.findings import ClockOffset, Finding
from prime_ros.sources import SourceDescription


@dataclass(frozen=True)
class Use:
    """What a recording has for one role."""

    purpose: str
    """What the estimation takes from it."""
    needed: bool
    """Whether it cannot do without."""
    source: str | None
    """Topic or stream that is read; None: there is none."""


@dataclass(frozen=True)
class Inspection:
    """What is in a recording and what is wrong with it."""

    description: SourceDescription
    """Format, files and topics."""
    uses: dict[str, Use]
    """By role: ``joints``, ``mocap``, ``imu``."""
    streams: dict[str, StreamStatistics]
    """By role, of the streams that could be read."""
    joints: tuple[str, ...]
    """Names of the recorded joints."""
    robot: str | None
    """Robot that it was checked for."""
    findings: tuple[Finding, ...]
    """What the checks found."""
    clock: ClockOffset | None
    """Offset of motion capture, if it could be told."""
    knots: int | None
    """Knots that an estimation would have; None: it could not start, or no robot was given."""
    knots_without: dict[str, int]
    """Knots at which a channel is not measured."""
    problems: tuple[str, ...]
    """Why an estimation could not start, apart from the findings."""
    notes: tuple[str, ...]
    """What else is to be said."""

    @property
    def usable(self) -> bool:
        """Whether an estimation would start, as far as can be told."""
        return not self.problems and all(finding.severity != "error" for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Everything as what JSON knows, for scripts.

        Returns:
            ``recording``: path, format, files, start_ns, duration_s. ``topics``: list of name, type, count,
            role, used, note. ``roles``: by role purpose, needed, source. ``streams``: by role start_s,
            duration_s, rate_hz, jitter_s, gaps, longest_gaps (start_s, duration_s), samples, used, left_out
            (by reason). ``joints``: names. ``robot``: name or null. ``checks``: list of check, severity,
            what, advice, values. ``clock_offset``: seconds, std, applied, or null. ``knots``: number or null.
            ``knots_without``: by channel. ``problems``, ``notes``: texts. ``usable``: true or false.
        """
        source = self.description
        return {
            "recording": {
                "path": str(source.path),
                "format": source.format,
                "files": list(source.files),
                "start_ns": source.start_ns,
                "duration_s": source.duration,
            },
            "topics": [
                {
                    "name": topic.name,
                    "type": topic.msgtype,
                    "count": topic.count,
                    "role": topic.role,
                    "used": topic.used,
                    "note": topic.note,
                }
                for topic in source.topics
            ],
            "roles": {role: asdict(use) for role, use in self.uses.items()},
            "streams": {role: _stream(stream) for role, stream in self.streams.items()},
            "joints": list(self.joints),
            "robot": self.robot,
            "checks": [asdict(finding) for finding in self.findings],
            "clock_offset": None if self.clock is None else asdict(self.clock),
            "knots": self.knots,
            "knots_without": dict(self.knots_without),
            "problems": list(self.problems),
            "notes": list(self.notes),
            "usable": self.usable,
        }


def _stream(stream: StreamStatistics) -> dict[str, Any]:
    return {
        "start_s": stream.start,
        "duration_s": stream.duration,
        "rate_hz": stream.rate,
        "jitter_s": stream.jitter,
        "gaps": stream.gaps,
        "longest_gaps": [{"start_s": gap.start, "duration_s": gap.duration} for gap in stream.longest_gaps],
        "samples": stream.counts.read,
        "used": stream.counts.used,
        "left_out": dict(stream.counts.left_out()),
    }
