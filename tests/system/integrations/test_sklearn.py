"""BelatedSearchCV agrees with scikit-learn's searches and cross-validation, and passes scikit-learn's checks of
estimators."""

import functools
import pickle
import threading
import time
import warnings

import joblib
import numpy as np
import pytest

import belated as bl

sklearn = pytest.importorskip("sklearn")

from sklearn.base import BaseEstimator, ClassifierMixin, clone  # noqa: E402
from sklearn.datasets import make_classification  # noqa: E402
from sklearn.decomposition import PCA  # noqa: E402
from sklearn.exceptions import FitFailedWarning  # noqa: E402
from sklearn.linear_model import LogisticRegression, Ridge  # noqa: E402
from sklearn.metrics import accuracy_score, f1_score, make_scorer  # noqa: E402
from sklearn.model_selection import (  # noqa: E402
    GridSearchCV,
    GroupKFold,
    RandomizedSearchCV,
    ShuffleSplit,
    StratifiedKFold,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB  # noqa: E402
from sklearn.neighbors import KNeighborsClassifier  # noqa: E402
from sklearn.pipeline import Pipeline, make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.svm import SVC  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402
from sklearn.utils.fixes import parse_version  # noqa: E402

from belated.integrations.sklearn import BelatedSearchCV  # noqa: E402

X, Y = make_classification(n_samples=90, n_features=6, n_informative=4, flip_y=0.1, random_state=0)
SPACE = {"C": bl.Real(1e-3, 1e3, log=True), "gamma": bl.Real(1e-3, 1e1, log=True)}


def version_is_at_least(version):
    return parse_version(sklearn.__version__) >= parse_version(version)


def search_of(estimator=None, space=None, **settings):
    settings = {"n_iter": 8, "cv": 3, "random_state": 0} | settings
    return BelatedSearchCV(SVC() if estimator is None else estimator, SPACE if space is None else space, **settings)


def columns_without_times(results):
    return {name: column for name, column in results.items() if "_time" not in name}


def assert_same_results(found, expected):
    found, expected = columns_without_times(found), columns_without_times(expected)
    assert found.keys() == expected.keys()
    assert found.pop("params") == expected.pop("params")
    for name, column in expected.items():
        assert np.ma.getmaskarray(found[name]).tolist() == np.ma.getmaskarray(column).tolist()
        assert np.ma.compressed(found[name]).tolist() == np.ma.compressed(column).tolist(), name


# The searches on which scikit-learn's checks are run. The first search fails a check that RandomizedSearchCV also
# fails.
CHECKED = {
    BelatedSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, n_iter=2, cv=2, error_score="raise", random_state=0): {
        "check_supervised_y_2d": "DataConversionWarning not caught"
    },
    BelatedSearchCV(
        make_pipeline(PCA(), LogisticRegression()),
        {"logisticregression__C": [0.1, 1.0]},
        n_iter=2,
        cv=2,
        error_score="raise",
        random_state=0,
    ): {},
}
if version_is_at_least("1.6"):
    with_checks = parametrize_with_checks(list(CHECKED), expected_failed_checks=CHECKED.get)
else:
    with_checks = pytest.mark.skip("checks of scikit-learn before 1.6 take no expected failures")


@with_checks
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


# The next tests compute the results of a search in another way, and compare them with `BelatedSearchCV`.


@pytest.mark.parametrize("scoring, refit", [(None, True), (["accuracy", "f1"], "f1")])
def test_results_equal_a_grid_search_over_the_same_candidates(scoring, refit):
    search = search_of(scoring=scoring, refit=refit, return_train_score=True).fit(X, Y)
    grid = [{name: [value] for name, value in params.items()} for params in search.cv_results_["params"]]
    expected = GridSearchCV(SVC(), grid, cv=3, scoring=scoring, refit=refit, return_train_score=True).fit(X, Y)
    assert_same_results(search.cv_results_, expected.cv_results_)
    for name in ("best_index_", "best_score_", "best_params_", "n_splits_", "multimetric_"):
        assert getattr(search, name) == getattr(expected, name)
    assert search.score(X, Y) == expected.score(X, Y)
    assert search.predict(X).tolist() == expected.predict(X).tolist()


