"""Wang et al. 2022 on noise: tree search whose noise variance is known or not, Gaussian and Laplace, under delays.

DUCB1σ and UCB1σ are given the variance of the noise; DUCBV and UCBV estimate it (sections 3.3 and D.2 of the paper). By
a remark in D.2.3, with Laplace noise of variance 0.05 PCTS reaches 3.2942 on Hartmann6 and the next method 3.2562. The
variances are the paper's, and four times as large. MFPOO and GP-UCB wait and act. The delay is 4, and there are ten
runs of 600 units. The result is the median of the noiseless value of the recommended point.

PCTS is the authors' program with the noise that its wrapper should have added. With ``--faithful`` it runs at full
fidelity and with the settings of the scripts. Otherwise it runs at the fidelity of its cells and with the settings of
the paper. The paper's algorithm is shown beside it. ``--iterations T`` is the time of a run, ``--quick`` three runs on
two functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from belated import plotting
from belated.experiments import rivals
from belated.experiments.papers import wang
from belated.experiments.papers.wang import DELAYS, PROBLEMS
from belated.experiments.replays import pcts
from belated.experiments.report import format_table
from belated.experiments.runner import Options, about, parallel_map, seed_of

DEFAULT_RUNS = wang.RUNS
NEEDS: tuple[str, ...] = ()
OPTIONS = ("quick",)
QUICK_RUNS = 3
QUICK_FUNCTIONS = ("Hartmann3", "Branin")
#: Name → kind of noise, and its variance in units of the paper's.
NOISES = {
    "none": ("none", 0.0),
    "Gaussian": ("Gaussian", 1.0),
    "Laplace": ("Laplace", 1.0),
    "Gaussian, 4 times the variance": ("Gaussian", 4.0),
}
GP_UCB = "GP-UCB"
#: Label of PCTS as described in the paper.
PAPER = ", uniform in cells"


@dataclass(frozen=True)
class Task:
    """One run of an algorithm."""

    function: str
    noise: str
    algorithm: str
    run: int
    duration: int
    seed: int
    faithful: bool


def run(options: Options) -> dict[str, Any]:
    """All runs."""
    n_runs = options.runs or (QUICK_RUNS if options.quick else DEFAULT_RUNS)
    duration = options.iterations or wang.DURATION
    names = QUICK_FUNCTIONS if options.quick else tuple(PROBLEMS)
    algorithms = [*wang.TREES, GP_UCB, *(each + PAPER for each in wang.TREES if each.startswith("PCTS"))]
    settings = [(name, noise, algorithm) for name in names for noise in NOISES for algorithm in algorithms]
    tasks = [Task(*setting, i, duration, options.seed, options.faithful) for setting in settings for i in range(n_runs)]
    results = parallel_map(run_task, tasks, options.workers, "pcts-noise")
    groups = [results[k : k + n_runs] for k in range(0, len(results), n_runs)]
    described = [describe(*setting, group) for setting, group in zip(settings, groups, strict=True)]
    return about(options, n_runs) | {"duration": duration, "settings": described}


def run_task(task: Task) -> float:
    """Return the noiseless value of the recommendation at the end."""
    problem = PROBLEMS[task.function]
    kind, factor = NOISES[task.noise]
    variance = factor * problem.variance
    rng = np.random.default_rng(seed_of(task.seed, task.function, task.noise, task.algorithm, task.run))
    noise = wang.noise(kind, variance, rng)
    if task.algorithm.endswith(PAPER):
        algorithm = task.algorithm.removesuffix(PAPER)
        value, _ = pcts.paper_search(problem, algorithm, "constant", task.duration, noise, math.sqrt(variance), rng)
        return value
    if task.algorithm == GP_UCB:
        clock = rivals.WaitAndAct(problem.value, wang.endless(DELAYS["constant"], rng), task.duration, noise)
        rivals.wait_and_act(rivals.gp_ucb, clock, problem.d, rng)
        return problem.value(clock.recommendations()[-1])
    instances = wang.run_program(
        problem,
        "constant",
        task.algorithm,
        rng,
        duration=task.duration,
        noise=noise,
        fidelity=not task.faithful,
        f=wang.program_value(problem) if task.faithful else problem.value,
        width=None if task.faithful else wang.paper_width(task.algorithm, variance),
    )
    return max(problem.value(each.points[-1]) for each in instances)


def describe(function: str, noise: str, algorithm: str, values: Sequence[float]) -> dict[str, Any]:
    """Return the figures of an algorithm under one kind of noise."""
    return {
        "function": function,
        "noise": noise,
        "algorithm": algorithm,
        "values": np.asarray(values, dtype=float),
        "median": np.median(values),
        "std": np.std(values),
        "regret": PROBLEMS[function].optimum - np.median(values),
    }


def table(report: dict[str, Any]) -> str:
    """Return median values, with functions and noises as rows."""
    algorithms = list(dict.fromkeys(each["algorithm"] for each in report["settings"]))
    found = {(s["function"], s["noise"], s["algorithm"]): s for s in report["settings"]}
    keys = list(dict.fromkeys((each["function"], each["noise"]) for each in report["settings"]))
    rows = [
        [f"{function}, {noise}", *(f"{found[function, noise, each]['median']:.6g}" for each in algorithms)]
        for function, noise in keys
    ]
    title = f"Noise: median values after {report['duration']} units, {report['runs']} runs\n"
    return title + format_table(["", *algorithms], rows)


def draw(report: dict[str, Any], path: Path) -> None:
    """Draw median regret by noise, with a panel for each function."""
    names = list(dict.fromkeys(each["function"] for each in report["settings"]))
    figure, axes = plotting.grid(1, len(names))
    x = np.arange(len(NOISES))
    for name, ax in zip(names, axes, strict=True):
        shown = [each for each in report["settings"] if each["function"] == name]
        for algorithm in dict.fromkeys(each["algorithm"] for each in shown):
            regret = [max(each["regret"], 1e-7) for each in shown if each["algorithm"] == algorithm]
            ax.plot(x, regret, marker="o", label=algorithm)
        ax.set(title=name, yscale="log", ylabel="Median simple regret")
        ax.set_xticks(x, list(NOISES), rotation=30, ha="right", fontsize="x-small")
    axes[0].legend(fontsize="x-small")
    plotting.save(figure, path)
