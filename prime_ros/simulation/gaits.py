# SPDX-License-Identifier: Apache-2.0
"""Gaits: which feet stand when, and how the base should move. A seed makes each run of a gait its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from prime_ros.exceptions import SimulationError
from prime_ros.simulation.legs import LEGS

Array = NDArray[np.float64]

EASE_IN = 1.0  # time over which a motion starts [s]


@dataclass(frozen=True)
class Velocity:
    """Wanted velocity of the base in its own heading."""

    forward: float = 0.0
    """[m/s]"""
    left: float = 0.0
    """[m/s]"""
    turn: float = 0.0
    """About the vertical, counterclockwise [rad/s]."""


@dataclass(frozen=True)
class Reference:
    """What a gait wants at one time."""

    swing: Array = field(default_factory=lambda: np.full(LEGS, -1.0))
    """Progress of the swing of each foot from 0 to 1; negative: it stands. Shape (4,)."""
    swing_duration: float = 0.2
    """[s]"""
    stance_duration: float = 0.2
    """[s]"""
    step_height: float = 0.07
    """[m]"""
    velocity: Velocity = Velocity()
    """Of the base over ground."""
    anchored: bool = False
    """Whether the base keeps its place over the feet."""
    offset: Array = field(default_factory=lambda: np.zeros(3))
    """From the standing posture: forward, left, up, shape (3,) [m]."""
    offset_rate: Array = field(default_factory=lambda: np.zeros(3))
    """Its rate [m/s]."""
    lift: float = 0.0
    """Vertical acceleration [m/s^2]."""
    angles: Array = field(default_factory=lambda: np.zeros(3))
    """Roll, pitch, yaw from the standing posture, shape (3,) [rad]."""
    angle_rates: Array = field(default_factory=lambda: np.zeros(3))
    """Their rates [rad/s]."""
    airborne: bool = False
    """Whether no foot stands on purpose."""


class Gait(ABC):
    """A gait. Asked once a step, in the order of time."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.commanded: Velocity | None = None
        """Velocity asked for from outside; None: the gait moves as it likes."""

    @abstractmethod
    def reference(self, time: float, touching: NDArray[np.bool_], home: Array) -> Reference:
        """What to do.

        Args:
            time: Since the start of the gait [s].
            touching: Which feet feel the ground, in the order of `Legs`, shape (4,).
            home: Direction to the start in the heading of the base, forward and left, shape (2,) [m].
        """


class Stand(Gait):
    """Stand still."""

    def reference(self, time: float, touching: NDArray[np.bool_], home: Array) -> Reference:
        """The standing posture."""
        return Reference(anchored=True)


class Sway(Gait):
    """Stand, and move and turn the torso about all axes."""

    AMPLITUDE = np.array(
        [0.03, 0.03, 0.035, 0.20, 0.18, 0.20]
    )  # forward, left, up [m]; roll, pitch, yaw [rad]
    FREQUENCY = np.array([0.41, 0.53, 0.47, 0.61, 0.43, 0.35])  # [Hz]

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._phase = 2 * np.pi * self.random.random(6)
        self._frequency = 2 * np.pi * self.FREQUENCY * self.random.uniform(0.9, 1.1, 6)

    def reference(self, time: float, touching: NDArray[np.bool_], home: Array) -> Reference:
        """A sine on each axis, none a multiple of another."""
        amplitude = self.AMPLITUDE * _eased(time)
        angle = self._frequency * time + self._phase
        motion, rate = amplitude * np.sin(angle), amplitude * self._frequency * np.cos(angle)
        return Reference(
            anchored=True, offset=motion[:3], offset_rate=rate[:3], angles=motion[3:], angle_rates=rate[3:]
        )


