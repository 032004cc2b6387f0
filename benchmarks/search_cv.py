"""`BelatedSearchCV` compared with `RandomizedSearchCV` and Optuna's search, on four workers in simulated time.

    python -m benchmarks.search_cv svc --seeds 10
    python -m benchmarks.search_cv hgb --seeds 10

The program runs the fits one after the other. The simulated time of a fit is its CPU time, so the figures do not depend
on other programs on the machine. The time for choosing candidates also counts. `RandomizedSearchCV` and
`BelatedSearchCV` evaluate each split of a candidate as a separate task. Optuna's `OptunaSearchCV`, with its default
sampler, evaluates all splits of a candidate in one task. The unit of time, t, is the time that `RandomizedSearchCV`
takes for all candidates.
"""

import argparse
import heapq
import itertools
import time
import warnings

import numpy as np
from scipy.stats import loguniform, randint
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import ParameterSampler, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import belated.integrations.sklearn as integration
from belated.integrations.distributions import DistributionSpace

N_WORKERS, N_CANDIDATES, N_SPLITS = 4, 60, 3
TIMES = (0.125, 0.25, 0.5, 1.0)

PROBLEMS = {
    "svc": (
        make_pipeline(StandardScaler(), SVC()),
        {"svc__C": loguniform(1e-3, 1e3), "svc__gamma": loguniform(1e-5, 1e1)},
    ),
    "hgb": (
        make_pipeline(StandardScaler(), HistGradientBoostingClassifier(max_iter=20, random_state=0)),
        {
            "histgradientboostingclassifier__learning_rate": loguniform(1e-3, 1e0),
            "histgradientboostingclassifier__max_leaf_nodes": randint(2, 32),
            "histgradientboostingclassifier__min_samples_leaf": randint(1, 60),
            "histgradientboostingclassifier__l2_regularization": loguniform(1e-6, 1e2),
            "histgradientboostingclassifier__max_features": [0.1, 0.3, 1.0],
        },
    ),
}


class Workers:
    """Tasks on workers in simulated time. A task is carried out when it is started. The result of a task becomes
    available when the simulated time of the task has passed."""

    def __init__(self):
        self.now = 0.0
        self.running = []
        self.free = [0.0] * N_WORKERS
        self.count = itertools.count()

    def completed(self, next_task, n_jobs, n_in_flight):
        """A replacement of `belated.integrations.joblib_tasks.completed`."""
        while True:
            while len(self.running) < n_in_flight:
                start = time.process_time()
                task = next_task()
                self.now += time.process_time() - start
                if task is None:
                    break
                self.start(task)
            if not self.running:
                return
            end, _, result = heapq.heappop(self.running)
            self.now = max(self.now, end)
            yield result

    def start(self, task):
        function, arguments, keywords = task
        start = time.process_time()
        result = function(*arguments, **keywords)
        seconds = time.process_time() - start
        end = max(self.now, heapq.heappop(self.free)) + seconds
        heapq.heappush(self.free, end)
        heapq.heappush(self.running, (end, next(self.count), result))


def belated_curve(estimator, space, X, y, cv, seed):
    """Return (simulated time, mean score) for each candidate."""
    workers, curve = Workers(), []

    class Timed(integration.Candidates):
        def take(self, fit, outcome, objective):
            super().take(fit, outcome, objective)
            trial = self[fit.candidate].trial
            if trial.state == "observed":
                curve.append((workers.now, trial.value))

    kept = integration.completed, integration.Candidates
    integration.completed, integration.Candidates = workers.completed, Timed
    try:
        integration.BelatedSearchCV(
            estimator, space, n_iter=N_CANDIDATES, cv=cv, random_state=seed, refit=False, pre_dispatch=N_WORKERS + 1
        ).fit(X, y)
    finally:
        integration.completed, integration.Candidates = kept
    return curve


def _scores(number, estimator, params, X, y, splits):
    scores = cross_validate(estimator.set_params(**params), X, y, cv=splits)
    return number, scores["test_score"]


def random_curve(estimator, space, X, y, cv, seed):
    workers, curve, known = Workers(), [], {}
    splits = list(cv.split(X, y))
    tasks = iter(
        (_scores, (number, estimator, params, X, y, [split]), {})
        for number, params in enumerate(ParameterSampler(space, N_CANDIDATES, random_state=seed))
        for split in splits
    )
    for number, scores in workers.completed(lambda: next(tasks, None), N_WORKERS, N_WORKERS + 1):
        known.setdefault(number, []).extend(scores)
        if len(known[number]) == N_SPLITS:
            curve.append((workers.now, np.mean(known[number])))
    return curve


def optuna_curve(estimator, space, X, y, cv, seed):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    splits, left = list(cv.split(X, y)), iter(range(N_CANDIDATES))
    workers, curve = Workers(), []

    def next_task():
        if next(left, None) is None:
            return None
        trial = study.ask()
        params = {name: _suggested(trial, name, each) for name, each in DistributionSpace(space).space.items()}
        return _scores, (trial, estimator, params, X, y, splits), {}

    for trial, scores in workers.completed(next_task, N_WORKERS, N_WORKERS):
        study.tell(trial, np.mean(scores))
        curve.append((workers.now, np.mean(scores)))
    return curve


def _suggested(trial, name, dimension):
    if hasattr(dimension, "choices"):
        return trial.suggest_categorical(name, list(dimension.choices))
    if isinstance(dimension.low, int):
        return trial.suggest_int(name, dimension.low, dimension.high, log=dimension.log)
    return trial.suggest_float(name, dimension.low, dimension.high, log=dimension.log)


def best_at(curve, t):
    return max((score for when, score in curve if when <= t), default=np.nan)


def time_to(curve, score):
    return next((when for when, each in curve if each >= score - 1e-12), np.inf)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problem", choices=PROBLEMS)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rows", type=int, default=1797)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y = (each[: arguments.rows] for each in load_digits(return_X_y=True))
    cv = StratifiedKFold(N_SPLITS, shuffle=True, random_state=0)
    methods = {"RandomizedSearchCV": random_curve, "BelatedSearchCV": belated_curve, "Optuna": optuna_curve}
    found = {name: [] for name in methods}
    for seed in range(arguments.seeds):
        curves = {name: method(*PROBLEMS[arguments.problem], X, y, cv, seed) for name, method in methods.items()}
        whole, final = curves["RandomizedSearchCV"][-1][0], best_at(curves["RandomizedSearchCV"], np.inf)
        for name, curve in curves.items():
            row = [best_at(curve, t * whole) for t in TIMES] + [time_to(curve, final) / whole, curve[-1][0] / whole]
            found[name].append(row)
            print(seed, f"{whole:.1f} s", name, *(f"{value:.4f}" for value in row), flush=True)
    print("| search | " + " | ".join(f"score at t = {t}" for t in TIMES) + " | t to final score | t of all |")
    for name, rows in found.items():
        scores, times = np.array(rows)[:, :-2], np.array(rows)[:, -2:]
        errors = scores.std(axis=0, ddof=1) / np.sqrt(len(rows)) if len(rows) > 1 else scores[0] * np.nan
        cells = [f"{mean:.4f} ± {error:.4f}" for mean, error in zip(scores.mean(axis=0), errors, strict=True)]
        reached = np.isfinite(times[:, 0]).sum()
        cells += [f"{np.median(times[:, 0]):.2f} ({reached} of {len(rows)} reach it)", f"{times[:, 1].mean():.2f}"]
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
