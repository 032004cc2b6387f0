"""`predict` and `recommend` before the first suggestion that fits, and that they leave nothing behind."""

import pickle

import numpy as np
import pytest

import belated as bl


def with_data(**settings):
    opt = bl.BayesOpt({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=4, **settings)
    rng = np.random.default_rng(0)
    for x, y in rng.random((12, 2)):
        opt.add({"x": x, "y": y}, float(-((x - 0.3) ** 2) - (y - 0.8) ** 2))
    return opt


def test_predict_fits_after_add_alone():
    opt = with_data()
    points = [{"x": trial.params["x"], "y": trial.params["y"]} for trial in opt.trials]
    mean, std = opt.predict(points)
    assert np.abs(mean - [trial.value for trial in opt.trials]).max() < 0.02
    assert (std > 0).all() and std.max() < 0.1
    best = opt.recommend()
    assert abs(best["x"] - 0.3) < 0.15 and abs(best["y"] - 0.8) < 0.15


def test_without_values_there_is_nothing_to_predict():
    opt = bl.BayesOpt({"x": (0.0, 1.0)}, seed=0)
    opt.suggest(3)
    with pytest.raises(bl.NotFitted):
        opt.predict([{"x": 0.5}])
    with pytest.raises(bl.NotFitted):
        opt.recommend()


@pytest.mark.parametrize("window", [None, 3.0])
def test_predictions_change_nothing_that_follows(window):
    plain, watched = with_data(window=window), with_data(window=window)
    for _ in range(4):
        watched.predict([{"x": 0.5, "y": 0.5}])
        watched.recommend()
        watched.predict([{"x": 0.5, "y": 0.5}], pending=True)
        one, other = plain.suggest(), watched.suggest()
        assert one.params == other.params
        if one.number % 2:
            one.observe(0.1)
            other.observe(0.1)
    assert plain._log.to_bytes() == watched._log.to_bytes()


def test_recommend_on_candidates_is_the_largest_mean():
    x = np.random.default_rng(2).random((60, 2))
    opt = bl.BayesOpt(candidates=x, seed=0)
    for trial in opt.suggest(15):
        trial.observe(float(-((trial.x - 0.5) ** 2).sum()))
    opt.suggest()
    mean, _ = opt.predict()
    assert np.array_equal(opt.recommend(), x[mean.argmax()])


def test_a_copy_made_after_a_prediction_goes_on_alike():
    opt = with_data()
    opt.predict([{"x": 0.5, "y": 0.5}])
    copy = pickle.loads(pickle.dumps(opt))
    assert opt.suggest().params == copy.suggest().params
