"""Tables of learning curves of scikit-learn's estimators, on bundled and generated data sets.

    python benchmarks/curve_tables.py make               # train the tables that are missing in data/
    python benchmarks/curve_tables.py show

A table has all configurations of a grid, `N_SEEDS` training seeds of each, and one value after each of T steps. A step
is an epoch, or a stage of boosting. The split of the data, and the labels that are replaced by wrong labels
(`Task.wrong`), are the same in the whole table. The training seed determines the initial weights, the order of the
rows, and the subsamples. Values are measured on the validation rows, and higher values are better: accuracy, R², or
log-likelihood (the negative log loss). R² and log-likelihood are at least `LOWEST`. If training raises an error or
gives a non-finite value at a step, the values from this step on are NaN. The duration of a step is the processor time
of the training and the scoring, divided by the number of steps.

A file contains the array ``values`` (n, N_SEEDS, T) of int16 numbers in units of ``quantum``, where −32768 is NaN, and
the array ``seconds`` (n,) of the mean durations of a step. The rows of the arrays are the rows of the `Grid` of the
space. `curves.py` reads the files.

The tables in `HELD_OUT` and `UNSEEN` were set aside before any optimizer was run on them, and are never used to choose
a default or a model. `HELD_OUT` was used to report earlier rules, and `UNSEEN` to report the transformed curves.
"""

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(_name, "1")

import numpy as np
from grids import Grid

from belated import Categorical, Ordinal

DATA = Path(__file__).parent / "data"
N_SEEDS = 3
LOWEST = -5.0
QUANTUM = 2e-4  # of R² and log-likelihood; the unit of an accuracy is one validation row
MISSING = -32768


@dataclass(frozen=True)
class Task:
    """The trainings of a table.

    Parameters
    ----------
    space : dict
        Dimensions with levels.
    estimator : callable
        Returns the estimator for given params and a seed.
    data : str
        A bundled data set of scikit-learn, or the name of a ``make_*`` function.
    n_train, n_valid : int
        The numbers of rows for training and for scoring.
    n_steps : int
        T.
    score : {"accuracy", "r2", "log_likelihood"}
    wrong : float
        The fraction of the labels of the training rows that are replaced by random labels.
    declared : {"last", "best"}
        The value of a whole curve: its last value, or its highest value.
    generated : dict
        The arguments of a ``make_*`` function.
    """

    space: dict[str, Any]
    estimator: Callable[..., Any]
    data: str
    n_train: int
    n_valid: int
    n_steps: int
    score: str = "accuracy"
    wrong: float = 0.0
    declared: str = "last"
    generated: dict[str, Any] = field(default_factory=dict)

    @property
    def quantum(self):
        return 1 / self.n_valid if self.score == "accuracy" else QUANTUM


# Name → a space, and a function that returns the estimator for given params and a seed.

BOOSTING_CLASSIFIER = {
    "learning_rate": Ordinal([0.03, 0.1, 0.3, 1.0]),
    "max_depth": Ordinal([1, 2, 4]),
    "subsample": Ordinal([0.3, 0.6, 1.0]),
    "max_features": Ordinal([0.05, 0.2, 0.6]),
    "min_samples_leaf": Ordinal([1, 10]),
}


def boosting_classifier(p, seed, n_steps):
    from sklearn import ensemble

    return ensemble.GradientBoostingClassifier(**p, n_estimators=n_steps, random_state=seed)


BOOSTING_REGRESSOR = {
    "learning_rate": Ordinal([0.01, 0.03, 0.1, 0.3, 1.0]),
    "max_depth": Ordinal([1, 2, 3, 5]),
    "subsample": Ordinal([0.3, 0.6, 1.0]),
    "max_features": Ordinal([0.2, 0.5, 1.0]),
    "loss": Categorical(["squared_error", "huber"]),
}


def boosting_regressor(p, seed, n_steps):
    from sklearn import ensemble

    return ensemble.GradientBoostingRegressor(**p, n_estimators=n_steps, random_state=seed)


