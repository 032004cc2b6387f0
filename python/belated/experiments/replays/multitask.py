"""Verma et al. 2022, Figure 4 (a), (b): 50 SVM tuning tasks in sequence, meta-features as context, six algorithms.

The table of Wistuba, Schilling and Schmidt-Thieme (2015) has the validation accuracy of 288 configurations of a support
vector machine on each of 50 data sets. It also has meta-features of the data sets, of which the first six are the
context (appendix C.3). The tasks come in the order of the file, with 30 iterations each. Results are Poisson(3) late,
and m = 6. Results of earlier tasks help later tasks if the contexts are similar. Two pairs of tasks have the same six
meta-features.

A pending trial counts as the floor 0, so min f = 0 has to hold (footnote 6). The smallest accuracy of each task is
therefore subtracted, which leaves regret unchanged. ``--faithful`` does not subtract it, because the authors' code for
other tasks does not.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from belated.experiments.papers import verma, verma_contexts
from belated.experiments.runner import MissingData, Options, about, parallel_map

DEFAULT_RUNS = 10
NEEDS = ("scipy",)
DATA_FILE = "tst_svm.csv.gz"
HYPERPARAMETERS = ("rbf", "poly", "linear", "C", "gamma", "degree")
META_FEATURES = ("meta1", "meta2", "meta3", "meta4", "meta5", "meta6")

Array = NDArray[np.float64]


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


def run(options: Options) -> dict[str, Any]:
    """All runs of the six algorithms."""
    tasks = benchmark(options.data)  # raises an error before any process starts if the data are missing
    n_runs = options.runs or DEFAULT_RUNS
    n_configurations = len(tasks.configurations)

    def initial_points(rng: np.random.Generator) -> list[int]:
        return [int(i) for i in rng.choice(n_configurations, verma.N_INITIAL, replace=False)]

    runs = verma_contexts.runs(options, n_runs, len(tasks.names), initial_points)
    results = parallel_map(run_task, runs, options.workers, "multitask")
    summary = verma_contexts.summarise(results, n_runs, values_of(tasks, options.faithful).max(axis=1))
    return about(options, n_runs) | {"tasks": tasks.names} | summary


def table(report: dict[str, Any]) -> str:
    """Cumulative regret of the six algorithms."""
    return verma_contexts.table(report, f"{len(report['tasks'])} tasks")


def draw(report: dict[str, Any], path: Path) -> None:
    """Figure 4 (a), (b)."""
    verma_contexts.draw(report, path, "a")


def run_task(run: verma_contexts.Run) -> verma_contexts.RunResult:
    """One run of one algorithm."""
    tasks = benchmark(run.data)
    values = values_of(tasks, run.faithful)
    row_of = {row.tobytes(): i for i, row in enumerate(tasks.configurations)}
    return verma_contexts.execute(
        run,
        lambda k, x: float(values[k, row_of[x.tobytes()]]),
        [dict(zip(META_FEATURES, map(float, features), strict=True)) for features in tasks.features],
        dict.fromkeys(META_FEATURES, (0.0, 1.0)),
        candidates=tasks.configurations,
    )


def values_of(tasks: Benchmark, faithful: bool) -> Array:
    """Return f of each task (K, N): accuracies, minus the smallest of the task unless the replay is faithful."""
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
            raise ValueError(f"task {name} has other configurations than the first one")
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
