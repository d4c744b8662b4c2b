# SPDX-License-Identifier: Apache-2.0
"""What a measurement table holds, in whatever format."""

#: Quantities of every stream with the names of their columns; None: one column per joint.
STREAMS: dict[str, dict[str, str | None]] = {
    "joint": {"joint_position": None, "joint_velocity": None, "joint_torque": None},
    "imu": {"imu_angular_velocity": "xyz", "imu_linear_acceleration": "xyz"},
    "mocap": {"mocap_position": "xyz", "mocap_quat_xyzw": "xyzw"},
}
STAMP_NS = "stamp_ns"
"""Name of a column of stamps as integers [ns], behind the stream and an underscore."""
STAMP = "stamp"
"""Name of one in seconds."""
MAX_BYTES = 4 * 2**30
"""Of a table in memory: a damaged file may claim any size."""