class Trot(Gait):
    """Diagonal feet swing together, in place or where it is told to go."""

    PERIOD = 0.46  # [s]
    STANCE = 0.56  # share of the period that a foot stands
    PHASE = np.array([0.0, 0.5, 0.5, 0.0])  # front left, front right, rear left, rear right
    LIMITS = np.array([0.5, 0.25, 0.8])  # of the commands it gives itself [m/s, m/s, rad/s]
    ROAM = 1.0  # distance from the start from which it turns back [m]

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._roll_frequency, self._pitch_frequency = 2 * np.pi * self.random.uniform(0.3, 0.6, 2)
        self._goal, self._until = np.zeros(3), EASE_IN
        self._now, self._time = np.zeros(3), 0.0

    def reference(self, time: float, touching: NDArray[np.bool_], home: Array) -> Reference:
        """The trot."""
        velocity = self._velocity(time, home)
        phase = (time / self.PERIOD + self.PHASE) % 1.0
        swing = np.where(phase < self.STANCE, -1.0, (phase - self.STANCE) / (1 - self.STANCE))
        if time < 0.5 * EASE_IN:
            swing = np.full(LEGS, -1.0)
        wave = np.array([self._roll_frequency, self._pitch_frequency])
        angles, rates = 0.05 * np.sin(wave * time), 0.05 * wave * np.cos(wave * time)
        return Reference(
            swing=swing,
            swing_duration=self.PERIOD * (1 - self.STANCE),
            stance_duration=self.PERIOD * self.STANCE,
            velocity=velocity,
            angles=np.append(angles, 0.0),
            angle_rates=np.append(rates, 0.0),
        )

    def _velocity(self, time: float, home: Array) -> Velocity:
        """The command, smoothed: a leap in it would be one of the legs."""
        if self.commanded is not None:
            asked = self.commanded
            self._goal = np.array([asked.forward, asked.left, asked.turn])
        elif time >= self._until:
            self._goal = self.LIMITS * self.random.uniform(-1.0, 1.0, 3) * (self.random.random(3) < 0.75)
            self._until = time + self.random.uniform(1.0, 2.5)
        goal = self._goal.copy()
        distance = float(np.hypot(*home))
        if self.commanded is None and distance > self.ROAM:
            goal[:2] = self.LIMITS[:2] * home / distance
        self._now += (goal - self._now) * min(1.0, (time - self._time) / 0.3)
        self._time = time
        return Velocity(*self._now.tolist())


class Hop(Gait):
    """All feet push off together, with sideways velocity to and fro."""

    STANCE, FLIGHT = 0.24, 0.16  # [s]
    SETTLE = 0.6  # stands before the first hop [s]
    SIDEWAYS = np.array([0.08, 0.22])  # amplitude of velocity forward and left [m/s]

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._phase = 2 * np.pi * self.random.random(2)
        self._frequency = 2 * np.pi * np.array([0.31, 0.23]) * self.random.uniform(0.9, 1.1, 2)
        self._since, self._flying = self.SETTLE, False

    def reference(self, time: float, touching: NDArray[np.bool_], home: Array) -> Reference:
        """Push-off and flight, which ends when the feet touch."""
        velocity = self._velocity(time)
        base = Reference(
            velocity=velocity, swing_duration=self.FLIGHT, stance_duration=self.STANCE, step_height=0.03
        )
        if time < self.SETTLE:
            return replace(base, velocity=Velocity(), anchored=True)
        phase = time - self._since
        if self._flying and phase > 0.5 * self.FLIGHT and (touching.sum() >= 2 or phase > 2 * self.FLIGHT):
            self._flying, self._since, phase = False, time, 0.0
        elif not self._flying and phase >= self.STANCE:
            self._flying, self._since, phase = True, time, 0.0
        if self._flying:
            swing = np.full(LEGS, min(phase / self.FLIGHT, 1.0))
            return replace(base, swing=swing, airborne=True)
        return self._pushing(base, phase / self.STANCE)

    def _pushing(self, base: Reference, progress: float) -> Reference:
        """Down and up again: velocity from minus to plus that of the flight, along half a cosine."""
        speed = 0.5 * 9.81 * self.FLIGHT
        depth = -speed * self.STANCE / np.pi * np.sin(np.pi * progress)
        return replace(
            base,
            offset=np.array([0.0, 0.0, depth]),
            offset_rate=np.array([0.0, 0.0, -speed * np.cos(np.pi * progress)]),
            lift=np.pi * speed / self.STANCE * np.sin(np.pi * progress),
        )

    def _velocity(self, time: float) -> Velocity:
        if self.commanded is not None:
            return self.commanded
        forward, left = (
            self.SIDEWAYS * _eased(time - self.SETTLE) * np.sin(self._frequency * time + self._phase)
        )
        return Velocity(float(forward), float(left))


GAITS: dict[str, type[Gait]] = {"stand": Stand, "sway": Sway, "trot": Trot, "hop": Hop}


def make_gait(name: str, seed: int) -> Gait:
    """A gait by its name.

    Raises:
        SimulationError: If there is none of this name.
    """
    if name not in GAITS:
        raise SimulationError(f"gait: got '{name}', expected one of {', '.join(GAITS)}")
    return GAITS[name](seed)


def _eased(time: float) -> float:
    """From 0 to 1 over the time a motion starts, smoothly."""
    progress = min(max(time / EASE_IN, 0.0), 1.0)
    return progress * progress * (3 - 2 * progress)
