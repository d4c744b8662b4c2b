# SPDX-License-Identifier: Apache-2.0
"""Types of the compiled core (cpp/python/).

nq, nv: sizes of configuration and velocity of the model, nv = n + 6 with n joints; C contacts; B identified
bodies, ntheta = 10 B + 1; K steps between K + 1 knots. A state x = (q, v, theta) has nx = nq + nv + ntheta
entries, its tangent (dq, dv, dtheta) ndx = 2 nv + ntheta; a control u = (disturbance, contact slack) has
nu = nv + 3 C.

q is Pinocchio's: base position, quaternion x y z w, joints; v the base twist in the base frame, linear then
angular, then joint rates. Contact quantities are per contact along world x, y (tangential) and z (normal).
theta holds ten log-Cholesky numbers per body and, last, the ground height [m]. Returned arrays are copies.
`ContactStep.solve`, `GaussNewton` and `Sweep` raise ValueError on arguments of the wrong size.
"""

from typing import Literal

import crocoddyl
import numpy as np
import pinocchio
from numpy.typing import NDArray

Array = NDArray[np.float64]

class ContactPoint:
    """A sphere fixed to a link that may touch the ground."""

    joint: int
    """Index of the joint that moves the link."""
    offset: Array
    """Centre in the joint frame, (3,) [m]."""
    radius: float
    """[m], zero for a point."""
    friction: Array
    """Coulomb coefficients along world x and y, (2,) [-]."""

    def __init__(self) -> None: ...

class StepSettings:
    """What does not change from step to step."""

    dt: float
    """[s]"""
    kappa: float
    """Sharpness of the contact smoothing [1/J]."""
    damping: Array
    """Viscous joint damping, zero for the base, (nv,) or empty for none [Nm s/rad]."""
    friction: Array
    """Coulomb joint friction, zero for the base, (nv,) or empty for none [Nm]."""
    friction_velocity: float
    """Width of the smoothed Coulomb friction [rad/s]."""
    tolerance: float
    """On kappa times the squared Newton decrement [-]."""
    max_iterations: int
    """Of Newton's method."""

    def __init__(self) -> None: ...

class ContactStep:
    """One step of the smoothed contact dynamics (docs/concept.md)."""

    kappa: float
    """Sharpness of the contact smoothing [1/J]; not to be set while another thread steps."""

    def __init__(
        self,
        model: pinocchio.Model,
        contacts: list[ContactPoint],
        bodies: list[int],
        settings: StepSettings,
    ) -> None:
        """From a model with a free-flyer root and `armature`; `bodies`: joints whose inertia is in theta."""
    @property
    def nq(self) -> int: ...
    @property
    def nv(self) -> int: ...
    @property
    def ncontacts(self) -> int: ...
    @property
    def ntheta(self) -> int: ...
    def nominal_theta(self, ground_height: float) -> Array:
        """Parameters of the model's own inertias and a ground height [m], (ntheta,)."""
    def solve(
        self, data: ContactStepData, q: Array, v: Array, force: Array, slack: Array, theta: Array
    ) -> None:
        """Solve the step; `data.v_next` is the first guess and the result.

        `force` (nv,) is the generalised force: joint torque plus disturbance [N, Nm]; `slack` (3 C,) [m/s].
        Input that is not finite leaves `data.converged` False and NaN results.
        """
    def invert(
        self,
        data: ContactStepData,
        q: Array,
        v: Array,
        v_next: Array,
        force: Array,
        weight: Array,
        theta: Array,
    ) -> float:
        """Cost of the least improbable disturbance and slack that lead to `v_next`, left in `data.control`.

        `force` (nv,) is known, the disturbance adds to it; `weight` (nu,) holds inverse variances.
        `data.impulse` is the first guess (zero: none) and the result. Infinity for input that is not finite.
        """
    def contact_velocity(self, data: ContactStepData, q: Array, v: Array) -> Array:
        """Velocities J(q) v of the contact points in world axes, (3 C,) [m/s]."""
    def differentiate(self, data: ContactStepData, q: Array, v: Array) -> None:
        """Fill the derivatives in `data` at the step just solved with the same q and v."""
    def impulse_derivatives(self, data: ContactStepData) -> tuple[Array, Array]:
        """Derivatives of the impulses, after `differentiate`.

        With respect to (q, v, theta), (3 C, ndx), and to (force, slack), (3 C, nu) [N s / unit].
        """

