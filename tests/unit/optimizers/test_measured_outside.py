"""Values that were measured beyond a bound, between steps, or at a row that is not a candidate."""

import numpy as np
import pytest

import belated as bl
from tests.unit.optimizers.dense_posterior import DensePosterior

BOX = {"T": (20.0, 120.0), "c": (0.0, 1.0)}
# θ is given, and the posterior is computed without a warp, a trend or a change of the targets.
GIVEN = {
    "surrogate": bl.GP(kernel="matern52", lengthscale=0.3, signal_std=1.5, noise_std=0.1, mean="zero", targets="raw"),
    "initial": 0,
}


def columns(points):
    return np.array([[(p["T"] - 20) / 100, p["c"]] for p in points])


def test_the_model_has_the_value_where_it_was_measured():
    opt = bl.BayesOpt(BOX, seed=0, **GIVEN)
    added = [{"T": 50.0, "c": 0.2}, {"T": 121.0, "c": 0.5}, {"T": -30.0, "c": 1.25}]
    opt.add(added, [0.5, 2.0, -1.0])
    trial = opt.suggest()
    run = {"T": 120.2, "c": 0.5}
    trial.observe(1.0, params=run)
    dense = DensePosterior(columns([*added, run]), [0.5, 2.0, -1.0, 1.0], 0.3, 1.5**2, 0.01)
    grid = [{"T": t, "c": c} for t in (-50.0, 20.0, 119.0, 121.0, 140.0) for c in (0.0, 0.5, 1.5)]
    mean, std = opt.predict(grid)
    assert np.allclose(mean, dense.mean(columns(grid)), rtol=0, atol=1e-8)
    assert np.allclose(std**2, dense.variances(columns(grid)), rtol=0, atol=1e-8)
    assert [each.outside for each in opt.trials] == [False, True, True, True]
    assert trial.params_run == run and trial.params != run


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_best_trial_is_inside_unless_asked(direction):
    sign = 1 if direction == "maximize" else -1
    opt = bl.BayesOpt(BOX, direction=direction, seed=0)
    trial = opt.suggest()
    trial.observe(3.0 * sign, params={"T": 120.2, "c": 0.5})
    assert opt.best_trial_ is None and opt.best_params_ is None and opt.best_trial(outside=True) == trial
    inside = opt.add({"T": 119.0, "c": 0.5}, 1.0 * sign)
    assert opt.best_trial_ == opt.best_trial() == inside and opt.best_trial(outside=True) == trial
    assert opt.recommend().keys() == BOX.keys() and 20 <= opt.recommend()["T"] <= 120
    # An amendment moves the trials into and out of the bounds.
    trial.observe(3.0 * sign, params={"T": 120.0, "c": 0.5}, amend=True)
    assert opt.best_trial_ == trial and not trial.outside
    trial.observe(3.0 * sign, params={"T": 120.1, "c": 0.5}, amend=True)
    assert opt.best_trial_ == inside and trial.outside