MLP_SGD = {
    "rate": Ordinal([0.003, 0.01, 0.03, 0.1, 0.3]),
    "alpha": Ordinal([1e-4, 1e-1, 1.0]),
    "width": Ordinal([8, 32, 128]),
    "batch": Ordinal([16, 50, 200]),
    "momentum": Ordinal([0.0, 0.9]),
}


def mlp_sgd(p, seed, n_steps):
    from sklearn import neural_network

    return neural_network.MLPClassifier(
        hidden_layer_sizes=[p["width"]],
        solver="sgd",
        learning_rate_init=p["rate"],
        momentum=p["momentum"],
        batch_size=p["batch"],
        alpha=p["alpha"],
        random_state=seed,
    )


MLP_ADAM = {
    "depth": Ordinal([1, 2]),
    "width": Ordinal([4, 16, 64]),
    "activation": Categorical(["relu", "tanh"]),
    "rate": Ordinal([3e-4, 1e-3, 1e-2, 1e-1]),
    "alpha": Ordinal([1e-4, 1e-1, 10.0]),
    "batch": Ordinal([16, 64]),
}


def mlp_adam(p, seed, n_steps, kind="MLPClassifier"):
    from sklearn import neural_network

    return getattr(neural_network, kind)(
        hidden_layer_sizes=[p["width"]] * p["depth"],
        activation=p["activation"],
        learning_rate_init=p["rate"],
        alpha=p["alpha"],
        batch_size=p["batch"],
        random_state=seed,
    )


MLP_REGRESSOR = {
    "width": Ordinal([4, 16, 64]),
    "activation": Categorical(["relu", "tanh"]),
    "rate": Ordinal([3e-4, 1e-3, 3e-3, 1e-2, 1e-1]),
    "momentum": Ordinal([0.0, 0.9]),
    "batch": Ordinal([8, 32, 128]),
    "alpha": Ordinal([1e-4, 1.0]),
}


def mlp_regressor(p, seed, n_steps):
    from sklearn import neural_network

    return neural_network.MLPRegressor(
        hidden_layer_sizes=[p["width"]],
        activation=p["activation"],
        solver="sgd",
        learning_rate_init=p["rate"],
        momentum=p["momentum"],
        batch_size=p["batch"],
        alpha=p["alpha"],
        random_state=seed,
    )


SGD_CLASSIFIER = {
    "loss": Categorical(["hinge", "log_loss", "modified_huber"]),
    "penalty": Categorical(["l2", "l1", "elasticnet"]),
    "alpha": Ordinal([1e-6, 1e-4, 1e-2, 1e-1]),
    "learning_rate": Categorical(["constant", "invscaling"]),
    "eta0": Ordinal([1e-4, 1e-3, 1e-2, 1.0]),
}


def sgd_classifier(p, seed, n_steps):
    from sklearn import linear_model

    return linear_model.SGDClassifier(**p, random_state=seed)


SGD_REGRESSOR = {
    "loss": Categorical(["squared_error", "huber", "epsilon_insensitive"]),
    "penalty": Categorical(["l2", "l1"]),
    "alpha": Ordinal([1e-5, 1e-3, 1e-2, 1e-1, 1.0]),
    "learning_rate": Categorical(["constant", "invscaling"]),
    "eta0": Ordinal([1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1]),
    "average": Categorical([False, True]),
}


def sgd_regressor(p, seed, n_steps):
    from sklearn import linear_model

    return linear_model.SGDRegressor(**p, epsilon=0.5, random_state=seed)


SCHEDULE = {
    "rate": Ordinal([0.03, 0.1, 0.3, 0.6]),
    "drop": Ordinal([8, 16, 28, 40]),  # after this number of epochs, the learning rate is divided by ten
    "width": Ordinal([16, 64]),
    "batch": Ordinal([16, 64]),
    "alpha": Ordinal([1e-4, 3e-2]),
    "activation": Categorical(["relu", "tanh"]),
}


def scheduled(p, seed, n_steps):
    """Return a network with a learning rate schedule; `curve` reads the attribute ``drop``."""
    from sklearn import neural_network

    network = neural_network.MLPClassifier(
        hidden_layer_sizes=[p["width"]],
        activation=p["activation"],
        solver="sgd",
        learning_rate_init=p["rate"],
        batch_size=p["batch"],
        alpha=p["alpha"],
        random_state=seed,
    )
    network.drop = p["drop"]
    return network


