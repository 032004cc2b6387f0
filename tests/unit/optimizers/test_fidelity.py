"""Trials at several fidelities: requests, stored values, errors, and the best trial."""

import io
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import belated as bl
from belated import _core

SPACE = {"x": (0.0, 1.0)}
SAMPLES = bl.Fidelity(100, 7000, cost=bl.PowerCost(0.02))


def search(**arguments):
    return bl.RandomSearch(**({"space": SPACE, "fidelity": SAMPLES, "seed": 0} | arguments))


def refused(call, message, error=bl.errors.InvalidFidelity):
    with pytest.raises(error, match=message):
        call()


# Requested fidelities.


def test_default_fidelity_is_full():
    opt, plain = search(), search(fidelity=None)
    trials = [opt.suggest(), *opt.suggest(n=2), opt.add({"x": 0.5}, 1.0), opt.add({"x": 0.5})]
    assert [trial.fidelity for trial in trials] == [7000] * 5
    assert [type(trial.fidelity) for trial in trials] == [int] * 5
    # The optimizer suggests the same points as an optimizer that does not declare a fidelity.
    assert [trial.params for trial in trials[:3]] == [trial.params for trial in plain.suggest(n=3)]
    assert plain.trial(0).fidelity is None
    assert "fidelity" not in repr(plain.trial(0)) and "fidelity" not in plain.trials_dataframe()


def test_requested_fidelity_is_the_trials_fidelity():
    opt = search()
    assert opt.suggest(fidelity=500).fidelity == 500
    assert [trial.fidelity for trial in opt.suggest(n=2, fidelity=np.int64(100))] == [100, 100]
    assert [trial.fidelity for trial in opt.add([{"x": 0.1}, {"x": 0.2}], [1, 2], fidelity=[200, None])] == [200, 7000]
    assert [trial.fidelity for trial in opt.add([{"x": 0.1}, {"x": 0.2}], [1, None], fidelity=300)] == [300, 300]
    assert "fidelity=500" in repr(opt.trial(0)) and "500" in opt.trial(0)._repr_html_()
    real = search(fidelity=bl.Fidelity(0.1, 1.0, log=True))
    assert [real.suggest(fidelity=z).fidelity for z in (0.1, 0.3, 1)] == [0.1, 0.3, 1.0]


def test_fidelity_of_an_enqueued_point_overrides_the_requested_one():
    opt = search()
    opt.enqueue([{"x": 0.1}, {"x": 0.2}, {"x": 0.3}], fidelity=[300, None, None])
    opt.enqueue({"x": 0.4}, fidelity=400)
    trials = [opt.suggest(fidelity=500), opt.suggest(fidelity=500), *opt.suggest(n=3)]
    assert [trial.fidelity for trial in trials] == [300, 500, 7000, 400, 7000]
    assert [trial.params["x"] for trial in trials[:4]] == [0.1, 0.2, 0.3, 0.4]


def test_replicates_have_the_fidelity_of_their_trial():
    opt = search()
    trial = opt.suggest(fidelity=500)
    trial.observe(1.0, fidelity=500)
    trial.observe(2.0, replicate=True, fidelity=500.0)
    trial.observe(3.0, amend=True, params={"x": 0.25})
    assert [each.fidelity for each in opt.trials] == [500, 500] and trial.params_run == {"x": 0.25}


def test_the_log_keeps_fidelities_in_the_units_of_the_user():
    opt = search(fidelity=bl.Fidelity(1, 4))
    refused(lambda: opt._log.suggest(1, None, None, None, 2.2), "the fidelity 2.2 is not in the declared range")
    opt._log.suggest(1, None, None, None, 2)
    assert opt._log.trial(0).fidelity == 2.0 and type(opt.trial(0).fidelity) is int


# The next tests check errors. An error must leave the optimizer unchanged.


@pytest.mark.parametrize("wrong", [99, 7001, 500.5, math.nan, "500", True, {"z": 1}])
def test_fidelities_outside_the_range_are_refused(wrong):
    opt = search()
    opt.suggest()
    before = pickle.dumps(opt)
    for call in (
        lambda: opt.suggest(fidelity=wrong),
        lambda: opt.suggest(n=2, fidelity=wrong),
        lambda: opt.add({"x": 0.5}, 1.0, fidelity=wrong),
        lambda: opt.add([{"x": 0.5}] * 2, [1, 2], fidelity=[500, wrong]),
        lambda: opt.enqueue({"x": 0.5}, fidelity=wrong),
        lambda: opt.enqueue([{"x": 0.5}] * 2, fidelity=[500, wrong]),
        lambda: opt.observe(0, 1.0, fidelity=wrong),
    ):
        refused(call, r"^fidelity=.*an integer in \[100, 7000\]")
    assert pickle.dumps(opt) == before


