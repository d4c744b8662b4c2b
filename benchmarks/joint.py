# SPDX-License-Identifier: Apache-2.0
"""One inertia from two recordings: a simulated log with 3 kg on its back, and another motion of that body.

    python benchmarks/joint.py LOGDIR [--second halves trot sway hop stiff] [--seeds 0-2] [--json FILE]

The second recording is made by `prime_ros.simulation` with a payload that gives the base the inertia of the
log; or it is the log of the same robot on stiff feet (`stiff`); or the two are the halves of the log, of
which one walks and the other turns and walks sideways (`halves`). Limits hold for the worst seed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from accuracy import progress_bar, seed_range
from report import Results, Target, add_output_options, finish, stdout_console
from rich.table import Table
from simulation_logs import SimulationLog, load_log, noisy_recording

from prime_ros.config import EstimatorConfig, load_estimator_config
from prime_ros.estimation.estimate import BodyInertia, Parameters
from prime_ros.estimation.fusion import fuse
from prime_ros.estimation.identifiability import values
from prime_ros.estimation.joint import JointEstimate, solve_joint
from prime_ros.measurements import Recording, align
from prime_ros.robot import Robot, load_robot
from prime_ros.simulation.payload import Payload
from prime_ros.simulation.recording import record
from prime_ros.simulation.simulator import Simulator

FIRST = "go2_payload_3kg"
STIFF = "go2_payload_3kg_stiff"
BOX = Payload(3.0, position=(0.0, 0.0, 0.1), size=(0.2, 0.12, 0.08))
"""What the logs' robot carries."""
DURATION = 10.0  # [s] of a simulated recording
SECONDS = ("halves", "trot", "sway", "hop", "stiff")
SOUND = ("halves", "trot", "sway")
"""Second recordings with which the truth is to be within `MOST_OFF`. Hopping and stiff feet are off by up to
ten standard deviations alone, which no other recording mends: there it is the warning that counts."""
MOST_OFF = 3.0  # standard deviations
CLEARLY_OFF = 5.0  # standard deviations of a recording alone that the comparison has to notice


def main() -> int:
    """Run, print, compare."""
    options = parsed_options()
    robot, config = load_robot("go2"), load_estimator_config("pfie")
    log = load_log(options.folder / f"{FIRST}.npz")
    true = truth_of(log.truth["true"])
    check_box(robot, true)
    runs: list[dict[str, Any]] = []
    with progress_bar() as bar:
        task = bar.add_task("", total=len(options.second) * len(options.seeds))
        for second in options.second:
            for seed in options.seeds:
                pair = recordings_of(second, seed, log, robot, options.folder)
                runs.append({"second": second, "seed": seed, **figures_of(pair, robot, config, true)})
                bar.update(task, advance=1, description=second)
    console = stdout_console()
    for table in tables_of(runs):
        console.print(table)
    settings = {"second": options.second, "seeds": options.seeds}
    return finish(Results(settings, {}, targets_of(runs), {"runs": runs}), options, console)


def parsed_options() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="folder with the simulated logs (.npz)")
    parser.add_argument("--second", nargs="+", choices=SECONDS, default=list(SECONDS), help="default: all")
    parser.add_argument("--seeds", type=seed_range, default=seed_range("0-2"), help="FIRST-LAST or A,B,...")
    add_output_options(parser)
    return parser.parse_args()


def truth_of(entry: Mapping[str, Any]) -> dict[str, float]:
    """True inertia of the base by the names of its numbers."""
    return values(BodyInertia(entry["mass"], np.array(entry["com"]), np.array(entry["inertia_com"])))


def check_box(robot: Robot, true: Mapping[str, float]) -> None:
    """The two recordings are of one body."""
    base = robot.model.inertias[robot.joint_of_link(robot.base_link)] + BOX.inertia
    made = values(BodyInertia(base.mass, base.lever, base.inertia))
    if not np.allclose(list(made.values()), list(true.values()), atol=1e-9):
        raise SystemExit(f"the payload makes a body that is not that of the log: {made}, expected {true}")


def recordings_of(
    second: str, seed: int, log: SimulationLog, robot: Robot, folder: Path
) -> tuple[Recording, Recording]:
    """Two recordings of one body, with noise of their own."""
    first = noisy_recording(log, seed)
    if second == "halves":
        return first.cropped(0.0, 0.5 * DURATION), first.cropped(0.5 * DURATION)
    if second == "stiff":
        return first, noisy_recording(load_log(folder / f"{STIFF}.npz"), 1000 + seed)
    simulator = Simulator(robot, gait=second, payload=BOX, seed=1000 + seed)
    recording, _ = record(simulator, DURATION)
    return first, recording


