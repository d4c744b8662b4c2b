# SPDX-License-Identifier: Apache-2.0
"""A run of a simulated robot as a recording, and its truth as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prime_ros.exceptions import OutputError, SimulationError
from prime_ros.measurements.samples import ImuSamples, JointSamples, MocapSamples, Recording, Stamps
from prime_ros.simulation.simulator import STEP, Simulator, Truth

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TruthTable:
    """N samples of the truth, at the stamps of the joints; n joints and C contacts."""

    stamp_ns: Stamps
    """Shape (N,) [ns]."""
    joint_names: tuple[str, ...]
    contact_names: tuple[str, ...]
    base_position_W: Array
    """Shape (N, 3) [m]."""
    base_quat_xyzw: Array
    """Base to world, shape (N, 4)."""
    base_velocity_B: Array
    """Twist in base axes, linear then angular, shape (N, 6) [m/s, rad/s]."""
    joint_position: Array
    """Shape (N, n) [rad]."""
    joint_velocity: Array
    """Shape (N, n) [rad/s]."""
    joint_torque: Array
    """Of the motors, shape (N, n) [Nm]."""
    contact_force_W: Array
    """On the robot, in world axes, shape (N, C, 3) [N]."""
    payload_mass: Array
    """Of all that the robot carries, shape (N,) [kg]."""
    base_mass: Array
    """Of the base with all it carries, shape (N,) [kg]."""
    base_com: Array
    """Its centre of mass in the base frame, shape (N, 3) [m]."""
    base_inertia_com: Array
    """Its inertia about the centre of mass, base axes, shape (N, 3, 3) [kg m^2]."""

    def save(self, path: str | Path) -> None:
        """Write an ``.npz`` with an array per field.

        Raises:
            OutputError: If it cannot be written.
        """
        try:
            with Path(path).open("wb") as file:
                np.savez_compressed(file, **{field.name: getattr(self, field.name) for field in fields(self)})
        except OSError as error:
            raise OutputError(f"{path}: cannot be written: {error}") from error


def record(
    simulator: Simulator, duration: float, every_step: Callable[[Simulator], None] = lambda simulator: None
) -> tuple[Recording, TruthTable]:
    """Run a simulator and keep what it says.

    Args:
        simulator: The simulator, which goes on from where it is.
        duration: How long [s].
        every_step: Called before each step: the place to put on a payload or to report progress.

    Returns:
        What the sensors said, and the truth.

    Raises:
        SimulationError: If the robot falls, or the duration is shorter than a step.
    """
    if not STEP <= duration < np.inf:
        raise SimulationError(f"duration: got {duration} s, expected at least {STEP} s")
    count = round(duration / STEP)
    measured, poses, true = _Columns(count), _Columns(count), _Columns(count)
    for _ in range(count):
        every_step(simulator)
        simulator.step()
        if simulator.fallen:
            raise SimulationError(
                f"the robot fell at {simulator.time:.2f} s; it carried"
                f" {sum(p.mass for p in simulator.payloads):g} kg: give it less, or put it nearer the middle"
            )
        sample = simulator.sensors()
        measured.append(vars(sample))
        if sample.mocap is not None:
            poses.append({"stamp_ns": sample.stamp_ns, **vars(sample.mocap)})
        true.append(_row(simulator.truth()))
    robot = simulator.robot
    table = TruthTable(joint_names=robot.joint_names, contact_names=robot.contact_names, **true.arrays)
    return _recording(robot.joint_names, measured.arrays, poses.arrays), table


class _Columns:
    """An array per quantity, filled row by row: many minutes must fit into memory."""

    def __init__(self, rows: int) -> None:
        self._rows, self._filled = rows, 0
        self._arrays: dict[str, NDArray[Any]] = {}

    def append(self, row: Mapping[str, Any]) -> None:
        """One more row; values that are no numbers are left out."""
        if not self._arrays:
            values = {name: np.asarray(value) for name, value in row.items()}
            self._arrays = {
                name: np.empty((self._rows, *value.shape), value.dtype)
                for name, value in values.items()
                if value.dtype.kind in "fi"
            }
        for name, array in self._arrays.items():
            array[self._filled] = row[name]
        self._filled += 1

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The rows so far, by quantity."""
        return {name: array[: self._filled] for name, array in self._arrays.items()}


def _row(truth: Truth) -> dict[str, Any]:
    row = {name: value for name, value in vars(truth).items() if name not in ("payloads", "base_inertia")}
    return row | {
        "payload_mass": float(sum(payload.mass for payload in truth.payloads)),
        "base_mass": truth.base_inertia.mass,
        "base_com": truth.base_inertia.lever,
        "base_inertia_com": truth.base_inertia.inertia,
    }


def _recording(
    names: tuple[str, ...], measured: Mapping[str, NDArray[Any]], poses: Mapping[str, NDArray[Any]]
) -> Recording:
    stamp_ns = measured["stamp_ns"]
    joints = (measured[f"joint_{quantity}"] for quantity in ("position", "velocity", "torque"))
    imu = ImuSamples(stamp_ns, measured["angular_velocity"], measured["linear_acceleration"])
    mocap = MocapSamples(poses["stamp_ns"], poses["position"], poses["quat_xyzw"])
    return Recording(JointSamples(stamp_ns, names, *joints), mocap, imu)
