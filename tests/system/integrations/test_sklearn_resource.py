"""The resource of BelatedSearchCV: the scores at each step equal the scores of complete fits."""

import functools
import pickle
import warnings

import joblib
import numpy as np
import pytest

import belated as bl

sklearn = pytest.importorskip("sklearn")

from sklearn.base import BaseEstimator, ClassifierMixin, clone  # noqa: E402
from sklearn.cluster import MiniBatchKMeans  # noqa: E402
from sklearn.datasets import load_breast_cancer, load_digits  # noqa: E402
from sklearn.decomposition import PCA  # noqa: E402
from sklearn.ensemble import (  # noqa: E402
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, SGDClassifier  # noqa: E402
from sklearn.metrics import accuracy_score, f1_score  # noqa: E402
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score  # noqa: E402
from sklearn.multiclass import OneVsRestClassifier  # noqa: E402
from sklearn.neural_network import MLPClassifier  # noqa: E402
from sklearn.pipeline import Pipeline, make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.svm import SVC  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402
from sklearn.utils.fixes import parse_version  # noqa: E402

from belated.integrations.sklearn import BelatedSearchCV  # noqa: E402

X, Y = load_breast_cancer(return_X_y=True)
X, Y = X[:150], Y[:150]
DIGITS = tuple(part[:200] for part in load_digits(return_X_y=True))
BOOSTING = GradientBoostingClassifier(max_depth=2, subsample=0.7, random_state=0)
SGD = SGDClassifier(random_state=0)
RATES = {"learning_rate": bl.Real(1e-3, 1.0, log=True)}
ALPHAS = {"alpha": bl.Real(1e-7, 1e3, log=True)}
# A candidate is stopped at the steps 1, 2 and 4 unless it is among the better half there.
STOPS_EARLY = functools.partial(bl.RandomSearch, stopping=bl.ASHA(reduction=2))


def search_of(estimator=BOOSTING, space=RATES, **settings):
    defaults = {"resource": "n_estimators", "max_resource": 8, "min_resource": 1, "n_iter": 8, "cv": 3}
    return BelatedSearchCV(estimator, space, **({"random_state": 0, "optimizer": STOPS_EARLY} | defaults | settings))


def in_pipeline(model, name="model"):
    return Pipeline([("scale", StandardScaler()), ("reduce", PCA(5, random_state=0)), (name, model)])


def columns_without_times(results):
    return {name: np.asarray(column).tolist() for name, column in results.items() if "_time" not in name}


CHECKED = [
    BelatedSearchCV(
        GradientBoostingClassifier(max_depth=1, random_state=0),
        {"learning_rate": (0.1, 1.0)},
        n_iter=2,
        cv=2,
        error_score="raise",
        random_state=0,
        resource="n_estimators",
        max_resource=2,
    ),
    BelatedSearchCV(
        make_pipeline(StandardScaler(), SGDClassifier(random_state=0)),
        {"sgdclassifier__alpha": (1e-4, 1.0)},
        n_iter=2,
        cv=2,
        error_score="raise",
        random_state=0,
        resource="sgdclassifier__epochs",
        max_resource=2,
    ),
]
if parse_version(sklearn.__version__) >= parse_version("1.6"):
    with_checks = parametrize_with_checks(CHECKED)
else:
    with_checks = pytest.mark.skip("the checks of the search without a resource")


@with_checks
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


# The scores at each step are computed in another way.


@pytest.mark.parametrize(
    "estimator, space, resource",
    [
        (BOOSTING, RATES, "n_estimators"),
        (HistGradientBoostingClassifier(max_leaf_nodes=4, random_state=0), RATES, "max_iter"),
        (RandomForestClassifier(random_state=0), {"max_depth": (1, 5)}, "n_estimators"),
        (in_pipeline(BOOSTING), {"model__learning_rate": (0.01, 1.0)}, "model__n_estimators"),
    ],
)
def test_scores_equal_scores_of_complete_fits(estimator, space, resource):
    arguments = {"resource": resource, "min_resource": 3, "return_train_score": True}
    search = search_of(estimator, space, **arguments).fit(X, Y)
    n_resources = search.cv_results_["n_resources"].tolist()
    assert [params[resource] for params in search.cv_results_["params"]] == n_resources
    # Step s has the resource 3 * s, and the last step has the resource 8.
    for trial, params in zip(search.optimizer_.trials, search.cv_results_["params"], strict=True):
        for step, score in trial.curve.items():
            model = clone(estimator).set_params(**params | {resource: min(3 * step, 8)})
            assert score == pytest.approx(cross_val_score(model, X, Y, cv=3).mean(), abs=1e-12)
    grid = [{name: [value] for name, value in params.items()} for params in search.cv_results_["params"]]
    expected = columns_without_times(GridSearchCV(estimator, grid, cv=3, return_train_score=True).fit(X, Y).cv_results_)
    found = columns_without_times(search.cv_results_)
    assert found.pop("n_resources") == n_resources
    assert found.keys() == expected.keys()
    assert all(found[name] == column for name, column in expected.items())


def test_scores_equal_staged_predictions():
    search = search_of(optimizer=None).fit(X, Y)
    staged = np.zeros(8)
    for train, test in StratifiedKFold(3).split(X, Y):
        model = clone(BOOSTING).set_params(**search.best_params_).fit(X[train], Y[train])
        staged += [accuracy_score(Y[test], found) / 3 for found in model.staged_predict(X[test])]
    trial = search.optimizer_.trials[search.best_index_]
    assert list(trial.curve.values()) == pytest.approx(staged.tolist(), abs=1e-12)


class Epochs(ClassifierMixin, BaseEstimator):
    """An estimator whose fit calls `partial_fit` of SGDClassifier, for `GridSearchCV`."""

    def __init__(self, alpha=1.0, epochs=1, scale=False):
        self.alpha, self.epochs, self.scale = alpha, epochs, scale

    def fit(self, X, y):
        self.scaler_ = StandardScaler().fit(X) if self.scale else StandardScaler(with_mean=False, with_std=False).fit(X)
        self.model_, self.classes_ = SGDClassifier(alpha=self.alpha, random_state=0), np.unique(y)
        for _ in range(self.epochs):
            self.model_.partial_fit(self.scaler_.transform(X), y, classes=self.classes_)
        return self

    def predict(self, X):
        return self.model_.predict(self.scaler_.transform(X))


@pytest.mark.parametrize("scale", [False, True])
def test_epochs_are_calls_of_partial_fit(scale):
    estimator, prefix = (make_pipeline(StandardScaler(), SGD), "sgdclassifier__") if scale else (SGD, "")
    space = {f"{prefix}alpha": ALPHAS["alpha"]}
    search = search_of(estimator, space, resource=f"{prefix}epochs", max_resource=4, n_iter=6).fit(*DIGITS)
    results = search.cv_results_
    assert set(results["params"][0]) == {f"{prefix}alpha"}
    for trial in search.optimizer_.trials:
        for epochs, score in trial.curve.items():
            model = Epochs(trial.params[f"{prefix}alpha"], epochs, scale)
            assert score == pytest.approx(cross_val_score(model, *DIGITS, cv=3).mean(), abs=1e-12)
    assert results["mean_test_score"].tolist() == [list(trial.curve.values())[-1] for trial in search.optimizer_.trials]
    refitted = Epochs(search.best_params_[f"{prefix}alpha"], 4, scale).fit(*DIGITS)
    assert search.predict(DIGITS[0]).tolist() == refitted.predict(DIGITS[0]).tolist()


def test_a_network_grows_by_epochs():
    model = MLPClassifier((8,), random_state=0)
    search = search_of(model, {"learning_rate_init": (1e-3, 0.1)}, resource="epochs", n_iter=3).fit(X, Y)
    assert len(search.best_estimator_.loss_curve_) == 8


def test_epochs_without_a_target():
    space = {"n_clusters": (2, 6)}
    search = search_of(MiniBatchKMeans(random_state=0), space, resource="epochs", cv=KFold(2), n_iter=2).fit(X)
    assert np.isfinite(search.best_score_)


# Stopped candidates, and the best candidate.


def test_stopped_candidates_have_the_scores_of_their_resource_and_are_never_the_best():
    def score(estimator, X, y):
        # Candidates that are stopped later have lower scores.
        return estimator.learning_rate - estimator.n_estimators

    search = search_of(scoring=score, n_iter=12).fit(X, Y)
    n_resources, trials = search.cv_results_["n_resources"], search.optimizer_.trials
    stopped = n_resources < 8
    assert 0 < stopped.sum() < 12
    assert [trial.state == "stopped" for trial in trials] == stopped.tolist()
    assert [len(trial.curve) for trial in trials] == n_resources.tolist()
    rates = search.cv_results_["param_learning_rate"].astype(float)
    assert search.cv_results_["mean_test_score"] == pytest.approx(rates - n_resources)
    assert search.cv_results_["rank_test_score"][search.best_index_] > 1
    assert search.best_params_ == {"learning_rate": rates[~stopped].max(), "n_estimators": 8}
    assert search.best_params_["learning_rate"] == search.optimizer_.best_params_["learning_rate"]
    assert search.best_score_ == pytest.approx(search.optimizer_.best_value_)


def test_the_best_candidate_is_fitted_to_all_data():
    search = search_of().fit(*DIGITS)
    expected = clone(BOOSTING).set_params(**search.best_params_).fit(*DIGITS)
    assert search.best_params_["n_estimators"] == search.best_estimator_.n_estimators_ == 8
    assert not search.best_estimator_.warm_start
    assert (search.predict_proba(DIGITS[0]) == expected.predict_proba(DIGITS[0])).all()


@pytest.mark.parametrize("model, resource", [(BOOSTING, "n_estimators"), (SGD, "epochs")])
def test_a_function_as_refit_may_choose_a_stopped_candidate(model, resource):
    space = RATES if model is BOOSTING else ALPHAS
    search = search_of(model, space, resource=resource, refit=lambda results: results["n_resources"].argmin())
    search.fit(*DIGITS)
    amount = search.cv_results_["n_resources"][search.best_index_]
    assert amount < 8
    done = search.best_estimator_.n_estimators_ if model is BOOSTING else (search.best_estimator_.t_ - 1) / 200
    assert done == amount


def test_the_default_rule_uses_the_model():
    search = search_of(SGD, ALPHAS, resource="epochs", optimizer=None, max_resource=10, n_iter=15)
    search.fit(*DIGITS)
    assert search.optimizer_.get_params()["curve"] == bl.Curve(10)
    assert isinstance(search.optimizer_, bl.BayesOpt)
    assert any(trial.state == "stopped" for trial in search.optimizer_.trials)


def test_the_steps():
    def steps(**settings):
        search = search_of(SGD, ALPHAS, resource="epochs", n_iter=1, cv=2, **settings).fit(X, Y)
        return search.cv_results_["n_resources"].tolist(), len(search.optimizer_.trials[0].curve)

    assert steps(max_resource=45, min_resource=None) == ([45], 15)
    assert steps(max_resource=7, min_resource=3) == ([7], 3)
    assert steps(max_resource=4, min_resource=4) == ([4], 1)


def test_several_metrics():
    def two_scores(estimator, X, y):
        predicted = estimator.predict(X)
        return {"a": accuracy_score(y, predicted), "f": f1_score(y, predicted)}

    for scoring, metric in [({"a": "accuracy", "f": "f1"}, "f"), (two_scores, "f")]:
        search = search_of(scoring=scoring, refit=metric, n_iter=4).fit(X, Y)
        scores = search.cv_results_[f"mean_test_{metric}"]
        assert [list(trial.curve.values())[-1] for trial in search.optimizer_.trials] == scores.tolist()
        assert search.best_score_ == scores[search.cv_results_["n_resources"] == 8].max()
    with pytest.raises(bl.errors.InvalidSetting, match="refit=False does not name the metric"):
        search_of(scoring=two_scores, refit=False).fit(X, Y)
    for settings in ({"refit": False}, {"refit": "f1", "objective": ["accuracy", "f1"]}):
        with pytest.raises(bl.errors.InvalidSetting, match="resource='n_estimators' needs one metric"):
            search_of(scoring=["accuracy", "f1"], **settings).fit(X, Y)


# Workers.


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_several_workers_give_the_scores_of_one_worker(backend):
    # Without a rule, the candidates do not depend on the order of results.
    for resource, model, space in [("n_estimators", BOOSTING, RATES), ("epochs", SGD, ALPHAS)]:
        arguments = {"resource": resource, "optimizer": bl.RandomSearch, "n_iter": 5}
        expected = search_of(model, space, **arguments).fit(X, Y)
        with joblib.parallel_config(backend=backend):
            search = search_of(model, space, n_jobs=2, **arguments).fit(X, Y)
        assert columns_without_times(search.cv_results_) == columns_without_times(expected.cv_results_)
        curves = [[trial.curve for trial in each.optimizer_.trials] for each in (search, expected)]
        assert curves[0] == curves[1]


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_workers_stop_candidates(backend):
    with joblib.parallel_config(backend=backend):
        search = search_of(n_jobs=2, n_iter=12).fit(*DIGITS)
    assert "stopped" in {trial.state for trial in search.optimizer_.trials}
    assert search.cv_results_["n_resources"][search.best_index_] == 8


def test_a_backend_without_reports_is_refused():
    refused = pytest.raises(bl.errors.InvalidSetting, match="MultiprocessingBackend, whose workers cannot report")
    with joblib.parallel_config(backend="multiprocessing"), refused:
        search_of(n_jobs=2).fit(X, Y)


# Fits that fail.


class Fragile(SGDClassifier):
    """A classifier whose third call of partial_fit fails if alpha is high."""

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        self.calls_ = getattr(self, "calls_", 0) + 1
        if self.calls_ == 3 and self.alpha > 1e-2:
            raise RuntimeError("overflow")
        return super().partial_fit(X, y, classes, sample_weight)


def test_a_candidate_fails_at_the_step_at_which_a_fit_fails():
    search = search_of(Fragile(random_state=0), ALPHAS, resource="epochs", optimizer=bl.RandomSearch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, Y)
    failed = [params["alpha"] > 1e-2 for params in search.cv_results_["params"]]
    assert 0 < sum(failed) < 8
    assert search.cv_results_["n_resources"].tolist() == [3 if each else 8 for each in failed]
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == failed
    assert [trial.state == "failed" for trial in search.optimizer_.trials] == failed
    assert {len(trial.curve) for trial in search.optimizer_.trials if trial.state == "failed"} == {2}
    assert next(trial.error for trial in search.optimizer_.trials if trial.error).message.endswith("overflow")


def test_a_number_as_error_score_is_a_value():
    settings = {"resource": "epochs", "optimizer": bl.RandomSearch, "error_score": -1.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = search_of(Fragile(random_state=0), ALPHAS, **settings).fit(X, Y)
    failed = [params["alpha"] > 1e-2 for params in search.cv_results_["params"]]
    assert [value == -1.0 for value in search.cv_results_["mean_test_score"]] == failed
    assert search.cv_results_["n_resources"].tolist() == [8] * 8
    with pytest.raises(RuntimeError, match="overflow"):
        search_of(Fragile(), ALPHAS, **settings | {"error_score": "raise"}).fit(X, Y)


def test_a_search_without_a_complete_candidate_is_an_error():
    class Stopped(bl.RandomSearch):
        def should_stop(self, trial):
            self.stop(trial)
            return True

    with pytest.raises(ValueError, match="no candidate reached max_resource=8 of 'n_estimators'"):
        search_of(optimizer=Stopped).fit(X, Y)


# Other features of scikit-learn's searches.


def test_weights_are_passed_on():
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(Y))
    found = [
        search_of(n_iter=3).fit(X, Y, sample_weight=weights),
        search_of(
            make_pipeline(BOOSTING),
            {"gradientboostingclassifier__learning_rate": RATES["learning_rate"]},
            resource="gradientboostingclassifier__n_estimators",
            n_iter=3,
        ).fit(X, Y, gradientboostingclassifier__sample_weight=weights),
    ]
    for search in found:
        grid = [{name: [value] for name, value in params.items()} for params in search.cv_results_["params"]]
        name = "" if search is found[0] else "gradientboostingclassifier__"
        expected = GridSearchCV(search.estimator, grid, cv=3).fit(X, Y, **{f"{name}sample_weight": weights})
        assert search.cv_results_["mean_test_score"].tolist() == expected.cv_results_["mean_test_score"].tolist()


def test_weights_that_no_step_takes_are_refused():
    weights = np.ones(len(Y))
    arguments = {"resource": "model__epochs", "n_iter": 1, "error_score": "raise"}
    search = search_of(Pipeline([("model", SGD)]), {"model__alpha": ALPHAS["alpha"]}, **arguments)
    with pytest.raises(ValueError, match="no step of the pipeline takes sample_weight: write model__NAME"):
        search.fit(X, Y, sample_weight=weights)
    if parse_version(sklearn.__version__) >= parse_version("1.5"):
        refused = pytest.raises(
            bl.errors.InvalidSetting, match="does not work with metadata routing of \\['sample_weight'\\]"
        )
        with sklearn.config_context(enable_metadata_routing=True), refused:
            model = clone(SGD).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
            search.set_params(estimator=Pipeline([("model", model)])).fit(X, Y, sample_weight=weights)


def test_a_search_can_be_cloned_changed_and_pickled():
    search = search_of(n_iter=3)
    assert search.get_params()["max_resource"] == 8
    other = clone(search).set_params(max_resource=4, min_resource=2).fit(X, Y)
    assert other.best_params_["n_estimators"] == 4
    loaded = pickle.loads(pickle.dumps(other))
    assert loaded.predict(X).tolist() == other.predict(X).tolist()
    assert loaded.optimizer_.trials[0].curve == other.optimizer_.trials[0].curve


def test_a_pipeline_with_memory(tmp_path):
    estimator = Pipeline([("reduce", PCA(5, random_state=0)), ("model", SGD)], memory=str(tmp_path))
    found = [
        search_of(each, {"model__alpha": ALPHAS["alpha"]}, resource="model__epochs", n_iter=3).fit(X, Y)
        for each in (estimator, clone(estimator).set_params(memory=None))
    ]
    assert columns_without_times(found[0].cv_results_) == columns_without_times(found[1].cv_results_)


def test_a_study_has_the_curves(tmp_path):
    def study(space, seed, curve):
        return bl.Study("boosting", tmp_path / "searches.db", bl.RandomSearch(space, curve=curve, seed=0))

    first, second = [search_of(optimizer=study, n_iter=2, n_jobs=2).fit(X, Y) for _ in range(2)]
    assert [len(trial.curve) for trial in second.optimizer_.trials] == [8] * 4
    assert first.best_params_["n_estimators"] == 8


@pytest.mark.parametrize(
    "estimator, settings, message",
    [
        (BOOSTING, {"resource": 3}, "resource=3 is not usable"),
        (BOOSTING, {"resource": "stages"}, "resource='stages' .* no parameter 'stages'"),
        (BOOSTING, {"resource": "epochs"}, "it has no partial_fit"),
        (BOOSTING, {"max_resource": None}, "max_resource=None is not usable: pass an integer >= 1"),
        (BOOSTING, {"min_resource": 0}, "min_resource=0 is not usable"),
        (BOOSTING, {"min_resource": 9}, "min_resource=9 is above max_resource=8"),
        (BOOSTING, {"resource": None, "min_resource": None}, "max_resource=8 needs a resource"),
        (BOOSTING, {"space": {"n_estimators": (1, 9)}}, "resource='n_estimators' is a parameter of the space"),
        (AdaBoostClassifier(), {}, "it has no warm_start, so each step would fit all stages again"),
        (SVC(), {"resource": "max_iter"}, "it has no warm_start"),
        (SGD, {"resource": "max_iter"}, "runs max_iter further iterations; pass resource='epochs'"),
        (LogisticRegression(), {"resource": "max_iter"}, "further iterations; leave resource out"),
        (MLPClassifier(solver="lbfgs"), {"resource": "epochs"}, "it has no partial_fit"),
        (in_pipeline(SGD), {"resource": "model__max_iter"}, "pass resource='model__epochs'"),
        (in_pipeline(SGD), {"resource": "epochs"}, "pass 'model__' and the resource of this step"),
        (in_pipeline(SGD), {"resource": "reduce__n_components"}, "does not belong to the last step"),
        (OneVsRestClassifier(BOOSTING), {"resource": "estimator__n_estimators"}, "inside OneVsRestClassifier"),
        (BOOSTING, {"optimizer": lambda space, seed, curve: bl.BayesOpt(space)}, "optimizer has curve=None"),
        (BOOSTING, {"optimizer": bl.TreeSearch}, "TreeSearch does not support curves"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(estimator, settings, message):
    with pytest.raises(bl.errors.InvalidSetting, match=message):
        search_of(estimator, **settings).fit(X, Y)


def test_a_model_without_the_resource_among_the_choices_is_refused():
    space = {"model": [BOOSTING, AdaBoostClassifier()]}
    with pytest.raises(bl.errors.InvalidSetting, match="does not work with AdaBoostClassifier"):
        search_of(in_pipeline(BOOSTING), space, resource="model__n_estimators", max_resource=2).fit(X, Y)
