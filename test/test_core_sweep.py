# SPDX-License-Identifier: Apache-2.0
"""The structured sweeps of the core against dense textbook recursions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import dense_riccati as dense
import numpy as np
import pytest
from numpy.typing import NDArray

from prime_ros import _core

Array = NDArray[np.float64]

# (nv, nt, nu): Go2 and G1 with one identified body and the ground, the Go2 with two; odd and smallest sizes.
SIZES = [(18, 11, 30), (35, 11, 59), (18, 21, 30), (7, 0, 9), (7, 1, 9), (13, 5, 14), (12, 3, 40), (6, 0, 1)]
STEPS = 8
DT = 0.01
DENSE = (
    1e-8  # the dense recursions lose digits where weights are spread or costs semidefinite; 1e-11 elsewhere
)


@dataclass(frozen=True)
class Problem:
    """A chain of steps with the cost of each knot, and the prior of the first."""

    steps: list[dense.Step]
    costs: list[tuple[Array, Array, Array]]
    """Diagonal, base block and gradient."""
    prior: dense.Quadratic

    @property
    def sizes(self) -> tuple[int, int, int]:
        """nv, nt, nu."""
        nv, nt = self.steps[0].At.shape
        return nv, nt, self.steps[0].B.shape[1]

    def dense_costs(self) -> list[dense.Quadratic]:
        return [dense.knot_cost(self.sizes[0], *cost) for cost in self.costs]


def random_problem(
    sizes: tuple[int, int, int], seed: int = 1, decades: float = 0.0, semidefinite: bool = False
) -> Problem:
    """A random chain; weights spread over decades, or many measurements missing."""
    random = np.random.default_rng(seed)
    nv, nt, nu = sizes

    def weights(count: int, scale: float) -> Array:
        return scale * 10.0 ** (decades * (random.random(count) - 0.5))

    def cost() -> tuple[Array, Array, Array]:
        diagonal = np.concatenate([weights(2 * nv, 5.0), np.zeros(nt)])
        if semidefinite:
            diagonal *= random.random(diagonal.size) < 0.4
        root = random.standard_normal((12, 4 if semidefinite else 12))
        form = dense.knot_cost(nv, diagonal, root @ root.T, np.zeros(diagonal.size))
        gradient = form.hessian @ random.standard_normal(diagonal.size)  # of a cost that is bounded below
        return diagonal, root @ root.T, gradient

    def uniform(*shape: int) -> Array:
        return random.uniform(-1.0, 1.0, shape)

    def step() -> dense.Step:
        root = random.standard_normal((nv, nv))
        mobility = np.linalg.inv(root @ root.T / nv + np.eye(nv))
        return dense.Step(
            dt=DT,
            Aq=DT * uniform(nv, nv),
            Av=np.eye(nv) + DT * uniform(nv, nv),
            At=DT * uniform(nv, nt),
            B=DT * np.hstack([mobility, -3.0 * mobility @ uniform(nv, max(nu - nv, 0))])[:, :nu],
            luu=weights(nu, 0.01),
            lu=0.01 * uniform(nu),
            c=0.01 * uniform(nv),
            fq=0.01 * uniform(nv),
            Jq6=np.eye(6) + 0.05 * uniform(6, 6),
            Jv6=np.eye(6) + 0.02 * uniform(6, 6),
        )

    ndx = 2 * nv + nt
    root, scale = random.standard_normal((ndx, ndx)), np.sqrt(weights(ndx, 5.0))
    prior = scale[:, None] * (root @ root.T / ndx + np.eye(ndx)) * scale
    steps, costs = [step() for _ in range(STEPS)], [cost() for _ in range(STEPS + 1)]
    return Problem(steps, costs, dense.Quadratic(prior, random.standard_normal(ndx)))


def loaded(problem: Problem) -> _core.Sweep:
    sweep = _core.Sweep(*problem.sizes, len(problem.steps))
    for k, s in enumerate(problem.steps):
        sweep.set_step(k, s.dt, s.Aq, s.Av, s.At, s.B, s.luu, s.lu, s.c, s.fq, s.Jq6, s.Jv6)
    for k, cost in enumerate(problem.costs):
        sweep.set_cost(k, *cost)
    sweep.set_arrival(problem.prior.hessian, problem.prior.gradient)
    return sweep


@pytest.fixture(params=["portable", "avx2"])
def kernels(request: pytest.FixtureRequest) -> Iterator[str]:
    """Both instruction sets, where the processor has them."""
    try:
        yield _core.set_instruction_set(request.param)
    except ValueError as error:
        pytest.skip(str(error))
    finally:
        _core.set_instruction_set("auto")


CASES: dict[str, Callable[[tuple[int, int, int]], Problem]] = {
    "plain": lambda sizes: random_problem(sizes),
    "spread": lambda sizes: random_problem(sizes, decades=6.0),
    "semidefinite": lambda sizes: random_problem(sizes, semidefinite=True),
    "both": lambda sizes: random_problem(sizes, decades=6.0, semidefinite=True),
}
cases = pytest.mark.parametrize("case", CASES)
all_sizes = pytest.mark.parametrize("sizes", SIZES, ids=str)


def assert_close(actual: Array, expected: Array, name: str) -> None:
    """Equal relative to the largest entry."""
    assert np.shape(actual) == np.shape(expected), name
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=DENSE * np.abs(expected).max(), err_msg=name)


def assert_same_form(actual: Array, expected: Array, name: str) -> None:
    """Equal relative to the diagonal, so that small entries of a covariance count as much as large ones."""
    scale = np.sqrt(np.diag(expected))
    scale = np.maximum(scale, 1e-7 * scale.max())
    np.testing.assert_allclose(
        actual / np.outer(scale, scale), expected / np.outer(scale, scale), rtol=0.0, atol=DENSE, err_msg=name
    )


def trajectory(sweep: _core.Sweep) -> tuple[Array, Array]:
    return np.array([sweep.dx(k) for k in range(STEPS + 1)]), np.array([sweep.du(k) for k in range(STEPS)])


@all_sizes
@cases
def test_backward_sweep_is_the_riccati_recursion(
    kernels: str, sizes: tuple[int, int, int], case: str
) -> None:
    problem = CASES[case](sizes)
    sweep = loaded(problem)
    sweep.backward()
    values, policies = dense.backward(problem.steps, problem.dense_costs())
    for k, value in enumerate(values):
        hessian, gradient = sweep.value(k)
        assert_same_form(hessian, value.hessian, f"V of knot {k}")
        assert_close(gradient, value.gradient, f"v of knot {k}")
    for k, policy in enumerate(policies):
        gain, feedforward = sweep.policy(k)
        assert_close(np.reshape(gain, policy.gain.shape), policy.gain, f"gain of step {k}")
        assert_close(np.ravel(feedforward), policy.feedforward, f"feedforward of step {k}")
        covariance = np.reshape(sweep.control_covariance(k), policy.covariance.shape)
        assert_same_form(covariance, policy.covariance, f"control covariance of step {k}")


@all_sizes
@cases
def test_both_solves_give_the_minimiser(kernels: str, sizes: tuple[int, int, int], case: str) -> None:
    problem = CASES[case](sizes)
    costs = problem.dense_costs()
    dx, du = dense.solve(problem.steps, costs, problem.prior)
    change = dense.change(problem.steps, costs, problem.prior, dx, du)
    sweep = loaded(problem)
    sweep.backward()
    sweep.solve()
    assert_solution(sweep, dx, du, change)
    sweep.forward()
    sweep.solve_from_arrival()
    assert_solution(sweep, dx, du, change)


def assert_solution(
    sweep: _core.Sweep, dx: list[Array], du: list[Array], change: tuple[float, float]
) -> None:
    states, controls = trajectory(sweep)
    assert_close(states, np.array(dx), "dx")
    assert_close(controls, np.reshape(du, controls.shape), "du")
    np.testing.assert_allclose(sweep.expected_change(), change, rtol=DENSE)
    assert change[0] < 0.0


@all_sizes
@cases
def test_forward_sweep_is_the_information_filter(
    kernels: str, sizes: tuple[int, int, int], case: str
) -> None:
    problem = CASES[case](sizes)
    costs = problem.dense_costs()
    sweep = loaded(problem)
    sweep.backward()
    sweep.forward()
    arrivals = dense.forward(problem.steps, costs, problem.prior)
    for k, (arrival, cost) in enumerate(zip(arrivals, costs, strict=True)):
        hessian, gradient = sweep.arrival(k, False)
        assert_same_form(hessian, arrival.hessian, f"Lambda of knot {k}")
        assert_close(gradient, arrival.gradient, f"lambda of knot {k}")
        assert_same_form(sweep.arrival(k, True)[0], (arrival + cost).hessian, f"with the cost of knot {k}")
    for k, covariance in enumerate(dense.covariances(problem.steps, costs, problem.prior)):
        assert_same_form(sweep.covariance(k), covariance, f"covariance of knot {k}")


def test_solution_is_stationary_for_the_whole_problem(kernels: str) -> None:
    # Independent of any recursion: one linear system in the controls and the first state.
    problem = random_problem((7, 2, 9))
    sweep = loaded(problem)
    sweep.backward()
    sweep.solve()
    states, controls = trajectory(sweep)
    costs = problem.dense_costs()
    multiplier = costs[-1].hessian @ states[-1] + costs[-1].gradient
    for k in reversed(range(STEPS)):
        F, G, f = problem.steps[k].dense()
        np.testing.assert_allclose(F @ states[k] + G @ controls[k] + f, states[k + 1], atol=1e-10)
        step = problem.steps[k]
        np.testing.assert_allclose(step.luu * controls[k] + step.lu + G.T @ multiplier, 0.0, atol=1e-10)
        multiplier = costs[k].hessian @ states[k] + costs[k].gradient + F.T @ multiplier
    first = problem.prior.hessian @ states[0] + problem.prior.gradient
    np.testing.assert_allclose(first + multiplier, 0.0, atol=1e-9)


def test_instruction_sets_agree() -> None:
    problem = random_problem((18, 11, 30))
    solutions = []
    try:
        for name in ("portable", "avx2"):
            assert _core.set_instruction_set(name) == name
            sweep = loaded(problem)
            sweep.backward()
            sweep.solve()
            solutions.append(trajectory(sweep)[0])
    except ValueError as error:
        pytest.skip(str(error))
    finally:
        _core.set_instruction_set("auto")
    np.testing.assert_allclose(solutions[0], solutions[1], rtol=1e-9, atol=1e-11)


def test_sweeping_again_after_a_change_gives_the_new_solution() -> None:
    problem, other = random_problem((7, 2, 9)), random_problem((7, 2, 9), seed=2)
    sweep = loaded(problem)
    sweep.backward()
    sweep.solve()
    for k, cost in enumerate(other.costs):
        sweep.set_cost(k, *cost)
    sweep.backward()
    sweep.solve()
    mixed = loaded(replace(problem, costs=other.costs))
    mixed.backward()
    mixed.solve()
    np.testing.assert_array_equal(trajectory(sweep)[0], trajectory(mixed)[0])


def test_chain_in_two_parts_is_the_chain(kernels: str) -> None:
    # What follows the first part is its terminal cost; where it ends, the second part starts.
    problem, cut = random_problem((7, 2, 9)), 3
    whole = loaded(problem)
    whole.backward()
    whole.solve()
    later = loaded(replace(problem, steps=problem.steps[cut:], costs=problem.costs[cut:]))
    later.backward()
    nothing = tuple(0.0 * part for part in problem.costs[0])
    earlier = loaded(replace(problem, steps=problem.steps[:cut], costs=[*problem.costs[:cut], nothing]))
    earlier.set_terminal(*later.value(0))
    earlier.backward()
    earlier.solve()
    later.solve_from(earlier.dx(cut))
    for k in range(STEPS + 1):
        part, local = (earlier, k) if k <= cut else (later, k - cut)
        assert_close(part.dx(local), whole.dx(k), f"dx of knot {k}")
    for k in range(STEPS):
        part, local = (earlier, k) if k < cut else (later, k - cut)
        assert_close(part.du(local), whole.du(k), f"du of step {k}")
    change = np.array(earlier.expected_change()) + later.expected_change()
    np.testing.assert_allclose(change, whole.expected_change(), rtol=1e-9)
    earlier.clear_terminal()
    earlier.backward()
    alone = loaded(replace(problem, steps=problem.steps[:cut], costs=[*problem.costs[:cut], nothing]))
    alone.backward()
    np.testing.assert_array_equal(earlier.value(0)[0], alone.value(0)[0])


def test_terminal_that_is_not_finite_is_named(kernels: str) -> None:
    problem = random_problem((7, 2, 9))
    sweep = loaded(problem)
    hessian = problem.prior.hessian.copy()
    hessian[0, 0] = np.nan
    sweep.set_terminal(hessian, problem.prior.gradient)
    with pytest.raises(RuntimeError, match=f"not finite at knot {STEPS}"):
        sweep.backward()


# Failures


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("field", ["Aq", "Av", "At", "B", "luu", "lu", "c", "fq", "Jq6", "Jv6"])
def test_step_that_is_not_finite_is_named(kernels: str, field: str, bad: float) -> None:
    problem = random_problem((7, 2, 9))
    sweep = loaded(problem)
    poisoned = getattr(problem.steps[3], field).copy()
    poisoned.flat[0] = bad
    s = replace(problem.steps[3], **{field: poisoned})
    sweep.set_step(3, s.dt, s.Aq, s.Av, s.At, s.B, s.luu, s.lu, s.c, s.fq, s.Jq6, s.Jv6)
    with pytest.raises(RuntimeError, match="not finite at knot 3"):
        sweep.backward()
    s = problem.steps[3]
    sweep.set_step(3, s.dt, s.Aq, s.Av, s.At, s.B, s.luu, s.lu, s.c, s.fq, s.Jq6, s.Jv6)
    sweep.backward()
    sweep.solve()
    assert np.all(np.isfinite(trajectory(sweep)[0]))


@pytest.mark.parametrize("part", [0, 1, 2])
def test_cost_that_is_not_finite_is_named(kernels: str, part: int) -> None:
    problem = random_problem((7, 2, 9))
    sweep = loaded(problem)
    poisoned = [array.copy() for array in problem.costs[5]]
    poisoned[part].flat[0] = np.nan
    sweep.set_cost(5, *poisoned)
    with pytest.raises(RuntimeError, match="not finite at knot 5"):
        sweep.backward()


def test_arrival_that_is_not_finite_is_named(kernels: str) -> None:
    problem = random_problem((7, 2, 9))
    sweep = loaded(problem)
    sweep.set_arrival(problem.prior.hessian, np.full_like(problem.prior.gradient, np.nan))
    sweep.backward()
    with pytest.raises(RuntimeError, match="not finite at knot 0"):
        sweep.solve()


def test_negative_curvature_is_named(kernels: str) -> None:
    problem = random_problem((7, 2, 9))
    sweep = loaded(problem)
    diagonal, block, gradient = problem.costs[4]
    sweep.set_cost(4, diagonal - 1e6, block, gradient)
    with pytest.raises(RuntimeError, match="indefinite at knot"):
        sweep.backward()


def test_undetermined_state_is_singular(kernels: str) -> None:
    problem = random_problem((7, 2, 9))
    sweep = loaded(problem)
    for k in range(STEPS + 1):
        sweep.set_cost(k, np.zeros(16), np.zeros((12, 12)), np.zeros(16))
    sweep.set_arrival(np.zeros((16, 16)), np.zeros(16))
    sweep.backward()
    with pytest.raises(RuntimeError, match="singular at knot 0"):
        sweep.solve()


def test_misuse_is_refused() -> None:
    problem = random_problem((7, 2, 9))
    sweep = loaded(problem)
    with pytest.raises(ValueError, match="diagonal or gradient"):
        sweep.set_cost(0, np.zeros(3), np.zeros((12, 12)), np.zeros(16))
    with pytest.raises(ValueError, match="arrival"):
        sweep.set_arrival(np.zeros((3, 3)), np.zeros(16))
    with pytest.raises(IndexError):
        sweep.set_cost(STEPS + 1, np.zeros(16), np.zeros((12, 12)), np.zeros(16))
    with pytest.raises(IndexError):
        sweep.dx(STEPS + 1)
    with pytest.raises(RuntimeError):
        sweep.solve()
    for nv, nt, nu, steps in ((5, 0, 1, 1), (6, -1, 1, 1), (6, 0, 0, 1), (6, 0, 1, 0)):
        with pytest.raises(ValueError, match="expected"):
            _core.Sweep(nv, nt, nu, steps)
    with pytest.raises(ValueError, match="sse9"):
        _core.set_instruction_set("sse9")
