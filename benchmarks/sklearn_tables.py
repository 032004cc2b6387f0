"""Tables of tuning experiments with scikit-learn's estimators and bundled data sets.

    python benchmarks/sklearn_tables.py make              # make the tables that are missing in data/
    python benchmarks/sklearn_tables.py show

The spaces are mixed or conditional, values are noisy, and in some regions fits fail or diverge. A row has five
replicates with different splits of the data and seeds of the estimator. The duration of a row is the mean processor
time of fitting and scoring. A replicate has failed if scikit-learn raises an error (for example, because there are more
neighbours than rows), or if the score is not a finite float32. The score of a classifier is its accuracy, or its
log-likelihood if the classifier is a network. The score of a regression is R², which is −1e10 or less if training
diverged. The rules of a run are in tables.py. The regret of failed points is 10, the maximum.

The tables in `HELD_OUT` and `UNSEEN` were set aside before any optimizer was run on them. The tables in `UNSEEN` are
never used to choose a default.

The minimum share of the trials of each branch was chosen on the tables in `OPEN`, `HELD_OUT` and `BRANCHES` and on the
group "moved". The tables in `BRANCHES_ASIDE` and the group "moved-aside" were set aside for this choice.

In the groups "moved" and "moved-aside", `svc-digits` is changed: its optimum, which is at four values of C, has
moved to a random place (`moved_optimum`). In each group, one table has no noise, and one has three times the noise.
"""

import argparse
import functools
import math
import sys
import time
import warnings
from dataclasses import dataclass

import numpy as np
from grids import Grid
from tables import DATA, Table, TableSetting, timed

from belated import Categorical, Ordinal

N_REPLICATES = 5
LARGEST = 10.0  # all regrets above this value are treated as equal


def decades(low, high, per_decade=1):
    """Return the powers of ten from 10^low to 10^high."""
    return Ordinal([float(f"{10**e:.3g}") for e in np.linspace(low, high, round((high - low) * per_decade) + 1)])


def when(dimension, **conditions):
    return type(dimension)(list(getattr(dimension, "values", None) or dimension.choices), when=conditions)


# Name → a space, and a function that returns the estimator for given params and a seed.

SVC = {
    "C": decades(-3, 4),
    "kernel": Categorical(["linear", "rbf", "poly", "sigmoid"]),
    "gamma": when(decades(-4, 3), kernel=["rbf", "poly", "sigmoid"]),
    "degree": Ordinal([2, 3, 4, 5], when={"kernel": "poly"}),
    "coef0": Ordinal([0.0, 1.0], when={"kernel": ["poly", "sigmoid"]}),
}


def svc(p, seed):
    from sklearn import pipeline, preprocessing, svm

    return pipeline.make_pipeline(preprocessing.MinMaxScaler(), svm.SVC(**p, max_iter=20_000))


MLP_CLASSIFIER = {
    "depth": Ordinal([1, 2]),
    "width_1": Ordinal([4, 16, 64]),
    "width_2": Ordinal([4, 16, 64], when={"depth": 2}),
    "activation": Categorical(["relu", "tanh"]),
    "solver": Categorical(["adam", "sgd"]),
    "momentum": Ordinal([0.0, 0.9], when={"solver": "sgd"}),
    "rate": decades(-4, 1),
    "alpha": Ordinal([1e-4, 1.0]),
}


def mlp_classifier(p, seed):
    from sklearn import neural_network, pipeline, preprocessing

    network = neural_network.MLPClassifier(
        hidden_layer_sizes=[p[f"width_{i}"] for i in range(1, p["depth"] + 1)],
        activation=p["activation"],
        solver=p["solver"],
        momentum=p.get("momentum", 0.9),
        learning_rate_init=p["rate"],
        alpha=p["alpha"],
        batch_size=32,
        max_iter=20,
        tol=0.0,
        random_state=seed,
    )
    return pipeline.make_pipeline(preprocessing.StandardScaler(), network)


MLP_REGRESSOR = {
    "width": Ordinal([4, 16, 64]),
    "activation": Categorical(["relu", "tanh"]),
    "rate": decades(-5, 0),
    "momentum": Ordinal([0.0, 0.9]),
    "batch": Ordinal([8, 32, 128]),
    "alpha": Ordinal([1e-4, 1.0]),
}


def mlp_regressor(p, seed):
    from sklearn import neural_network, pipeline, preprocessing

    network = neural_network.MLPRegressor(
        hidden_layer_sizes=[p["width"]],
        activation=p["activation"],
        solver="sgd",
        learning_rate_init=p["rate"],
        momentum=p["momentum"],
        batch_size=p["batch"],
        alpha=p["alpha"],
        max_iter=15,
        tol=0.0,
        random_state=seed,
    )
    return pipeline.make_pipeline(preprocessing.StandardScaler(), network)


