"""Wang et al. 2022, Figure 3 (c): a neural network on MNIST, tuned by tree search while results are late.

The parameters are the sizes of three layers, the solver, the activation, the learning rate in [1e-5, 1e-1] on a
logarithmic scale, and early stopping. The solver lbfgs does not have the last two. There are 1,000 to 60,000 samples
and 5 runs of 1,800 s with a delay of 20 s. The accuracy is from 3-fold cross-validation.
`belated.experiments.papers.wang_tuning` has the common parts of the paper's experiments, and docs/pcts_tuning.md the
sources of the data. ``--iterations T`` is the time of a run. ``--quick`` uses 360 of scikit-learn's bundled digits and
few iterations of training. ``--keep DIR`` keeps each evaluation, so that a stopped replay can continue.
"""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import belated as bl
from belated.experiments.cross_validation import cross_validated
from belated.experiments.papers import wang_tuning
from belated.experiments.runner import Options

DEFAULT_RUNS = wang_tuning.RUNS
NEEDS = ("sklearn",)
OPTIONS = ("quick", "keep")
N_FOLDS = 3
#: Maximum number of iterations of training. The first value is scikit-learn's default.
MAX_ITER, QUICK_MAX_ITER = 200, 10


def space() -> dict[str, Any]:
    """Return the space: the layers and their training. Only some solvers have the last two parameters."""
    gradient = {"solver": ["sgd", "adam"]}
    return {
        "layer_1": bl.Integer(32, 128),
        "layer_2": bl.Integer(128, 256),
        "layer_3": bl.Integer(256, 512),
        "solver": ["lbfgs", "sgd", "adam"],
        "activation": ["tanh", "relu", "logistic"],
        "learning_rate_init": bl.Real(1e-5, 1e-1, log=True, when=gradient),
        "early_stopping": bl.Categorical([True, False], when=gradient),
    }


def accuracy(params: wang_tuning.Params, x: Any, y: Any, quick: bool) -> float:
    """Return the accuracy of a perceptron with three hidden layers, or NaN if its weights became infinite or NaN."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    settings = dict(params)
    sizes = tuple(settings.pop(f"layer_{i}") for i in (1, 2, 3))
    settings |= {"hidden_layer_sizes": sizes, "max_iter": QUICK_MAX_ITER if quick else MAX_ITER, "random_state": 0}
    with warnings.catch_warnings():
        # Training may not converge, and weights may overflow at large rates. Both are part of the task.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            return cross_validated(lambda: MLPClassifier(**settings), x, y, N_FOLDS)
        except ValueError as error:
            if "non-finite" not in str(error):
                raise
            return math.nan


EXPERIMENT = wang_tuning.Experiment(
    name="nn",
    task="MNIST-NN",
    wanted="mnist",
    space=space(),
    accuracy=accuracy,
    samples=(1000, 60_000),
    min_samples=180,  # early stopping holds out a tenth of two thirds, and needs each of ten classes in this part
    evaluation=129,
    delay=20,
    duration=1800,
    quick_samples=360,
)


def run(options: Options) -> dict[str, Any]:
    """All runs of all algorithms."""
    return wang_tuning.run(EXPERIMENT, options)


def table(report: dict[str, Any]) -> str:
    """The last part of table 6."""
    return wang_tuning.table(report)


def draw(report: dict[str, Any], path: Path) -> None:
    """Figure 3 (c)."""
    wang_tuning.draw(report, path)