class ContactStepData:
    """Scratch memory and results of a `ContactStep`; one per thread."""

    v_next: Array
    """Velocity after the step, (nv,); before `solve`, the first guess (NaN: v)."""

    impulse: Array
    """Contact impulses on the robot, (3 C,) [N s]; before `invert`, the first guess."""

    def __init__(self, step: ContactStep, /) -> None: ...
    @property
    def control(self) -> Array:
        """Disturbance and slack found by `invert`, (nu,)."""
    @property
    def z(self) -> Array:
        """Argument of the contact potentials, (3 C,) [m/s]."""
    @property
    def iterations(self) -> int:
        """Newton iterations of the last solve."""
    @property
    def converged(self) -> bool: ...
    @property
    def dq(self) -> Array:
        """Derivative of v_next with respect to q (tangent at q), (nv, nv)."""
    @property
    def dv(self) -> Array:
        """With respect to v, (nv, nv)."""
    @property
    def df(self) -> Array:
        """With respect to the generalised force, (nv, nv)."""
    @property
    def dslack(self) -> Array:
        """With respect to the contact slack, (nv, 3 C)."""
    @property
    def dtheta(self) -> Array:
        """With respect to theta, (nv, ntheta)."""

def contact_graph(
    friction: Array, kappa: float, coordinate: Array, slope_z: Array, slope_impulse: Array
) -> tuple[Array, Array, Array, Array, Array]:
    """The pair (z, impulse) of the smoothed elliptic cone at a coordinate (3,) of its graph.

    Then their derivatives by the coordinate, each (3, 3), and the Hessian of slope_z . z + slope_impulse .
    impulse, (3, 3).
    """

class StateInertial(crocoddyl.StateAbstract):
    """State (q, v, theta) of a floating-base robot with constant parameters, as a Crocoddyl state."""

    def __init__(self, model: pinocchio.Model, ntheta: int) -> None: ...
    @property
    def ntheta(self) -> int: ...
    def zero(self) -> Array:
        """Neutral configuration, zero velocity and parameters, (nx,)."""
    def rand(self) -> Array:
        """Random state, (nx,)."""
    def diff(self, x0: Array, x1: Array, /) -> Array:
        """Tangent from x0 to x1, (ndx,)."""
    def integrate(self, x: Array, dx: Array, /) -> Array:
        """State at dx (ndx,) from x, (nx,)."""
    def Jdiff(self, x0: Array, x1: Array, /) -> tuple[Array, Array]:
        """Derivatives of `diff` with respect to x0 and x1, each (ndx, ndx)."""
    def Jintegrate(self, x: Array, dx: Array, /) -> tuple[Array, Array]:
        """Derivatives of `integrate` with respect to x and dx, each (ndx, ndx)."""

class WorkspacePool:
    """One `ContactStepData` per thread, shared by the actions of a problem; len() is their number."""

    def __init__(self, step: ContactStep) -> None: ...
    def __len__(self) -> int: ...

class KnotMeasurement:
    """What the sensors say at one knot; weights are inverse variances, zero where nothing was measured."""

    configuration: Array
    """Base position, quaternion x y z w, joint positions, (nq,)."""
    configuration_weight: Array
    """Of base position (world axes), base rotation (base axes) and joint positions, (nv,)."""
    base_time_offset: float
    """Time of the base pose minus time of the knot [s]."""
    velocity: Array
    """Base twist in the base frame and joint rates, (nv,)."""
    velocity_weight: Array
    """(nv,)"""
    torque: Array
    """Joint torque of the step that starts at the knot, (n,) [Nm]."""
    control_weight: Array
    """Of disturbance and contact slack, (nu,)."""

    def __init__(self, nv: int, ncontrol: int) -> None:
        """No measurement: all weights zero, the identity pose."""

