"""Wang et al. 2022, Figure 5: PCTS with DUCBV and the rejection of cells, with a constant delay of 4.

"SR" of the paper is Algorithm 2 of Locatelli and Carpentier 2018. At each level of a partition, the centre of every
remaining cell is evaluated many times. The cell is then halved or rejected. Both algorithms evaluate at full fidelity,
in five runs of 600 units. An algorithm that waits for each result has one evaluation in flight. The authors' script
has 30, and this replay runs both versions.

By default values are noisy, and PCTS follows the paper. ``--faithful`` is the authors' program, without noise.
``--iterations T`` is the time of a run, ``--quick`` three functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from belated import plotting
from belated.experiments import rivals
from belated.experiments.papers import wang
from belated.experiments.papers.wang import DELAYS, PROBLEMS
from belated.experiments.replays import pcts
from belated.experiments.replays.pcts import N_READINGS, at_readings
from belated.experiments.report import format_table
from belated.experiments.runner import Options, about, parallel_map, seed_of

DEFAULT_RUNS = 5
NEEDS: tuple[str, ...] = ()
OPTIONS = ("quick",)
PCTS = "PCTS+DUCBV"
#: Name → evaluations in flight.
SR = {"SR, one at a time": 1, "SR, 30 at once": 30}


@dataclass(frozen=True)
class Task:
    """One run of an algorithm."""

    function: str
    algorithm: str
    run: int
    duration: int
    seed: int
    faithful: bool


def run(options: Options) -> dict[str, Any]:
    """All runs."""
    n_runs, duration = options.runs or DEFAULT_RUNS, options.iterations or wang.DURATION
    names = pcts.QUICK_FUNCTIONS if options.quick else tuple(PROBLEMS)
    settings = [(name, algorithm) for name in names for algorithm in (PCTS, *SR)]
    tasks = [Task(*setting, i, duration, options.seed, options.faithful) for setting in settings for i in range(n_runs)]
    results = parallel_map(run_task, tasks, options.workers, "pcts-sr")
    groups = [results[k : k + n_runs] for k in range(0, len(results), n_runs)]
    described = [describe(*setting, group) for setting, group in zip(settings, groups, strict=True)]
    return about(options, n_runs) | {"duration": duration, "settings": described}


def run_task(task: Task) -> dict[str, Any]:
    """Return the noiseless value of the recommendation at equally spaced times."""
    if task.algorithm == PCTS:
        same = pcts.Task("constant", task.function, PCTS, task.run, task.duration, task.seed, task.faithful)
        return pcts.run_task(same)
    problem = PROBLEMS[task.function]
    rng = np.random.default_rng(seed_of(task.seed, "SR", task.function, task.run))
    f = wang.program_value(problem) if task.faithful else problem.value
    evaluate = rivals.Batches(
        f,
        wang.endless(DELAYS["constant"], rng),
        task.duration,
        SR[task.algorithm],
        None if task.faithful else wang.noise("Gaussian", problem.variance, rng),
    )
    times, values = [], []
    with suppress(rivals.TimeIsUp):
        for point in rivals.rejecting_cells(evaluate, problem.d):
            times.append(evaluate.now)
            values.append(f(point, 1.0))
    return {
        "value": values[-1],
        "curve": at_readings(np.array(times), np.array(values), task.duration),
        "n_evaluations": evaluate.n,
        "levels": len(values),
    }


def describe(function: str, algorithm: str, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of an algorithm on a function."""
    optimum = PROBLEMS[function].optimum
    values = np.array([result["value"] for result in results])
    curves = np.array([result["curve"] for result in results], dtype=float)
    return {
        "function": function,
        "algorithm": algorithm,
        "values": values,
        "median_regret": optimum - np.median(values),
        "n_evaluations": np.median([result["n_evaluations"] for result in results]),
        "levels": np.median([result["levels"] for result in results]) if "levels" in results[0] else None,
        "curve_median_regret": optimum - np.median(curves, axis=0),
    }


def table(report: dict[str, Any]) -> str:
    """Return the median regret at the end, and its ratio to the median regret of PCTS."""
    rows = []
    for each in report["settings"]:
        same = [s for s in report["settings"] if (s["function"], s["algorithm"]) == (each["function"], PCTS)]
        best = same[0]["median_regret"] if same else 0.0
        times = f"{each['median_regret'] / best:.3g}" if best > 0 else ""
        levels = "" if each["levels"] is None else f"{each['levels']:.0f}"
        name = f"{each['function']}, {each['algorithm']}"
        rows.append([name, f"{each['median_regret']:.3g}", times, f"{each['n_evaluations']:.0f}", levels])
    header = ["", "median regret", "ratio to PCTS", "evaluations", "levels"]
    return f"Figure 5: {report['duration']} units, {report['runs']} runs\n" + format_table(header, rows)


def draw(report: dict[str, Any], path: Path) -> None:
    """Draw Figure 5: median regret against time."""
    names = list(dict.fromkeys(each["function"] for each in report["settings"]))
    figure, axes = plotting.grid(1, len(names))
    x = np.linspace(0, report["duration"], N_READINGS + 1)
    for name, ax in zip(names, axes, strict=True):
        shown = [each for each in report["settings"] if each["function"] == name]
        curves = []
        for each in shown:
            regret = np.maximum(np.asarray(each["curve_median_regret"], dtype=float), 1e-7)
            curves.append((each["algorithm"], regret, np.zeros_like(regret)))
        plotting.plot_curves(
            curves, ax, x=x, title=name, xlabel="Time", ylabel="Median simple regret", log=True, bands=False
        )
    plotting.save(figure, path)