def test_scores_equal_the_scores_of_cross_validate():
    cv = ShuffleSplit(4, random_state=7)
    search = search_of(cv=cv, scoring=["accuracy", "roc_auc"], refit="roc_auc", n_iter=4).fit(X, Y)
    for i, params in enumerate(search.cv_results_["params"]):
        scores = cross_validate(SVC(**params), X, Y, cv=cv, scoring=["accuracy", "roc_auc"])
        for metric in ("accuracy", "roc_auc"):
            found = [search.cv_results_[f"split{k}_test_{metric}"][i] for k in range(4)]
            assert found == scores[f"test_{metric}"].tolist()


def test_the_optimizer_observes_the_mean_scores():
    search = search_of(n_iter=12).fit(X, Y)
    told = [trial.value for trial in search.optimizer_.trials]
    assert told == search.cv_results_["mean_test_score"].tolist()
    assert search.optimizer_.best_params_ == search.best_params_
    assert all(trial.duration > 0 for trial in search.optimizer_.trials)
    frame = search.optimizer_.trials_dataframe()
    assert frame["params_C"].tolist() == search.cv_results_["param_C"].tolist()


@pytest.mark.parametrize("settings", [{"refit": "f1"}, {"refit": False, "objective": "f1"}, {"objective": "f1"}])
def test_the_optimizer_maximises_the_metric_that_is_named(settings):
    settings = {"refit": "accuracy"} | settings
    search = search_of(scoring=["accuracy", "f1"], **settings).fit(X, Y)
    told = [trial.value for trial in search.optimizer_.trials]
    assert told == search.cv_results_["mean_test_f1"].tolist()
    assert hasattr(search, "best_params_") == bool(settings["refit"])


def two_scores(estimator, X, y):
    predicted = estimator.predict(X)
    return {"a": accuracy_score(y, predicted), "f": f1_score(y, predicted)}


def test_a_function_may_return_several_scores():
    search = search_of(scoring=two_scores, refit="f").fit(X, Y)
    assert [trial.value for trial in search.optimizer_.trials] == search.cv_results_["mean_test_f"].tolist()
    assert search.multimetric_ and search.best_score_ == search.cv_results_["mean_test_f"].max()


@pytest.mark.parametrize(
    "settings",
    [
        {"refit": False},
        {"refit": lambda results: 3},
        {"refit": "recall", "objective": ["accuracy", "recall"], "scoring": ["f1", "accuracy", "recall"]},
        {"refit": False, "optimizer": bl.RandomSearch},
    ],
)
def test_several_metrics_have_a_front(settings):
    search = search_of(**{"scoring": ["accuracy", "recall"], "n_iter": 14} | settings).fit(X, Y)
    optimizer, results = search.optimizer_, search.cv_results_
    means = {name: results[f"mean_test_{name}"] for name in ("accuracy", "recall")}
    assert list(optimizer.outcomes) == list(means)
    for i, trial in enumerate(optimizer.trials):
        assert trial.values == {name: values[i] for name, values in means.items()}
        assert trial.attrs == ({"f1": results["mean_test_f1"][i]} if "scoring" in settings else {})
    points = np.column_stack(list(means.values()))
    dominated = [any((other >= point).all() and (other > point).any() for other in points) for point in points]
    assert [trial.number for trial in optimizer.pareto_] == np.flatnonzero(~np.array(dominated)).tolist()
    best = means["recall"].argmax() if settings["refit"] == "recall" else 3 if settings["refit"] else None
    assert getattr(search, "best_index_", None) == best
    assert hasattr(search, "best_estimator_") == bool(settings["refit"])


