"""The six algorithms of Verma et al. 2022 on a tuning task under the paper's two delay settings (section 6.2).

*Iteration* i counts the suggestions after the initial points. The curve at i is the best result that has arrived when
N_INITIAL + i trials were started, as in the authors' published runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import belated as bl
from belated import plotting
from belated.experiments import report
from belated.experiments.runner import Options, seed_of
from belated.simulate import Constant, DelayDistribution, Poisson, best_converted, simulate

UCB_FAMILY = ("GP-UCB-SDF", "GP-UCB", "GP-BUCB")
TS_FAMILY = ("GP-TS-SDF", "asy-TS", "GP-BTS")
ALGORITHMS = UCB_FAMILY + TS_FAMILY
FAMILIES = {"UCB": UCB_FAMILY, "TS": TS_FAMILY}

N_INITIAL = 5  # uniform, suggested first and delayed like all others; from the authors' code and not from the paper
ITERATIONS = 100
REPORTED = (20, 30, 50, 80, 99)

#: Settings of the authors' code that the paper does not state, as arguments of `belated.algorithm`, for all six.
FAITHFUL: Mapping[str, Any] = {
    "surrogate": bl.GP(
        kernel="squared_exponential",
        ard=False,
        mean="zero",
        priors=False,
        targets="raw",
        n_restarts=10,
        n_refit_restarts=10,
        refit_every=10,
        refit_clock="trials",
        fit_rows="all",
        initial_theta=(0.1, 1.0, 1.0),
    ),
    "acquisition__predictive_std": True,
    "initial": bl.Initial(N_INITIAL, how="uniform"),
}
#: Further settings: for algorithms that draw functions, for boxes, and for algorithms that draw functions on a box.
FAITHFUL_TS: Mapping[str, Any] = {"acquisition__widen": False}
FAITHFUL_BOX: Mapping[str, Any] = {"search__multistart": (10_000, 100)}
FAITHFUL_TS_BOX: Mapping[str, Any] = {"acquisition__draws": "weight_space", "acquisition__n_features": 200}


#: Each algorithm of the paper, and its rivals.
RIVALS = {family[0]: family[1:] for family in FAMILIES.values()}


def is_sdf(algorithm: str) -> bool:
    """Return whether an algorithm censors pending trials."""
    return algorithm.endswith("-SDF")


def censoring(algorithm: str, late: str) -> dict[str, Any]:
    """Return the floor 0 and the treatment of values later than the window, for algorithms that censor."""
    return {"pending__floor": 0.0, "pending__late": late} if is_sdf(algorithm) else {}


def faithful_settings(algorithm: str, *, on_a_box: bool) -> dict[str, Any]:
    """Return the authors' settings for one of their algorithms."""
    settings = dict(FAITHFUL) | censoring(algorithm, "discard")
    if algorithm in TS_FAMILY:
        settings |= FAITHFUL_TS
    if on_a_box:
        settings |= FAITHFUL_BOX
        if algorithm in TS_FAMILY:
            settings |= FAITHFUL_TS_BOX
    return settings


def tasks(
    options: Options,
    n_runs: int,
    initial_points: Callable[[np.random.Generator], Sequence[dict[str, Any]]],
    published: Callable[[str, str, int], tuple[Sequence[dict[str, Any]], Sequence[float]] | None] = lambda *_: None,
) -> list[Task]:
    """Return all runs of all settings, setting by setting.

    The algorithms share the initial points of a run. They also share the delays of the run, unless the delays are
    published.

    Parameters
    ----------
    initial_points : callable
        A function that draws the initial points of a run.
    published : callable
        (algorithm, delays, run) → the published initial points and delays of this run, or None.
    """
    n_trials = N_INITIAL + (ITERATIONS if options.iterations is None else options.iterations)
    listed = []
    for algorithm, delays, run in settings_and_runs(n_runs):
        initial = initial_points(np.random.default_rng(seed_of(options.seed, "initial", run)))
        delay_rng = np.random.default_rng(seed_of(options.seed, "delays", delays, run))
        delay = DELAYS[delays].distribution.sample(delay_rng, n_trials)
        given = published(algorithm, delays, run)
        if given is not None:
            initial = given[0]
            n_given = min(n_trials, len(given[1]))
            delay[:n_given] = given[1][:n_given]
        seed = seed_of(options.seed, "optimizer", algorithm, delays, run)
        task = Task(algorithm, delays, run, tuple(initial), tuple(delay), seed, options.faithful, options.data)
        listed.append(task)
    return listed


