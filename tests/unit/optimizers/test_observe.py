"""The values, trials and standard deviations that `observe` accepts and refuses."""

import math
import pickle
from decimal import Decimal

import numpy as np
import pytest

import belated as bl
from tests.unit.optimizers.problem import BOX, both


@both
@pytest.mark.parametrize(
    "value", [1.5, 2, np.float32(1.5), np.int64(2), np.array(1.5), Decimal("1.5"), -0.0, 1e308, -5e-324]
)
def test_numbers_of_any_type_are_values(kind, value):
    opt = kind(BOX, seed=0)
    trial = opt.suggest()
    trial.observe(value)
    assert trial.value == float(value) and isinstance(trial.value, float)


@both
@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, 1j, np.complex128(1), "1", b"1", True, np.bool_(True), None, [1.0], (1.0, 2.0)]
    + [np.ma.masked, np.ma.array(1.0, mask=True)]
    + [np.array([1.0]), np.zeros((1, 1)), np.array("1"), {}, 10**400, Decimal("NaN"), np.timedelta64(1, "s")],
)
def test_unusable_values_are_refused(kind, value):
    opt = kind(BOX, seed=0)
    trial = opt.suggest()
    with pytest.raises(bl.errors.InvalidValue, match="trial 0"):
        opt.observe(trial, value)
    assert trial.state == "pending" and trial.value is None and opt.pending == [trial]
    trial.observe(1.0)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_second_value_needs_amend_or_replicate(direction):
    opt = bl.RandomSearch(BOX, direction=direction, seed=0)
    trial = opt.suggest()
    trial.observe(1.5)
    trial.observe(1.5)
    message = r"trial 0 has the value 1\.5 already.*amend=True.*replicate=True to keep both$"
    with pytest.raises(bl.errors.AlreadyObserved, match=message):
        trial.observe(2.5)
    for report in (trial.fail, trial.abandon):
        with pytest.raises(bl.errors.AlreadyObserved, match=r"trial 0 has the value 1\.5"):
            report()
    assert trial.value == 1.5
    trial.observe(2.5, amend=True)
    assert trial.value == opt.best_value_ == 2.5


@both
def test_amend_and_replicate_are_keyword_only(kind):
    opt = kind(BOX, seed=0)
    trial = opt.suggest()
    for report in (lambda: opt.observe(trial, 1.0, True), lambda: trial.observe(1.0, True)):
        with pytest.raises(TypeError):
            report()
    assert trial.state == "pending"


@both
def test_unknown_trials_are_refused(kind):
    opt, other = kind(BOX, seed=0), kind(BOX, seed=0)
    opt.suggest()
    foreign = other.suggest()
    for trial in (foreign, 1, -1, 2**70, 0.0, "0", None, True):
        for report in (lambda trial: opt.observe(trial, 1.0), opt.fail, opt.abandon):
            with pytest.raises(bl.errors.UnknownTrial):
                report(trial)
    with pytest.raises(KeyError):
        opt.trial(5)
    assert opt.trial(0).state == "pending"


def test_trials_of_a_diverged_copy_are_foreign():
    opt = bl.RandomSearch(BOX, seed=0)
    away = pickle.loads(pickle.dumps(opt))
    away.enqueue({"x": 0.125, "n": 2})
    foreign = away.suggest()
    with pytest.raises(bl.errors.UnknownTrial):
        opt.observe(foreign, 1.0)
    opt.suggest()
    with pytest.raises(bl.errors.UnknownTrial):
        opt.observe(foreign, 1.0)


@pytest.mark.parametrize("std", [-1.0, math.inf, "0.1", 1j, [0.1, 0.2]])
def test_unusable_stds_are_refused(std):
    opt = bl.BayesOpt({"x": (0.0, 1.0)}, seed=0)
    trial = opt.suggest()
    for report in (lambda: opt.observe(trial, 1.0, std=std), lambda: opt.add([{"x": 0.5}] * 3, [1.0] * 3, std=std)):
        with pytest.raises(bl.errors.InvalidValue, match="std"):
            report()
        assert opt.n_trials == 1 and trial.state == "pending"


def test_a_std_is_replaced_with_its_value():
    opt = bl.BayesOpt({"x": (0.0, 1.0)}, seed=0)
    trial = opt.suggest()
    trial.observe(1.0, std=0.25)
    trial.observe(1.0)
    trial.observe(1.0, std=0.25)
    assert trial.std == 0.25 and "std=0.25" in repr(trial)
    with pytest.raises(bl.errors.AlreadyObserved):
        trial.observe(1.0, std=0.5)
    trial.observe(1.0, amend=True, std=0.5)
    assert trial.std == 0.5
    trial.observe(2.0, amend=True)
    assert trial.std is None
    added = opt.add([{"x": 0.1}, {"x": 0.2}, {"x": 0.3}], [1.0, None, 2.0], std=[0.1, 0.2, None])
    assert [trial.std for trial in added] == [0.1, None, None]


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_model_weights_values_by_their_std(direction):
    opt = bl.BayesOpt({"x": (0.0, 1.0)}, initial=0, surrogate=bl.GP(refit_every=1), seed=0, direction=direction)
    x = np.linspace(0, 1, 12)
    opt.add([{"x": v} for v in x], np.sin(6 * x), std=0.01)
    opt.add({"x": 0.5}, 8.0, std=50.0)
    opt.suggest()
    mean, std = opt.predict([{"x": 0.5}])
    assert abs(mean[0] - np.sin(3.0)) < 0.1 and std[0] < 0.1
    opt.observe(12, 8.0, amend=True, std=0.01)
    opt.add({"x": 0.97}, np.sin(6 * 0.97), std=0.01)
    opt.suggest()  # this suggestion fits again, because the earlier model is too smooth for the data
    assert abs(opt.predict([{"x": 0.5}])[0][0] - 8.0) < 0.5
