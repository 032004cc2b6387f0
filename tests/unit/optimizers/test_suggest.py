"""`suggest` returns the requested number of points of the domain, determined by the seed, for both directions and
clocks."""

import math
import warnings

import numpy as np
import pytest

import belated as bl
from tests.unit.optimizers.problem import BOX, both, run


@both
def test_suggest_returns_one_trial_or_a_list(kind):
    opt = kind(BOX, seed=0)
    assert isinstance(opt.suggest(), bl.Trial)
    assert [trial.number for trial in opt.suggest(n=2)] == [1, 2]
    assert [trial.number for trial in opt.suggest(n=np.int64(1))] == [3]
    assert opt.suggest(n=0) == [] and opt.n_trials == 4
    for n in (-1, 1.5, "2", True, [1]):
        with pytest.raises(bl.errors.InvalidSetting, match="^n="):
            opt.suggest(n=n)
    assert opt.n_trials == 4


@both
def test_a_seed_determines_all_suggestions(kind):
    assert run(kind(BOX, seed=3), 15) == run(kind(BOX, seed=3), 15)
    assert run(kind(BOX, seed=3), 15) != run(kind(BOX, seed=4), 15)
    unseeded = kind(BOX)
    assert run(unseeded, 15) == run(kind(BOX, seed=unseeded.seed_), 15)
    assert unseeded.seed is None


@pytest.mark.parametrize(
    "arguments",
    [
        ({}, {}),
        ({"acquisition": "ucb", "pending": bl.Censor(-2.0)}, {"acquisition": "ucb", "pending": bl.Censor(2.0)}),
        ({"surrogate": bl.GP(mean=0.5)}, {"surrogate": bl.GP(mean=-0.5)}),
        ({"pending": bl.Liar(0.5)}, {"pending": bl.Liar(-0.5)}),
        ({"pending": bl.Liar("min")}, {"pending": bl.Liar("max")}),
        ({"pending": bl.Liar("max")}, {"pending": bl.Liar("min")}),
        ({"pending": bl.Liar("mean")}, {"pending": bl.Liar("mean")}),
        ({"surrogate": bl.GP(mean="median")}, {"surrogate": bl.GP(mean="median")}),
        ({"acquisition": "ucb", "pending": bl.Censor()}, {"acquisition": "ucb", "pending": bl.Censor()}),
        ({"acquisition": "thompson"}, {"acquisition": "thompson"}),
    ],
    ids=str,
)
def test_minimizing_mirrors_maximizing(arguments):
    upwards, mirrored = arguments
    up = bl.BayesOpt(BOX, seed=5, **upwards)
    down = bl.BayesOpt(BOX, direction="minimize", seed=5, **mirrored)
    assert run(up, 20) == run(down, 20, sign=-1.0)
    assert up.best_value_ == -down.best_value_ and up.best_params_ == down.best_params_
    assert up.recommend() == down.recommend()
    points = [{"x": 0.0, "n": 1}, {"x": 0.9, "n": 8}]
    (mean, std), (mirror, same) = up.predict(points), down.predict(points)
    assert (mean == -mirror).all() and (std == same).all()
    assert down.get_params(deep=False) == up.get_params(deep=False) | mirrored | {"direction": "minimize"}


def test_the_clock_in_seconds_is_read():
    times = iter([0.0, 1.0, 4.0, 9.0, 9.5])
    opt = bl.RandomSearch(BOX, clock="seconds", time=lambda: next(times), seed=0)
    first, second = opt.suggest(), opt.suggest()
    first.observe(1.0)
    second.observe(1.0)
    assert [trial.delay for trial in opt.trials] == [4.0, 8.0]
    assert bl.RandomSearch(BOX, clock="seconds").suggest().suggested_at > 1e9
    for answer in (math.nan, None, "now"):
        opt = bl.RandomSearch(BOX, clock="seconds", time=lambda answer=answer: answer)
        with pytest.raises(bl.errors.InvalidSetting, match="time"):
            opt.suggest()


def test_a_warning_raised_as_an_error_does_not_start_a_trial():
    optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, initial=2, surrogate=bl.GP(targets="raw"), seed=0)
    for trial in optimizer.suggest(4):
        trial.observe(1.7e308 * (-1) ** trial.number)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(bl.BelatedWarning, match="overflow"):
            optimizer.suggest()
    assert not optimizer.pending
    with pytest.warns(bl.BelatedWarning, match="overflow"):
        assert optimizer.suggest().state == "pending"
