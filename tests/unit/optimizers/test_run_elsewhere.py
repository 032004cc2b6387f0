"""`observe(params=)` reports that a trial was run at a point other than the suggested point. The model uses the point
that was run."""

import pickle

import numpy as np
import pytest

import belated as bl
from tests.unit.optimizers.problem import BOX, ROWS, both

GRID = [{"x": x, "n": n} for x in np.linspace(-1, 1, 7) for n in (1, 4, 8)]
# θ is given, so results do not depend on the moment of a fit.
GIVEN = {"surrogate": bl.GP(lengthscale=0.4, signal_std=1.0, noise_std=0.1), "initial": 0}
ELSEWHERE = {"x": -0.25, "n": 3}


def bits(opt, pending=False):
    return np.array(opt.predict(GRID, pending=pending)).tobytes()


def pair(**arguments):
    """Return two optimizers with the same observed values."""
    twins = [bl.BayesOpt(BOX, seed=3, **GIVEN, **arguments) for _ in range(2)]
    for opt in twins:
        opt.add(GRID[:3], [0.1, 0.4, -0.2])
    return twins


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("before", ["pending", "failed", "abandoned"])
def test_the_model_has_the_value_at_the_point_where_it_was_measured(direction, before):
    opt, twin = pair(direction=direction)
    trial, given_up = opt.suggest(), twin.suggest()
    given_up.abandon()
    if before != "pending":
        {"failed": trial.fail, "abandoned": trial.abandon}[before]()
        opt.suggest().abandon()  # the model uses the value
    trial.observe(2.0, params=ELSEWHERE)
    twin.add(ELSEWHERE, 2.0)
    if before == "pending":
        assert bits(opt) == bits(twin)
    # If the trial failed or was abandoned before it was observed, the two optimizers factorise the rows in different
    # orders, so their predictions may differ by rounding.
    assert np.allclose(opt.predict(GRID), twin.predict(GRID), rtol=0, atol=1e-9)
    assert trial.params == given_up.params != ELSEWHERE and trial.params_run == ELSEWHERE
    assert f"params_run={ELSEWHERE}" in repr(trial)


def test_amending_moves_the_value_and_back():
    opt, twin = pair()
    trial, same = opt.suggest(), twin.suggest()
    trial.observe(2.0)
    same.observe(2.0)
    opt.predict(GRID)  # the model is computed now, before the reports that change its data
    there = opt.predict(GRID)
    trial.observe(2.0, params=ELSEWHERE, amend=True)
    assert not np.allclose(opt.predict(GRID), there) and trial.params_run == ELSEWHERE
    trial.observe(3.0, amend=True)
    assert trial.params_run == ELSEWHERE
    trial.observe(2.0, params=trial.params, amend=True)
    assert np.allclose(opt.predict(GRID), there, rtol=0, atol=1e-9) and trial.params_run == trial.params
    # Moving the value to other points and back does not change the model, because the rows are factorised again after
    # each report.
    for k in (4, 5):
        same.observe(2.0, params=GRID[k], amend=True)
    same.observe(2.0, params=same.params, amend=True)
    assert bits(opt) == bits(twin)
    assert [opt.suggest().params for _ in range(3)] == [twin.suggest().params for _ in range(3)]


@both
def test_the_best_params_are_the_params_that_were_run(kind):
    opt = kind(BOX, seed=0)
    first, second = opt.suggest(n=2)
    second.observe(1.0)
    first.observe(2.0, params=ELSEWHERE)
    assert opt.best_trial_ == first and opt.best_params_ == ELSEWHERE and opt.trials[0].params == first.params
    if kind is bl.RandomSearch:
        assert opt.recommend() == ELSEWHERE


@both
def test_reporting_the_suggested_params_equals_omitting_them(kind):
    opt = kind(BOX, seed=0)
    for trial in opt.suggest(n=5):
        trial.observe(1.0, params=trial.params)
        assert opt._log.trial(trial.number).run is None and "params_run" not in repr(trial)
        before = pickle.dumps(opt)
        trial.observe(1.0, params=trial.params)
        assert pickle.dumps(opt) == before
    assert not any(name.startswith("params_run") for name in opt.trials_dataframe())


@both
@pytest.mark.parametrize(
    "params",
    [
        {"x": np.inf, "n": 3},
        {"x": 0.5, "n": 2.5},
        {"x": 0.5},
        {"x": 0.5, "n": 3, "m": 1},
        {"x": np.nan, "n": 3},
        3,
        "x",
        [],
        {},
    ],
)
def test_params_that_do_not_belong_are_refused(kind, params):
    opt = kind(BOX, seed=0)
    trial = opt.suggest()
    before = pickle.dumps(opt)
    with pytest.raises(bl.errors.InvalidPoint):
        trial.observe(1.0, params=params)
    assert pickle.dumps(opt) == before and trial.state == "pending"


def test_another_point_needs_amend_or_replicate():
    opt, _ = pair()
    trial = opt.suggest()
    trial.observe(2.0, params=ELSEWHERE)
    trial.observe(2.0, params=ELSEWHERE)
    trial.observe(2.0)
    before = pickle.dumps(opt)
    with pytest.raises(bl.errors.AlreadyObserved, match="params="):
        trial.observe(2.0, params={"x": 0.0, "n": 3})
    assert pickle.dumps(opt) == before
    trial.observe(5.0, replicate=True)
    assert opt.trials[-1].params == ELSEWHERE


@both
def test_candidates_by_index_or_row(kind):
    opt = kind(candidates=ROWS, seed=0)
    first, second = opt.suggest(n=2)
    others = [i for i in range(len(ROWS)) if i not in (first.index, second.index)]
    first.observe(1.0, params=others[0])
    second.observe(2.0, params=ROWS[others[1]])
    assert (first.index_run, second.index_run) == (others[0], others[1])
    assert (first.params_run == ROWS[first.index_run]).all() and (opt.best_params_ == ROWS[others[1]]).all()
    before = pickle.dumps(opt)
    third = opt.suggest()
    before = pickle.dumps(opt)
    for wrong in (len(ROWS), -1, [0.5, np.nan], [0.5] * 3, {"x": 1}):
        with pytest.raises(bl.errors.InvalidPoint):
            third.observe(1.0, params=wrong)
        assert pickle.dumps(opt) == before
    third.observe(1.0, params=third.index)
    assert opt._log.trial(third.number).run is None


def test_candidates_that_were_run_are_not_suggested_again_without_noise():
    """The point that was run has a value, and the suggested point counts as untried."""
    opt = bl.BayesOpt(candidates=ROWS, seed=0, surrogate=bl.GP(noise_std=0.0), initial=2)
    first = opt.suggest()
    ran = (first.index + 5) % len(ROWS)
    first.observe(0.5, params=ran)
    later = []
    for _ in range(len(ROWS) - 1):
        trial = opt.suggest()
        later.append(trial.index)
        trial.observe(0.1 * trial.index)
    assert sorted([*later, ran]) == list(range(len(ROWS)))


def test_a_discarded_late_value_stays_discarded_at_any_point():
    arguments = {"pending": bl.Censor(floor=-1.0, late="discard"), "window": 1}
    opt, _ = pair(**arguments)
    late = opt.suggest()
    for _ in range(3):
        opt.suggest().observe(0.3)
    late.observe(9.0, params=ELSEWHERE)
    assert late.value == 9.0 and late.params_run == ELSEWHERE
    mean, _ = opt.predict([ELSEWHERE])
    assert mean[0] < 1.0