class KnotSeries:
    """Measurements of K + 1 knots, one column each; rows as the fields of `KnotMeasurement`."""

    configuration: Array
    """(nq, K + 1)"""
    configuration_weight: Array
    """(nv, K + 1)"""
    base_time_offset: Array
    """(K + 1,) [s]"""
    velocity: Array
    """(nv, K + 1)"""
    velocity_weight: Array
    """(nv, K + 1)"""
    torque: Array
    """(n, K + 1) [Nm]; the last column is not used."""
    control_weight: Array
    """(nu, K + 1); the last column is not used."""

    def __init__(self) -> None:
        """No knots."""
    def __len__(self) -> int: ...
    def __getitem__(self, k: int, /) -> KnotMeasurement: ...

class ActionContactStep(crocoddyl.ActionModelAbstract):
    """A contact step with the measurements of the knot it starts from; the terminal action if without u."""

    def __init__(
        self,
        state: StateInertial,
        step: ContactStep,
        pool: WorkspacePool,
        measurement: KnotMeasurement,
    ) -> None: ...
    def calc(self, data: crocoddyl.ActionDataAbstract, x: Array, u: Array = ..., /) -> None:
        """Fill `data.xnext` and `data.cost`."""
    def calcDiff(self, data: crocoddyl.ActionDataAbstract, x: Array, u: Array = ..., /) -> None:
        """Fill the derivatives in `data` (Fx, Fu, Lx, Lu, Lxx, Lxu, Luu) and its cost."""
    def createData(self) -> crocoddyl.ActionDataAbstract: ...

class ActionArrival(crocoddyl.ActionModelAbstract):
    """Prior of the first state: the control (ndx,) is its increment from the mean."""

    def __init__(self, state: StateInertial, information: Array) -> None:
        """`information`: inverse covariance of the prior in the tangent, (ndx, ndx)."""
    def calc(self, data: crocoddyl.ActionDataAbstract, x: Array, u: Array = ..., /) -> None: ...
    def calcDiff(self, data: crocoddyl.ActionDataAbstract, x: Array, u: Array = ..., /) -> None: ...
    def createData(self) -> crocoddyl.ActionDataAbstract: ...

class RigidFoot:
    """Where a link stands on the ground: a point that takes a force, or a rectangle that takes a wrench."""

    joint: int
    """Index of the joint that moves the link."""
    placement: pinocchio.SE3
    """In the frame of that joint; z of a sole is up."""
    friction: float
    """Coulomb coefficient [-]."""
    size: Array
    """Along x and y, (2,) [m]; zero for a point."""

    def __init__(self) -> None: ...

class RigidSettings:
    """Everything about rigid contact that does not change from knot to knot."""

    dt: float
    """Length of a step [s]."""
    settle_rate: float
    """Rate at which the velocity of a standing foot dies out [1/s]."""
    cone_weight: float
    """Of half the squared force outside the friction cone [1/N^2]."""

    def __init__(self) -> None: ...

class RigidContact:
    """Dynamics with rigid contacts of given feet; ntheta = 10 B."""

    def __init__(
        self,
        model: pinocchio.Model,
        feet: list[RigidFoot],
        bodies: list[int],
        settings: RigidSettings,
    ) -> None: ...
    @property
    def nv(self) -> int: ...
    @property
    def ntheta(self) -> int: ...
    def nominal_theta(self) -> Array:
        """Parameters of the model's own inertias, (ntheta,)."""

class ActionRigidContact(crocoddyl.ActionModelAbstract):
    """A step of rigid contact with the measurements of its knot; control: the disturbance (nv,)."""

    def __init__(
        self,
        state: StateInertial,
        contact: RigidContact,
        standing: int,
        measurement: KnotMeasurement,
    ) -> None:
        """`standing`: bit i is set where foot i stands."""
    def calc(self, data: crocoddyl.ActionDataAbstract, x: Array, u: Array = ..., /) -> None: ...
    def calcDiff(self, data: crocoddyl.ActionDataAbstract, x: Array, u: Array = ..., /) -> None: ...
    def createData(self) -> crocoddyl.ActionDataAbstract: ...
    def wrenches(self, x: Array, u: Array) -> tuple[Array, Array, Array]:
        """Force in world axes (point) or wrench in its own axes (sole) of the feet, (6, F); zero in the air.

        Then derivatives by the tangent of x, (6 F, ndx), and by u, (6 F, nv)."""