BOOSTING = {
    "learning_rate": Ordinal([0.01, 0.03, 0.1, 0.3, 1.0, 2.5]),
    "max_iter": Ordinal([5, 15, 45]),
    "max_leaf_nodes": Ordinal([3, 7, 15, 31]),
    "min_samples_leaf": Ordinal([3, 10, 30]),
    "l2_regularization": Ordinal([0.0, 1.0, 100.0]),
}


def boosting(p, seed):
    from sklearn import ensemble

    return ensemble.HistGradientBoostingRegressor(**p, early_stopping=False, random_state=seed)


# Without bootstrap, scikit-learn refuses values of max_samples other than None.
FOREST = {
    "n_estimators": Ordinal([4, 8, 16]),
    "max_depth": Ordinal([2, 4, 8, 16]),
    "max_features": Ordinal([0.1, 0.3, 0.6, 1.0]),
    "min_samples_leaf": Ordinal([1, 3, 10, 30]),
    "bootstrap": Categorical([True, False]),
    "max_samples": Ordinal([0.2, 0.5, None]),
}


def forest(p, seed):
    from sklearn import ensemble

    return ensemble.RandomForestRegressor(**p, random_state=seed)


SCALER = Categorical(["none", "standard", "minmax"])

KNN = {
    "scaler": SCALER,
    "n_neighbors": Ordinal([1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233]),
    "weights": Categorical(["uniform", "distance"]),
    "metric": Categorical(["euclidean", "manhattan", "chebyshev", "cosine", "minkowski"]),
    "p": Ordinal([1.5, 3.0, 5.0, 8.0], when={"metric": "minkowski"}),
}


def scaler(name):
    from sklearn import preprocessing

    kinds = {"none": None, "standard": preprocessing.StandardScaler, "minmax": preprocessing.MinMaxScaler}
    return [] if kinds[name] is None else [kinds[name]()]


def knn(p, seed):
    from sklearn import neighbors, pipeline

    model = neighbors.KNeighborsClassifier(
        p["n_neighbors"], weights=p["weights"], metric=p["metric"], p=p.get("p", 2), algorithm="brute"
    )
    return pipeline.make_pipeline(*scaler(p["scaler"]), model)


# The score function chi2 requires values ≥ 0, but the standard scaler also gives negative values.
PIPELINE = {
    "scaler": SCALER,
    "reduce": Categorical(["none", "pca", "select"]),
    "n_components": Ordinal([1, 2, 4, 8, 20], when={"reduce": "pca"}),
    "k": Ordinal([1, 3, 6, 12], when={"reduce": "select"}),
    "measure": Categorical(["f_classif", "chi2"], when={"reduce": "select"}),
    "model": Categorical(["svc", "knn", "logistic", "tree"]),
    "C_svc": when(decades(-1, 3), model="svc"),
    "gamma": when(decades(-4, 0), model="svc"),
    "n_neighbors": Ordinal([1, 3, 5, 9, 17, 65], when={"model": "knn"}),
    "C_logistic": when(decades(-3, 1), model="logistic"),
    "max_depth": Ordinal([1, 2, 4, 8], when={"model": "tree"}),
}


def classification_pipeline(p, seed):
    from sklearn import decomposition, feature_selection, linear_model, neighbors, pipeline, svm, tree

    reduce = {
        "none": lambda: [],
        "pca": lambda: [decomposition.PCA(p["n_components"], random_state=seed)],
        "select": lambda: [feature_selection.SelectKBest(getattr(feature_selection, p["measure"]), k=p["k"])],
    }
    model = {
        "svc": lambda: svm.SVC(C=p["C_svc"], gamma=p["gamma"]),
        "knn": lambda: neighbors.KNeighborsClassifier(p["n_neighbors"]),
        "logistic": lambda: linear_model.LogisticRegression(C=p["C_logistic"], max_iter=50),
        "tree": lambda: tree.DecisionTreeClassifier(max_depth=p["max_depth"], random_state=seed),
    }
    return pipeline.make_pipeline(*scaler(p["scaler"]), *reduce[p["reduce"]](), model[p["model"]]())


REGRESSION_PIPELINE = {
    "degree": Ordinal([1, 2, 3]),
    "scaler": SCALER,
    "model": Categorical(["ridge", "svr", "knn"]),
    "alpha": when(decades(-6, 2), model="ridge"),
    "C": when(decades(-1, 4), model="svr"),
    "gamma": when(decades(-4, 0), model="svr"),
    "epsilon": Ordinal([0.1, 10.0], when={"model": "svr"}),
    "n_neighbors": Ordinal([1, 3, 5, 9, 17, 33, 65, 257], when={"model": "knn"}),
    "weights": Categorical(["uniform", "distance"], when={"model": "knn"}),
}


