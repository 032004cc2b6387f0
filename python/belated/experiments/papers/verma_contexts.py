"""The six algorithms of Verma et al. 2022 on tasks in sequence, identified by a context (section 6.3, Figure 4).

Notation: task k = 0 … K−1 has the context z_k and the accuracy g_k(x). Each task is tuned for 30 iterations, and one
optimizer tunes all tasks in turn. The cumulative regret after t iterations is the sum of max g_k − g_k(x_s) over the
iterations s < t, where k is the task of s. An iteration counts from its start, not from its arrival (section 5).

The paper does not state how a run starts. Here N_INITIAL uniform points come first, as in the authors' code for the
experiments without contexts. These points belong to the first context, are delayed like all others, and do not count in
the regret.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import belated as bl
from belated import plotting
from belated.experiments.papers import verma
from belated.experiments.report import format_table, mean_stderr, plus_minus
from belated.experiments.runner import Options, seed_of
from belated.simulate import Poisson, simulate

ITERATIONS_PER_TASK = 30
DELAY = Poisson(3.0)
WINDOW = 6  # m = 2·mean
N_REPORTED = 5  # columns of the table, at equal distances

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Run:
    """One run of one algorithm, with all data that its result depends on."""

    algorithm: str
    initial: tuple[Any, ...]
    delay: tuple[float, ...]
    seed: int
    faithful: bool
    data: Path | None


@dataclass(frozen=True)
class RunResult:
    """The accuracies of a run's iterations, in order, and the total seconds of the run's suggestions."""

    accuracy: Array
    seconds: float


def runs(
    options: Options, n_runs: int, n_tasks: int, initial_points: Callable[[np.random.Generator], Sequence[Any]]
) -> list[Run]:
    """Return all runs, algorithm by algorithm. Run r has the same initial points and delays for all algorithms.

    Parameters
    ----------
    n_tasks : int
        The number of tasks, K. ``options.iterations`` may end the sequence earlier.
    initial_points : callable
        A function that draws the initial points of a run.
    """
    n_iterations = n_tasks * ITERATIONS_PER_TASK
    if options.iterations is not None:
        n_iterations = min(n_iterations, options.iterations)
    listed = []
    for algorithm in verma.ALGORITHMS:
        for run in range(n_runs):
            initial = initial_points(np.random.default_rng(seed_of(options.seed, "initial", run)))
            delay_rng = np.random.default_rng(seed_of(options.seed, "delays", run))
            delay = DELAY.sample(delay_rng, verma.N_INITIAL + n_iterations)
            seed = seed_of(options.seed, "optimizer", algorithm, run)
            listed.append(Run(algorithm, tuple(initial), tuple(delay), seed, options.faithful, options.data))
    return listed


def execute(
    run: Run,
    accuracy: Callable[[int, Any], float],
    contexts: Sequence[Mapping[str, Any]],
    context_space: Mapping[str, Any],
    **domain: Any,
) -> RunResult:
    """One run of one algorithm.

    Parameters
    ----------
    accuracy : callable
        (k, x) → g_k(x), in [0, 1]; x is the suggested point.
    contexts : sequence of length K
        The contexts z_k as mappings by name.
    **domain
        ``space`` or ``candidates``.
    """
    task = task_of_trials(len(run.delay))
    settings = verma.censoring(run.algorithm, "accept")
    if run.faithful:
        settings = verma.faithful_settings(run.algorithm, on_a_box="space" in domain)
    optimizer = bl.algorithm(run.algorithm, context=context_space, window=WINDOW, seed=run.seed, **domain, **settings)
    # Tasks are identified by their place in the sequence, because several tasks may have the same context.
    in_order = iter(task)
    history = simulate(
        optimizer,
        lambda x, context: accuracy(next(in_order), x),
        len(run.delay),
        run.delay,
        initial=run.initial,
        contexts=[contexts[k] for k in task],
    )
    return RunResult(history.values[verma.N_INITIAL :], float(history.seconds[verma.N_INITIAL :].sum()))


def task_of_trials(n_trials: int) -> list[int]:
    """Return the task k of each trial. The initial points belong to the first task."""
    return [max(0, t - verma.N_INITIAL) // ITERATIONS_PER_TASK for t in range(n_trials)]


def summarise(results: Sequence[RunResult], n_runs: int, best: Array) -> dict[str, Any]:
    """Return the settings of a report and the comparison with the rivals; `best` holds max g_k, shape (K,)."""
    settings = []
    for i, algorithm in enumerate(verma.ALGORITHMS):
        of_algorithm = results[i * n_runs : (i + 1) * n_runs]
        accuracy = np.array([result.accuracy for result in of_algorithm])
        n_iterations = accuracy.shape[1]
        regret = best[np.arange(n_iterations) // ITERATIONS_PER_TASK] - accuracy
        curves = np.concatenate([np.zeros((n_runs, 1)), np.cumsum(regret, axis=1)], axis=1)
        iteration = [n_iterations * j // N_REPORTED for j in range(1, N_REPORTED + 1)]
        mean, stderr = mean_stderr(curves)
        seconds = [result.seconds for result in of_algorithm]
        settings.append(
            {
                "algorithm": algorithm,
                "iteration": iteration,
                "mean": mean[iteration],
                "stderr": stderr[iteration],
                "regret_per_run": curves[:, -1],
                "seconds_per_run": float(np.mean(seconds)),
                "seconds_per_suggestion": float(np.mean(seconds)) / n_iterations,
                "curve_mean": mean,
                "curve_stderr": stderr,
            }
        )
    regrets = {setting["algorithm"]: setting["regret_per_run"] for setting in settings}
    return {"best": best, "settings": settings, "against_rivals": verma.against_rivals(regrets)}


def table(report: dict[str, Any], what: str) -> str:
    """Return a table of cumulative regret by algorithm, the optimizer's seconds, and the tests against the rivals."""
    settings = report["settings"]
    header = ["iteration", *map(str, settings[0]["iteration"]), "s/run"]
    rows = [
        [
            setting["algorithm"],
            *(plus_minus(*pair) for pair in zip(setting["mean"], setting["stderr"], strict=True)),
            f"{setting['seconds_per_run']:.1f}",
        ]
        for setting in settings
    ]
    ordered = sorted(settings, key=lambda setting: float(setting["mean"][-1]))
    lines = [
        f"{what}, Poisson({DELAY.mean:g}), m = {WINDOW}: cumulative regret, mean of {report['runs']} runs",
        format_table(header, rows),
        "",
        "Ranking: " + ", ".join(f"{setting['algorithm']} {setting['mean'][-1]:.2f}" for setting in ordered),
        "At the end, paired one-sided Wilcoxon tests against the rivals:",
        *(f"  {line}" for line in verma.in_words(report["against_rivals"], digits=2)),
    ]
    return "\n".join(lines)


def draw(report: dict[str, Any], path: Path, first_letter: str) -> None:
    """Draw two panels of Figure 4, UCB and TS family."""
    figure, axes = plotting.grid(1, len(verma.FAMILIES))
    letters = string.ascii_lowercase[string.ascii_lowercase.index(first_letter) :]
    for (family, members), letter, ax in zip(verma.FAMILIES.items(), letters, axes, strict=False):
        curves = [
            (setting["algorithm"], setting["curve_mean"], setting["curve_stderr"])
            for setting in report["settings"]
            if setting["algorithm"] in members
        ]
        plotting.plot_curves(curves, ax, title=f"({letter}) {family}", ylabel="Cumulative regret", dashes=["-"])
    plotting.save(figure, path)