def test_a_fidelity_that_was_not_declared_is_refused():
    opt = search(fidelity=None)
    opt.suggest()
    before = pickle.dumps(opt)
    for call in (
        lambda: opt.suggest(fidelity=500),
        lambda: opt.add({"x": 0.5}, 1.0, fidelity=500),
        lambda: opt.enqueue({"x": 0.5}, fidelity=500),
        lambda: opt.observe(0, 1.0, fidelity=500),
    ):
        refused(call, r"^fidelity=500 was not declared.*bl.Fidelity\(low, high\)")
    assert pickle.dumps(opt) == before


def test_a_value_at_a_different_fidelity_is_refused():
    opt = search()
    trial = opt.suggest(fidelity=500)
    message = r"^fidelity=400 for trial 0, which was started at 500.*add\(params, value, fidelity=400\)"
    refused(lambda: trial.observe(1.0, fidelity=400), message)
    refused(lambda: opt.observe(0, 1.0, fidelity=400), message)
    assert trial.state == "pending"
    trial.observe(1.0)
    for again in ({"amend": True}, {"replicate": True}):
        refused(lambda again=again: trial.observe(2.0, fidelity=400, **again), message)
    assert trial.value == 1.0 and opt.n_trials == 1


@pytest.mark.parametrize("cost", [-1.0, math.inf, "1"])
def test_unusable_costs_are_refused(cost):
    opt = search()
    trial = opt.suggest(fidelity=500)
    refused(
        lambda: trial.observe(1.0, cost=cost),
        "^cost=.* for trial 0 is not usable",
        bl.errors.InvalidValue,
    )
    refused(
        lambda: opt.add({"x": 0.5}, 1.0, cost=cost, fidelity=500),
        "^cost=.* for params is not usable",
        bl.errors.InvalidValue,
    )
    assert trial.state == "pending" and opt.n_trials == 1


def test_the_constructor_accepts_only_a_fidelity_object():
    for wrong in ((100, 7000), 500, bl.Integer(1, 2), {"low": 1, "high": 2}):
        refused(
            lambda wrong=wrong: search(fidelity=wrong), r"^fidelity=.* pass bl\.Fidelity\(low", bl.errors.InvalidSetting
        )


@pytest.mark.parametrize(
    "make",
    [
        lambda: bl.BayesOpt(SPACE, fidelity=SAMPLES),
        lambda: bl.BPEDelay(SPACE, fidelity=SAMPLES, horizon=100, lengthscale=0.2, noise_std=0.1),
        lambda: bl.algorithm("GP-UCB", SPACE, fidelity=SAMPLES),
    ],
)
def test_optimizers_without_support_refuse_a_fidelity(make):
    refused(
        make,
        r"^\w+ does not support a fidelity: leave it out, or use RandomSearch or TreeSearch$",
        bl.errors.InvalidSetting,
    )


def test_the_number_of_fidelities_must_equal_the_number_of_points():
    opt = search()
    before = pickle.dumps(opt)
    message = "^fidelity has 2 entries for 3 points: pass one for each, or one for all$"
    refused(lambda: opt.add([{"x": 0.5}] * 3, [1, 2, 3], fidelity=[500, 600]), message, bl.errors.InvalidValue)
    refused(lambda: opt.enqueue([{"x": 0.5}] * 3, fidelity=[500, 600]), message, bl.errors.InvalidValue)
    assert pickle.dumps(opt) == before


# The core receives z in [0, 1].


def test_events_of_other_processes_are_checked():
    opt, plain = search(), search(fidelity=None)
    event = opt._log.propose(1, None, None, fidelity=3550)[0].text
    assert json.loads(event)["what"]["Suggested"]["fidelity"] == 3550
    refused(lambda: plain._log.extend([event]), "none is declared; declare it with fidelity=$")
    for z in (99, 7001, 100.5):
        facts = json.loads(event)
        facts["what"]["Suggested"]["fidelity"] = z
        refused(lambda facts=facts: opt._log.extend([json.dumps(facts)]), "is not in the declared range")
        refused(lambda z=z: opt._log.suggest(1, None, None, None, z), "is not in the declared range")
        refused(lambda z=z: opt._log.propose(1, None, None, fidelity=z), "is not in the declared range")
        for action in (
            _core.Action.add(opt.domain.locate({"x": 0.5}), None, _core.Observation(1.0), z),
            _core.Action.enqueue(opt.domain.locate({"x": 0.5}), z),
        ):
            refused(lambda action=action: opt._log.record(action, None), "is not in the declared range")
    refused(lambda: opt._log.suggest(1, None, None, None, math.nan), "is not in the declared range")
    assert opt._log.n_events() == plain._log.n_events() == 0
    # A trial without a fidelity is a full evaluation.
    [draft] = plain._log.propose(1, None, None)
    opt._log.extend([draft.text])
    assert opt.trial(0).fidelity == 7000