def test_fits_of_a_front_that_fail():
    def sometimes(estimator, X, y):
        return float("nan") if estimator.depth == 3 else 0.5

    scoring = {"a": "accuracy", "b": sometimes}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = search_of(Fragile(), DEPTHS, scoring=scoring, refit=False, n_iter=10).fit(X, Y)
    for trial in search.optimizer_.trials:
        depth = trial.params["depth"]
        assert trial.values.keys() == ({"a", "b"} if depth <= 5 and depth != 3 else {"a"} if depth == 3 else set())
        assert trial.missing == []
    assert {trial.params["depth"] for trial in search.optimizer_.trials} >= {3, 6}


def test_fronts_of_metrics_may_have_references():
    def made(space, seed, outcomes):
        goals = {name: bl.Maximize(at_least=0.25) for name in outcomes}
        return bl.BayesOpt(space, outcomes=goals, seed=seed)

    search = search_of(scoring=["accuracy", "recall"], refit=False, optimizer=made, n_iter=6).fit(X, Y)
    assert search.optimizer_.hypervolume() == search.optimizer_.hypervolume({"accuracy": 0.25, "recall": 0.25})
    with pytest.raises(bl.errors.InvalidSetting, match="pass the argument outcomes"):
        wrong = functools.partial(made, outcomes=["accuracy", "f1"])
        search_of(
            scoring=["accuracy", "recall"], refit=False, optimizer=lambda space, seed, outcomes: wrong(space, seed)
        ).fit(X, Y)


def test_several_metrics_do_not_change_the_candidates():
    single = search_of(scoring="accuracy", n_iter=14).fit(X, Y)
    scoring = {"a": "accuracy", "b": "roc_auc", "c": make_scorer(f1_score)}
    several = search_of(scoring=scoring, refit="a", n_iter=14).fit(X, Y)
    assert several.cv_results_["params"] == single.cv_results_["params"]
    assert several.cv_results_["mean_test_a"].tolist() == single.cv_results_["mean_test_score"].tolist()
    for name in ("best_index_", "best_score_", "best_params_"):
        assert getattr(several, name) == getattr(single, name)
    trials = several.optimizer_.trials
    for name in "bc":
        assert [trial.attrs[name] for trial in trials] == several.cv_results_[f"mean_test_{name}"].tolist()
    assert trials[0].attrs.keys() == {"b", "c"} and single.optimizer_.trials[0].attrs == {}


def test_a_function_as_refit_chooses_the_best():
    search = search_of(refit=lambda results: 3).fit(X, Y)
    assert search.best_index_ == 3
    assert search.best_params_ == search.cv_results_["params"][3]
    assert not hasattr(search, "best_score_")


# Spaces.


def test_inactive_parameters_are_masked():
    svc, knn = SVC(), KNeighborsClassifier()
    space = {
        "model": [svc, knn],
        "model__C": bl.Real(1e-2, 1e2, log=True, when={"model": svc}),
        "model__n_neighbors": bl.Integer(1, 15, when={"model": knn}),
    }
    pipeline = Pipeline([("scale", StandardScaler()), ("model", GaussianNB())])
    search = clone(search_of(pipeline, space, n_iter=10)).fit(X, Y)
    results = search.cv_results_
    is_svc = [isinstance(model, SVC) for model in results["param_model"]]
    assert 0 < sum(is_svc) < 10
    assert (~np.ma.getmaskarray(results["param_model__C"])).tolist() == is_svc
    assert np.ma.getmaskarray(results["param_model__n_neighbors"]).tolist() == is_svc
    assert np.isfinite(results["mean_test_score"]).all()


def test_a_space_is_searched_as_by_a_model():
    def score(estimator, X, y):
        return -((np.log10(estimator.alpha) - 1.5) ** 2)

    search = search_of(Ridge(), {"alpha": bl.Real(1e-6, 1e6, log=True)}, scoring=score, n_iter=20).fit(X, Y)
    assert abs(np.log10(search.best_params_["alpha"]) - 1.5) < 0.05


