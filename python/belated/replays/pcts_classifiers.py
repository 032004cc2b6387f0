"""Wang et al. 2022, Figure 3: three classifiers, tuned by tree search while results are late.

(a) An SVM on 20 newsgroups. The parameters are C and gamma, both in [1e-5, 1e5] on a logarithmic scale (the text prints
[e^-5, e^5], but its results are outside of this range). There are 100 to 7,000 samples, 5-fold cross-validation, and 5
runs of 700 s with a delay of 4 s.

(b) XGBoost on MNIST. There are five parameters, of which two are whole numbers, 500 to 20,000 samples, 3-fold
cross-validation, and 5 runs of 1,700 s with a delay of 10 s.

(c) A neural network on MNIST. The parameters are the sizes of three layers, the solver, the activation, the learning
rate in [1e-5, 1e-1] on a logarithmic scale, and early stopping. The solver lbfgs does not have the last two. There are
1,000 to 60,000 samples, 3-fold cross-validation, and 5 runs of 1,800 s with a delay of 20 s.

`belated.replays.pcts_tuning` has the common parts, and docs/pcts_tuning.md the sources of the data. ``--iterations T``
is the time of a run. ``--quick`` uses 400, 200 or 360 of scikit-learn's bundled digits, and few iterations of training
of the network. ``--keep DIR`` keeps each evaluation, so that a stopped replay can continue.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import belated as bl
from belated.replays import pcts_tuning
from belated.replays.pcts_tuning import Experiment, Params
from belated.replays.report import Report
from belated.replays.runner import Options, Replay

#: Maximum number of iterations of the network's training. The first value is scikit-learn's default.
MAX_ITER, QUICK_MAX_ITER = 200, 10

SVM_SPACE = {"C": bl.Real(1e-5, 1e5, log=True), "gamma": bl.Real(1e-5, 1e5, log=True)}
XGB_SPACE = {
    "max_depth": bl.Integer(2, 13),
    "n_estimators": bl.Integer(10, 400),
    "colsample_bytree": bl.Real(0.2, 0.9),
    "gamma": bl.Real(0.0, 0.7),
    "learning_rate": bl.Real(0.05, 0.3),
}
GRADIENT = {"solver": ["sgd", "adam"]}
NN_SPACE = {
    "layer_1": bl.Integer(32, 128),
    "layer_2": bl.Integer(128, 256),
    "layer_3": bl.Integer(256, 512),
    "solver": ["lbfgs", "sgd", "adam"],
    "activation": ["tanh", "relu", "logistic"],
    "learning_rate_init": bl.Real(1e-5, 1e-1, log=True, when=GRADIENT),
    "early_stopping": bl.Categorical([True, False], when=GRADIENT),
}


def svm(params: Params, quick: bool) -> Any:
    """Return an SVM with a Gaussian kernel."""
    from sklearn.svm import SVC

    return SVC(**params)


def xgb(params: Params, quick: bool) -> Any:
    """Return gradient-boosted trees."""
    from xgboost import XGBClassifier

    return XGBClassifier(**params, n_jobs=1, random_state=0)


def nn(params: Params, quick: bool) -> Any:
    """Return a perceptron with three hidden layers."""
    from sklearn.neural_network import MLPClassifier

    settings = dict(params)
    sizes = tuple(settings.pop(f"layer_{i}") for i in (1, 2, 3))
    max_iter = QUICK_MAX_ITER if quick else MAX_ITER
    return MLPClassifier(**settings, hidden_layer_sizes=sizes, max_iter=max_iter, random_state=0)


#: Name → the experiment, with its numbers by name in the order of `Experiment`.
EXPERIMENTS = {
    "svm": Experiment("svm", "NewsGroup-SVM", "newsgroups", SVM_SPACE, svm, 5, (100, 7000), 100, 400, 9, 4),
    "xgb": Experiment("xgb", "MNIST-XGB", "mnist", XGB_SPACE, xgb, 3, (500, 20_000), 100, 200, 106, 10),
    # Early stopping holds out a tenth of two thirds, and needs each of ten classes in this part: 180 samples.
    "nn": Experiment("nn", "MNIST-NN", "mnist", NN_SPACE, nn, 3, (1000, 60_000), 180, 360, 129, 20),
}


def make(name: str, options: Options) -> Report:
    """All runs of all algorithms."""
    return pcts_tuning.make(EXPERIMENTS[name], options)


def replay(name: str, what: str, duration: int, needs: list[str]) -> Replay:
    """Return the replay of an experiment."""
    text = f"Wang et al. 2022, {what}, tuned by tree search while results are late"
    functions = (partial(make, name), pcts_tuning.table, pcts_tuning.figure)
    return Replay(f"pcts-{name}", text, *functions, 5, duration, 2, needs=needs, options=["quick", "keep"])


REPLAYS = [
    replay("svm", "Figure 3 (a): an SVM on 20 newsgroups", 700, ["sklearn"]),
    replay("xgb", "Figure 3 (b): XGBoost on MNIST", 1700, ["xgboost", "sklearn"]),
    replay("nn", "Figure 3 (c): a neural network on MNIST", 1800, ["sklearn"]),
]
