# SPDX-License-Identifier: Apache-2.0
"""How accurate and how fast live estimation is: simulated logs with ground truth, sample by sample.

    python benchmarks/mhe.py LOGDIR [--logs NAME ...] [--seeds 0-2] [--set KEY=VALUE ...] [--json FILE]

Samples are pushed into `LiveEstimator` in the order of their stamps. Time is processor time of one thread:
of the whole update, and of its part in the core (iterations and standard deviations).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from accuracy import LOGS, MOCAP_RATE, progress_bar, seed_range
from child import run_single_threaded
from report import Results, Target, add_output_options, finish, stdout_console

from prime_ros.config import load_estimator_config
from prime_ros.estimation import window
from prime_ros.estimation.estimate import Estimate
from prime_ros.estimation.live import LiveEstimate, LiveEstimator
from prime_ros.experiments.simulation_logs import SimulationLog, load_log, noisy_recording, truth_at
from prime_ros.measurements import Recording
from prime_ros.robot import Robot, load_robot

G1_LOGS = LOGS["g1"]
ALL_LOGS = (*LOGS["go2"], *G1_LOGS)
G1_SETTINGS = ("horizon.steps=15",)  # those of the target: 15 steps of 10 ms
STARTED = 100  # knots after which forces are judged
END = 20  # knots that are left out at the end, where the truth lacks its window


@dataclass(frozen=True)
class Run:
    """One log with the noise of one seed."""

    figures: dict[str, float]
    update_seconds: list[float]
    core_seconds: list[float]


def main() -> int:
    """Run, print, compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="folder with the simulated logs (.npz)")
    parser.add_argument("--logs", nargs="+", choices=ALL_LOGS, default=list(ALL_LOGS), help="default: all")
    parser.add_argument("--seeds", type=seed_range, default=seed_range("0-2"), help="FIRST-LAST or A,B,...")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    add_output_options(parser)
    options = parser.parse_args()
    targets: list[Target] = []
    details: dict[str, Any] = {}
    with progress_bar() as bar:
        task = bar.add_task("", total=len(options.logs) * len(options.seeds))
        for name in options.logs:
            runs = []
            for seed in options.seeds:
                path = options.folder / f"{name}.npz"
                runs.append(run_single_threaded(run, path, seed, options.overrides))
                bar.update(task, advance=1, description=name)
            targets += targets_of(name, runs)
            details[name] = [each.figures for each in runs]
    settings = {
        "logs": options.logs,
        "seeds": options.seeds,
        "overrides": options.overrides,
        "mocap_rate": MOCAP_RATE,
    }
    return finish(Results(settings, {}, targets, {"runs": details}), options, stdout_console())


def targets_of(name: str, runs: list[Run]) -> list[Target]:
    """Limits, on the worst seed; times over all updates of all seeds."""

    def worst(key: str) -> float:
        return max(each.figures[key] for each in runs)

    def least(key: str) -> float:
        return min(each.figures[key] for each in runs)

    core = 1e3 * np.concatenate([each.core_seconds for each in runs])
    update = 1e3 * np.concatenate([each.update_seconds for each in runs])
    if name in G1_LOGS:
        errors = (
            f"force of the worst foot {worst('force_newest'):.1f} N newest, "
            f"{worst('force_lagged'):.1f} N lagged; "
            f"contact {least('contact_newest'):.3f}; mass {worst('mass_end'):.2f} kg at the end"
        )
        return [
            Target(name, "updates missed", worst("missed"), "-", highest=0.0, note=errors),
            Target(name, "core per knot, 99 %", float(np.percentile(core, 99)), "ms", highest=6.0),
        ]
    newest, lagged = (4.0, 4.0) if name.endswith("stiff") else (2.8, 2.4)
    return [
        Target(name, "force of the worst foot, newest", worst("force_newest"), "N", highest=newest),
        Target(name, "force of the worst foot, lagged", worst("force_lagged"), "N", highest=lagged),
        Target(name, "contact agreement, newest", least("contact_newest"), "-", lowest=0.985),
        Target(name, "mass error after 1 s", worst("mass_1s"), "kg", highest=0.1),
        Target(name, "mass error at the end", worst("mass_end"), "kg", highest=0.05),
        Target(name, "claimed std of the force over its error", least("claimed_least"), "-", lowest=0.5),
        Target(name, "claimed std of the force over its error", worst("claimed_most"), "-", highest=2.0),
        Target(name, "updates missed", worst("missed"), "-", highest=0.0),
        Target(name, "core per knot, median", float(np.median(core)), "ms", highest=1.5),
        Target(name, "core per knot, 99 %", float(np.percentile(core, 99)), "ms", highest=2.5),
        Target(name, "update per knot, median", float(np.median(update)), "ms", highest=5.0),
    ]