# Workers.


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_several_workers_give_the_results_of_one_worker(backend):
    expected = search_of(optimizer=bl.RandomSearch).fit(X, Y)
    with joblib.parallel_config(backend=backend):
        search = search_of(optimizer=bl.RandomSearch, n_jobs=2).fit(X, Y)
    # Random search ignores results, so its candidates do not depend on the order of results.
    assert_same_results(search.cv_results_, expected.cv_results_)
    assert search.best_params_ == expected.best_params_


class Waiting(ClassifierMixin, BaseEstimator):
    """A classifier. The fit with the number 0 lasts until twelve other fits have ended."""

    others_are_done = threading.Event()
    others = []

    def __init__(self, number=1):
        self.number = number

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        if self.number == 0:
            assert self.others_are_done.wait(30)
        else:
            self.others.append(self)
            if len(self.others) == 12:
                self.others_are_done.set()
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_a_slow_candidate_does_not_block_other_workers():
    Waiting.others_are_done.clear()
    Waiting.others.clear()

    def scripted(space, seed):
        optimizer = bl.RandomSearch(space, seed=seed)
        for number in range(13):
            optimizer.enqueue({"number": number})
        return optimizer

    arguments = {"optimizer": scripted, "n_iter": 13, "cv": ShuffleSplit(1, random_state=0), "error_score": "raise"}
    with joblib.parallel_config(backend="threading"):
        search = search_of(Waiting(), {"number": (0, 12)}, n_jobs=2, refit=False, **arguments).fit(X, Y)
    # The results are in the order in which candidates were chosen, although the candidates ended in another order.
    assert [params["number"] for params in search.cv_results_["params"]] == list(range(13))


def test_results_are_known_before_the_next_candidate_is_chosen():
    seen = []

    class Watched(bl.RandomSearch):
        def suggest(self, *args, **kwargs):
            seen.append((len(self.trials), len([trial for trial in self.trials if trial.state != "pending"])))
            return super().suggest(*args, **kwargs)

    with joblib.parallel_config(backend="threading"):
        search_of(optimizer=Watched, n_jobs=2, n_iter=10, pre_dispatch="n_jobs").fit(X, Y)
    # Each candidate has three fits, and two fits run at a time. When the last fit of a candidate starts, all earlier
    # candidates have been reported, except possibly one candidate that the second worker is still evaluating.
    assert all(asked - reported <= 2 for asked, reported in seen)
    assert [asked for asked, _ in seen] == list(range(10))


def test_one_worker_and_a_seed_reproduce_the_search():
    searches = [search_of(n_iter=12).fit(X, Y) for _ in range(2)]
    assert searches[0].cv_results_["params"] == searches[1].cv_results_["params"]
    other = search_of(n_iter=12, random_state=1).fit(X, Y)
    assert other.cv_results_["params"] != searches[0].cv_results_["params"]


def test_a_generator_of_random_numbers_gives_the_seed():
    searches = [search_of(random_state=np.random.RandomState(3), n_iter=3).fit(X, Y) for _ in range(2)]
    assert searches[0].cv_results_["params"] == searches[1].cv_results_["params"]


# Fits that fail.


class Fragile(ClassifierMixin, BaseEstimator):
    def __init__(self, depth=1, fails_when_scored=False):
        self.depth = depth
        self.fails_when_scored = fails_when_scored

    def fit(self, X, y):
        if self.depth > 5 and not self.fails_when_scored:
            raise RuntimeError("too deep")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        if self.depth > 5:
            raise RuntimeError("too deep")
        return np.full(len(X), self.classes_[0])