class IterationReport:
    """How far one iteration of `GaussNewton` got. Made by the core only."""

    @property
    def cost(self) -> float:
        """Negative log-posterior after the iteration, up to a constant [-]."""
    @property
    def largest_gap(self) -> float:
        """Infinity norm of all defects [m, rad, m/s, rad/s]."""
    @property
    def expected(self) -> float:
        """Decrease of the cost that the linear model expected of a full step."""
    @property
    def relative_change(self) -> float:
        """Absolute change of the cost over the cost [-]."""
    @property
    def step_length(self) -> float:
        """Zero when no step was accepted."""
    @property
    def damping(self) -> float:
        """Factor of the proximal term of the next iteration [-]."""
    @property
    def newton_worst(self) -> int:
        """Most Newton iterations of one contact step."""
    @property
    def newton_failures(self) -> int:
        """Contact steps that did not converge."""
    @property
    def explain_worst(self) -> int:
        """Most iterations in finding the controls of one knot."""
    @property
    def explain_failures(self) -> int:
        """Knots whose controls may not be the least improbable ones."""
    @property
    def accepted(self) -> bool: ...

class Posterior:
    """Standard deviations and leverages at the solution (Laplace approximation). Made by the core only."""

    @property
    def position_std(self) -> Array:
        """Base position in world axes, (3, K + 1) [m]."""
    @property
    def configuration_std(self) -> Array:
        """Tangent of q (base part in base axes), (nv, K + 1)."""
    @property
    def velocity_std(self) -> Array:
        """(nv, K + 1)"""
    @property
    def control_std(self) -> Array:
        """(nu, K)"""
    @property
    def impulse_std(self) -> Array:
        """(3 C, K) [N s]"""
    @property
    def impulse_covariance(self) -> Array:
        """Of all impulses of each step, (9 C^2, K), the columns of one matrix after another [N^2 s^2]."""
    @property
    def theta_covariance(self) -> Array:
        """(ntheta, ntheta)"""
    @property
    def theta_step(self) -> Array:
        """What another Gauss-Newton step would add to theta, (ntheta,)."""
    @property
    def configuration_leverage(self) -> Array:
        """Diagonal of the hat matrix per measured channel of q, summed over knots, (nv,) [-]."""
    @property
    def velocity_leverage(self) -> Array:
        """The same for v, (nv,) [-]."""
    @property
    def control_leverage(self) -> Array:
        """The same for the zero-mean prior of the controls, (nu,) [-]."""
    @property
    def arrival_hessian(self) -> Array:
        """Of what came before the arrival knot, about its state, (ndx, ndx); empty without one."""
    @property
    def arrival_gradient(self) -> Array:
        """(ndx,)"""
    @property
    def expected(self) -> float:
        """Decrease of the cost that another Gauss-Newton step promises [-]."""
    @property
    def ok(self) -> bool:
        """False if the information was singular or not finite; entries are then NaN."""

class GaussNewton:
    """Gauss-Newton on structured sweeps, over motions that obey the dynamics (docs/concept.md)."""

    def __init__(
        self,
        step: ContactStep,
        knots: KnotSeries,
        prior: Array,
        prior_information: Array,
        threads: int = 0,
        segment: int = 4096,
    ) -> None:
        """From K + 1 knots and the prior of the first state, mean (nx,) and inverse covariance (ndx, ndx).

        `threads`: 0 for as many as OpenMP allows; `segment`: most steps whose linearisation is kept, which
        bounds the memory of long recordings.
        """
    @property
    def steps(self) -> int:
        """K."""
    @property
    def nx(self) -> int: ...
    @property
    def nu(self) -> int: ...
    def set_trajectory(self, states: Array, controls: Array) -> None:
        """Start from states (nx, K + 1), which need not obey the dynamics, and controls (nu, K)."""
    @property
    def states(self) -> Array:
        """(nx, K + 1)"""
    @property
    def controls(self) -> Array:
        """(nu, K)"""
    @property
    def impulses(self) -> Array:
        """Contact impulses of every step, (3 C, K) [N s]."""
    def gaps(self) -> Array:
        """Largest defect of each step, (K,)."""
    def set_weights(self, configuration: Array, velocity: Array, control: Array) -> None:
        """Replace all weights, (nv, K + 1), (nv, K + 1) and (nu, K + 1); the trajectory stays."""
    def set_kappa(self, kappa: float) -> None:
        """Change the smoothing of the step; the trajectory stays."""
    def evaluate(self) -> IterationReport:
        """Judge the current trajectory without changing it: cost, gap and Newton counts."""
    def iterate(self) -> IterationReport:
        """One iteration; the trajectory changes only if a step is accepted."""
    def posterior(self, arrival_knot: int = -1) -> Posterior:
        """Posterior at the current trajectory; if asked for, the cost to arrive at a knot as well."""
    def residuals(self) -> Array:
        """Unweighted residuals, prediction minus measurement, of (q, v) at every knot, (2 nv, K + 1)."""

