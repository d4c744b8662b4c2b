# SPDX-License-Identifier: Apache-2.0
"""How fast the parts and the whole are, as ratios against references that are timed in turn with them.

    python benchmarks/speed.py [--rounds 15] [--json FILE] [--check BASELINE]

Go2, the bundled recording. Medians over rounds after one round of warm-up. Problems that are longer than the
recording have a finer spacing of the knots. Run it on an idle machine: other processes take cores and cache.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from child import run_single_threaded
from report import Metric, Results, Target, add_output_options, finish, stderr_console, stdout_console
from rich.table import Table
from speed_problem import solved_problem
from speed_solve import SolveTime, growth_exponent, peak_memory, timed_solve
from speed_step import GUESSES, step_timers
from speed_sweep import sweep_pair

from prime_ros import _core
from prime_ros.experiments.simulation_logs import Floats

KNOTS = (250, 500, 1000, 2000, 4000)
REFERENCE_KNOTS = 1000
SWEEP_KNOTS = (100, 1000)
JUDGED_GUESS = "measured"
SOLVE_ROUNDS = 3
MEMORY_KNOTS = (1000, 4000)
OWN_SWEEP = ("control cost", "backward")  # what a backward pass does; the step is the forward pass

Times = Mapping[str, Floats]


@dataclass(frozen=True)
class Kernels:
    """Processor times of the kernels on one thread, arrays over rounds [s]."""

    instruction_set: str
    step: Times
    """Per call."""
    sweep: Mapping[int, Times]
    """Per knot, by knots of the problem: a short one fits in the cache."""
    disagreement: float
    """Of the steps of both sweeps, relative."""

    @property
    def step_ratios(self) -> dict[str, float]:
        """Step with derivatives over Pinocchio's RNEA derivatives, by guess."""
        return {guess: float(np.median(self.step[guess] / self.step["rnea"])) for guess in GUESSES}

    def sweep_speedup(self, knots: int) -> float:
        """Crocoddyl's backward pass over all that the structured sweep does for it."""
        times = self.sweep[knots]
        return float(np.median(times["crocoddyl"] / sum(times[part] for part in OWN_SWEEP)))


@dataclass(frozen=True)
class Measured:
    """Everything measured."""

    kernels: Kernels
    solves: Mapping[int, Sequence[SolveTime]]
    memory: Mapping[int, float]
    """Peak by knots [MB]."""

    def median(self, knots: int, figure: str) -> float:
        """Median of a figure of `SolveTime` over the rounds."""
        return float(np.median([getattr(solve, figure) for solve in self.solves[knots]]))

    def exponent(self, figure: str) -> float:
        """Growth of a figure of `SolveTime` with the number of knots."""
        knots = [solves[0].knots for solves in self.solves.values()]
        return growth_exponent(knots, [self.median(nominal, figure) for nominal in self.solves])

    @property
    def solve_over_rnea(self) -> float:
        """Processor time of a whole solve per knot over one call of Pinocchio's RNEA derivatives."""
        solves = self.solves[REFERENCE_KNOTS]
        seconds = self.median(REFERENCE_KNOTS, "processor_seconds") / solves[0].knots
        return seconds / float(np.median(self.kernels.step["rnea"]))


