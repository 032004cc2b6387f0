"""A list of spaces for BelatedSearchCV."""

import numpy as np
import pytest

import belated as bl

pytest.importorskip("sklearn")

from sklearn.base import clone  # noqa: E402
from sklearn.datasets import make_classification  # noqa: E402
from sklearn.linear_model import SGDClassifier  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.svm import SVC  # noqa: E402

from belated.integrations.sklearn import BelatedSearchCV  # noqa: E402

X, Y = make_classification(n_samples=90, n_features=6, n_informative=4, flip_y=0.1, random_state=0)
RBF = {"kernel": ["rbf"], "C": bl.Real(1e-2, 1e2, log=True), "gamma": bl.Real(1e-3, 1e1, log=True)}
POLY = {"kernel": ["poly"], "C": bl.Real(1e-2, 1e2, log=True), "degree": bl.Integer(2, 4)}


def search_of(space, estimator=None, **settings):
    estimator = SVC() if estimator is None else estimator
    return BelatedSearchCV(estimator, space, **({"n_iter": 6, "cv": 3, "random_state": 0} | settings))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_each_space_is_searched_with_its_number_of_candidates(n_jobs):
    search = clone(search_of([(RBF, 8), POLY], n_jobs=n_jobs)).fit(X, Y)
    results = search.cv_results_
    assert results["param_kernel"].tolist() == ["rbf"] * 8 + ["poly"] * 6
    assert np.ma.getmaskarray(results["param_gamma"]).tolist() == [False] * 8 + [True] * 6
    assert np.ma.getmaskarray(results["param_degree"]).tolist() == [True] * 8 + [False] * 6
    grid = [{name: [value] for name, value in params.items()} for params in results["params"]]
    expected = GridSearchCV(SVC(), grid, cv=3).fit(X, Y)
    assert results["mean_test_score"].tolist() == expected.cv_results_["mean_test_score"].tolist()
    assert search.best_params_ == expected.best_params_
    told = [trial.value for optimizer in search.optimizer_ for trial in optimizer.trials]
    assert told == results["mean_test_score"].tolist()
    assert [len(optimizer.trials) for optimizer in search.optimizer_] == [8, 6]


def test_the_first_space_is_searched_as_in_a_separate_search():
    several, one = search_of([RBF, POLY]).fit(X, Y), search_of(RBF).fit(X, Y)
    assert several.cv_results_["params"][:6] == one.cv_results_["params"]
    assert one.optimizer_.trials[0].params == several.optimizer_[0].trials[0].params


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_several_spaces_with_a_resource(n_jobs):
    spaces = [({"loss": ["hinge"], "alpha": (1e-6, 1.0)}, 3), ({"loss": ["log_loss"], "alpha": (1e-6, 1.0)}, 2)]
    arguments = {"resource": "epochs", "max_resource": 4, "optimizer": bl.RandomSearch, "n_jobs": n_jobs}
    search = search_of(spaces, SGDClassifier(random_state=0), **arguments).fit(X, Y)
    assert search.cv_results_["param_loss"].tolist() == ["hinge"] * 3 + ["log_loss"] * 2
    curves = [list(trial.curve.values()) for optimizer in search.optimizer_ for trial in optimizer.trials]
    assert [curve[-1] for curve in curves] == search.cv_results_["mean_test_score"].tolist()
    assert {len(curve) for curve in curves} == {4}


@pytest.mark.parametrize(
    "space, error, message",
    [
        ([], bl.errors.InvalidSpace, r"space=\[\] is empty"),
        (3, bl.errors.InvalidSpace, "space=3 is not usable: pass a dict"),
        ([RBF, 3], bl.errors.InvalidSpace, r"space\[1\]=3 is not usable: pass a dict"),
        ((RBF, 5), bl.errors.InvalidSpace, r"space\[1\]=5 is not usable"),
        (
            [(RBF, 0)],
            bl.errors.InvalidSetting,
            r"number of candidates of space\[0\]=0 is not usable: pass an integer >= 1",
        ),
        ([(RBF, 2.5)], bl.errors.InvalidSetting, r"space\[0\]=2.5 is not usable"),
    ],
)
def test_lists_that_cannot_be_used_are_refused(space, error, message):
    with pytest.raises(error, match=message):
        search_of(space).fit(X, Y)