def regression_pipeline(p, seed):
    from sklearn import linear_model, neighbors, pipeline, preprocessing, svm

    model = {
        "ridge": lambda: linear_model.Ridge(p["alpha"]),
        "svr": lambda: svm.SVR(C=p["C"], gamma=p["gamma"], epsilon=p["epsilon"], max_iter=20_000),
        "knn": lambda: neighbors.KNeighborsRegressor(p["n_neighbors"], weights=p["weights"]),
    }
    features = preprocessing.PolynomialFeatures(p["degree"], include_bias=False)
    return pipeline.make_pipeline(features, *scaler(p["scaler"]), model[p["model"]]())


SGD = {
    "scaler": SCALER,
    "loss": Categorical(["hinge", "log_loss", "modified_huber", "perceptron"]),
    "penalty": Categorical(["l2", "l1", "elasticnet"]),
    "alpha": decades(-6, -1),
    "l1_ratio": Ordinal([0.1, 0.5, 0.9], when={"penalty": "elasticnet"}),
    "learning_rate": Categorical(["optimal", "constant", "invscaling"]),
    "eta0": when(decades(-4, 1), learning_rate=["constant", "invscaling"]),
}


def sgd(p, seed):
    from sklearn import linear_model, pipeline

    model = linear_model.SGDClassifier(
        loss=p["loss"],
        penalty=p["penalty"],
        alpha=p["alpha"],
        l1_ratio=p.get("l1_ratio", 0.15),
        learning_rate=p["learning_rate"],
        eta0=p.get("eta0", 0.01),
        max_iter=10,
        tol=None,
        random_state=seed,
    )
    return pipeline.make_pipeline(*scaler(p["scaler"]), model)


GAUSSIAN_PROCESS = {
    "scaler": SCALER,
    "kernel": Categorical(["rbf", "matern", "quadratic", "dot"]),
    "nu": Ordinal([0.5, 1.5, 2.5], when={"kernel": "matern"}),
    "mixture": when(decades(-2, 2), kernel="quadratic"),
    "length": when(decades(-2, 3), kernel=["rbf", "matern", "quadratic"]),
    "noise": decades(-6, 2),
    "normalize": Categorical([True, False]),
}


def gaussian_process(p, seed):
    from sklearn import gaussian_process as gp
    from sklearn import pipeline

    kernels = {
        "rbf": lambda: gp.kernels.RBF(p["length"]),
        "matern": lambda: gp.kernels.Matern(p["length"], nu=p["nu"]),
        "quadratic": lambda: gp.kernels.RationalQuadratic(p["length"], p["mixture"]),
        "dot": lambda: gp.kernels.DotProduct(),
    }
    model = gp.GaussianProcessRegressor(
        kernels[p["kernel"]](), alpha=p["noise"], optimizer=None, normalize_y=p["normalize"], random_state=seed
    )
    return pipeline.make_pipeline(*scaler(p["scaler"]), model)


SVR = {
    "kernel": Categorical(["linear", "rbf", "poly", "sigmoid"]),
    "C": decades(-2, 3),
    "epsilon": Ordinal([0.1, 10.0, 40.0]),
    "gamma": when(decades(-4, 1), kernel=["rbf", "poly", "sigmoid"]),
    "degree": Ordinal([2, 3, 4], when={"kernel": "poly"}),
    "coef0": Ordinal([0.0, 1.0], when={"kernel": ["poly", "sigmoid"]}),
}


def svr(p, seed):
    from sklearn import pipeline, preprocessing, svm

    return pipeline.make_pipeline(preprocessing.StandardScaler(), svm.SVR(**p, max_iter=20_000))


# One of six kinds of estimator is chosen.
CLASSIFIERS = {
    "scaler": SCALER,
    "model": Categorical(["svc", "knn", "logistic", "forest", "bayes", "discriminant"]),
    "kernel": Categorical(["rbf", "poly"], when={"model": "svc"}),
    "C": when(decades(-2, 3), model=["svc", "logistic"]),
    "gamma": when(decades(-4, 1), model="svc"),
    "n_neighbors": Ordinal([1, 3, 5, 9, 17, 33], when={"model": "knn"}),
    "weights": Categorical(["uniform", "distance"], when={"model": "knn"}),
    "n_estimators": Ordinal([5, 20], when={"model": "forest"}),
    "max_depth": Ordinal([2, 4, 8, 16], when={"model": "forest"}),
    "max_features": Ordinal([0.1, 0.3, 1.0], when={"model": "forest"}),
    "smoothing": when(decades(-9, 0), model="bayes"),
    "shrinkage": Ordinal([0.0, 0.03, 0.1, 0.3, 1.0], when={"model": "discriminant"}),
}


