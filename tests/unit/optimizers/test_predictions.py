"""`predict` and `recommend` work before the first fit, at observed points and at candidates."""

import numpy as np
import pytest

import belated as bl
from tests.unit.optimizers.problem import BOX, ROWS, objective, run


def test_predict_fits_after_add_alone():
    opt = bl.BayesOpt({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=4)
    for x, y in np.random.default_rng(0).random((12, 2)):
        opt.add({"x": x, "y": y}, float(-((x - 0.3) ** 2) - (y - 0.8) ** 2))
    points = [{"x": trial.params["x"], "y": trial.params["y"]} for trial in opt.trials]
    mean, std = opt.predict(points)
    assert np.abs(mean - [trial.value for trial in opt.trials]).max() < 0.02
    assert (std > 0).all() and std.max() < 0.1
    best = opt.recommend()
    assert abs(best["x"] - 0.3) < 0.15 and abs(best["y"] - 0.8) < 0.15


def test_predict_without_values_is_refused():
    opt = bl.BayesOpt({"x": (0.0, 1.0)}, seed=0)
    opt.suggest(3)
    with pytest.raises(bl.errors.NotFitted):
        opt.predict([{"x": 0.5}])
    with pytest.raises(bl.errors.NotFitted):
        opt.recommend()


def test_recommend_on_candidates_is_the_largest_mean():
    x = np.random.default_rng(2).random((60, 2))
    opt = bl.BayesOpt(candidates=x, seed=0)
    for trial in opt.suggest(15):
        trial.observe(float(-((trial.x - 0.5) ** 2).sum()))
    opt.suggest()
    mean, _ = opt.predict()
    assert np.array_equal(opt.recommend(), x[mean.argmax()])


def test_predictions_pass_through_the_data():
    opt = bl.BayesOpt(BOX, direction="minimize", seed=0)
    for trial in opt.suggest(n=20):
        trial.observe(100.0 - 10 * objective(trial.params))
    opt.suggest()
    seen = [trial.params for trial in opt.trials[:20]]
    values = np.array([trial.value for trial in opt.trials[:20]])
    mean, std = opt.predict(seen)
    assert mean.shape == std.shape == (20,) and (std >= 0).all()
    assert mean == pytest.approx(values, abs=0.2 * values.std())
    recommended = opt.recommend()
    assert opt.predict(recommended)[0] <= mean.min() + 1e-3 * values.std()
    assert objective(recommended) >= sorted(objective(params) for params in seen)[-3]


def test_predictions_on_candidates():
    opt = bl.BayesOpt(candidates=ROWS, seed=0)
    opt.add(range(12), [-((row[0] - 4) ** 2) for row in ROWS])
    opt.suggest()
    mean, std = opt.predict()
    assert mean.shape == (12,) and int(mean.argmax()) == 4
    assert opt.recommend().tolist() == ROWS[4].tolist()
    for some in ([2, 7], ROWS[[2, 7]]):
        assert opt.predict(some)[0] == pytest.approx(mean[[2, 7]], rel=1e-9)


def test_pending_trials_in_predictions():
    opt = bl.BayesOpt(BOX, acquisition="ucb", pending="hallucinate", seed=0)
    run(opt, 25, lag=1)
    waiting = opt.add({"x": -0.9, "n": 8})
    without, with_ = (opt.predict(waiting.params, pending=pending) for pending in (False, True))
    assert with_[0] == pytest.approx(without[0], rel=1e-6, abs=1e-9)
    assert with_[1] < without[1]
