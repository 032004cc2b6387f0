"""The callbacks of XGBoost and LightGBM: each boosting round is a step of the curve, and a stop ends the training."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import belated as bl

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

ROUNDS = 12


def problem():
    """Return noisy data of two classes: inputs and classes for the training, and for the validation."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(400, 4))
    classes = (inputs[:, 0] * inputs[:, 1] + 0.3 * rng.normal(size=400) > 0).astype(int)
    return inputs[:200], classes[:200], inputs[200:], classes[200:]


class XGBoost:
    """Each method trains, and returns the library's own record of a metric and the number of rounds of the model."""

    name = "xgboost"
    by_train, by_estimator, by_cv = "validation", "validation_0", "test"

    def __init__(self):
        self.library = pytest.importorskip("xgboost", reason="XGBoost is not installed")
        from belated.integrations.xgboost import ReportCallback

        self.callback = ReportCallback
        inputs, classes, *self.validation = self.data = problem()
        self.training = self.library.DMatrix(inputs, classes)

    def train(
        self, metric, *callbacks, eta=0.3, rounds=ROUNDS, before=None, evaluates=True, custom=None, patience=None
    ):
        found = {}
        model = self.library.train(
            {"eta": eta, "objective": "binary:logistic", "eval_metric": metric, "nthread": 1},
            self.training,
            num_boost_round=rounds,
            evals=[(self.library.DMatrix(*self.validation), "validation")] if evaluates else [],
            evals_result=found,
            verbose_eval=False,
            callbacks=list(callbacks),
            xgb_model=before,
            custom_metric=None if custom is None else lambda scores, data: custom,
            early_stopping_rounds=patience,
        )
        self.model = model
        return found["validation"][metric] if evaluates else [], model.num_boosted_rounds()

    def estimator(self, metric, *callbacks):
        model = self.library.XGBClassifier(n_estimators=ROUNDS, eval_metric=metric, n_jobs=1, callbacks=list(callbacks))
        inputs, classes, *validation = self.data
        model.fit(inputs, classes, eval_set=[validation], verbose=False)
        return model.evals_result()["validation_0"][metric], model.get_booster().num_boosted_rounds()

    def cv(self, metric, *callbacks):
        settings = {"objective": "binary:logistic", "eval_metric": metric, "nthread": 1}
        found = self.library.cv(settings, self.training, ROUNDS, nfold=3, as_pandas=False, callbacks=list(callbacks))
        return found[f"test-{metric}-mean"], len(found[f"test-{metric}-mean"])

    def calling(self, f):
        """Return a callback that calls f with the number of each round before the round is reported."""

        class Callback(self.library.callback.TrainingCallback):
            # Some versions of XGBoost call the callbacks of after_iteration in any order.
            def before_iteration(self, model, epoch, evals_log):
                f(epoch + 1)
                return False

        return Callback()


class LightGBM:
    """See `XGBoost`."""

    name = "lightgbm"
    by_train, by_estimator, by_cv = "valid_0", "valid_0", "valid"

    def __init__(self):
        self.library = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
        from belated.integrations.lightgbm import ReportCallback

        self.callback = ReportCallback
        inputs, classes, *self.validation = self.data = problem()
        self.training = self.library.Dataset(inputs, classes, free_raw_data=False)

    def train(
        self, metric, *callbacks, eta=0.3, rounds=ROUNDS, before=None, evaluates=True, custom=None, patience=None
    ):
        found = {}
        metric = {"logloss": "binary_logloss"}.get(metric, metric)
        model = self.library.train(
            {"learning_rate": eta, "objective": "binary", "metric": metric, "num_threads": 1, "verbosity": -1}
            | ({} if patience is None else {"early_stopping_round": patience}),
            self.training,
            num_boost_round=rounds,
            valid_sets=[self.library.Dataset(*self.validation, reference=self.training)] if evaluates else [],
            callbacks=[*callbacks, self.library.record_evaluation(found)],
            init_model=before,
            feval=None if custom is None else lambda scores, data: (*custom, True),
        )
        self.model = model
        return found["valid_0"][metric] if evaluates else [], model.current_iteration()

    def estimator(self, metric, *callbacks):
        model = self.library.LGBMClassifier(n_estimators=ROUNDS, n_jobs=1, verbosity=-1)
        inputs, classes, *validation = self.data
        model.fit(inputs, classes, eval_set=[validation], eval_metric=metric, callbacks=list(callbacks))
        return model.evals_result_["valid_0"][metric], model.booster_.current_iteration()

    def cv(self, metric, *callbacks):
        settings = {"objective": "binary", "metric": metric, "num_threads": 1, "verbosity": -1}
        found = self.library.cv(settings, self.training, ROUNDS, nfold=3, callbacks=list(callbacks))
        return found[f"valid {metric}-mean"], len(found[f"valid {metric}-mean"])

    def calling(self, f):
        def callback(env):
            f(env.iteration + 1)

        return callback


@pytest.fixture(params=[XGBoost, LightGBM], ids=lambda kind: kind.name)
def boosting(request):
    return request.param()


def trial_of(steps=ROUNDS, **arguments):
    return bl.RandomSearch({"eta": (0.0, 1.0)}, curve=bl.Curve(steps), seed=0, **arguments).suggest()


