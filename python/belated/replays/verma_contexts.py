"""The six algorithms of Verma et al. 2022 on tasks in sequence, identified by a context (section 6.3, Figure 4).

Notation: task k = 0 … K−1 has the context z_k and the accuracy g_k(x). Each task is tuned for 30 iterations, and one
optimizer tunes all tasks in turn. The cumulative regret after t iterations is the sum of max g_k − g_k(x_s) over the
iterations s < t, where k is the task of s. An iteration counts from its start, not from its arrival (section 5).

The paper does not state how a run starts. Here N_INITIAL uniform points come first, as in the authors' code for the
experiments without contexts. These points belong to the first context, are delayed like all other points, and do not
count in the regret.

The replay ``multitask`` uses the table of Wistuba, Schilling and Schmidt-Thieme (2015), which has the validation
accuracy of 288 configurations of a support vector machine on each of 50 data sets. The table also has meta-features of
the data sets; the first six meta-features are the context (appendix C.3). The tasks come in the order of the file, with
30 iterations each. Delays are Poisson(3), and m = 6. The results of a task help later tasks with similar contexts. In
two pairs of tasks, both tasks have the same six meta-features.

The value of a pending trial is assumed to be the floor 0, so the minimum of f has to be 0 (footnote 6). The smallest
accuracy of each task is therefore subtracted, which does not change the regret. With ``--faithful``, the smallest
accuracy is not subtracted, as in the authors' code for other tasks.

In the replay ``nonstationary``, the SVM of the replay ``svm`` is trained on prefixes of its training data and validated
on prefixes of its validation data. Both parts were shuffled when the data were split. Each of the 20 prefixes contains
the earlier prefixes, and the last prefix contains all data. The index of the prefix is the context. There are 30
iterations for each prefix, delays are Poisson(3), and m = 6. The paper states only that the data grow.

Regret is measured from the best accuracy of a prefix. The best accuracy is taken over a 20 × 20 grid (C and gamma on
logarithmic scales) and all points that any of the runs evaluated.
"""

import csv
import gzip
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import belated as bl
from belated.replays import report, svm, verma
from belated.replays.report import Array, Report
from belated.replays.runner import MissingData, Options, Replay, Result, Setting, parallel_map, run_all, seed_of
from belated.simulate import Poisson, simulate

ITERATIONS_PER_TASK = 30
DELAY = Poisson(3.0)
WINDOW = 6  # m = 2·mean
N_REPORTED = 5  # number of columns of the table, whose iterations are equally spaced

DATA_FILE = "tst_svm.csv.gz"
HYPERPARAMETERS = ("rbf", "poly", "linear", "C", "gamma", "degree")
META_FEATURES = ("meta1", "meta2", "meta3", "meta4", "meta5", "meta6")

N_PREFIXES = 20
N_GRID = 20  # number of values of each hyperparameter

Results = Mapping[tuple[str], Sequence[dict[str, Any]]]


def run_algorithms(function: Callable[..., dict[str, Any]], options: Options, label: str) -> Results:
    """Run all algorithms."""
    return run_all(function, [(algorithm,) for algorithm in verma.ALGORITHMS], options, label)


def n_iterations(options: Options, n_tasks: int) -> int:
    """Return the total number of iterations over all tasks; ``--iterations`` may reduce it."""
    return min(n_tasks * ITERATIONS_PER_TASK, options.iterations or n_tasks * ITERATIONS_PER_TASK)


