# SPDX-License-Identifier: Apache-2.0
"""Errors of the domain. Each message says what was got, what was expected, and what to do."""


class PrimeError(Exception):
    """Root of everything this package raises on purpose."""


class ConfigError(PrimeError):
    """A setting is unknown, missing, or has the wrong type, unit or shape."""


class RobotError(PrimeError):
    """A robot model cannot be found, read or used, or a name does not exist in it."""


class SourceError(PrimeError):
    """A recording cannot be found or read."""


class MeasurementError(PrimeError):
    """Samples are malformed, too few, or do not fit together or to the robot."""


class OutputError(PrimeError):
    """A result cannot be written."""


class SimulationError(PrimeError):
    """The simulated robot cannot be built or controlled, or it fell."""