def main() -> int:
    """Measure, print, compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15, help="rounds of the kernels")
    add_output_options(parser)
    options = parser.parse_args()
    measured = measure(options.rounds)
    console = stdout_console()
    for table in (kernel_table(measured.kernels), solve_table(measured)):
        console.print(table)
    settings = {"knots": KNOTS, "instruction_set": measured.kernels.instruction_set}
    results = Results(settings, metrics_of(measured), targets_of(measured), details(measured))
    return finish(results, options, console)


def measure(rounds: int) -> Measured:
    """Run all parts."""
    console = stderr_console()
    with console.status("peak memory") as status:
        memory = {knots: peak_memory(knots) for knots in MEMORY_KNOTS}
        status.update("kernels")
        kernels = run_single_threaded(measure_kernels, rounds)
        timed_solve(min(KNOTS))  # warm-up
        solves: dict[int, list[SolveTime]] = {knots: [] for knots in KNOTS}
        for number in range(SOLVE_ROUNDS):
            for knots in KNOTS:
                status.update(f"solve of {knots} knots, round {number + 1} of {SOLVE_ROUNDS}")
                solves[knots].append(timed_solve(knots))
    return Measured(kernels, solves, memory)


def measure_kernels(rounds: int) -> Kernels:
    """Time the contact step and the sweep against their references."""
    solved = solved_problem(REFERENCE_KNOTS)
    step = in_turn(step_timers(solved), rounds)
    pairs = {knots: sweep_pair(solved_problem(knots)) for knots in SWEEP_KNOTS}
    disagreement = max(pair.disagreement() for pair in pairs.values())
    sweep = {knots: in_turn(pair.timers(), rounds) for knots, pair in pairs.items()}
    return Kernels(_core.set_instruction_set("auto"), step, sweep, disagreement)


def in_turn(timers: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, Floats]:
    """Call all timers once per round: they share what else the machine does. A first round warms up."""
    times = [{name: timer() for name, timer in timers.items()} for _ in range(rounds + 1)][1:]
    return {name: np.array([entry[name] for entry in times]) for name in timers}


def targets_of(m: Measured) -> list[Target]:
    """What is required."""
    converged = min(solve.converged for solves in m.solves.values() for solve in solves)
    step, speedup = m.kernels.step_ratios[JUDGED_GUESS], m.kernels.sweep_speedup(REFERENCE_KNOTS)
    iteration = m.exponent("seconds_per_iteration")
    return [
        Target("step", "with derivatives over RNEA derivatives", step, "", highest=6.0),
        Target("sweep", "Crocoddyl's backward pass over ours", speedup, "", lowest=8.0),
        Target("sweep", "disagreement of the steps", m.kernels.disagreement, "", highest=1e-8),
        Target("solve", "converged", float(converged), "", lowest=1.0),
        Target("solve", "1000 knots from cold", m.median(REFERENCE_KNOTS, "seconds"), "s", highest=3.0),
        Target("solve", "growth exponent", m.exponent("seconds"), "", highest=1.1),
        Target("solve", "growth exponent, per iteration", iteration, "", highest=1.1),
        Target("solve", "peak memory, 1000 knots", m.memory[REFERENCE_KNOTS], "MB", highest=400.0),
    ]


def metrics_of(m: Measured) -> dict[str, Metric]:
    """Figures that do not depend on the machine much, for the baseline."""
    unit = "RNEA derivatives"
    return {
        **{
            f"step/{guess}": Metric(ratio, unit, "lower", 0.5)
            for guess, ratio in m.kernels.step_ratios.items()
        },
        **{f"sweep/speedup {k}": Metric(m.kernels.sweep_speedup(k), "", "higher", 1.0) for k in SWEEP_KNOTS},
        "sweep/disagreement": Metric(m.kernels.disagreement, "", "lower", 1e-9),
        "solve/iterations": Metric(m.median(REFERENCE_KNOTS, "iterations"), "", "lower", 5.0),
        "solve/per knot": Metric(m.solve_over_rnea, unit, "lower", 0.5 * m.solve_over_rnea),
        **{f"memory/{knots}": Metric(peak, "MB", "lower", 30.0) for knots, peak in m.memory.items()},
    }


def kernel_table(m: Kernels) -> Table:
    """Medians of the kernels."""
    title = f"Kernels on one thread, processor time ({m.instruction_set})"
    table = Table("", "median us", "fastest us", "ratio to reference", title=title)
    parts = [("step", m.step, "rnea")]
    parts += [(f"sweep of {knots} knots", times, "crocoddyl") for knots, times in m.sweep.items()]
    for part, times, reference in parts:
        for name, values in times.items():
            ratio = float(np.median(values / times[reference]))
            row = (f"{1e6 * np.median(values):.1f}", f"{1e6 * values.min():.1f}", f"{ratio:.3f}")
            table.add_row(f"{part}: {name}", *row)
    return table


def solve_table(m: Measured) -> Table:
    """Medians of whole solves by length."""
    columns = (
        "knots",
        "dt s",
        "iterations",
        "seconds",
        "processor s",
        "s per iteration",
        "us per knot, iteration",
        "peak MB",
    )
    table = Table(*columns, title="Whole solves, from cold")
    for knots, solves in m.solves.items():
        iteration = m.median(knots, "seconds_per_iteration")
        table.add_row(
            str(solves[0].knots),
            f"{solves[0].dt:g}",
            f"{m.median(knots, 'iterations'):.0f}",
            f"{m.median(knots, 'seconds'):.2f}",
            f"{m.median(knots, 'processor_seconds'):.2f}",
            f"{iteration:.4f}",
            f"{1e6 * iteration / solves[0].knots:.1f}",
            f"{m.memory[knots]:.0f}" if knots in m.memory else "",
        )
    return table


def details(m: Measured) -> dict[str, Any]:
    """What the JSON file has beyond targets and metrics."""
    return {
        "step_seconds": {name: values.tolist() for name, values in m.kernels.step.items()},
        "sweep_seconds_per_knot": {
            knots: {name: values.tolist() for name, values in times.items()}
            for knots, times in m.kernels.sweep.items()
        },
        "solves": [asdict(solve) for solves in m.solves.values() for solve in solves],
        "peak_memory_megabytes": {str(knots): peak for knots, peak in m.memory.items()},
    }


if __name__ == "__main__":
    sys.exit(main())