@pytest.mark.parametrize(
    ("axis", "bias", "cost", "message"),
    [
        (_core.Parameter.real(0.0, 1.0, False, None), -1.0, None, "bias=-1 is not usable"),
        (_core.Parameter.real(0.0, 1.0, False, None), None, (2.0, 1.0, 1.0), "base=2 is not usable"),
        (_core.Parameter.categorical(["'a'", "'b'"]), None, None, "a fidelity is a number"),
    ],
)
def test_fidelities_of_the_core_are_checked(axis, bias, cost, message):
    with pytest.raises(bl.BelatedError, match=message):
        _core.Problem(search().domain.core, None, (axis, bias, cost))


# The best trial.


@given(
    steps=st.lists(st.tuples(st.sampled_from([100, 105, 107, 6994, 7000, None]), st.integers(-3, 3)), max_size=30),
    direction=st.sampled_from(["maximize", "minimize"]),
)
@settings(deadline=None)
def test_the_best_trial_has_the_highest_fidelity_observed(steps, direction):
    opt = search(direction=direction)
    for fidelity, value in steps:
        opt.add({"x": 0.5}, value, fidelity=fidelity)
        trials = opt.trials
        # The fidelity is about 7 of 6900 samples, a thousandth of the range.
        highest = max(trial.fidelity for trial in trials)
        those = [trial for trial in trials if (highest - trial.fidelity) / 6900 <= 1e-3]
        best = (max if direction == "maximize" else min)(trial.value for trial in those)
        assert opt.best_value_ == best
        assert opt.best_trial_ == next(trial for trial in those if trial.value == best)


def test_recommendations_use_the_highest_fidelity():
    below = bl.RandomSearch(SPACE, fidelity=SAMPLES, constraints=[lambda p: p["x"] < 0.5])
    anywhere = search()
    for opt in (below, anywhere):
        opt.add([{"x": 0.1}, {"x": 0.2}, {"x": 0.3}], [9.0, 2.0, 1.0], fidelity=[100, 3000, 3000])
        assert opt.recommend() == opt.best_params_ == {"x": 0.2}
        opt.add({"x": 0.9}, 0.0)
    assert anywhere.recommend() == {"x": 0.9}
    # An infeasible point is not recommended at any fidelity.
    assert below.recommend() == {"x": 0.2}
    below.add({"x": 0.4}, -5.0)
    assert below.recommend() == {"x": 0.4}


def test_a_value_at_full_fidelity_replaces_a_cheap_best_value():
    opt = search()
    opt.suggest()
    opt.suggest(fidelity=100).observe(5.0)
    assert opt.best_value_ == 5.0
    opt.trial(0).observe(1.0)
    assert opt.best_value_ == 1.0 and opt.best_trial_ == opt.trial(0)


# Copies, parameters and tables.


def test_parameters_are_read_and_set():
    opt = search()
    assert opt.get_params()["fidelity"] is SAMPLES and repr(SAMPLES) in repr(opt)
    assert opt.set_params(fidelity=bl.Fidelity(1, 3)).suggest().fidelity == 3
    refused(lambda: opt.set_params(fidelity=None), "^set_params comes too late", bl.errors.InvalidSetting)


@pytest.mark.parametrize("fidelity", [SAMPLES, bl.Fidelity(0.1, 0.9), bl.Fidelity(1e-3, 3.3, log=True)], ids=repr)
def test_a_table_with_fidelities_can_be_added_again(fidelity):
    pandas = pytest.importorskip("pandas")
    opt = search(fidelity=fidelity)
    opt.suggest(n=2, fidelity=fidelity.low)
    between = type(fidelity.low)(fidelity.low + 0.37 * (fidelity.high - fidelity.low))
    opt.suggest(fidelity=between).observe(2.0, cost=3.0)
    opt.suggest().observe(1.0)
    table = opt.trials_dataframe()
    assert list(table["fidelity"]) == [trial.fidelity for trial in opt.trials]
    read = pandas.read_csv(io.StringIO(table.to_csv(index=False)))
    for each in (table, read, read.drop(columns="fidelity")):
        again = search(fidelity=fidelity)
        again.add(each)
        if "fidelity" in each:
            assert [trial.fidelity for trial in again.trials] == pytest.approx(list(table["fidelity"]), rel=1e-12)
            assert again.best_value_ == 1.0
        else:
            assert {trial.fidelity for trial in again.trials} == {fidelity.high}
    refused(lambda: search(fidelity=None).add(table), "was not declared")
    refused(lambda: search().add(table, fidelity=500), "^params is a table of trials", bl.errors.InvalidValue)
