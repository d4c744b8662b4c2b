# SPDX-License-Identifier: Apache-2.0
"""Settings of the estimators: what ``config/estimators/<name>.yaml`` may say.

Every weight is a standard deviation in SI units. The defaults here and the shipped ``pfie.yaml`` are the
same.
"""

from typing import Literal

from pydantic import Field, StrictInt, field_validator

from prime_ros.config.units import (
    Meters,
    MetersPerSecond,
    NewtonMeters,
    Newtons,
    Number,
    Radians,
    RadiansPerSecond,
    Seconds,
    Section,
)


class ContactModelConfig(Section):
    """The smoothed contact."""

    kappa_stages: tuple[Number, ...] = (20.0, 100.0, 500.0)
    """Sharpness of the contact in each stage of the solve [1/J]: a foot under F hovers at 2/(kappa F)."""

    @field_validator("kappa_stages")
    @classmethod
    def _positive(cls, stages: tuple[float, ...]) -> tuple[float, ...]:
        if not stages or min(stages) <= 0:
            raise ValueError("at least one number, all > 0")
        return stages


class SlackConfig(Section):
    """Velocity of a contact point that the rigid contact does not explain: soft feet, creep, uneven floor."""

    tangential: MetersPerSecond = Field(0.2, gt=0)
    """Standard deviation along the ground, per axis [m/s]."""

    normal: MetersPerSecond = Field(0.4, gt=0)
    """Standard deviation across the ground [m/s]."""

    change: Number = Field(0.0, ge=0, le=1)
    """Share of the change of the contact's velocity in a step that widens both, as where a foot lands [-]."""


class DisturbanceConfig(Section):
    """Generalised force per knot that the model does not explain."""

    force: Newtons = Field(0.5, gt=0)
    """Standard deviation of the force on the base, per axis [N]."""

    moment: NewtonMeters = Field(0.1, gt=0)
    """Standard deviation of the moment on the base, per axis [Nm]."""

    joint_torque: NewtonMeters = Field(0.15, gt=0)
    """Standard deviation of the joint torques, without the noise of the torque sensor [Nm]."""


class PriorConfig(Section):
    """How far the first state may be from the first measurements."""

    base_position: Meters = Field(0.05, gt=0)
    """Standard deviation, per axis [m]."""

    base_rotation: Radians = Field(0.1, gt=0)
    """Standard deviation, per axis [rad]."""

    joint_position: Radians = Field(0.05, gt=0)
    """Standard deviation [rad]."""

    base_linear_velocity: MetersPerSecond = Field(1.0, gt=0)
    """Standard deviation, per axis [m/s]."""

    base_angular_velocity: RadiansPerSecond = Field(1.0, gt=0)
    """Standard deviation, per axis [rad/s]."""

    joint_velocity: RadiansPerSecond = Field(3.0, gt=0)
    """Standard deviation [rad/s]."""


class InertiaPriorConfig(Section):
    """How far the inertia of an identified link may be from the model, on its log-Cholesky parameters."""

    log_mass: Number = Field(0.25, gt=0)
    """Standard deviation of alpha, half the logarithm of the mass [-]."""

    log_size: Number = Field(0.3, gt=0)
    """Standard deviation of d1, d2, d3, the logarithms of the size along each axis [-]."""

    shear: Number = Field(0.05, gt=0)
    """Standard deviation of s12, s23, s13 [-]."""

    com: Meters = Field(0.1, gt=0)
    """Standard deviation of the centre of mass, per axis [m]."""


class GroundHeightConfig(Section):
    """Height of the ground plane in the world, estimated with the rest."""

    initial: Meters = 0.0
    """Prior mean of the height [m]."""

    std: Meters = Field(0.05, gt=0)
    """Prior standard deviation of the height [m]."""


class OutliersConfig(Section):
    """Residual beyond which a measurement is given no weight, in its standard deviations; 0: never."""

    mocap: Number = Field(5.0, ge=0)
    """A pose of motion capture, position and orientation together [-]."""

    gyroscope: Number = Field(5.0, ge=0)
    """Angular velocity of the base, all axes together [-]."""

    joint_position: Number = Field(5.0, ge=0)
    """Position of one joint [-]."""

    joint_velocity: Number = Field(5.0, ge=0)
    """Velocity of one joint [-]."""

    joint_torque: Number = Field(5.0, ge=0)
    """Torque of one joint [-]."""


class SolverConfig(Section):
    """The optimiser."""

    name: Literal["gauss-newton", "fddp"] = "gauss-newton"
    """Gauss-Newton on the structured sweeps, or Crocoddyl's FDDP on the same models (reference)."""

    max_iterations: StrictInt = Field(100, ge=1)
    """Largest number of iterations over all stages."""

    gap_tolerance: Number = Field(1e-6, gt=0)
    """Largest defect between a state and its prediction from the state before that counts as closed [SI]."""

    cost_tolerance: Number = Field(1e-6, gt=0)
    """Relative change of the cost at which a stage ends [-]."""

    threads: StrictInt = Field(0, ge=0, le=1024)
    """Number of threads; 0: as many as there are cores."""

    piece: Seconds = Field(20.0, ge=0)
    """A longer recording is solved in pieces of this length, one after another; 0: always as a whole [s]."""


