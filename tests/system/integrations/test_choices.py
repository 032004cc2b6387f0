"""Choices of every kind in each adapter: a function that changes its params changes neither the space nor the log, and
functions, NumPy scalars and NaN are recognised."""

import copy
import math
import pickle

import numpy as np
import pytest


def activation(x):
    return x


# For each kind, the choices as given and as they are returned.
KINDS = {
    "lists": ([[16], [32, 32]], [[16], [32, 32]]),
    "dicts": ([{"a": 1}, {"a": 2, "b": [3]}], [{"a": 1}, {"a": 2, "b": [3]}]),
    "functions": ([activation, len], [activation, len]),
    "floats": ([np.float32(0.25), np.float32(0.5)], [0.25, 0.5]),
    "integers": ([np.int64(1), np.int64(2)], [1, 2]),
    "booleans": ([np.bool_(True), np.bool_(False)], [True, False]),
    "strings": ([np.str_("x"), np.str_("y")], ["x", "y"]),
    "tuples": ([(1, np.int64(2)), (3, "a")], [(1, 2), (3, "a")]),
    "nan": ([float("nan"), 0.0], [math.nan, 0.0]),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def check(found, kind):
    """Assert that both choices were found, and nothing else."""
    expected = KINDS[kind][1]
    assert {repr(value) for value in found} == {repr(value) for value in expected}
    if kind == "functions":
        assert all(any(value is each for each in expected) for value in found)


def change(value):
    if isinstance(value, list):
        value.append(99)
    elif isinstance(value, dict):
        value["new"] = 0


@kinds
@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution:UserWarning")
def test_optuna(kind):
    optuna = pytest.importorskip("optuna")
    from belated.integrations.optuna import BelatedSampler

    found = []

    def f(trial):
        value = trial.suggest_categorical("kind", choices)
        found.append(copy.copy(value))
        change(value)
        return trial.suggest_float("x", 0, 1)

    choices = KINDS[kind][0]
    before = repr(choices)
    study = optuna.create_study(sampler=BelatedSampler(seed=0))
    study.optimize(f, n_trials=8)
    check(found, kind)
    assert repr(choices) == before


@kinds
def test_ray(kind):
    pytest.importorskip("ray")
    tune = pytest.importorskip("ray.tune")
    from belated.integrations.ray import BelatedSearch

    search = BelatedSearch(seed=0)
    space = {"kind": tune.choice(KINDS[kind][0]), "x": tune.uniform(0, 1)}
    search.set_search_properties("loss", "min", space)
    found = []
    for i in range(8):
        config = search.suggest(f"t{i}")
        found.append(copy.copy(config["kind"]))
        change(config["kind"])
        search.on_trial_complete(f"t{i}", {"loss": config["x"]})
    check(found, kind)
    check([trial.params["kind"] for trial in search.optimizer_.trials], kind)
    # The values of a config are recognised, also after pickling.
    again = pickle.loads(pickle.dumps(config["kind"])) if kind not in ("lists", "dicts") else found[-1]
    search.add_evaluated_point({"kind": again, "x": 0.5}, 0.5)
    assert repr(search.optimizer_.trials[-1].params["kind"]) == repr(found[-1])


@kinds
def test_scikit_learn(kind):
    sklearn = pytest.importorskip("sklearn")
    from sklearn.base import BaseEstimator

    from belated.integrations.sklearn import BelatedSearchCV

    class Model(BaseEstimator):
        def __init__(self, kind=None, x=0.0):
            self.kind, self.x = kind, x

        def fit(self, X, y):
            change(self.kind)
            return self

        def score(self, X, y):
            return -self.x

    assert sklearn
    space = {"kind": KINDS[kind][0], "x": (0.0, 1.0)}
    search = BelatedSearchCV(Model(), space, n_iter=8, cv=2, random_state=0, refit=False)
    search.fit(np.zeros((6, 1)), np.zeros(6))
    check([params["kind"] for params in search.cv_results_["params"]], kind)
    check([trial.params["kind"] for trial in search.optimizer_.trials], kind)