NETWORK = {
    "rate": Ordinal([0.003, 0.01, 0.03, 0.1, 0.3, 1.0]),
    "momentum": Ordinal([0.0, 0.9]),
    "filters": Ordinal([2, 6]),
    "batch": Ordinal([16, 64]),
    "init": Ordinal([0.1, 1.0, 3.0]),
    "activation": Categorical(["relu", "tanh"]),
}


def network(p, seed, n_steps):
    from small_network import SmallNetwork

    return SmallNetwork(**p, seed=seed)


BOOSTING_NOISE = {
    "learning_rate": Ordinal([0.003, 0.02, 0.1, 0.5, 2.0]),
    "max_depth": Ordinal([1, 2, 4]),
    "subsample": Ordinal([0.3, 0.6, 1.0]),
    "max_features": Ordinal([0.1, 0.5]),
    "min_samples_leaf": Ordinal([1, 20]),
}


def mlp_adam_regressor(p, seed, n_steps):
    return mlp_adam(p, seed, n_steps, kind="MLPRegressor")


OPEN = {
    "boosting-digits": Task(BOOSTING_CLASSIFIER, boosting_classifier, "digits", 200, 600, 30, wrong=0.15),
    "boosting-diabetes": Task(BOOSTING_REGRESSOR, boosting_regressor, "diabetes", 200, 242, 100, "r2", declared="best"),
    "mlp-digits": Task(MLP_SGD, mlp_sgd, "digits", 300, 700, 40, wrong=0.2),
    "mlp-breast_cancer": Task(
        MLP_ADAM, mlp_adam, "breast_cancer", 200, 369, 30, "log_likelihood", wrong=0.1, declared="best"
    ),
    "mlp-diabetes": Task(MLP_REGRESSOR, mlp_regressor, "diabetes", 200, 242, 50, "r2"),
    "sgd-digits": Task(SGD_CLASSIFIER, sgd_classifier, "digits", 250, 700, 27, wrong=0.1),
    "sgd-diabetes": Task(SGD_REGRESSOR, sgd_regressor, "diabetes", 200, 242, 50, "r2"),
    "schedule-digits": Task(SCHEDULE, scheduled, "digits", 300, 700, 40, wrong=0.3),
}
HELD_OUT = {
    "boosting-classification": Task(
        BOOSTING_CLASSIFIER,
        boosting_classifier,
        "classification",
        300,
        1000,
        60,
        wrong=0.2,
        generated={"n_features": 20, "n_informative": 6, "n_clusters_per_class": 3},
    ),
    "mlp-friedman": Task(
        MLP_ADAM, mlp_adam_regressor, "friedman1", 200, 600, 40, "r2", generated={"n_features": 8, "noise": 2.0}
    ),
}
UNSEEN = {
    "network-digits": Task(NETWORK, network, "digits", 300, 700, 40, wrong=0.1),
    "boosting-quantiles": Task(
        BOOSTING_NOISE,
        boosting_classifier,
        "gaussian_quantiles",
        400,
        1000,
        60,
        wrong=0.5,
        generated={"n_features": 10, "n_classes": 4},
    ),
}
TASKS = OPEN | HELD_OUT | UNSEEN


def data_of(task):
    """Return x, y, x_valid, y_valid: standardised columns, wrong labels among y, and standardised y of regressions."""
    from sklearn import datasets, model_selection, preprocessing

    if task.generated or task.data in ("classification", "friedman1"):
        n = task.n_train + task.n_valid
        x, y = getattr(datasets, f"make_{task.data}")(n_samples=n, random_state=0, **task.generated)
    else:
        x, y = getattr(datasets, f"load_{task.data}")(return_X_y=True)
    stratify = None if task.score == "r2" else y
    x, x_valid, y, y_valid = model_selection.train_test_split(
        x, y, train_size=task.n_train, test_size=task.n_valid, random_state=0, stratify=stratify
    )
    scaler = preprocessing.StandardScaler().fit(x)
    x, x_valid = scaler.transform(x), scaler.transform(x_valid)
    rng = np.random.default_rng(0)
    if task.score == "r2":
        mean, deviation = y.mean(), y.std()
        y, y_valid = (y - mean) / deviation, (y_valid - mean) / deviation
    else:
        replaced = rng.random(len(y)) < task.wrong
        y = np.where(replaced, rng.choice(np.unique(y), len(y)), y)
    return x, y, x_valid, y_valid