def run(path: Path, seed: int, overrides: list[str]) -> Run:
    """Estimate one log live."""
    name = "g1" if path.stem in G1_LOGS else "go2"
    log, robot = load_log(path), load_robot(name)
    config = load_estimator_config("mhe", [*(G1_SETTINGS if name == "g1" else ()), *overrides], name)
    recording = noisy_recording(log, seed, mocap_rate=MOCAP_RATE)
    core_seconds: list[float] = []
    time_the_core(core_seconds)
    estimator, found, update_seconds = LiveEstimator(robot, config), [], []
    for estimate, seconds in updates(estimator, recording):
        found.append(estimate)
        update_seconds.append(seconds)
    figures = accuracy(found, log, robot, config.contact_threshold)
    span = (found[-1].newest.stamp_ns[0] - found[0].newest.stamp_ns[0]) / 1e9
    figures["missed"] = round(span / config.dt) + 1 - len(found)
    return Run(figures, update_seconds, core_seconds)


def updates(estimator: LiveEstimator, recording: Recording) -> Iterator[tuple[LiveEstimate, float]]:
    """Push all samples in the order of their stamps; every estimate, and the time of its update [s]."""
    joints, imu, mocap = recording.joints, recording.imu, recording.mocap
    assert imu is not None
    streams = (joints.stamp_ns, imu.stamp_ns, mocap.stamp_ns)
    order = np.concatenate([np.full(len(stamps), i) for i, stamps in enumerate(streams)])
    index = np.concatenate([np.arange(len(stamps)) for stamps in streams])
    for place in np.lexsort([order, np.concatenate(streams)]):
        i, stream = int(index[place]), int(order[place])
        stamp_ns = int(streams[stream][i])
        if stream == 1:
            estimator.push_imu(stamp_ns, imu.angular_velocity[i], imu.linear_acceleration[i])
        elif stream == 2:
            estimator.push_mocap(stamp_ns, mocap.position[i], mocap.quat_xyzw[i])
        else:
            sample = (joints.position[i], joints.velocity[i], joints.torque[i])
            estimator.push_joints(stamp_ns, joints.names, *sample)
            begin = time.thread_time()
            found = estimator.update()
            if found is not None:
                yield found, time.thread_time() - begin


def time_the_core(seconds: list[float]) -> None:
    """Have the window note the processor time of its calls into the core, one entry per knot [s]."""
    core = window._core.MovingHorizon

    class Timed(core):  # type: ignore[misc, valid-type]
        """The window of the core with a clock."""

        def append(self, knot: Any) -> None:
            begin = time.thread_time()
            core.append(self, knot)
            seconds.append(time.thread_time() - begin)

        def iterate(self, iterations: int) -> Any:
            return self._timed(core.iterate, iterations)

        def refine(self, steps: int, iterations: int) -> Any:
            return self._timed(core.refine, steps, iterations)

        def estimate(self, age: int) -> Any:
            return self._timed(core.estimate, age)

        def _timed(self, call: Any, *arguments: int) -> Any:
            begin = time.thread_time()
            result = call(self, *arguments)
            seconds[-1] += time.thread_time() - begin
            return result

    window._core = _Replaced(window._core, Timed)  # type: ignore[assignment]


class _Replaced:
    """The core with another class for the window."""

    def __init__(self, core: Any, moving_horizon: Any) -> None:
        self._core, self.MovingHorizon = core, moving_horizon

    def __getattr__(self, name: str) -> Any:
        return getattr(self._core, name)


def accuracy(
    found: list[LiveEstimate], log: SimulationLog, robot: Robot, threshold: float
) -> dict[str, float]:
    """Errors against the truth of the log; force and contact of a foot are those of all its points."""
    order = [log.contact_names.index(name) for name in robot.contact_names]
    feet = np.array([[name in names for name in robot.contact_names] for names in robot.feet.values()])
    figures: dict[str, float] = {}
    ratios: list[float] = []
    lagged = [each.lagged for each in found if each.lagged is not None]
    for key, estimates in (("newest", [each.newest for each in found]), ("lagged", lagged)):
        judged = estimates[STARTED:-END]
        stamp_ns = np.array([each.stamp_ns[0] for each in judged])
        true = truth_at(log, stamp_ns, judged[0].dt)["contact_force_W"][:, order]
        force = np.array([each.contact_force_W[0] for each in judged])
        std = np.array([each.std["contact_force_W"][0] for each in judged])
        foot, true_foot = feet @ force, feet @ true
        figures[f"force_{key}"] = float(np.sqrt(((foot - true_foot) ** 2).sum(axis=-1).mean(axis=0)).max())
        touching = (foot[..., 2] > threshold) == (true_foot[..., 2] > threshold)
        figures[f"contact_{key}"] = float(touching.mean())
        claimed = np.sqrt((std**2).mean(axis=(0, 1)))
        ratios += list(claimed / np.sqrt(((force - true) ** 2).mean(axis=(0, 1))))
    figures["claimed_least"], figures["claimed_most"] = float(min(ratios)), float(max(ratios))
    return figures | mass_errors([each.newest for each in found], log.truth["true"]["mass"])


def mass_errors(estimates: list[Estimate], true: float) -> dict[str, float]:
    """Of the identified link, after a second and at the end [kg]."""
    start = estimates[0].stamp_ns[0]
    after = next(each for each in estimates if each.stamp_ns[0] >= start + 1_000_000_000)
    return {
        "mass_1s": abs(_mass(after) - true),
        "mass_end": abs(_mass(estimates[-1]) - true),
    }


def _mass(estimate: Estimate) -> float:
    (link,) = estimate.links.values()
    return link.estimate.mass


if __name__ == "__main__":
    sys.exit(main())