@pytest.mark.filterwarnings("ignore:.*'eval_set' is deprecated")
@pytest.mark.parametrize("way", ["train", "estimator", "cv"])
def test_the_curve_is_the_record_of_the_library(boosting, way):
    trial = trial_of()
    data = getattr(boosting, f"by_{way}")
    recorded, n_rounds = getattr(boosting, way)("auc", boosting.callback(trial, f"{data}-auc"))
    assert n_rounds == ROUNDS
    assert trial.curve == dict(enumerate(recorded, 1))


@pytest.mark.filterwarnings("ignore:.*'eval_set' is deprecated")
@pytest.mark.parametrize("way", ["train", "estimator", "cv"])
def test_a_stop_ends_the_training(boosting, way):
    trial = trial_of()
    stop = boosting.calling(lambda step: trial.stop() if step == 5 else None)
    data = getattr(boosting, f"by_{way}")
    recorded, n_rounds = getattr(boosting, way)("auc", stop, boosting.callback(trial, f"{data}-auc"))
    assert n_rounds == len(recorded) == 5
    # The library's record has the last round, too.
    assert trial.curve == dict(enumerate(recorded, 1))


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_direction_of_the_optimizer_decides_which_trial_is_stopped(boosting, direction):
    optimizer = bl.RandomSearch(
        {"eta": (0.0, 1.0)}, curve=bl.Curve(ROUNDS), stopping=bl.ASHA(), direction=direction, seed=0
    )
    for eta in (0.3, 1e-6):
        optimizer.enqueue({"eta": eta})
    metric = "logloss"
    name = {"xgboost": "validation-logloss", "lightgbm": "valid_0-binary_logloss"}[boosting.name]

    def train(params, trial):
        recorded, _ = boosting.train(metric, boosting.callback(trial, name), eta=params["eta"])
        return recorded[-1]

    if direction == "minimize":
        result = bl.minimize(train, optimizer=optimizer, n_trials=2)
        fast, slow = result.trials
        assert (fast.state, slow.state) == ("observed", "stopped")
        assert (len(fast.curve), len(slow.curve)) == (ROUNDS, 1)
    else:
        # The first trial has the smaller loss, so it is worse than the second trial at each rung.
        result = bl.maximize(train, optimizer=optimizer, n_trials=2)
        assert [len(trial.curve) for trial in result.trials] == [ROUNDS, ROUNDS]
        assert result.best_params_["eta"] == 1e-6


def test_a_metric_that_is_not_evaluated_is_an_error_with_the_evaluated_metrics(boosting):
    message = f"'{boosting.by_train}-AUC' is not evaluated.*'{boosting.by_train}-auc'"
    with pytest.raises(bl.errors.InvalidSetting, match=message):
        boosting.train("auc", boosting.callback(trial_of(), f"{boosting.by_train}-AUC"))
    with pytest.raises(bl.errors.InvalidSetting, match="pass data for the evaluation"):
        boosting.train("auc", boosting.callback(trial_of(), "validation-auc"), evaluates=False)


@pytest.mark.parametrize("trial", [None, SimpleNamespace(report=print, should_prune=bool)], ids=["none", "other"])
def test_an_object_that_is_not_a_trial_is_an_error(boosting, trial):
    with pytest.raises(bl.errors.InvalidSetting, match="^trial="):
        boosting.callback(trial, "validation-auc")


def test_a_metric_that_is_not_a_name_is_an_error(boosting):
    with pytest.raises(bl.errors.InvalidSetting, match="^metric=None"):
        boosting.callback(trial_of(), None)


def test_a_value_that_is_not_finite_is_a_step_that_failed(boosting):
    trial = trial_of(3)
    callback = boosting.callback(trial, f"{boosting.by_train}-own")
    boosting.train("auc", callback, rounds=3, custom=("own", math.inf))
    assert list(trial.curve) == [1, 2, 3]
    assert all(map(math.isnan, trial.curve.values()))


def test_more_rounds_than_steps_are_an_error(boosting):
    with pytest.raises(bl.errors.InvalidValue, match="step=4"):
        boosting.train("auc", boosting.callback(trial_of(3), f"{boosting.by_train}-auc"))


def test_a_training_that_continues_continues_the_curve(boosting):
    trial = trial_of()
    first, _ = boosting.train("auc", boosting.callback(trial, f"{boosting.by_train}-auc"), rounds=7)
    second, _ = boosting.train(
        "auc", boosting.callback(trial, f"{boosting.by_train}-auc"), rounds=ROUNDS - 7, before=boosting.model
    )
    assert trial.curve == dict(enumerate(first + second, 1))


@pytest.mark.parametrize("rounds", [ROUNDS, 300])
def test_early_stopping_of_the_library_has_the_same_effect_as_without_reports(boosting, rounds):
    trial = trial_of(300)
    recorded, n_rounds = boosting.train(
        "auc", boosting.callback(trial, f"{boosting.by_train}-auc"), rounds=rounds, patience=ROUNDS
    )
    best = boosting.model.best_iteration
    assert (recorded, n_rounds) == boosting.train("auc", rounds=rounds, patience=ROUNDS)
    assert best == boosting.model.best_iteration
    assert (len(recorded) < rounds) == (rounds == 300)
    assert trial.curve == dict(enumerate(recorded, 1))