def run_task(
    setting: Setting,
    run: int,
    options: Options,
    accuracy: Callable[[int, Any], float],
    initial_points: Callable[[np.random.Generator], Sequence[Any]],
    contexts: Sequence[Mapping[str, Any]],
    **domain: Any,
) -> Result:
    """Return the accuracies of a run's iterations, in order, and the total seconds of its suggestions.

    Run r has the same initial points and delays for all algorithms.

    Parameters
    ----------
    accuracy : callable
        (k, x) → g_k(x), in [0, 1]; x is the suggested point.
    initial_points : callable
        A function that draws the initial points of a run.
    contexts : sequence of length K
        The contexts z_k as mappings by name.
    **domain
        ``space`` or ``candidates``, and ``context``.
    """
    (algorithm,) = setting
    task = task_of_trials(verma.N_INITIAL + n_iterations(options, len(contexts)))
    settings = verma.settings_of(algorithm, options.faithful, on_a_box="space" in domain)
    seed = seed_of(options.seed, "optimizer", algorithm, run)
    optimizer = bl.algorithm(algorithm, window=WINDOW, seed=seed, **domain, **settings)
    delay = DELAY.sample(verma.rng_of(options, "delays", run), len(task))
    initial = initial_points(verma.rng_of(options, "initial", run))
    # Tasks are identified by their position in the sequence, because several tasks may have the same context.
    in_order = iter(task)
    given: dict[str, Any] = {"initial": initial, "contexts": [contexts[k] for k in task]}
    history = simulate(optimizer, lambda x, context: accuracy(next(in_order), x), len(task), delay, **given)
    n_initial = verma.N_INITIAL
    return {"accuracy": history.values[n_initial:], "seconds": float(history.seconds[n_initial:].sum())}