def classifier(p, seed):
    from sklearn import discriminant_analysis, ensemble, linear_model, naive_bayes, neighbors, pipeline, svm

    model = {
        "svc": lambda: svm.SVC(kernel=p["kernel"], C=p["C"], gamma=p["gamma"], max_iter=20_000),
        "knn": lambda: neighbors.KNeighborsClassifier(p["n_neighbors"], weights=p["weights"], algorithm="brute"),
        "logistic": lambda: linear_model.LogisticRegression(C=p["C"], max_iter=50),
        "forest": lambda: ensemble.RandomForestClassifier(
            p["n_estimators"], max_depth=p["max_depth"], max_features=p["max_features"], random_state=seed
        ),
        "bayes": lambda: naive_bayes.GaussianNB(var_smoothing=p["smoothing"]),
        "discriminant": lambda: discriminant_analysis.LinearDiscriminantAnalysis(
            solver="lsqr", shrinkage=p["shrinkage"]
        ),
    }
    return pipeline.make_pipeline(*scaler(p["scaler"]), model[p["model"]]())


@dataclass(frozen=True)
class Task:
    """The data set of a table; a fit uses n_train rows, and at most n_valid other rows are used for scoring."""

    space: dict
    estimator: object
    data: str
    n_train: int
    n_valid: int
    scoring: str = "accuracy"


OPEN = {
    "svc-digits": Task(SVC, svc, "digits", 300, 500),
    "mlp-breast_cancer": Task(MLP_CLASSIFIER, mlp_classifier, "breast_cancer", 200, 369, "neg_log_loss"),
    "mlp-diabetes": Task(MLP_REGRESSOR, mlp_regressor, "diabetes", 250, 192, "r2"),
    "boosting-diabetes": Task(BOOSTING, boosting, "diabetes", 250, 192, "r2"),
    "forest-diabetes": Task(FOREST, forest, "diabetes", 250, 192, "r2"),
    "knn-digits": Task(KNN, knn, "digits", 120, 400),
    "pipeline-wine": Task(PIPELINE, classification_pipeline, "wine", 40, 138),
    "pipeline-diabetes": Task(REGRESSION_PIPELINE, regression_pipeline, "diabetes", 250, 192, "r2"),
}
HELD_OUT = {
    "mlp-wine": Task(MLP_CLASSIFIER, mlp_classifier, "wine", 60, 118, "neg_log_loss"),
    "pipeline-breast_cancer": Task(PIPELINE, classification_pipeline, "breast_cancer", 100, 469),
}
UNSEEN = {
    "sgd-breast_cancer": Task(SGD, sgd, "breast_cancer", 100, 469),
    "gp-diabetes": Task(GAUSSIAN_PROCESS, gaussian_process, "diabetes", 150, 292, "r2"),
}
BRANCHES = {
    "svr-diabetes": Task(SVR, svr, "diabetes", 250, 192, "r2"),
    "svc-wine": Task(SVC, svc, "wine", 40, 138),
    "pipeline-digits": Task(PIPELINE, classification_pipeline, "digits", 200, 500),
    "classifiers-digits": Task(CLASSIFIERS, classifier, "digits", 200, 500),
}
BRANCHES_ASIDE = {
    "svc-breast_cancer": Task(SVC, svc, "breast_cancer", 100, 469),
    "classifiers-wine": Task(CLASSIFIERS, classifier, "wine", 40, 138),
    "classifiers-breast_cancer": Task(CLASSIFIERS, classifier, "breast_cancer", 100, 469),
    "sgd-digits": Task(SGD, sgd, "digits", 200, 500),
}
TASKS = OPEN | HELD_OUT | UNSEEN | BRANCHES | BRANCHES_ASIDE


@functools.cache
def split(data, n_train, n_valid, seed):
    """Return the rows for fitting and the rows for scoring."""
    from sklearn import datasets, model_selection

    x, y = getattr(datasets, f"load_{data}")(return_X_y=True)
    stratify = None if data == "diabetes" else y
    x, x_valid, y, y_valid = model_selection.train_test_split(
        x, y, train_size=n_train, test_size=n_valid, random_state=seed, stratify=stratify
    )
    return x, y, x_valid, y_valid