DEPTHS = {"depth": bl.Integer(1, 10)}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_candidate_that_raises_is_a_failed_trial(n_jobs):
    with warnings.catch_warnings(), joblib.parallel_config(backend="threading"):
        warnings.simplefilter("ignore")
        search = search_of(Fragile(), DEPTHS, n_jobs=n_jobs, n_iter=10).fit(X, Y)
    failed = np.array([params["depth"] > 5 for params in search.cv_results_["params"]])
    assert 0 < failed.sum() < 10
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == failed.tolist()
    assert [trial.state == "failed" for trial in search.optimizer_.trials] == failed.tolist()
    error = next(trial.error for trial in search.optimizer_.trials if trial.error is not None)
    assert "too deep" in error.message
    assert search.best_params_["depth"] <= 5


def test_a_score_that_fails_is_a_failed_trial():
    with pytest.warns(UserWarning, match="Scoring failed"):
        search = search_of(Fragile(fails_when_scored=True), DEPTHS).fit(X, Y)
    failed = [params["depth"] > 5 for params in search.cv_results_["params"]]
    assert [trial.state == "failed" for trial in search.optimizer_.trials] == failed


def test_a_number_as_error_score_is_a_value():
    with pytest.warns(FitFailedWarning, match="too deep"):
        search = search_of(Fragile(), DEPTHS, error_score=-1.0).fit(X, Y)
    assert {trial.state for trial in search.optimizer_.trials} == {"observed"}
    assert min(trial.value for trial in search.optimizer_.trials) == -1.0


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_error_score_raise_ends_the_search(n_jobs):
    search = search_of(Fragile(), DEPTHS, error_score="raise", n_jobs=n_jobs)
    with joblib.parallel_config(backend="threading"), pytest.raises(RuntimeError, match="too deep"):
        search.fit(X, Y)
    assert {trial.state for trial in search.optimizer_.trials} <= {"observed", "abandoned"}


def test_a_search_whose_fits_all_fail_is_an_error():
    with pytest.raises(ValueError, match="All the 6 fits failed"):
        search_of(Fragile(depth=9), {"fails_when_scored": [False], "depth": (6, 9)}, n_iter=2).fit(X, Y)


def test_several_metrics_of_a_function_and_failed_fits():
    with pytest.warns(FitFailedWarning):
        search = search_of(Fragile(), DEPTHS, scoring=two_scores, refit="a").fit(X, Y)
    failed = [params["depth"] > 5 for params in search.cv_results_["params"]]
    assert np.isnan(search.cv_results_["mean_test_f"]).tolist() == failed


# Other features of scikit-learn's searches.


def test_groups_and_weights_are_passed_on():
    groups = np.arange(90) // 6
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 90)
    search = search_of(LogisticRegression(), {"C": (0.01, 10.0)}, cv=GroupKFold(3), n_iter=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, Y, groups=groups, sample_weight=weights)
        grid = [{"C": [params["C"]]} for params in search.cv_results_["params"]]
        expected = GridSearchCV(LogisticRegression(), grid, cv=GroupKFold(3))
        expected.fit(X, Y, groups=groups, sample_weight=weights)
    assert_same_results(search.cv_results_, expected.cv_results_)


@pytest.mark.skipif(not version_is_at_least("1.5"), reason="metadata routing of scikit-learn before 1.5")
def test_metadata_is_routed():
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 90)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
        model = LogisticRegression().set_fit_request(sample_weight=True)
        arguments = {"cv": StratifiedKFold(3), "scoring": scorer}
        search = search_of(model, {"C": (0.01, 10.0)}, n_iter=3, **arguments).fit(X, Y, sample_weight=weights)
        grid = [{"C": [params["C"]]} for params in search.cv_results_["params"]]
        expected = GridSearchCV(model, grid, **arguments).fit(X, Y, sample_weight=weights)
    assert_same_results(search.cv_results_, expected.cv_results_)