def task_of_trials(n_trials: int) -> list[int]:
    """Return the task k of each trial. The initial points belong to the first task."""
    return [max(0, t - verma.N_INITIAL) // ITERATIONS_PER_TASK for t in range(n_trials)]


def summarise(results: Results, best: Array) -> Report:
    """Return the settings of a report and the verdicts; `best` holds max g_k, shape (K,)."""
    settings = []
    for (algorithm,), runs in results.items():
        accuracy, seconds = report.values_of(runs, "accuracy"), report.values_of(runs, "seconds")
        n = accuracy.shape[1]
        regret = best[np.arange(n) // ITERATIONS_PER_TASK] - accuracy
        curves = np.concatenate([np.zeros((len(runs), 1)), np.cumsum(regret, axis=1)], axis=1)
        iteration = [n * j // N_REPORTED for j in range(1, N_REPORTED + 1)]
        described = verma.curves(curves, iteration) | {"algorithm": algorithm}
        described["regret_per_run"] = {str(i): curves[:, i] for i in iteration}
        described["seconds_per_run"] = float(np.mean(seconds))
        settings.append(described | {"seconds_per_suggestion": float(np.mean(seconds)) / n})
    last = settings[0]["iteration"][-1]
    regrets = {setting["algorithm"]: setting["regret_per_run"][str(last)] for setting in settings}
    return {"best": best, "settings": settings, "rivals": verma.rivals({(last,): regrets}, ["iteration"])}


def table(found: Report, what: str) -> str:
    """Return a table of cumulative regret by algorithm, the optimizer's seconds, and the verdicts."""
    settings = found["settings"]
    header = ["iteration", *map(str, settings[0]["iteration"]), "s/run"]
    ordered = sorted(settings, key=lambda setting: float(setting["mean"][-1]))
    lines = [
        f"{what}, Poisson({DELAY.mean:g}), m = {WINDOW}: cumulative regret, mean of {found['runs']} runs",
        report.format_table(header, verma.rows_of(settings, cells=lambda each: [f"{each['seconds_per_run']:.1f}"])),
        "",
        "Ranking: " + ", ".join(f"{setting['algorithm']} {setting['mean'][-1]:.2f}" for setting in ordered),
        verma.in_words(found["rivals"]),
    ]
    return "\n".join(lines)


def figure(found: Report, letters: str) -> Any:
    """Return a figure with two panels of Figure 4: the UCB family and the TS family."""
    panels = []
    for (family, members), letter in zip(verma.FAMILIES.items(), letters, strict=True):
        chosen = [setting for setting in found["settings"] if setting["algorithm"] in members]
        panels.append(report.panel(chosen, title=f"({letter}) {family}", ylabel="Cumulative regret"))
    return report.draw_panels(panels, len(panels))


@dataclass(frozen=True)
class Benchmark:
    """K tasks on N configurations.

    Attributes
    ----------
    names : list of length K
        The data sets.
    configurations : array (N, 6)
        The hyperparameters; the kernel is in one-hot columns.
    features : array (K, 6)
        The first six meta-features of each task, scaled to [0, 1] over the tasks.
    accuracy : array (K, N)
        Validation accuracies.
    """

    names: list[str]
    configurations: Array
    features: Array
    accuracy: Array


def make_multitask(options: Options) -> Report:
    """All runs of the six algorithms."""
    tasks = benchmark(options.data)  # raises an error before any process starts if the data are missing
    results = run_algorithms(run_multitask, options, "multitask")
    best = values_of(tasks, options.faithful).max(axis=1)
    return {"tasks": tasks.names} | summarise(results, best)


def table_multitask(found: Report) -> str:
    """Return the cumulative regret of the six algorithms."""
    return table(found, f"{len(found['tasks'])} tasks")


def run_multitask(setting: Setting, run: int, options: Options) -> dict[str, Any]:
    """One run of one algorithm."""
    tasks = benchmark(options.data)
    values, n = values_of(tasks, options.faithful), len(tasks.configurations)
    row_of = {row.tobytes(): i for i, row in enumerate(tasks.configurations)}
    contexts = [dict(zip(META_FEATURES, features, strict=True)) for features in tasks.features.tolist()]
    domain: dict[str, Any] = {"context": dict.fromkeys(META_FEATURES, (0.0, 1.0)), "candidates": tasks.configurations}

    def accuracy(k: int, x: Array) -> float:
        return float(values[k, row_of[x.tobytes()]])

    def initial_points(rng: np.random.Generator) -> list[int]:
        return [int(i) for i in rng.choice(n, verma.N_INITIAL, replace=False)]

    return run_task(setting, run, options, accuracy, initial_points, contexts, **domain)


def values_of(tasks: Benchmark, faithful: bool) -> Array:
    """Return f of each task, shape (K, N): the accuracy, minus the task's smallest accuracy unless faithful."""
    return tasks.accuracy if faithful else tasks.accuracy - tasks.accuracy.min(axis=1, keepdims=True)


@lru_cache(maxsize=1)
def benchmark(data: Path | None) -> Benchmark:
    """Return the tasks in the order of the file."""
    if data is None:
        raise MissingData(_how_to_get_data("no folder was given"))
    path = data / DATA_FILE
    if not path.exists():
        raise MissingData(_how_to_get_data(f"there is no {path}"))
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            return _tasks(list(csv.DictReader(file)))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise MissingData(_how_to_get_data(f"{path} cannot be read ({error})")) from error
    except KeyError as error:
        raise MissingData(_how_to_get_data(f"{path} has no column {error}")) from error
    except (TypeError, ValueError) as error:
        raise MissingData(_how_to_get_data(f"{path} is not the table that is expected ({error})")) from error


def _tasks(rows: list[dict[str, str]]) -> Benchmark:
    """Return the rows of the file by task; raise ValueError if their configurations differ."""
    by_task: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        by_task.setdefault(row["task"], []).append(row)
    if not by_task:
        raise ValueError("it has no rows")
    configurations = [_numbers(of_task, HYPERPARAMETERS) for of_task in by_task.values()]
    features = [_numbers(of_task, META_FEATURES) for of_task in by_task.values()]
    accuracy = [_numbers(of_task, ("accuracy",))[:, 0] for of_task in by_task.values()]
    for name, *of_task in zip(by_task, configurations, features, accuracy, strict=True):
        if not np.array_equal(of_task[0], configurations[0]):
            raise ValueError(f"task {name} has other configurations than the first task")
        if not (of_task[1] == of_task[1][0]).all():
            raise ValueError(f"task {name} has meta-features that change")
        if not all(((column >= 0) & (column <= 1)).all() for column in of_task[1:]):
            raise ValueError(f"task {name} has accuracies or meta-features outside [0, 1]")
    if len(np.unique(configurations[0], axis=0)) < max(len(configurations[0]), verma.N_INITIAL):
        raise ValueError("configurations occur twice in a task, or are too few")
    first = np.array([of_task[0] for of_task in features])
    return Benchmark(list(by_task), configurations[0], first, np.array(accuracy))


def _numbers(rows: list[dict[str, str]], columns: tuple[str, ...]) -> Array:
    return np.array([[float(row[column]) for column in columns] for row in rows])


def _how_to_get_data(problem: str) -> str:
    return (
        f"the multitask replay needs the SVM table of Wistuba et al. 2015, but {problem}. Put it into a folder as "
        f"{DATA_FILE}: a header line and one line for each task and configuration, with the columns task, accuracy, "
        f"{', '.join(HYPERPARAMETERS)} and {META_FEATURES[0]} to {META_FEATURES[-1]}, separated by commas (from "
        "https://github.com/wistuba/TST), and give the folder: belated replay multitask --data FOLDER"
    )


def make_growing(options: Options) -> Report:
    """All runs of the six algorithms."""
    svm.pima_diabetes(options.data)  # raises an error before any process starts if the data are missing
    prefixes = range(-(-n_iterations(options, N_PREFIXES) // ITERATIONS_PER_TASK))
    best = np.array(parallel_map(partial(best_of_grid, options.data), prefixes, options.workers, "nonstationary: grid"))
    results = run_algorithms(run_growing, options, "nonstationary")
    for k in prefixes:
        of_prefix = slice(k * ITERATIONS_PER_TASK, (k + 1) * ITERATIONS_PER_TASK)
        best[k] = max(best[k], *(report.values_of(runs, "accuracy")[:, of_prefix].max() for runs in results.values()))
    return summarise(results, best)


def run_growing(setting: Setting, run: int, options: Options) -> dict[str, Any]:
    """One run of one algorithm."""

    def accuracy(k: int, params: Mapping[str, Any]) -> float:
        return accuracy_of_prefix(options.data, k, **params)

    contexts = [{"data": k} for k in range(N_PREFIXES)]
    domain: dict[str, Any] = {"context": {"data": bl.Integer(0, N_PREFIXES - 1)}, "space": svm.space()}
    return run_task(setting, run, options, accuracy, svm.initial_points, contexts, **domain)


@cache
def accuracy_of_prefix(data: Path | None, k: int, C: float, gamma: float) -> float:
    """Train on prefix k of the training data and return the accuracy on prefix k of the validation data; cached."""
    from sklearn.svm import SVC

    x, y, x_validation, y_validation = prefix(data, k)
    return float(SVC(C=C, gamma=gamma, kernel="rbf").fit(x, y).score(x_validation, y_validation))


def prefix(data: Path | None, k: int) -> tuple[Array, ...]:
    """Return training features and labels, validation features and labels of prefix k."""
    parts = svm.pima_diabetes(data)
    return tuple(part[: round((k + 1) * len(part) / N_PREFIXES)] for part in parts)


def best_of_grid(data: Path | None, k: int) -> float:
    """Return the best accuracy of prefix k on a grid."""
    axes = (np.geomspace(*bounds, N_GRID) for bounds in svm.BOUNDS.values())
    return max(accuracy_of_prefix(data, k, float(C), float(gamma)) for C, gamma in product(*axes))


MULTITASK = "Verma et al. 2022, Figure 4 (a), (b): 50 SVM tuning tasks in sequence, meta-features as context"
GROWING = "Verma et al. 2022, Figure 4 (c), (d): an SVM tuned repeatedly while its data grow, six algorithms"
table_growing = partial(table, what=f"{N_PREFIXES} growing data sets")
figure_ab, figure_cd = (partial(figure, letters=letters) for letters in ("ab", "cd"))
REPLAYS = [
    Replay("multitask", MULTITASK, make_multitask, table_multitask, figure_ab, 10, needs=["scipy"]),
    Replay("nonstationary", GROWING, make_growing, table_growing, figure_cd, 10, needs=["scipy", "sklearn"]),
]
