"""Wang et al. 2022, Figure 3 (b): XGBoost on MNIST, tuned by tree search while results are late.

There are five parameters, of which two are whole numbers. There are 500 to 20,000 samples, and 5 runs of 1,700 s with a
delay of 10 s. The accuracy is from 3-fold cross-validation. `belated.experiments.papers.wang_tuning` has the common
parts of the paper's experiments, and docs/pcts_tuning.md the sources of the data. ``--iterations T`` is the time of a
run. ``--quick`` uses 200 of scikit-learn's bundled digits. ``--keep DIR`` keeps each evaluation, so that a stopped
replay can continue.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import belated as bl
from belated.experiments.cross_validation import cross_validated
from belated.experiments.papers import wang_tuning
from belated.experiments.runner import Options

DEFAULT_RUNS = wang_tuning.RUNS
NEEDS = ("xgboost", "sklearn")
OPTIONS = ("quick", "keep")
N_FOLDS = 3


def space() -> dict[str, Any]:
    """Return the space: size and number of the trees, their share of columns, and how fast they are added and grow."""
    return {
        "max_depth": bl.Integer(2, 13),
        "n_estimators": bl.Integer(10, 400),
        "colsample_bytree": bl.Real(0.2, 0.9),
        "gamma": bl.Real(0.0, 0.7),
        "learning_rate": bl.Real(0.05, 0.3),
    }


def accuracy(params: wang_tuning.Params, x: Any, y: Any, quick: bool) -> float:
    """Return the accuracy of gradient-boosted trees."""
    from xgboost import XGBClassifier

    return cross_validated(lambda: XGBClassifier(**params, n_jobs=1, random_state=0), x, y, N_FOLDS)


EXPERIMENT = wang_tuning.Experiment(
    name="xgb",
    task="MNIST-XGB",
    wanted="mnist",
    space=space(),
    accuracy=accuracy,
    samples=(500, 20_000),
    min_samples=100,
    evaluation=106,
    delay=10,
    duration=1700,
    quick_samples=200,
)


def run(options: Options) -> dict[str, Any]:
    """All runs of all algorithms."""
    return wang_tuning.run(EXPERIMENT, options)


def table(report: dict[str, Any]) -> str:
    """The second part of table 6."""
    return wang_tuning.table(report)


def draw(report: dict[str, Any], path: Path) -> None:
    """Figure 3 (b)."""
    wang_tuning.draw(report, path)
