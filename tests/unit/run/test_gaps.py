"""Results of functions with gaps, and with more entries than were declared: no measured value is lost."""

import decimal
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pandas as pd
import pytest

import belated as bl
from belated.run.objective import read_returned
from tests.unit.run.runs import failures_expected, states

SPACE = {"x": (0.0, 1.0)}
OUTCOMES = {"yield": "maximize", "purity": bl.AtLeast(0.5), "pH": bl.Between(6.0, 8.0)}
GAPS = [None, float("nan"), np.float32("nan"), np.array([np.nan]), np.ma.masked, pd.NA, pd.NaT, decimal.Decimal("nan")]


def messages(found, text):
    return [str(each.message) for each in found if text in str(each.message)]


def not_there_yet(params):
    return {"yield": params["x"], "purity": 0.9 if params["x"] < 0.5 else None, "pH": 7.0}


@pytest.mark.parametrize("gap", GAPS, ids=lambda each: f"{type(each).__name__}-{each}")
def test_a_gap_is_missing_and_the_other_outcomes_are_stored(gap):
    def f(params, trial):
        found = {"yield": params["x"], "purity": gap, "pH": 7.0} if trial.number % 2 else not_there_yet({"x": 0.25})
        return {"value": found, "std": {"yield": 0.1, "purity": 0.1}, "cost": 2.0, "attrs": {"n": trial.number}}

    with pytest.warns(bl.BelatedWarning) as found:
        result = bl.maximize(f, SPACE, outcomes=OUTCOMES, n_trials=6, seed=0, budget=100.0)
    assert len(messages(found, "['purity'] of this trial are missing")) == 1
    assert states(result) == ["observed", "pending"] * 3 and result.n_pending == 3
    for trial in result.trials[1::2]:
        assert trial.values == {"yield": trial.params["x"], "pH": 7.0} and trial.missing == ["purity"]
        assert trial.outcomes["yield"].std == 0.1 and trial.attrs == {"n": trial.number} and trial.cost == 2.0
    # The evaluation is over: its cost is charged.
    assert result.cost == 12.0
    result.trials[1].observe({"purity": 0.75})
    assert result.trials[1].state == "observed" and result.trials[1].value == result.trials[1].params["x"]


@pytest.mark.parametrize("kind", ["threads", "pool", "processes"])
def test_gaps_of_workers(kind):
    pool = ProcessPoolExecutor(2) if kind == "pool" else None
    workers = {"threads": {"n_workers": 2}, "pool": {"executor": pool}, "processes": {"processes": True}}
    optimizer = bl.RandomSearch(SPACE, outcomes=OUTCOMES, seed=0)
    with pytest.warns(bl.BelatedWarning) as found:
        result = bl.maximize(not_there_yet, optimizer=optimizer, n_trials=8, **workers[kind])
    if pool is not None:
        pool.shutdown()
    assert len(messages(found, "missing")) == 1
    for trial in result.trials:
        assert trial.values["yield"] == trial.params["x"]
        assert trial.missing == ([] if trial.params["x"] < 0.5 else ["purity"])


def test_the_objective_may_be_missing():
    def f(params):
        return {"yield": None, "purity": 0.9, "pH": 7.0}

    with pytest.warns(bl.BelatedWarning, match="missing"):
        result = bl.maximize(f, SPACE, outcomes=OUTCOMES, n_trials=6, seed=0)
    assert states(result) == ["pending"] * 6 and result.best_trial_ is None
    for trial in result.trials:
        assert trial.missing == ["yield"]
        trial.observe({"yield": trial.params["x"]})
    assert result.best_value_ == max(trial.params["x"] for trial in result.trials)


@failures_expected
@pytest.mark.parametrize("returned", [{"yield": None, "purity": float("nan")}, {"value": {"pH": pd.NA}}])
def test_a_result_without_any_value_is_a_failure(returned):
    result = bl.maximize(
        lambda params, trial: returned if trial.number else not_there_yet({"x": 0.25}),
        SPACE,
        outcomes=OUTCOMES,
        n_trials=2,
        seed=0,
    )
    assert states(result) == ["observed", "failed"]
    assert "no outcome has a value" in result.trials[1].error.message


def test_outcomes_beside_a_stopped_curve_may_be_missing(recwarn):
    outcomes = {"error": "minimize", "memory": bl.Record(), "time": bl.Record()}

    optimizer = bl.RandomSearch(SPACE, outcomes=outcomes, curve=bl.Curve(9), stopping=bl.ASHA(min_step=1), seed=0)

    def f(params, trial):
        for step in range(1, 10):
            trial.report(float(trial.number), step)
            if trial.should_stop():
                return {"memory": 3.0, "time": None}
        return {"error": float(trial.number), "memory": 3.0, "time": 1.0}

    result = bl.minimize(f, optimizer=optimizer, n_trials=4)
    assert [trial.values for trial in result.trials[1:]] == [{"memory": 3.0}] * 3
    assert [trial.outcomes["error"].state for trial in result.trials[1:]] == ["stopped"] * 3
    assert not messages(recwarn, "missing")


