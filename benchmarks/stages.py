"""Trainings that are stopped by their learning curves, compared with complete trainings: scores and savings.

    python benchmarks/stages.py search sgd
    python benchmarks/stages.py boosting digits

``search`` runs `BelatedSearchCV` with and without ``resource=``, with the same number of candidates, three splits and
one worker. ``boosting`` trains XGBoost with and without the callback that reports each round. It prints the best log
losses after equal numbers of trials, and after equal numbers of rounds. The number of seeds is 5. Differences are
paired by seed; ± is one standard error.
"""

import argparse
import os
import time
import warnings

if __name__ == "__main__":
    for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BELATED_NUM_THREADS"):
        os.environ.setdefault(_name, "1")

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import belated as bl
from belated.integrations.sklearn import BelatedSearchCV

#: The data, the number of rows, the estimator, the space, the resource, its maximum and the number of candidates.
SEARCHES = {
    "sgd": (
        (load_digits, None),
        make_pipeline(StandardScaler(), SGDClassifier(random_state=0)),
        {
            "sgdclassifier__alpha": bl.Real(1e-6, 1e1, log=True),
            "sgdclassifier__loss": ["hinge", "log_loss", "modified_huber"],
            "sgdclassifier__penalty": ["l2", "l1", "elasticnet"],
        },
        "sgdclassifier__epochs",
        40,
        40,
    ),
    "mlp": (
        (load_digits, 800),
        make_pipeline(StandardScaler(), MLPClassifier(random_state=0)),
        {
            "mlpclassifier__hidden_layer_sizes": bl.Integer(8, 64, log=True),
            "mlpclassifier__alpha": bl.Real(1e-6, 1e1, log=True),
            "mlpclassifier__learning_rate_init": bl.Real(1e-5, 1e-1, log=True),
            "mlpclassifier__batch_size": bl.Integer(16, 128, log=True),
        },
        "mlpclassifier__epochs",
        20,
        30,
    ),
    "boosting": (
        (load_breast_cancer, None),
        GradientBoostingClassifier(random_state=0),
        {
            "learning_rate": bl.Real(1e-3, 1, log=True),
            "max_depth": (1, 6),
            "subsample": (0.3, 1.0),
            "min_samples_leaf": bl.Integer(1, 40, log=True),
        },
        "n_estimators",
        100,
        30,
    ),
}
#: The data, the metric, the objective, the number of rounds and the number of trials.
TRAININGS = {
    "breast_cancer": (load_breast_cancer, "logloss", "binary:logistic", 200, 40),
    "digits": (load_digits, "mlogloss", "multi:softprob", 100, 25),
}
BOOSTER = {
    "eta": bl.Real(0.003, 1, log=True),
    "max_depth": (1, 8),
    "subsample": (0.3, 1.0),
    "colsample_bytree": (0.2, 1.0),
    "lambda": bl.Real(0.01, 100, log=True),
    "min_child_weight": bl.Real(0.1, 30, log=True),
}


def with_error(values):
    """Return a mean and its standard error as text."""
    return f"{np.mean(values):.4f} ± {np.std(values, ddof=1) / len(values) ** 0.5:.4f}"


def search(name, seeds):
    """Print the CPU times and the scores of a search with and without a resource."""
    (load, n_rows), estimator, space, resource, maximum, n_iter = SEARCHES[name]
    data = [each[:n_rows] for each in load(return_X_y=True)]
    found = {}
    for mode in ("complete", "resource"):
        for seed in seeds:
            train, test, y_train, y_test = train_test_split(*data, random_state=seed, stratify=data[1])
            own, arguments = clone(estimator), {"resource": resource, "max_resource": maximum}
            if mode == "complete" and resource.endswith("epochs"):
                arguments["min_resource"] = maximum  # a single step, because `fit` would end by its own rule
            elif mode == "complete":
                arguments = {}
                own.set_params(**{resource: maximum})
            splitter = StratifiedKFold(3, shuffle=True, random_state=0)
            begin = time.process_time()
            made = BelatedSearchCV(own, space, n_iter=n_iter, cv=splitter, random_state=seed, **arguments)
            made.fit(train, y_train)
            used = np.mean(made.cv_results_.get("n_resources", maximum)) / maximum
            facts = (time.process_time() - begin, used, made.best_score_, made.score(test, y_test))
            found.setdefault(mode, []).append(facts)
    complete, stopped = (np.array(found[mode]).T for mode in ("complete", "resource"))
    print(f"{name}: {stopped[1].mean():.0%} of the resource")
    print(f"  CPU time of a search {complete[0].mean():.1f} -> {stopped[0].mean():.1f} s")
    print(f"  best mean score {complete[2].mean():.4f}, difference {with_error(stopped[2] - complete[2])}")
    print(f"  score on test data {complete[3].mean():.4f}, difference {with_error(stopped[3] - complete[3])}")


def boosting(name, seeds):
    """Print the best log losses of trainings with XGBoost, for several rules."""
    import xgboost

    from belated.integrations.xgboost import ReportCallback

    load, metric, objective, n_rounds, n_trials = TRAININGS[name]
    x, y = load(return_X_y=True)
    parts = train_test_split(x, y, train_size=0.6, stratify=y, random_state=0)
    train, validation = (xgboost.DMatrix(parts[i], parts[i + 2]) for i in (0, 1))
    fixed = {"nthread": 1, "eval_metric": metric, "objective": objective}
    if objective.startswith("multi"):
        fixed["num_class"] = len(np.unique(y))

    def losses_of(trial, reports):
        kept = {}
        callbacks = [ReportCallback(trial, f"validation-{metric}")] if reports else []
        evals = {"evals": [(validation, "validation")], "evals_result": kept, "verbose_eval": False}
        xgboost.train(fixed | trial.params, train, n_rounds, callbacks=callbacks, **evals)
        return kept["validation"][metric]

    def run(stopping, seed):
        """Return the best loss after the trials, the share of the rounds, and the best loss after the rounds."""
        curve = None if stopping is None else bl.Curve(n_rounds)
        rule = {} if stopping is None else {"stopping": stopping}
        opt = bl.BayesOpt(BOOSTER, direction="minimize", curve=curve, seed=seed, **rule)
        used, best, after_trials = 0, np.inf, None
        for number in range(1, 100 * n_trials):
            trial = opt.suggest()
            losses = losses_of(trial, curve is not None)
            used += len(losses)
            if trial.state != "stopped":
                trial.observe(losses[-1])
                if used <= n_trials * n_rounds:
                    best = min(best, losses[-1])
            if number == n_trials:
                after_trials = best, used / (n_trials * n_rounds)
            if number >= n_trials and used >= n_trials * n_rounds:
                break
        return (*after_trials, best)

    rules = {
        "complete trainings": None,
        "model": "model",
        "median": bl.MedianStopping(min_step=n_rounds // 10),
        "ASHA": bl.ASHA(min_step=max(1, n_rounds // 27)),
    }
    for rule, stopping in rules.items():
        losses, shares, after_rounds = np.array([run(stopping, seed) for seed in seeds]).T
        print(
            f"{name}, {rule}: {with_error(losses)} after the trials, with {shares.mean():.0%} of the rounds; "
            f"{with_error(after_rounds)} after the rounds",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["search", "boosting"])
    parser.add_argument("names", nargs="+", help=f"{', '.join(SEARCHES)}; {', '.join(TRAININGS)}")
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in arguments.names:
        {"search": search, "boosting": boosting}[arguments.what](name, range(arguments.seeds))


if __name__ == "__main__":
    main()
