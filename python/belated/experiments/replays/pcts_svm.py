"""Wang et al. 2022, Figure 3 (a): an SVM on 20 newsgroups, tuned by tree search while results are late.

The parameters are C and gamma, both in [1e-5, 1e5] on a logarithmic scale (the text prints [e^-5, e^5], but its results
are outside of this range). There are 100 to 7,000 samples and 5 runs of 700 s with a delay of 4 s. The accuracy is from
5-fold cross-validation. `belated.experiments.papers.wang_tuning` has the common parts of the paper's experiments, and
docs/pcts_tuning.md the sources of the data. ``--iterations T`` is the time of a run. ``--quick`` uses 400 of
scikit-learn's bundled digits. ``--keep DIR`` keeps each evaluation, so that a stopped replay can continue.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import belated as bl
from belated.experiments.cross_validation import cross_validated
from belated.experiments.papers import wang_tuning
from belated.experiments.runner import Options

DEFAULT_RUNS = wang_tuning.RUNS
NEEDS = ("sklearn",)
OPTIONS = ("quick", "keep")
N_FOLDS = 5


def space() -> dict[str, Any]:
    """Return the space: the penalty and the width of the kernel."""
    return {"C": bl.Real(1e-5, 1e5, log=True), "gamma": bl.Real(1e-5, 1e5, log=True)}


def accuracy(params: wang_tuning.Params, x: Any, y: Any, quick: bool) -> float:
    """Return the accuracy of an SVM with a Gaussian kernel."""
    from sklearn.svm import SVC

    return cross_validated(lambda: SVC(C=params["C"], gamma=params["gamma"]), x, y, N_FOLDS)


EXPERIMENT = wang_tuning.Experiment(
    name="svm",
    task="NewsGroup-SVM",
    wanted="newsgroups",
    space=space(),
    accuracy=accuracy,
    samples=(100, 7000),
    min_samples=100,
    evaluation=9,
    delay=4,
    duration=700,
    quick_samples=400,
)


def run(options: Options) -> dict[str, Any]:
    """All runs of all algorithms."""
    return wang_tuning.run(EXPERIMENT, options)


def table(report: dict[str, Any]) -> str:
    """The first part of table 6."""
    return wang_tuning.table(report)


def draw(report: dict[str, Any], path: Path) -> None:
    """Figure 3 (a)."""
    wang_tuning.draw(report, path)
