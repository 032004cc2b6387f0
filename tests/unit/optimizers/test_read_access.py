"""Optimizers, studies and results of runs have the same attributes and methods for reading."""

import numpy as np
import pytest

import belated as bl
from belated.optimizers.read_access import ReadAccess

ROUNDS = ["round_", "rounds_", "surviving_"]
MEMBERS = [name for name in vars(ReadAccess) if not name.startswith("_")]
CALLS = {
    "acquisition_at": lambda member: member({"x": 0.5}),
    "forecast": lambda member: member(),
    "importances": lambda member: member(),
    "overdue": lambda member: member(),
    "predict": lambda member: [each.tolist() for each in member([{"x": 0.5}])],
    "predict_final": lambda member: member(0),
    "recommend": lambda member: member(),
    "trial": lambda member: member(0).params,
    "trials_dataframe": lambda member: member().to_csv(index=False),
}


def f(params):
    return (params["x"] - 0.3) ** 2


def read(owner):
    found = {}
    for name in MEMBERS:
        member = getattr(owner, name)
        found[name] = CALLS[name](member) if callable(member) else repr(member)
    return found


@pytest.mark.parametrize("kind", ["optimizer", "study"])
def test_a_result_with_all_trials_equals_its_optimizer(kind, tmp_path):
    owner = bl.BayesOpt({"x": (0.0, 1.0)}, direction="minimize", seed=0)
    if kind == "study":
        owner = bl.Study("s", f"sqlite:///{tmp_path}/s.db", owner)
    result = bl.minimize(f, optimizer=owner, n_trials=8)
    assert read(result) == read(owner)
    assert (owner.direction, owner.clock, result.direction) == ("minimize", "iterations", "minimize")
    assert set(MEMBERS) >= {"trials_dataframe", "best_params_", "pending", "surrogate_", "predict", "domain"}


@pytest.mark.parametrize("kind", ["optimizer", "study"])
def test_a_result_has_the_rounds_of_its_optimizer(kind, tmp_path):
    owner = bl.BPEDelay({"x": (0.0, 1.0)}, horizon=8, lengthscale=0.3, noise_std=0.1, n_points=9, delay="none", seed=0)
    if kind == "study":
        owner = bl.Study("s", f"sqlite:///{tmp_path}/s.db", owner)
    result = bl.maximize(f, optimizer=owner, n_trials=8)
    assert [repr(getattr(result, name)) for name in ROUNDS] == [repr(getattr(owner, name)) for name in ROUNDS]
    assert result.round_ == len(result.rounds_) == 2


def test_a_result_has_the_trees_of_its_optimizer():
    owner = bl.TreeSearch({"x": (0.0, 1.0)}, rho=[0.7, 0.5], seed=0)
    result = bl.maximize(f, optimizer=owner, n_trials=8)
    assert result.trees_ == owner.trees_ and len(result.trees_) == 2 and result.trees_[0].n_cells >= 4


def test_a_result_lists_the_trials_of_its_run_and_reads_the_model_of_all():
    opt = bl.BayesOpt({"x": (0.0, 1.0)}, direction="minimize", seed=0)
    opt.add([{"x": 0.3}, {"x": 0.9}], [0.0, None])
    first = bl.minimize(f, optimizer=opt, n_trials=3)
    second = bl.minimize(f, optimizer=opt, n_trials=2)
    assert [trial.number for trial in first.trials] == list(first.trials_dataframe()["number"]) == [2, 3, 4]
    assert [trial.number for trial in second.trials] == list(second.trials_dataframe()["number"]) == [5, 6]
    assert (second.n_trials, second.pending, len(opt.pending)) == (2, [], 1)
    assert second.best_params_ == {"x": 0.3} and second.best_trial_ == opt.trial(0)
    assert np.array_equal(first.predict({"x": 0.5}), opt.predict({"x": 0.5}))
    assert first.surrogate_.n_observed == 6


def test_an_optimizer_still_reads_and_sets_its_settings():
    opt = bl.RandomSearch({"x": (0.0, 1.0)}, direction="minimize", clock="seconds", seed=0)
    assert (opt.direction, opt.clock, opt.get_params()["direction"]) == ("minimize", "seconds", "minimize")
    opt.set_params(direction="maximize")
    assert opt.direction == "maximize"
    with pytest.raises(bl.errors.InvalidSetting):
        opt.direction = "minimize"