@pytest.mark.parametrize("name", ["std", "cost"])
@pytest.mark.parametrize("gap", [*GAPS[1:], float("inf")], ids=lambda each: f"{type(each).__name__}-{each}")
def test_an_amount_that_is_not_a_number_counts_as_not_given(name, gap):
    def f(params, trial):
        return {"value": params["x"], name: gap if trial.number % 2 else 0.5}

    with pytest.warns(bl.BelatedWarning) as found:
        result = bl.maximize(f, SPACE, n_trials=4, seed=0)
    assert len(messages(found, f"{name}=")) == len(found) == 1
    assert [trial.value for trial in result.trials] == [trial.params["x"] for trial in result.trials]
    assert [getattr(trial, name) for trial in result.trials] == [0.5, None, 0.5, None]


def test_a_std_of_one_outcome_may_be_missing():
    def f(params):
        return {"value": not_there_yet({"x": 0.25}), "std": {"yield": float("nan"), "pH": 0.25}}

    with pytest.warns(bl.BelatedWarning, match="std of yield=nan, which counts as not given"):
        trial = bl.maximize(f, SPACE, outcomes=OUTCOMES, n_trials=1, seed=0).trials[0]
    assert [each.std for each in trial.outcomes.values()] == [None, None, 0.25]


@pytest.mark.parametrize("name", ["f1", "std", "cost", "value", "attrs", "puritx"])
def test_an_undeclared_metric_becomes_an_attribute(name):
    names = ("yield", "purity", "pH")

    def f(params):
        return not_there_yet({"x": 0.25}) | {name: 0.75}

    with pytest.warns(bl.BelatedWarning) as found:
        result = bl.maximize(f, SPACE, outcomes=OUTCOMES, n_trials=3, seed=0)
    assert states(result) == ["observed"] * 3
    for trial in result.trials:
        assert trial.values == not_there_yet({"x": 0.25}) and trial.attrs == {name: 0.75}
        assert trial.cost is None and trial.std is None
    assert len(found) == 1 and "bl.Record()" in str(found[0].message) and repr(name) in str(found[0].message)
    assert ("beside the outcomes" in str(found[0].message)) == (name in ("std", "cost", "attrs"))
    # If an outcome is absent, a similar name may have been meant.
    read = read_returned({"yield": 1.0, "puritx": 0.9}, {"own": 1}, 0.0, names)
    assert read.value == {"yield": 1.0} and read.attrs == {"own": 1, "puritx": 0.9}
    assert "did you mean 'purity'?" in read.notes["entries"]


def test_undeclared_metrics_of_any_type_are_kept():
    given = {"loss": 0.5, "matrix": np.eye(2), "by_class": {"a": 0.5, "b": float("nan")}, "note": "ok", 3: 1.0}
    read = read_returned(given, {}, 0.0, ("loss",))
    assert read.value == {"loss": 0.5}
    matrix = [[1.0, 0.0], [0.0, 1.0]]
    assert read.attrs == {"matrix": matrix, "by_class": {"a": 0.5, "b": None}, "note": "ok", "3": 1.0}
    assert set(read.notes) == {"entries", "attrs"}


def test_further_entries_of_the_long_form_become_attributes():
    match = "also returned 'stdev', 'f1', kept in attrs: did you mean 'std'"
    with pytest.warns(bl.BelatedWarning, match=match) as found:
        result = bl.maximize(lambda p: {"value": p["x"], "stdev": 0.1, "f1": 0.5}, SPACE, n_trials=3, seed=0)
    assert len(found) == 1
    assert [trial.attrs for trial in result.trials] == [{"stdev": 0.1, "f1": 0.5}] * 3
    read = read_returned({"value": {"loss": 1.0}, "f1": 0.5, "attrs": {"f1": 0.25}}, {}, 0.0, ("loss", "memory"))
    assert read.value == {"loss": 1.0} and read.attrs == {"f1": 0.25}  # what was given as attrs counts
    read = read_returned({"value": 1.0, "f1": 0.5}, {}, 0.0, ("loss",))
    assert read.value == {"loss": 1.0} and read.attrs == {"f1": 0.5}


def test_complete_results_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bl.maximize(lambda p: not_there_yet({"x": 0.25}), SPACE, outcomes=OUTCOMES, n_trials=3, seed=0)
        bl.maximize(lambda p: {"value": p["x"], "std": None, "cost": None}, SPACE, n_trials=3, seed=0)