def scores(task, model, x_valid, y_valid, classes):
    """Yield the score after each stage of a boosted model, or the present score of another model."""
    from sklearn import metrics

    staged = hasattr(model, "staged_predict")
    if task.score == "log_likelihood":
        for p in model.staged_predict_proba(x_valid) if staged else [model.predict_proba(x_valid)]:
            yield -metrics.log_loss(y_valid, p, labels=classes)
    else:
        for predicted in model.staged_predict(x_valid) if staged else [model.predict(x_valid)]:
            if task.score == "accuracy":
                yield np.mean(predicted == y_valid)
            else:
                yield 1 - np.mean((predicted - y_valid) ** 2) / np.var(y_valid)


def curve(task, data, params, seed):
    """Train once and return the T values, which are NaN from the step at which training fails."""
    x, y, x_valid, y_valid = data
    values = np.full(task.n_steps, np.nan)
    model = task.estimator(params, seed, task.n_steps)
    classes = None if task.score == "r2" else np.unique(y)
    try:
        if hasattr(model, "staged_predict"):
            model.fit(x, y)
            values[:] = list(scores(task, model, x_valid, y_valid, classes))
        else:
            first = {} if classes is None else {"classes": classes}
            for step in range(task.n_steps):
                if step and step == getattr(model, "drop", None):
                    model._optimizer.learning_rate /= 10
                model.partial_fit(x, y, **first)
                first = {}
                values[step] = next(scores(task, model, x_valid, y_valid, classes))
                if not np.isfinite(values[step]):
                    break
    except (ValueError, ArithmeticError) as error:
        if "finite" not in str(error) and "NaN" not in str(error) and "overflow" not in str(error):
            raise
    failed = np.flatnonzero(~np.isfinite(values))
    if len(failed):
        values[failed[0] :] = np.nan
    return np.maximum(values, LOWEST)  # NaN stays NaN


def make(name):
    """Train all configurations of a table, and write the curves."""
    task = TASKS[name]
    grid, data = Grid(task.space), data_of(task)
    values = np.full((len(grid.rows), N_SEEDS, task.n_steps), np.nan)
    seconds = np.zeros(len(grid.rows))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for i in range(len(grid.rows)):
            begin = time.process_time()
            for seed in range(N_SEEDS):
                values[i, seed] = curve(task, data, grid.params(i), seed)
            seconds[i] = (time.process_time() - begin) / (N_SEEDS * task.n_steps)
    stored = np.where(np.isnan(values), MISSING, np.round(np.nan_to_num(values) / task.quantum)).astype(np.int16)
    np.savez_compressed(
        DATA / f"curves-{name}.npz", values=stored, quantum=task.quantum, seconds=seconds.astype(np.float32)
    )


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["make", "show"])
    parser.add_argument("names", nargs="*", default=list(TASKS))
    arguments = parser.parse_args(argv)
    for name in arguments.names:
        path = DATA / f"curves-{name}.npz"
        if arguments.command == "make" and not path.exists():
            begin = time.process_time()
            make(name)
            print(f"{name}: {time.process_time() - begin:.0f} s", flush=True)
        elif arguments.command == "show":
            from curves import family

            f = family(name)
            finite = f.finals[np.isfinite(f.finals)]
            print(
                f"{name}: {len(f.finals)} configurations, {f.n_steps} steps, {path.stat().st_size} bytes, "
                f"{np.mean(~np.isfinite(f.finals)):.0%} failed, declared value: {f.declared}; "
                f"quantiles 0, 0.05, 0.5, 0.95, 1:",
                *np.quantile(finite, [0, 0.05, 0.5, 0.95, 1]).round(4).tolist(),
            )


if __name__ == "__main__":
    sys.exit(main())