def evaluate(task, params, seed):
    """Fit and score one replicate of a row; return (score, processor time). The score is NaN if the replicate
    failed."""
    from sklearn import metrics
    from sklearn.utils._param_validation import InvalidParameterError

    x, y, x_valid, y_valid = split(task.data, task.n_train, task.n_valid, seed)
    begin = time.process_time()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            model = task.estimator(params, seed).fit(x, y)
            score = float(metrics.get_scorer(task.scoring)(model, x_valid, y_valid))
    except InvalidParameterError:
        raise  # the definition of the table is wrong
    except (ValueError, ArithmeticError):
        score = math.nan
    if not abs(score) < float(np.finfo(np.float32).max):
        score = math.nan
    return score, time.process_time() - begin


def make(name):
    """Evaluate all points of a table, and write the results."""
    task = TASKS[name]
    grid = Grid(task.space)
    found = [[evaluate(task, grid.params(i), seed) for seed in range(N_REPLICATES)] for i in range(len(grid.rows))]
    values, seconds = np.moveaxis(np.array(found), -1, 0)
    np.savez_compressed(
        DATA / f"{name}.npz", values=values.astype(np.float32), seconds=seconds.mean(axis=1).astype(np.float32)
    )


@functools.cache
def table(name):
    """Return a table that `make` has written to data/."""
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as arrays:
        return Table(TASKS[name].space, arrays["values"].astype(float), arrays["seconds"].astype(float), None, LARGEST)


@functools.cache
def moved_optimum(number, noise):
    """Return the table svc-digits with its optimum at another place. The noise is multiplied by a factor.

    The rows of the optimum get the mean of the rows with the next smaller and the next larger gamma. The optimum moves
    to four successive values of C. The kernels take turns. The other parameters of the new place are random, and
    differ from those of the old place.
    """
    old, rng = table("svc-digits"), np.random.default_rng(number)
    values, grid = old.values.copy(), old.grid
    rows = np.flatnonzero(old.means == old.optimum)
    optimum = grid.params(rows[0])
    for row in rows:
        neighbours = [grid.find(grid.params(row) | {"gamma": gamma}) for gamma in (0.01, 1.0)]
        values[row] = old.values[neighbours].mean(axis=0)
    kernel = ["rbf", "poly", "sigmoid"][number % 3]
    place = {"kernel": kernel}
    for name in ("gamma", "degree", "coef0"):
        if kernel in np.atleast_1d(SVC[name].when["kernel"]):
            others = [level for level in SVC[name].values if level != optimum.get(name)]
            place[name] = others[rng.integers(len(others))]
    levels = SVC["C"].values
    first = rng.integers(len(levels) - len(rows) + 1)
    values[[grid.find({"C": c, **place}) for c in levels[first : first + len(rows)]]] = old.values[rows]
    means = values.mean(axis=1, keepdims=True)
    return Table(SVC, means + noise * (values - means), old.seconds, None, LARGEST)


MADE = [name for name in TASKS if (DATA / f"{name}.npz").exists()]
SETTINGS = {name: TableSetting(functools.partial(table, name)) for name in MADE}
TIME = timed({name: setting for name, setting in SETTINGS.items() if name in OPEN})
NOISE_OF_MOVED = [1.0, 1.0, 1.0, 0.0, 3.0] * 2
MOVED = {
    f"moved-{number}": TableSetting(functools.partial(moved_optimum, number, noise))
    for number, noise in enumerate(NOISE_OF_MOVED)
}
GROUPS = {
    "ours": [name for name in MADE if name in OPEN],
    "ours-held-out": [name for name in MADE if name in HELD_OUT],
    "ours-unseen": [name for name in MADE if name in UNSEEN],
    "branches": [name for name in MADE if name in BRANCHES],
    "branches-aside": [name for name in MADE if name in BRANCHES_ASIDE],
    "ours-time": list(TIME),
    "moved": list(MOVED)[:5],
    "moved-aside": list(MOVED)[5:],
}


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["make", "show"])
    parser.add_argument("names", nargs="*", default=list(TASKS))
    arguments = parser.parse_args(argv)
    for name in arguments.names:
        if arguments.command == "make" and not (DATA / f"{name}.npz").exists():
            begin = time.process_time()
            make(name)
            print(f"{name}: {time.process_time() - begin:.0f} s", flush=True)
        elif arguments.command == "show":
            f = table(name).means
            quantiles = np.quantile(f[np.isfinite(f)], [0, 0.05, 0.5, 0.95, 1])
            print(f"{name}: {len(f)} rows, {np.mean(np.isinf(f)):.0%} failed, quantiles", *quantiles.round(4).tolist())


if __name__ == "__main__":
    sys.exit(main())