def test_a_search_can_be_cloned_changed_and_pickled():
    search = search_of(space=SPACE | {"kernel": ["rbf", "sigmoid"]}, optimizer=bl.RandomSearch)
    params = search.get_params()
    assert params["estimator__kernel"] == "rbf" and params["n_iter"] == 8 and params["optimizer"] is bl.RandomSearch
    other = clone(search).set_params(n_iter=3, estimator__tol=1e-2)
    assert (search.n_iter, other.n_iter, other.estimator.tol) == (8, 3, 1e-2)
    fitted = pickle.loads(pickle.dumps(other.fit(X, Y)))
    assert fitted.predict(X).tolist() == other.predict(X).tolist()
    assert fitted.optimizer_.best_value_ == other.best_score_
    assert pickle.loads(pickle.dumps(search)).fit(X, Y).best_score_ == search.fit(X, Y).best_score_


def test_arguments_equal_the_arguments_of_randomized_search():
    own = set(BelatedSearchCV(SVC(), SPACE).get_params(deep=False))
    assert set(RandomizedSearchCV(SVC(), {}).get_params(deep=False)) - own == {"param_distributions"}


def test_unknown_arguments_name_the_argument_to_write():
    for name, meant in (("max_resources", "max_resource"), ("param_distributions", "space"), ("n_iters", "n_iter")):
        with pytest.raises(
            bl.errors.UnknownArgument, match=f"{name}=3 is not an argument of BelatedSearchCV: .* {meant}?"
        ):
            BelatedSearchCV(SVC(), SPACE, **{name: 3})


def test_a_search_within_a_search(capsys):
    inner = search_of(LogisticRegression(), {"C": (0.01, 10.0)}, n_iter=2, cv=2, verbose=1)
    scores = cross_validate(inner, X, Y, cv=2)["test_score"]
    assert np.isfinite(scores).all()
    assert capsys.readouterr().out.count("Fitting 2 folds for each of 2 candidates, totalling 4 fits") == 2


def test_candidates_may_come_from_a_study(tmp_path):
    def study(space, seed):
        return bl.Study("svc", tmp_path / "searches.db", bl.BayesOpt(space, seed=0))

    first = search_of(optimizer=study, n_iter=4).fit(X, Y)
    second = search_of(optimizer=study, n_iter=4).fit(X, Y)
    trials = second.optimizer_.trials
    assert [trial.params for trial in trials] == first.cv_results_["params"] + second.cv_results_["params"]
    assert len(second.optimizer_.trials_dataframe()) == 8


class Rated(ClassifierMixin, BaseEstimator):
    """A classifier with random scores, whose fits of large values of `a` fail."""

    def __init__(self, a=0, b=0):
        self.a, self.b = a, b

    def fit(self, X, y):
        if self.a == 9:
            raise ValueError("a is too large")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])

    def score(self, X, y):
        return self.a - self.b + np.random.default_rng(len(X) + 7 * self.a + self.b).normal(0, 3)


SMALL_SPACES = {
    "grid": ({"a": [1, 2, 3], "b": (0, 3)}, 12),
    "failures": ({"a": [1, 9, 3], "b": (0, 3)}, 12),
    "conditions": ({"a": [1, 2, 3], "b": bl.Integer(1, 4, when={"a": 2})}, 6),
    "list": ([{"a": [1, 2]}, ({"b": (0, 3)}, 2), {"a": [3], "b": [0, 1, 2]}], 7),
}


@pytest.mark.filterwarnings("ignore:the space has:belated.BelatedWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning", "ignore:One or more of the test scores")
@pytest.mark.parametrize("optimizer", [bl.BayesOpt, bl.RandomSearch])
@pytest.mark.parametrize("name", SMALL_SPACES)
def test_no_candidate_is_repeated_and_a_small_space_ends_the_search(name, optimizer):
    space, n_points = SMALL_SPACES[name]
    for n_iter in (30, n_points - 1):
        arguments = {"optimizer": optimizer, "n_iter": n_iter, "cv": 2, "refit": False}
        with joblib.parallel_config(backend="threading"):
            search = search_of(Rated(), space, n_jobs=1 + (n_iter == 30), **arguments).fit(X, Y)
        found = [tuple(sorted(params.items())) for params in search.cv_results_["params"]]
        assert len(set(found)) == len(found) == (min(n_iter, n_points) if name != "list" else n_points)