def settings_and_runs(n_runs: int) -> Iterator[tuple[str, str, int]]:
    """Yield (algorithm, delays, run) in the order of the tasks and of their results."""
    for delays in DELAYS:
        for algorithm in ALGORITHMS:
            for run in range(n_runs):
                yield algorithm, delays, run


def run_task(task: Task, space: Mapping[str, Any], accuracy: Callable[[dict[str, Any]], float]) -> RunResult:
    """Run one algorithm once, maximising a validation accuracy in [0, 1], whose floor is 0."""
    window = DELAYS[task.delays].window
    faithful = faithful_settings(task.algorithm, on_a_box=True)
    settings = faithful if task.faithful else censoring(task.algorithm, "accept")
    optimizer = bl.algorithm(task.algorithm, space, window=window, seed=task.seed, **settings)
    history = simulate(optimizer, accuracy, len(task.delay), task.delay, initial=task.initial)
    discards = settings.get("pending__late") == "discard"
    best = best_converted(history, longest=window if discards else math.inf)
    return RunResult(error=100.0 * (1.0 - best[N_INITIAL:]), seconds=float(history.seconds[N_INITIAL:].mean()))


def summarise(results: Sequence[RunResult], n_runs: int) -> list[dict[str, Any]]:
    """Return one dict per setting: mean and standard error of the validation error in % at the reported iterations."""
    settings = []
    names = [(algorithm, delays) for algorithm, delays, run in settings_and_runs(n_runs) if run == 0]
    for i, (algorithm, delays) in enumerate(names):
        runs = results[i * n_runs : (i + 1) * n_runs]
        errors = np.array([run.error for run in runs])
        last = errors.shape[1] - 1
        iteration = [i for i in REPORTED if i <= last] or [last]
        mean, stderr = report.mean_stderr(errors)
        settings.append(
            {
                "algorithm": algorithm,
                "delays": delays,
                "iteration": iteration,
                "mean": mean[iteration],
                "stderr": stderr[iteration],
                "seconds_per_suggestion": float(np.mean([run.seconds for run in runs])),
                "error_per_run": errors[:, iteration],
                "curve_mean": mean,
                "curve_stderr": stderr,
            }
        )
    return settings


def worse(a: ArrayLike, b: ArrayLike) -> dict[str, Any]:
    """Test whether the paired regrets a are larger than b, with the one-sided Wilcoxon signed-rank test."""
    from scipy.stats import wilcoxon

    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    p = float(wilcoxon(a, b, alternative="greater").pvalue) if np.any(a != b) else 1.0
    return {"mean": float(np.mean(a)), "mean_of_the_other": float(np.mean(b)), "p": p, "holds": p < 0.01}


def against_rivals(regrets: Mapping[str, ArrayLike]) -> list[dict[str, Any]]:
    """Test whether the rivals' regrets are larger than the regrets of the paper's algorithms, paired by run.

    Parameters
    ----------
    regrets : mapping
        Algorithm → one regret per run, for the six algorithms.
    """
    return [
        {"algorithm": algorithm, "rival": rival} | worse(regrets[rival], regrets[algorithm])
        for algorithm, rivals in RIVALS.items()
        for rival in rivals
    ]