class WindowReport:
    """How far a window got in one update. Made by the core only."""

    @property
    def cost(self) -> float:
        """Of the window before the last step, arrival cost included."""
    @property
    def largest_gap(self) -> float:
        """Infinity norm of all defects there [m, rad, m/s, rad/s]."""
    @property
    def newton_worst(self) -> int:
        """Most Newton iterations of one contact step."""
    @property
    def newton_failures(self) -> int:
        """Contact steps that did not converge."""
    @property
    def ok(self) -> bool:
        """False if the information was singular or not finite: the iterate stayed."""

class WindowEstimate:
    """One knot of a window and the step that leaves it. Made by the core only."""

    @property
    def state(self) -> Array:
        """(q, v, theta), (nx,)."""
    @property
    def control(self) -> Array:
        """(disturbance, slack), (nu,)."""
    @property
    def impulse(self) -> Array:
        """(3 C,) [N s]."""
    @property
    def covariance(self) -> Array:
        """Of the tangent (q, v, theta), (ndx, ndx)."""
    @property
    def control_std(self) -> Array:
        """(nu,)"""
    @property
    def impulse_std(self) -> Array:
        """(3 C,) [N s]."""
    @property
    def ok(self) -> bool:
        """False if the information was singular."""

class MovingHorizon:
    """The last steps in full, what came before as a quadratic arrival cost (docs/concept.md)."""

    def __init__(self, step: ContactStep, horizon: int, walk: Array) -> None:
        """At most `horizon` steps; every step that leaves the window adds variance `walk` (ntheta,)."""
    @property
    def steps(self) -> int:
        """Steps in the window; -1 before `reset`."""
    @property
    def horizon(self) -> int: ...
    @property
    def nx(self) -> int: ...
    @property
    def nu(self) -> int: ...
    def reset(self, mean: Array, information: Array, knot: KnotMeasurement, start: Array) -> None:
        """Start from a prior (nx,), (ndx, ndx) at one knot; `start` (nx,) is its first iterate."""
    def append(self, knot: KnotMeasurement) -> None:
        """Add the next knot; its torque and control weight are of the step that leads to it."""
    def set_measurement(self, age: int, knot: KnotMeasurement) -> None:
        """Replace what the sensors say of the knot of an age (0: newest), torque and its weight apart."""
    def set_horizon(self, horizon: int) -> None:
        """Largest number of steps from now on, at most that of the construction."""
    def iterate(self, iterations: int) -> WindowReport:
        """Gauss-Newton over the window."""
    def refine(self, steps: int, iterations: int) -> WindowReport:
        """Gauss-Newton over the newest steps alone, from the arrival cost of the last `iterate`."""
    def state(self, age: int) -> Array:
        """(q, v, theta) of the knot of an age, (nx,)."""
    def estimate(self, age: int) -> WindowEstimate:
        """Knot of an age >= 1, and the step that leaves it."""
    def residual(self, age: int) -> Array:
        """Unweighted residuals (q part, v part) of the knot of an age, (2 nv,)."""