def test_a_space_with_fewer_points_than_candidates_warns_at_once(capsys):
    with pytest.warns(bl.BelatedWarning, match="^the space has 6 points, fewer than the 50 candidates: ") as warned:
        search = search_of(Rated(), {"a": [1, 2, 3], "b": [0, 1]}, n_iter=50, verbose=1).fit(X, Y)
    assert len(warned) == 1 and search.optimizer_.n_trials == 6
    assert "Fitting 3 folds for each of 6 candidates" in capsys.readouterr().out


def test_no_candidate_is_started_after_the_timeout(monkeypatch):
    clock = iter([0.0, 1.0, 2.0, 10.5])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    search = search_of(GaussianNB(), {"var_smoothing": (1e-9, 1e-3)}, n_iter=1000, timeout=10, cv=2).fit(X, Y)
    # The first candidate starts without a check of the time, two further candidates start before the time is over, and
    # all three finish.
    assert len(search.cv_results_["params"]) == 3
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"n_iter": 0}, "n_iter=0 is not usable: pass an integer >= 1"),
        ({"timeout": -1}, "timeout=-1 is not usable: pass seconds > 0"),
        ({"pre_dispatch": "2n"}, "pre_dispatch='2n' is not usable"),
        ({"pre_dispatch": 0}, "pre_dispatch=0 is not usable"),
        ({"optimizer": 3}, "optimizer=3 is not usable: pass an optimizer's class"),
        ({"optimizer": "random"}, "optimizer='random' is not usable: .*; use bl.RandomSearch$"),
        ({"optimizer": lambda space, seed: None}, "optimizer returned None: pass an optimizer's class"),
        ({"optimizer": functools.partial(bl.BayesOpt, direction="minimize")}, "leave direction out"),
        ({"optimizer": lambda space, seed: bl.BayesOpt({"C": (0.0, 1.0)})}, "does not search the given space"),
        ({"optimizer": lambda space, seed: bl.BayesOpt(candidates=[[0.0], [1.0]])}, "does not search the given space"),
        ({"optimizer": functools.partial(bl.BayesOpt, context={"day": (0, 6)})}, "optimizer has a context"),
        ({"optimizer": functools.partial(bl.BayesOpt, outcomes={"score": "maximize"})}, "optimizer has outcomes"),
        (
            {"scoring": ["accuracy", "f1", "recall", "precision"], "refit": False},
            "refit=False does not name the metric",
        ),
        ({"scoring": ["accuracy", "f1"], "refit": "f1", "objective": ["f1"]}, "name of a metric, or two or three of"),
        ({"scoring": ["accuracy", "f1"], "refit": "f1", "objective": ["f1", "auc"]}, "two or three of"),
        ({"scoring": two_scores, "refit": False, "objective": ["a", "f"]}, "scoring as a list of metrics"),
        ({"scoring": ["accuracy", "f1"], "refit": "f1", "objective": "auc"}, "objective='auc' does not name"),
        ({"objective": "f1"}, "objective='f1' is for several metrics: leave it out"),
        ({"scoring": two_scores, "refit": False}, "refit=False does not name the metric"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(settings, message):
    with pytest.raises(bl.errors.InvalidSetting, match=message):
        search_of(**settings).fit(X, Y)


@pytest.mark.skipif(not hasattr(BelatedSearchCV, "set_callbacks"), reason="scikit-learn before 1.9 has no callbacks")
def test_callbacks_are_refused():
    class Callback:
        def setup(self, *args, **kwargs):
            pass

        on_fit_task_begin = on_fit_task_end = teardown = setup

    with pytest.raises(bl.errors.InvalidSetting, match="leave set_callbacks out"):
        search_of().set_callbacks(Callback()).fit(X, Y)