def in_words(comparisons: Sequence[dict[str, Any]], digits: int) -> list[str]:
    """Return a line for each of the paper's algorithms: its mean, the means of its rivals, and the p-values."""
    lines = []
    for algorithm in RIVALS:
        chosen = [each for each in comparisons if each["algorithm"] == algorithm]
        others = [f"{each['rival']} {each['mean']:.{digits}f} (p = {each['p']:.2g})" for each in chosen]
        lines.append(f"{algorithm} {chosen[0]['mean_of_the_other']:.{digits}f} against {', '.join(others)}")
    return lines


def tables(
    settings: Sequence[dict[str, Any]],
    extra_columns: Mapping[str, Callable[[dict[str, Any]], str]] | None = None,
    extra_row: Callable[[dict[str, Any]], list[str] | None] = lambda setting: None,
) -> str:
    """Return a table per delay setting: mean ± standard error per algorithm and iteration, seconds per suggestion.

    Parameters
    ----------
    extra_columns : mapping
        Header → function that gives the cell of a setting.
    extra_row : callable
        A function that returns the cells of a second row for a setting, or None.
    """
    extra_columns = extra_columns or {}
    parts = []
    for delays, setting_of_delays in DELAYS.items():
        chosen = [setting for setting in settings if setting["delays"] == delays]
        header = ["iteration", *map(str, chosen[0]["iteration"]), *extra_columns, "s/suggestion"]
        rows = []
        for setting in chosen:
            means = [report.plus_minus(*pair) for pair in zip(setting["mean"], setting["stderr"], strict=True)]
            extra = [cell(setting) for cell in extra_columns.values()]
            rows.append([setting["algorithm"], *means, *extra, report.seconds(setting)])
            second = extra_row(setting)
            if second is not None:
                rows.append(second + [""] * (len(header) - len(second)))
        parts.append(f"Delays {setting_of_delays.title}: validation error in %\n" + report.format_table(header, rows))
    return "\n\n".join(parts)


def draw(settings: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the four panels of a tuning figure: UCB and TS family, stochastic and constant delay, published curves."""
    panels = [(family, delays) for family in FAMILIES for delays in DELAYS]
    figure, axes = plotting.grid(len(FAMILIES), len(DELAYS))
    for (family, delays), letter, ax in zip(panels, "abcd", axes, strict=True):
        members = [s for s in settings if s["delays"] == delays and s["algorithm"] in FAMILIES[family]]
        published = [("_published", s["published_curve_mean"], 0.0) for s in members if "published_mean" in s]
        title = f"({letter}) {DELAYS[delays].title}"
        # A label that begins with an underscore is left out of the legend.
        plotting.plot_curves(published, ax, dashes=[":"], bands=False)
        curves = [(s["algorithm"], s["curve_mean"], s["curve_stderr"]) for s in members]
        plotting.plot_curves(curves, ax, title=title, ylabel="Validation error (%)", dashes=["-"])
    if any("published_mean" in s for s in settings):
        figure.suptitle("Dotted: as published")
    plotting.save(figure, path)


@dataclass(frozen=True)
class Delays:
    """A delay setting: its title, its distribution, and the window m = 2·mean, or 10 if all delays are at most 10."""

    title: str
    distribution: DelayDistribution
    window: int


DELAYS = {
    "poisson10": Delays("Poisson(10), m = 20", Poisson(10.0), 20),
    "fixed10": Delays("constant 10, m = 10", Constant(10.0), 10),
}


@dataclass(frozen=True)
class Task:
    """One run of one algorithm under one delay setting, with all data that its result depends on."""

    algorithm: str
    delays: str
    run: int
    initial: tuple[dict[str, Any], ...]
    delay: tuple[float, ...]
    seed: int
    faithful: bool
    data: Path | None


@dataclass(frozen=True)
class RunResult:
    """The result of a run: the best converted error in % after 0, 1, 2, … iterations, and seconds per suggestion."""

    error: np.ndarray
    seconds: float