class FixedContactConfig(Section):
    """The baseline with a fixed contact sequence and rigid contact; other estimators do not use it."""

    height: Meters = Field(0.008, gt=0)
    """Height of a foot above the ground below which it stands [m]."""

    settle: Seconds = Field(0.01, ge=0)
    """Time constant with which the velocity of a foot dies out once it stands; not less than dt [s]."""

    cone: Newtons = Field(1.0, gt=0)
    """Standard deviation of the force outside the friction cone [N]."""

    smoothing: Seconds = Field(0.05, ge=0)
    """Length of the median over the height of a foot [s]."""


class HorizonConfig(Section):
    """The window of the moving-horizon estimator."""

    steps: StrictInt = Field(20, ge=4)
    """Steps in the window [-]."""

    lag: StrictInt = Field(5, ge=2)
    """Steps by which the lagged estimate is older than the newest sample; it is smoother [-]."""

    iterations: StrictInt = Field(1, ge=1)
    """Gauss-Newton iterations over the window per update [-]."""

    refine_steps: StrictInt = Field(6, ge=1)
    """Newest steps that are iterated again: where feet land, one iteration is not enough [-]."""

    refine_iterations: StrictInt = Field(2, ge=0)
    """Iterations over them; 0: none [-]."""

    inertia_walk: Number = Field(0.0125, ge=0)
    """How far the inertia may wander in a second, as a share of its prior standard deviation [-]."""

    budget: Seconds = Field(0.0, ge=0)
    """Time an update may take on average before iterations and then the window are cut; 0: no limit [s]."""

    reset_after: Seconds = Field(0.5, gt=0)
    """Pause of the joints, or contradiction by motion capture, after which the window starts anew [s]."""


CheckName = Literal[
    "joint-limits",
    "sensor-range",
    "mocap-frozen",
    "mocap-jumps",
    "quaternion-order",
    "world-up",
    "imu-mount",
    "imu-units",
    "joint-velocity",
    "joint-order",
    "joint-torque",
    "ground-contact",
]


class ClockOffsetConfig(Section):
    """Seconds added to the stamps of a stream, and whether the offset of motion capture is estimated."""

    joints: Seconds = 0.0
    """Added to the stamps of the joints [s]."""

    imu: Seconds = 0.0
    """Added to the stamps of the IMU [s]."""

    mocap: Seconds = 0.0
    """Added to the stamps of motion capture [s]."""

    estimate: Literal["auto", "always", "never"] = "auto"
    """Estimate what is left of the offset of motion capture against the IMU and add it: auto, above 3 std."""

    search: Seconds = Field(0.5, gt=0)
    """Largest offset to look for [s]."""


class SamplingConfig(Section):
    """How samples become measurements at knots."""

    max_gap: Seconds = Field(0.03, gt=0)
    """Longest pause between samples of a channel; knots that a longer one touches lack that channel [s]."""

    skip_checks: tuple[CheckName, ...] = ()
    """Checks of the recording to leave out; docs/recording.md lists them."""

    clock_offset: ClockOffsetConfig = ClockOffsetConfig()
    """Constant offset of the clock of each stream."""


class EstimatorConfig(Section):
    """Everything an estimation needs to know besides the robot."""

    estimator: Literal["pfie", "fixed-contact"] = "pfie"
    """How whole recordings are estimated: with smoothed contact, or by the baseline for comparison."""

    dt: Seconds = Field(0.01, gt=1e-6)
    """Spacing of the knots [s]."""

    contact: ContactModelConfig = ContactModelConfig()
    """Contact model."""

    slack: SlackConfig = SlackConfig()
    """Contact slack."""

    disturbance: DisturbanceConfig = DisturbanceConfig()
    """Unexplained forces."""

    missing_torque_std: NewtonMeters = Field(20.0, gt=0)
    """Standard deviation of a joint torque that was not measured [Nm]."""

    prior: PriorConfig = PriorConfig()
    """Prior of the first state."""

    inertia_prior: InertiaPriorConfig = InertiaPriorConfig()
    """Prior of the inertia of identified links."""

    ground_height: GroundHeightConfig = GroundHeightConfig()
    """Ground plane."""

    outliers: OutliersConfig = OutliersConfig()
    """Rejection of measurements that contradict all others."""

    fixed_contact: FixedContactConfig = FixedContactConfig()
    """Baseline for comparison."""

    horizon: HorizonConfig = HorizonConfig()
    """Window of the moving-horizon estimator; the estimator of whole recordings does not use it."""

    links: tuple[str, ...] = ("base",)
    """Links whose inertia is identified; an empty list identifies none."""

    solver: SolverConfig = SolverConfig()
    """Optimiser."""

    sampling: SamplingConfig = SamplingConfig()
    """From samples to knots."""

    contact_threshold: Newtons = Field(5.0, gt=0)
    """Normal force above which a contact counts as closed [N]."""
