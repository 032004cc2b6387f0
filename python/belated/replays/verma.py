"""The six algorithms of Verma et al. 2022 with delayed results: on one tuning task (section 6.2), and on several tasks.

*Iteration* i counts the suggestions after the initial points. The curve at i is the best result that has arrived when
N_INITIAL + i trials were started, as in the authors' published runs.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import belated as bl
from belated.replays import report
from belated.replays.report import Report
from belated.replays.runner import Options, Result, Setting, seed_of
from belated.replays.verdicts import verdicts
from belated.simulate import Constant, DelayDistribution, Poisson, best_converted, simulate

UCB_FAMILY = ("GP-UCB-SDF", "GP-UCB", "GP-BUCB")
TS_FAMILY = ("GP-TS-SDF", "asy-TS", "GP-BTS")
ALGORITHMS = UCB_FAMILY + TS_FAMILY
FAMILIES = {"UCB": UCB_FAMILY, "TS": TS_FAMILY}

N_INITIAL = 5  # number of uniform initial points, which are delayed like other points; comes from the authors' code
ITERATIONS = 100
REPORTED = (20, 30, 50, 80, 99)
COMPARED = (50, 99)  # iterations at which algorithms are compared

#: Arguments of `belated.algorithm` for settings of the authors' code that the paper does not state. The arguments apply
# to all six algorithms of the paper.
FIT: Mapping[str, Any] = {"n_restarts": 10, "fit_rows": "all", "initial_theta": (0.1, 1.0, 1.0)}
REFIT: Mapping[str, Any] = {"refit_every": 10, "refit_clock": "trials", "n_refit_restarts": 10}
FAITHFUL: Mapping[str, Any] = {
    "surrogate": bl.GP(
        kernel="squared_exponential", ard=False, mean="zero", priors=False, targets="raw", **FIT, **REFIT
    ),
    "acquisition__predictive_std": True,
    "initial": bl.Initial(0, how="uniform"),  # the initial points are enqueued
}
#: Additional arguments: for algorithms that draw functions, for all algorithms on a box, and for algorithms that draw
#: functions on a box.
FAITHFUL_TS: Mapping[str, Any] = {"acquisition__widen": False}
FAITHFUL_BOX: Mapping[str, Any] = {"search__multistart": (10_000, 100)}
FAITHFUL_TS_BOX: Mapping[str, Any] = {"acquisition__draws": "weight_space", "acquisition__n_features": 200}

#: Algorithm that the paper proposes → its rivals.
RIVALS = {family[0]: family[1:] for family in FAMILIES.values()}


@dataclass(frozen=True)
class Delays:
    """A delay setting: its title, its distribution, and its window m (2·mean, or 10 if all delays are at most 10)."""

    title: str
    distribution: DelayDistribution
    window: int


DELAYS = {
    "poisson10": Delays("Poisson(10), m = 20", Poisson(10.0), 20),
    "fixed10": Delays("constant 10, m = 10", Constant(10.0), 10),
}
#: Settings of a tuning task: (algorithm, delays).
SETTINGS = [(algorithm, delays) for delays, algorithm in product(DELAYS, ALGORITHMS)]


def is_sdf(algorithm: str) -> bool:
    """Return whether an algorithm censors pending trials."""
    return algorithm.endswith("-SDF")


def censoring(algorithm: str, late: str) -> dict[str, Any]:
    """Return the floor 0 and the rule for values after the window; {} for algorithms that do not censor."""
    return {"pending__floor": 0.0, "pending__late": late} if is_sdf(algorithm) else {}


def settings_of(algorithm: str, faithful: bool, *, on_a_box: bool) -> dict[str, Any]:
    """Return the settings of an algorithm: belated's defaults, or the settings of the authors' code."""
    if not faithful:
        return {"initial__n": 0, **censoring(algorithm, "accept")}  # the initial points are enqueued
    draws = algorithm in TS_FAMILY
    settings = {**FAITHFUL, **censoring(algorithm, "discard"), **(FAITHFUL_TS if draws else {})}
    if on_a_box:
        settings |= {**FAITHFUL_BOX, **(FAITHFUL_TS_BOX if draws else {})}
    return settings


def rng_of(options: Options, *keys: int | str) -> np.random.Generator:
    """Return a random generator for one purpose in one run, the same for all algorithms."""
    return np.random.default_rng(seed_of(options.seed, *keys))


Params = Mapping[str, Any]
Points = Sequence[dict[str, Any]]
Start = tuple[Points, Sequence[float]]


def start(
    setting: Setting, run: int, options: Options, initial_points: Callable[..., Points], published: Start | None = None
) -> Start:
    """Return the initial points and the delays of a run.

    All algorithms have the same initial points and delays in a run, unless published initial points and delays are
    used.
    """
    initial = initial_points(rng_of(options, "initial", run))
    n_trials = N_INITIAL + options.iterations
    delay = DELAYS[setting[1]].distribution.sample(rng_of(options, "delays", setting[1], run), n_trials)
    if published is not None:
        initial = published[0]
        delay[: len(published[1])] = published[1][:n_trials]
    return initial, delay


def run_task(
    setting: Setting, run: int, options: Options, started: Start, space: Params, accuracy: Callable[[Any], float]
) -> Result:
    """Maximise a validation accuracy. Accuracies are in [0, 1], so the floor is 0.

    Returns the best converted error in % after 0, 1, 2, … iterations, and seconds per suggestion.
    """
    algorithm, delays = setting
    window = DELAYS[delays].window
    settings = settings_of(algorithm, options.faithful, on_a_box=True)
    seed = seed_of(options.seed, "optimizer", algorithm, delays, run)
    optimizer = bl.algorithm(algorithm, space, window=window, seed=seed, **settings)
    initial, delay = started
    history = simulate(optimizer, accuracy, len(delay), delay, initial=initial)
    discards = settings.get("pending__late") == "discard"
    best = best_converted(history, longest=window if discards else math.inf)
    return {"error": 100.0 * (1.0 - best[N_INITIAL:]), "seconds": float(history.seconds[N_INITIAL:].mean())}


def summarise(results: Mapping[tuple[str, str], Sequence[dict[str, Any]]]) -> list[Report]:
    """Return one dict per setting: mean and standard error of the validation error in % at the reported iterations."""
    settings = []
    for (algorithm, delays), runs in results.items():
        errors = report.values_of(runs, "error")
        last = errors.shape[1] - 1
        iteration = [i for i in REPORTED if i <= last] or [last]
        described: Report = {"algorithm": algorithm, "delays": delays} | curves(errors, iteration)
        described["seconds_per_suggestion"] = float(np.mean(report.values_of(runs, "seconds")))
        settings.append(described | {"error_per_run": errors[:, iteration]})
    return settings


def of_tasks(settings: Sequence[Report]) -> list[Report]:
    """Return the verdicts on the errors of a tuning task, at the iterations `COMPARED` or at the last one."""
    known = settings[0]["iteration"]
    regrets: dict[tuple[str, int], dict[str, ArrayLike]] = {}
    for k, i in enumerate(known):
        if i in COMPARED or k == len(known) - 1:
            for each in settings:
                of_key = regrets.setdefault((DELAYS[each["delays"]].title, i), {})
                of_key[each["algorithm"]] = each["error_per_run"][:, k]
    return rivals(regrets, ("delays", "iteration"))


def curves(runs: ArrayLike, iteration: list[int]) -> Report:
    """Return the mean and the standard error of curves: at the given iterations, and at all iterations."""
    mean, stderr = report.mean_stderr(runs)
    at = {"iteration": iteration, "mean": mean[iteration], "stderr": stderr[iteration]}
    return at | {"curve_mean": mean, "curve_stderr": stderr}


def worse(a: ArrayLike, b: ArrayLike) -> dict[str, Any]:
    """Test whether the regrets a are larger than the paired regrets b: a one-sided Wilcoxon signed-rank test."""
    from scipy.stats import wilcoxon

    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    p = float(wilcoxon(a, b, alternative="greater").pvalue) if np.any(a != b) else 1.0
    return {"mean": float(np.mean(a)), "mean_of_the_other": float(np.mean(b)), "p": p, "holds": p < 0.01}


def rivals(regrets: Mapping[tuple[Any, ...], Mapping[str, ArrayLike]], names: Sequence[str]) -> list[Report]:
    """Return the verdicts on the regrets or errors of the paper's algorithms, against each of their rivals.

    Parameters
    ----------
    regrets : mapping
        Key → algorithm → one regret per run, for the six algorithms.
    names : sequence of str
        The names of the entries of a key, under which each verdict has them.
    """
    pairs: dict[tuple[Any, ...], tuple[ArrayLike, ArrayLike]] = {}
    for key, of in regrets.items():
        for ours, others in RIVALS.items():
            pairs |= {(*key, ours, rival): (of[ours], of[rival]) for rival in others}
    keys = (*names, "algorithm", "rival")
    return [dict(zip(keys, key, strict=True)) | {"verdict": each} for key, each in verdicts(pairs).items()]


def in_words(compared: Sequence[Report]) -> str:
    """Return a line for each verdict."""
    lines = ["Verdicts (two-sided Wilcoxon tests at the level 0.05, with Holm's correction):"]
    for each in compared:
        *key, algorithm, rival, verdict = each.values()
        lines.append(f"  {', '.join(map(str, key))}: {algorithm} against {rival}: {verdict}")
    return "\n".join(lines)


def rows_of(
    settings: Iterable[Report], digits: int = 2, cells: Callable[[Report], list[str]] = lambda setting: []
) -> list[list[str]]:
    """Return the rows of a table: algorithm, mean ± standard error at the reported iterations, further cells."""
    return [[s["algorithm"], *report.plus_minus(s["mean"], s["stderr"], digits), *cells(s)] for s in settings]


def tables(
    settings: Sequence[Report],
    column: str | None = None,
    cell: Callable[[Report], str] = lambda setting: "",
    second_row: Callable[[Report], list[str]] = lambda setting: [],
) -> str:
    """Return a table for each delay setting: mean ± standard error by algorithm and iteration, seconds per suggestion.

    Parameters
    ----------
    column, cell
        The header and the cells of a further column.
    second_row : callable
        A function that returns the cells of a second row for a setting; there is no second row if it returns [].
    """
    parts = []
    for delays, setting_of_delays in DELAYS.items():
        chosen = [setting for setting in settings if setting["delays"] == delays]
        header = ["iteration", *map(str, chosen[0]["iteration"]), *([column] if column else []), "s/suggestion"]
        rows = []
        for setting in chosen:
            extra = [cell(setting)] if column else []
            rows.append([*rows_of([setting])[0], *extra, report.seconds(setting)])
            if second := second_row(setting):
                rows.append(second + [""] * (len(header) - len(second)))
        parts.append(f"Delays {setting_of_delays.title}: validation error in %\n" + report.format_table(header, rows))
    return "\n\n".join(parts)


def table(found: Report) -> str:
    """Return the mean ± standard error of the best converted validation error, and the verdicts."""
    return "\n\n".join([tables(found["settings"]), *([in_words(found["rivals"])] if "rivals" in found else [])])


def figure(found: Report) -> Any:
    """Return a figure with a panel for each family and delay setting; published curves are dotted.

    The vertical axis ends at 1.5 times the largest mean after a tenth of the iterations, if earlier means are larger.
    """
    panels = []
    for letter, (family, delays) in zip("abcd", product(FAMILIES, DELAYS), strict=True):
        members = [s for s in found["settings"] if s["delays"] == delays and s["algorithm"] in FAMILIES[family]]
        dotted = [s["published_curve_mean"] for s in members if "published_mean" in s]
        title = f"({letter}) {DELAYS[delays].title}"
        panels.append(report.panel(members, title=title, ylabel="Validation error (%)", dotted=dotted))
    made = report.draw_panels(panels, len(DELAYS))
    for ax in made.axes:
        means = np.array([line.get_ydata() for line in ax.lines if len(line.get_ydata())], dtype=float)
        largest = 1.5 * np.nanmax(means[:, means.shape[1] // 10 :], initial=0.0)
        if 0 < largest < np.nanmax(means):
            ax.set_ylim(0.0, largest)
    return made
