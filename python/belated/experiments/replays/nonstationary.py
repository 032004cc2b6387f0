"""Verma et al. 2022, Figure 4 (c), (d): an SVM tuned repeatedly while its data grow, six algorithms.

The task is the SVM of the replay ``svm`` on 20 growing prefixes of its training part and of its validation part. The
parts were shuffled when the data were split. Each prefix contains the earlier prefixes, and the last prefix is all
data. The index is the context. There are 30 iterations for each prefix, results are Poisson(3) late, and m = 6. The
paper states only that the data grow.

Regret is measured from the best accuracy of a prefix. It is the best accuracy of a 20 × 20 grid (C and gamma on
logarithmic scales) and of all points that any of the runs evaluated.
"""

from __future__ import annotations

from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import belated as bl
from belated.experiments.papers import verma, verma_contexts
from belated.experiments.replays import svm
from belated.experiments.runner import Options, about, parallel_map

DEFAULT_RUNS = 10
NEEDS = ("scipy", "sklearn")
N_PREFIXES = 20
N_GRID = 20  # number of values of each hyperparameter

Array = NDArray[np.float64]


def run(options: Options) -> dict[str, Any]:
    """All runs of the six algorithms."""
    svm.pima_diabetes(options.data)  # raises an error before any process starts if the data are missing
    n_runs = options.runs or DEFAULT_RUNS
    runs = verma_contexts.runs(options, n_runs, N_PREFIXES, svm.initial_points)
    n_iterations = len(runs[0].delay) - verma.N_INITIAL
    prefixes = range(-(-n_iterations // verma_contexts.ITERATIONS_PER_TASK))
    best = np.array(parallel_map(partial(best_of_grid, options.data), prefixes, options.workers, "nonstationary: grid"))
    results = parallel_map(run_task, runs, options.workers, "nonstationary")
    for k in prefixes:
        of_prefix = slice(k * verma_contexts.ITERATIONS_PER_TASK, (k + 1) * verma_contexts.ITERATIONS_PER_TASK)
        best[k] = max(best[k], *(result.accuracy[of_prefix].max() for result in results))
    return about(options, n_runs) | verma_contexts.summarise(results, n_runs, best)


def table(report: dict[str, Any]) -> str:
    """Cumulative regret of the six algorithms."""
    return verma_contexts.table(report, f"{N_PREFIXES} growing data sets")


def draw(report: dict[str, Any], path: Path) -> None:
    """Figure 4 (c), (d)."""
    verma_contexts.draw(report, path, "c")


def run_task(run: verma_contexts.Run) -> verma_contexts.RunResult:
    """One run of one algorithm."""
    return verma_contexts.execute(
        run,
        lambda k, params: accuracy(run.data, k, params["C"], params["gamma"]),
        [{"data": k} for k in range(N_PREFIXES)],
        {"data": bl.Integer(0, N_PREFIXES - 1)},
        space=svm.space(),
    )


@cache
def accuracy(data: Path | None, k: int, C: float, gamma: float) -> float:
    """Train on the data of prefix k and return the accuracy on its validation part. Each point is trained once."""
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
    return max(accuracy(data, k, float(C), float(gamma)) for C, gamma in product(*axes))
