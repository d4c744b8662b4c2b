# SPDX-License-Identifier: Apache-2.0
"""Streams whose samples are rows of fixed width: IMU and motion capture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prime_ros.exceptions import SourceError
from prime_ros.measurements.samples import Floats, ImuSamples, MocapSamples, Stamps
from prime_ros.sources.bag import BagTopic
from prime_ros.sources.cdr import Bytes, Layout, Rows
from prime_ros.sources.options import SourceOptions
from prime_ros.sources.roles import (
    IMU,
    ODOMETRY,
    POSE_STAMPED,
    POSE_WITH_COVARIANCE,
    TF_MESSAGE,
    TRANSFORM_STAMPED,
)
from prime_ros.sources.streams import Stream

XYZ = ("x", "y", "z")


class RowStream(Stream):
    """A stream of rows of fixed width."""

    fields: tuple[str, ...] = ()
    """Paths of what a row is made of."""

    def __init__(
        self, topic: BagTopic, options: SourceOptions, where: str, extra: Sequence[str] = ()
    ) -> None:
        """See `Stream`; `extra` are paths to decode beside those of a row."""
        super().__init__(topic, (*self.fields, *extra), options, where)
        self._values: list[Floats] = []

    def _row(self, layout: Layout, block: Bytes, column: int | None = None) -> Floats:
        """Rows of a block of messages; `column`: those of one element of a sequence."""
        columns = [layout.values(path, block) for path in self.fields]
        if column is not None:
            columns = [values[:, column : column + 1] for values in columns]
        return np.hstack(columns).astype(float)

    def _table(self) -> tuple[Stamps, Floats]:
        stamps, places = self._finish()
        table = np.empty((len(stamps), self._values[0].shape[1]))
        table[places] = np.concatenate(self._values)
        self._values.clear()
        return stamps, table


class ImuStream(RowStream):
    """An Imu, or that of a LowState."""

    def __init__(self, topic: BagTopic, options: SourceOptions, where: str) -> None:
        """See `Stream`."""
        rate, force = "angular_velocity", "linear_acceleration"
        self._covariances: tuple[str, ...] = ()
        self.fields = tuple(f"{vector}.{axis}" for vector in (rate, force) for axis in XYZ)
        if topic.msgtype == IMU:
            self._covariances = (f"{rate}_covariance", f"{force}_covariance")
        else:
            self.fields = ("imu_state.gyroscope", "imu_state.accelerometer")
        super().__init__(topic, options, where, self._covariances)

    def _take(self, layout: Layout, rows: Rows, block: Bytes) -> None:
        values = self._row(layout, block)
        if values.shape[1] != 6:
            raise SourceError(
                f"got {values.shape[1]} values of the IMU, expected three rates and three forces"
            )
        for index, path in enumerate(self._covariances):
            absent = layout.values(path, block)[:, 0] == -1  # as sensor_msgs/Imu marks what is not measured
            values[absent, 3 * index : 3 * index + 3] = np.nan
        self._keep_clock(layout, rows, block)
        self._values.append(values)

    def samples(self) -> ImuSamples:
        """The samples."""
        stamps, table = self._table()
        return ImuSamples(stamps, table[:, :3], table[:, 3:6])


#: Paths of position and orientation by type.
_POSES = {
    POSE_STAMPED: ("pose.position", "pose.orientation"),
    POSE_WITH_COVARIANCE: ("pose.pose.position", "pose.pose.orientation"),
    ODOMETRY: ("pose.pose.position", "pose.pose.orientation"),
    TRANSFORM_STAMPED: ("transform.translation", "transform.rotation"),
    TF_MESSAGE: ("transform.translation", "transform.rotation"),
}


class MocapStream(RowStream):
    """Poses of the tracked body; of transforms, those of one child frame."""

    def __init__(self, topic: BagTopic, options: SourceOptions, where: str) -> None:
        """See `Stream`."""
        position, rotation = _POSES[topic.msgtype]
        self.prefix = "transforms." if topic.msgtype == TF_MESSAGE else ""
        self.fields = tuple(
            self.prefix + path
            for path in (
                *(f"{position}.{axis}" for axis in XYZ),
                *(f"{rotation}.{axis}" for axis in (*XYZ, "w")),
            )
        )
        self._frames: tuple[str, ...] = ()
        if topic.msgtype in (TF_MESSAGE, TRANSFORM_STAMPED):
            self._frames = (f"{self.prefix}child_frame_id", f"{self.prefix}header.frame_id")
        self._body = options.body
        self.bodies: dict[str, int] = {}
        """Child frames seen, with the number of their transforms."""
        self._parents: dict[str, set[str]] = {}
        super().__init__(topic, options, where, self._frames)

    def _take(self, layout: Layout, rows: Rows, block: Bytes) -> None:
        if not self._frames:
            self._keep(layout, rows, block, 0)
            return
        children, parents = (layout.strings.get(path, ()) for path in self._frames)
        for column, (child, parent) in enumerate(zip(children, parents, strict=True)):
            body = child.lstrip("/")
            self.bodies[body] = self.bodies.get(body, 0) + len(block)
            self._parents.setdefault(body, set()).add(parent)
            # More than one body and no choice is an error in the end: keep no poses for it.
            if body == self._body.lstrip("/") if self._body is not None else len(self.bodies) == 1:
                self._keep(layout, rows, block, column)

    def _keep(self, layout: Layout, rows: Rows, block: Bytes, column: int) -> None:
        self._keep_clock(layout, rows, block, column)
        self._values.append(self._row(layout, block, column))

    def samples(self) -> MocapSamples:
        """The samples.

        Raises:
            SourceError: If it is not clear which transforms are the tracked body.
        """
        self.check()
        stamps, table = self._table()
        return MocapSamples(stamps, table[:, :3], table[:, 3:])

    def check(self) -> None:
        """Whether it is clear which transforms are the tracked body."""
        if not self._frames:
            return
        found = ", ".join(f"{name} ({count})" for name, count in sorted(self.bodies.items())) or "none"
        bodies = [self._body.lstrip("/")] if self._body is not None else list(self.bodies)
        if len(bodies) != 1 or bodies[0] not in self.bodies:
            got = f"--body {self._body}" if self._body is not None else f"transforms of {len(bodies)} frames"
            raise SourceError(
                f"{self.where}: got {got}, expected one tracked body: say which with --body; found {found}"
            )
        parents = self._parents[bodies[0]]
        if len(parents) > 1:
            raise SourceError(
                f"{self.where}: got {bodies[0]} in frames {', '.join(sorted(parents))}, expected one world"
            )
