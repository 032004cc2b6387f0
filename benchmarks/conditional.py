"""Conditional spaces compared with flat spaces, in which every parameter is always active.

Usage: python -m benchmarks.conditional [--seeds 20] [--tasks svc classifiers …] [--trials 40]

Prints a JSON line for each task and seed, and a table. The table has the difference between the conditional and the
flat space (conditional − flat, paired by seed) with its standard error, for the best value after all trials, and for
the best value so far averaged over all trials. If the difference is positive, the conditional space is better.
"""

import argparse
import functools
import json
import math
import warnings

import numpy as np

import belated as bl

N_TRIALS = 40


# The data sets are small, fixed subsamples with a fixed split. An evaluation is one fit.


@functools.cache
def data(name):
    from sklearn import datasets
    from sklearn.model_selection import train_test_split

    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(y))[:300]
    return train_test_split(x[rows], y[rows], test_size=0.5, random_state=0, stratify=y[rows])


def score(model, name):
    """Fit the model to half of the rows and return the accuracy on the other half."""
    from sklearn.preprocessing import StandardScaler

    x, x_test, y, y_test = data(name)
    scaler = StandardScaler().fit(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(scaler.transform(x), y)
    return float(model.score(scaler.transform(x_test), y_test))


# Each task is a space and a function f of the active params.


def svc_space():
    return {
        "C": bl.Real(1e-3, 1e3, log=True),
        "kernel": ["linear", "rbf", "poly", "sigmoid"],
        "gamma": bl.Real(1e-5, 10.0, log=True, when={"kernel": ["rbf", "poly", "sigmoid"]}),
        "degree": bl.Integer(2, 5, when={"kernel": "poly"}),
        "coef0": bl.Real(-1.0, 1.0, when={"kernel": ["poly", "sigmoid"]}),
    }


def svc(p):
    from sklearn.svm import SVC

    return score(SVC(**p, max_iter=20_000), "breast_cancer")


def classifiers_space():
    return {
        "classifier": ["knn", "svm", "tree", "logistic"],
        "n_neighbors": bl.Integer(1, 50, log=True, when={"classifier": "knn"}),
        "weights": bl.Categorical(["uniform", "distance"], when={"classifier": "knn"}),
        "C_svm": bl.Real(1e-3, 1e3, log=True, when={"classifier": "svm"}),
        "gamma": bl.Real(1e-5, 10.0, log=True, when={"classifier": "svm"}),
        "max_depth": bl.Integer(1, 12, when={"classifier": "tree"}),
        "min_samples_leaf": bl.Integer(1, 30, log=True, when={"classifier": "tree"}),
        "C_logistic": bl.Real(1e-4, 1e3, log=True, when={"classifier": "logistic"}),
    }


def classifiers(p):
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    kind = p["classifier"]
    if kind == "knn":
        model = KNeighborsClassifier(p["n_neighbors"], weights=p["weights"])
    elif kind == "svm":
        model = SVC(C=p["C_svm"], gamma=p["gamma"])
    elif kind == "tree":
        model = DecisionTreeClassifier(max_depth=p["max_depth"], min_samples_leaf=p["min_samples_leaf"], random_state=0)
    else:
        model = LogisticRegression(C=p["C_logistic"], max_iter=100)
    return score(model, "digits")


def pipelines_space():
    return {
        "reduce": [None, "pca", "select"],
        "n_components": bl.Integer(1, 12, when={"reduce": "pca"}),
        "whiten": bl.Categorical([False, True], when={"reduce": "pca"}),
        "k": bl.Integer(1, 13, when={"reduce": "select"}),
        "model": ["svm", "knn"],
        "C": bl.Real(1e-3, 1e3, log=True, when={"model": "svm"}),
        "gamma": bl.Real(1e-5, 10.0, log=True, when={"model": "svm"}),
        "n_neighbors": bl.Integer(1, 40, log=True, when={"model": "knn"}),
    }


def pipelines(p):
    from sklearn.decomposition import PCA
    from sklearn.feature_selection import SelectKBest
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    steps = {
        None: lambda: [],
        "pca": lambda: [PCA(p["n_components"], whiten=p["whiten"], random_state=0)],
        "select": lambda: [SelectKBest(k=p["k"])],
    }[p["reduce"]]()
    last = SVC(C=p["C"], gamma=p["gamma"]) if p["model"] == "svm" else KNeighborsClassifier(p["n_neighbors"])
    return score(make_pipeline(*steps, last), "wine")


def depths_space():
    widths = {f"width_{i}": bl.Ordinal([4, 8, 16, 32], when={"depth": list(range(i, 4))}) for i in (1, 2, 3)}
    return {"depth": bl.Integer(1, 3), **widths, "rate": bl.Real(1e-4, 1.0, log=True)}


def depths(p):
    from sklearn.neural_network import MLPClassifier

    layers = [p[f"width_{i}"] for i in range(1, p["depth"] + 1)]
    model = MLPClassifier(layers, learning_rate_init=p["rate"], max_iter=15, random_state=0, tol=0.0)
    return score(model, "wine")


def synthetic_space():
    space = {"branch": ["a", "b", "c"]}
    for branch in "abc":
        for i in range(3):
            space[f"{branch}{i}"] = bl.Real(0.0, 1.0, when={"branch": branch})
    return space


def synthetic(p):
    """Return the value of a function that is a different quadratic in each branch; the maxima are 0.9, 1 and 0.8."""
    top, centre = {"a": (0.9, 0.2), "b": (1.0, 0.7), "c": (0.8, 0.5)}[p["branch"]]
    x = np.array([p[f"{p['branch']}{i}"] for i in range(3)])
    return float(top - 2 * ((x - centre - 0.1 * np.arange(3)) ** 2).sum())


TASKS = {
    "svc": (svc_space, svc),
    "classifiers": (classifiers_space, classifiers),
    "pipelines": (pipelines_space, pipelines),
    "depths": (depths_space, depths),
    "synthetic": (synthetic_space, synthetic),
}


# Runs.


def flat(space):
    """Return a copy of the space without conditions."""
    import dataclasses

    dimensions = bl.Space(space)
    return {name: dataclasses.replace(dimension, when=None) for name, dimension in dimensions.items()}


def active_part(space, params):
    """Return the active params of a full set of params. A condition holds only if the params that it names are
    active."""
    dimensions, active = bl.Space(space), {}
    for name, dimension in dimensions.items():  # conditions name earlier parameters only
        when = dimension.when or {}
        if all(parent in active and active[parent] in values for parent, values in when.items()):
            active[name] = params[name]
    return active


def run(space, searched, f, seed, n_trials):
    """Return the best value so far after each trial."""
    optimizer = bl.BayesOpt(searched, seed=seed)
    best = []
    for _ in range(n_trials):
        trial = optimizer.suggest()
        trial.observe(f(active_part(space, trial.params)))
        best.append(optimizer.best_value_)
    return best


def cached(f):
    """Return f with a cache: for equal params f is evaluated only once."""
    values = {}

    def value(params):
        key = json.dumps(params, sort_keys=True)
        if key not in values:
            values[key] = f(params)
        return values[key]

    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=N_TRIALS)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    arguments = parser.parse_args()
    rows = []
    for task in arguments.tasks:
        make_space, f = TASKS[task]
        space, f = make_space(), cached(f)
        differences = []
        for seed in range(arguments.seeds):
            conditional = run(space, space, f, seed, arguments.trials)
            plain = run(space, flat(space), f, seed, arguments.trials)
            record = {
                "task": task,
                "seed": seed,
                "best_conditional": conditional[-1],
                "best_flat": plain[-1],
                "mean_conditional": float(np.mean(conditional)),
                "mean_flat": float(np.mean(plain)),
            }
            print(json.dumps(record), flush=True)
            differences.append([conditional[-1] - plain[-1], record["mean_conditional"] - record["mean_flat"]])
        found = np.array(differences)
        error = found.std(axis=0, ddof=1) / math.sqrt(len(found)) if len(found) > 1 else np.full(2, np.nan)
        rows.append((task, found.mean(axis=0), error))
    print(f"{'task':<12} {'best: difference ± se':>26} {'mean of best so far: difference ± se':>40}")
    for task, mean, error in rows:
        print(f"{task:<12} {mean[0]:>+15.5f} ± {error[0]:.5f} {mean[1]:>+28.5f} ± {error[1]:.5f}")


if __name__ == "__main__":
    main()