class Sweep:
    """Structured Riccati and information sweeps over a chain of K steps; cpp/sweeps/sweep.hpp: the problem.

    nt parameters; ndx = 2 nv + nt, in the order (dq, dv, dtheta). A sweep that cannot be completed raises
    RuntimeError naming the knot; a knot out of range IndexError; a call out of order RuntimeError.
    """

    def __init__(
        self, nv: int, nt: int, nu: int, steps: int, values: bool = True, arrival_factors: bool = True
    ) -> None:
        """`values` keeps all costs to go and to arrive, `arrival_factors` serves `solve_from_arrival`."""
    def set_step(
        self,
        k: int,
        dt: float,
        Aq: Array,
        Av: Array,
        At: Array,
        B: Array,
        luu: Array,
        lu: Array,
        c: Array,
        fq: Array,
        Jq6: Array,
        Jv6: Array,
        /,
    ) -> None:
        """Linearised step from knot k.

        Aq, Av (nv, nv), At (nv, nt), B (nv, nu): derivatives of the next velocity; luu > 0 and lu (nu,):
        diagonal and gradient of the control cost; c, fq (nv,): velocity and configuration gap; Jq6, Jv6
        (6, 6): derivatives of the next base pose with respect to the pose and to dt times the velocity.
        """
    def set_cost(self, k: int, diagonal: Array, base_block: Array, gradient: Array, /) -> None:
        """Cost of knot k.

        diagonal, gradient (ndx,); base_block (12, 12) over base dq and base dv, added.
        """
    def set_arrival(self, hessian: Array, gradient: Array, /) -> None:
        """Prior of knot 0, (ndx, ndx) and (ndx,)."""
    def set_terminal(self, hessian: Array, gradient: Array, /) -> None:
        """Cost of knot K that is not its own, (ndx, ndx) and (ndx,): what follows the chain."""
    def clear_terminal(self) -> None:
        """No such cost."""
    def backward(self) -> None:
        """Costs to go and policies."""
    def solve_from(self, dx_0: Array, /) -> None:
        """Linear steps from a given state of knot 0, (ndx,), after `backward`."""
    def solve(self) -> None:
        """Minimiser, after `backward`."""
    def forward(self) -> None:
        """Costs to arrive."""
    def solve_from_arrival(self) -> None:
        """Minimiser, after `forward`."""
    def dx(self, k: int, /) -> Array:
        """Solution at knot k, (ndx,)."""
    def du(self, k: int, /) -> Array:
        """Solution of step k, (nu,)."""
    def value(self, k: int, /) -> tuple[Array, Array]:
        """Cost to go of knot k with its own cost: Hessian (ndx, ndx), gradient (ndx,)."""
    def arrival(self, k: int, with_cost: bool, /) -> tuple[Array, Array]:
        """Cost to arrive at knot k, with its own cost or without: Hessian (ndx, ndx), gradient (ndx,)."""
    def covariance(self, k: int, /) -> Array:
        """Posterior covariance of knot k, (ndx, ndx), after `backward` and `forward`."""
    def control_covariance(self, k: int, /) -> Array:
        """Covariance of the control of step k given the state of knot k, (nu, nu)."""
    def policy(self, k: int, /) -> tuple[Array, Array]:
        """Gain (nu, ndx) and feedforward (nu,) of step k."""
    def expected_change(self) -> tuple[float, float]:
        """Linear and quadratic term of the modelled cost along the solution."""
    def memory(self) -> int:
        """Bytes held."""

def set_instruction_set(name: Literal["auto", "portable", "avx2"]) -> str:
    """Choose the kernels of the sweeps made from now on; returns the name in force."""

def benchmark_step(
    step: ContactStep, q: Array, v: Array, force: Array, slack: Array, theta: Array, v_guess: Array
) -> float:
    """Seconds per contact step with all derivatives, over the columns of q (nq, N), v (nv, N), ..."""

def benchmark_control_cost(sweep: Sweep, luu: Array, lu: Array) -> float:
    """Seconds per step to set all control costs luu, lu (nu, steps), so that the next sweep condenses."""

def benchmark_rnea_derivatives(model: pinocchio.Model, q: Array, v: Array, a: Array) -> float:
    """Seconds per call of pinocchio::computeRNEADerivatives, over the columns of q, v and a."""