def figures_of(
    pair: Sequence[Recording], robot: Robot, config: EstimatorConfig, true: Mapping[str, float]
) -> dict[str, Any]:
    """Figures of one pair."""
    measurements = [align(recording, robot, config) for recording in pair]
    begin = time.perf_counter()
    joint = solve_joint(measurements, robot, config)
    seconds = time.perf_counter() - begin
    alone = [estimate.links["base"] for estimate in joint.alone]
    std, errors = values(joint.links["base"].std), {}
    for name, value in values(joint.links["base"].estimate).items():
        errors[name] = (value - true[name]) / std[name]
    return {
        "converged": float(joint.certificate.converged),
        "rounds": joint.rounds,
        "distance": float(joint.distances.max()),
        "seconds": seconds,
        "ratio": {name: s / min(values(link.std)[name] for link in alone) for name, s in std.items()},
        "error": errors,
        "error_alone": [
            {name: (v - true[name]) / values(link.std)[name] for name, v in values(link.estimate).items()}
            for link in alone
        ],
        "mass_error": values(joint.links["base"].estimate)["mass"] - true["mass"],
        "probability": joint.agreements[0].probability,
        "warned": float(any(agreement.contradicts for agreement in joint.agreements)),
        "fused_distance": fused_distance(joint),
    }


def fused_distance(joint: JointEstimate) -> float:
    """Largest difference of a parameter between fusing what each says alone, and the joint solve [std]."""
    alone = [estimate.parameters for estimate in joint.alone]
    known: list[Parameters] = [parameters for parameters in alone if parameters is not None]
    step = fuse(known).parameters.mean - joint.parameters.mean
    return float(np.max(np.abs(step) / np.sqrt(np.diag(joint.parameters.covariance))))


def targets_of(runs: Sequence[Mapping[str, Any]]) -> list[Target]:
    """Limits of every second recording, for the worst seed."""
    targets = []
    for second, group in grouped(runs):
        ratio = max(max(run["ratio"].values()) for run in group)
        off = max(max(map(abs, run["error"].values())) for run in group)
        unnoticed = sum(1 for run in group if worst_alone(run) > CLEARLY_OFF and not run["warned"])
        failed = sum(1 for run in group if not run["converged"])
        targets += [
            Target(second, "runs that did not converge", failed, "", highest=0),
            Target(second, "distance of a recording from all", worst(group, "distance"), "std", highest=0.01),
            Target(second, "std together over the best alone", ratio, "", highest=0.999),
            Target(second, "runs off by 5 std alone and not warned of", unnoticed, "", highest=0),
        ]
        if second in SOUND:
            inside = float(np.mean([abs(e) <= MOST_OFF for run in group for e in run["error"].values()]))
            targets.append(Target(second, "largest error of ten numbers", off, "std", highest=MOST_OFF))
            targets.append(Target(second, "numbers with the truth inside 3 std", inside, "", lowest=0.95))
    return targets


def worst_alone(run: Mapping[str, Any]) -> float:
    """Largest error of a number as one of the two recordings says it alone [std]."""
    return max(abs(error) for alone in run["error_alone"] for error in alone.values())


def tables_of(runs: Sequence[Mapping[str, Any]]) -> Iterator[Table]:
    """Errors in standard deviations, and what it took."""
    for second, group in grouped(runs):
        table = Table(
            "", "error alone [std]", "error together [std]", "std ratio", title=f"{FIRST} and {second}"
        )
        for name in group[0]["error"]:
            first, other = (max((run["error_alone"][i][name] for run in group), key=abs) for i in (0, 1))
            together = max((run["error"][name] for run in group), key=abs)
            ratio = max(run["ratio"][name] for run in group)
            table.add_row(name, f"{first:+.1f} / {other:+.1f}", f"{together:+.1f}", f"{ratio:.2f}")
        yield table
    table = Table(
        "second", "rounds", "seconds", "mass error [kg]", "p of agreement", "fused from joint [std]"
    )
    for second, group in grouped(runs):
        mass = max((run["mass_error"] for run in group), key=abs)
        table.add_row(
            second,
            f"{worst(group, 'rounds'):.0f}",
            f"{worst(group, 'seconds'):.1f}",
            f"{mass:+.4f}",
            f"{min(run['probability'] for run in group):.2g}",
            f"{worst(group, 'fused_distance'):.2f}",
        )
    yield table


def grouped(runs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """Runs by their second recording."""
    for second in dict.fromkeys(run["second"] for run in runs):
        yield second, [run for run in runs if run["second"] == second]


def worst(group: Sequence[Mapping[str, Any]], name: str) -> float:
    """Largest figure of a group."""
    return float(max(run[name] for run in group))


if __name__ == "__main__":
    sys.exit(main())
