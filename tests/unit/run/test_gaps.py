"""Results of functions with gaps, and with more entries than were declared: no measured value is lost."""

import decimal
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pandas as pd
import pytest

import belated as bl
from belated.run.objective import read_returned
from belated.store.memory import MemoryStore
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
    assert len(messages(found, "of this trial are missing")) == 1
    assert messages(found, f"{result.n_pending} trials of this run are pending")
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


def minimized_with_stops(known, n_trials):
    """Make a run in which all trials except the first are stopped, and return what `known` returns for their number."""
    outcomes = {"error": "minimize", "memory": bl.Record(), "time": bl.Record()}
    optimizer = bl.RandomSearch(SPACE, outcomes=outcomes, curve=bl.Curve(9), stopping=bl.ASHA(min_step=1), seed=0)

    def f(params, trial):
        for step in range(1, 10):
            trial.report(float(trial.number), step)
            if trial.should_stop():
                return known(trial.number)
        return {"error": float(trial.number), "memory": 3.0, "time": 1.0}

    return bl.minimize(f, optimizer=optimizer, n_trials=n_trials)


def test_outcomes_beside_a_stopped_curve_may_be_missing(recwarn):
    result = minimized_with_stops(lambda number: {"memory": 3.0, "time": None}, n_trials=4)
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


@pytest.mark.parametrize("name", ["f1", "value", "purity2"])
def test_an_undeclared_metric_becomes_an_attribute(name):
    def f(params):
        return not_there_yet({"x": 0.25}) | {name: 0.75}

    with pytest.warns(bl.BelatedWarning) as found:
        result = bl.maximize(f, SPACE, outcomes=OUTCOMES, n_trials=3, seed=0)
    assert states(result) == ["observed"] * 3
    for trial in result.trials:
        assert trial.values == not_there_yet({"x": 0.25}) and trial.attrs == {name: 0.75}
        assert trial.cost is None and trial.std is None
    assert len(found) == 1 and "bl.Record()" in str(found[0].message) and repr(name) in str(found[0].message)


# Data of the trial beside the outcomes.


def both_forms(values, facts, names=("yield", "purity", "pH")):
    """The same data in the form with "value", and beside the outcomes."""
    return [read_returned(each, {}, 0.0, names) for each in ({"value": values} | facts, values | facts)]


@pytest.mark.parametrize(
    "facts",
    [
        {"cost": 2.0},
        {"std": 0.25},
        {"std": {"yield": 0.25, "pH": float("nan")}},
        {"attrs": {"lot": "a"}},
        {"std": 0.25, "cost": float("nan"), "attrs": {"lot": "a"}, "duration": 3.0},
        {"cost": -1.0},
        {"std": "much"},
    ],
)
def test_data_of_the_trial_may_stand_beside_the_outcomes(facts):
    values = {"yield": 1.0, "purity": 0.75, "pH": 7.0}
    long, short = both_forms(values, facts)
    for name in ("value", "std", "cost", "attrs", "failed"):
        assert getattr(long, name) == getattr(short, name)
    assert bool(long.problem) == bool(short.problem) and long.notes.keys() == short.notes.keys()
    one = both_forms({"yield": 1.0}, facts, ("yield",))
    assert (one[0].value, one[0].std, one[0].cost) == (one[1].value, one[1].std, one[1].cost)


def test_data_that_are_outcomes_are_values():
    names = ("yield", "cost", "std")
    read = read_returned({"yield": 1.0, "cost": 2.0, "std": 3.0, "attrs": {"lot": "a"}}, {}, 0.0, names)
    assert read.value == {"yield": 1.0, "cost": 2.0, "std": 3.0} and (read.cost, read.std) == (None, None)
    assert read.attrs == {"lot": "a"}
    # What stands beside "value" counts.
    read = read_returned({"value": {"yield": 1.0, "cost": 2.0}, "cost": 3.0}, {}, 0.0, ("yield",))
    assert (read.value, read.cost, read.attrs) == ({"yield": 1.0}, 3.0, {"cost": 2.0})
    assert read_returned({"value": {"yield": 1.0, "cost": 2.0}}, {}, 0.0, ("yield",)).cost == 2.0


@pytest.mark.parametrize("run", [bl.maximize, bl.minimize])
def test_a_budget_charges_the_cost_beside_the_outcomes(run):
    outcomes = OUTCOMES | {"yield": run.__name__}
    f = lambda params: not_there_yet({"x": 0.25}) | {"cost": 3.0, "std": 0.5}  # noqa: E731
    for optimizer in (bl.RandomSearch(SPACE, outcomes=outcomes, seed=0), None):
        if optimizer is not None:
            optimizer = bl.Study("s", MemoryStore(), optimizer)
        given = {"space": SPACE, "outcomes": outcomes} if optimizer is None else {"optimizer": optimizer}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = run(f, n_trials=20, budget=6.0, **given)
        assert len(result.trials) == 2 and result.cost == 6.0
        assert [each.std for each in result.trials[0].outcomes.values()] == [0.5] * 3


# Names of outcomes that are misspelled.

WRONG_NAMES = [
    ("yield", "yeild"),
    ("yield", "Yield"),
    ("purity", "purty"),
    ("purity", " PURITY"),
    ("purity", "pu_rity"),
    ("pH", "PH"),
    ("pH", "p H"),
]


@pytest.mark.parametrize(("name", "wrong"), WRONG_NAMES)
@pytest.mark.parametrize("nested", [False, True])
def test_a_misspelled_name_ends_the_run(name, wrong, nested):
    calls = []

    def f(params):
        calls.append(1)
        found = {wrong if key == name else key: y for key, y in not_there_yet({"x": 0.25}).items()}
        return {"value": found, "cost": 2.0} if nested else found

    with pytest.warns(bl.BelatedWarning) as found, pytest.raises(bl.errors.RunError, match="did you mean") as raised:
        bl.maximize(f, SPACE, outcomes=OUTCOMES, n_trials=40, seed=0)
    assert len(calls) == 3 and repr(name) in str(raised.value) and len(found) == 1
    assert len(messages(found, f"[{name!r}] of trial 0 failed")) == 1
    expected = {key: y for key, y in not_there_yet({"x": 0.25}).items() if key != name}
    for trial in raised.value.result.trials:
        # Nothing that was measured is lost.
        assert trial.values == expected and trial.outcomes[name].state == "failed" and trial.missing == []
        assert trial.attrs == {wrong: not_there_yet({"x": 0.25})[name]}
    trial.observe({name: trial.attrs[wrong]})
    assert trial.values == not_there_yet({"x": 0.25}) and trial.state == "observed"


def test_a_misspelled_name_ends_the_run_of_an_optimizer_with_values():
    optimizer = bl.RandomSearch(SPACE, outcomes=OUTCOMES, seed=0)
    optimizer.add({"x": 0.5}, not_there_yet({"x": 0.25}))
    with pytest.warns(bl.BelatedWarning), pytest.raises(bl.errors.RunError, match="all lack .*'purity'") as raised:
        bl.maximize(lambda p: {"yield": 1.0, "purty": 0.9}, optimizer=optimizer, n_trials=40)
    assert len(raised.value.result.trials) == 3


@pytest.mark.parametrize(("n_workers", "n_first"), [(1, 3), (5, 5)])
@pytest.mark.parametrize("lacking", ["yield", "purity", "pH"])
def test_a_needed_outcome_under_another_name_ends_the_run(n_workers, n_first, lacking):
    def f(params):
        found = not_there_yet({"x": 0.25})
        return found | {"measured": found.pop(lacking)}

    optimizer = bl.RandomSearch(SPACE, outcomes=OUTCOMES, seed=0)
    with pytest.warns(bl.BelatedWarning), pytest.raises(bl.errors.RunError, match="'measured'") as raised:
        bl.maximize(f, optimizer=optimizer, n_trials=40, n_workers=n_workers)
    assert f"the first {n_first} results of f all lack [{lacking!r}]" in str(raised.value)
    assert n_first <= len(raised.value.result.trials) < n_first + n_workers
    for trial in raised.value.result.trials[:n_first]:
        assert trial.values == {k: y for k, y in not_there_yet({"x": 0.25}).items() if k != lacking}


@pytest.mark.parametrize(
    "returned",
    [
        # The outcome is measured later, and the further entry is named as such.
        lambda n: {"yield": 1.0, "purity": None, "measured": 0.9, "pH": 7.0},
        lambda n: {"yield": 1.0, "pH": 7.0, "attrs": {"purty": 0.9}},
        # Without further entries, the outcome is measured later.
        lambda n: {"yield": 1.0, "pH": 7.0},
        # One of the first results has the outcome.
        lambda n: {"yield": 1.0, "pH": 7.0, "measured": 0.9} | ({"purity": 0.9} if n == 2 else {}),
        # The results lack different outcomes.
        lambda n: {"yield": 1.0, "measured": 0.9} | ({"purity": 0.9} if n % 2 else {"pH": 7.0}),
    ],
)
def test_an_outcome_that_comes_later_does_not_end_the_run(returned):
    optimizer = bl.RandomSearch(SPACE, outcomes=OUTCOMES, seed=0)
    with pytest.warns(bl.BelatedWarning, match="pending, because outcomes are missing"):
        result = bl.maximize(lambda p, trial: returned(trial.number), optimizer=optimizer, n_trials=6)
    assert len(result.trials) == 6 and result.n_failed == 0


def test_a_recorded_outcome_may_be_absent():
    outcomes = {"yield": "maximize", "colour": bl.Record()}
    with pytest.warns(bl.BelatedWarning, match=r"6 trials of this run are pending.*\['colour'\]") as found:
        result = bl.maximize(lambda p: {"yield": p["x"], "f1": 0.5}, SPACE, outcomes=outcomes, n_trials=6, seed=0)
    assert states(result) == ["pending"] * 6 and len(found) == 2
    with pytest.warns(bl.BelatedWarning, match="did you mean 'colour'"):
        result = bl.maximize(lambda p: {"yield": p["x"], "color": 0.5}, SPACE, outcomes=outcomes, n_trials=6, seed=0)
    assert states(result) == ["observed"] * 6 and result.best_value_ == max(t.params["x"] for t in result.trials)


# Outcomes without a finite number.

NO_NUMBERS = [float("inf"), -float("inf"), "n.d.", "", True, np.bool_(False), np.ones(2), object]


@pytest.mark.parametrize("entry", NO_NUMBERS, ids=lambda each: f"{type(each).__name__}-{each}")
@pytest.mark.parametrize("name", ["yield", "purity"])
@pytest.mark.parametrize("is_study", [False, True])
def test_an_outcome_without_a_number_has_failed_and_the_others_are_stored(entry, name, is_study):
    def f(params, trial):
        found = not_there_yet({"x": 0.25}) | ({name: entry} if trial.number % 2 else {})
        return {"value": found, "std": 0.5, "cost": 2.0, "attrs": {"lot": "a"}} if trial.number > 2 else found

    optimizer = bl.RandomSearch(SPACE, outcomes=OUTCOMES, seed=0)
    owner = bl.Study("s", MemoryStore(), optimizer) if is_study else optimizer
    with pytest.warns(bl.BelatedWarning) as found:
        result = bl.maximize(f, optimizer=owner, n_trials=5)
    assert len(found) == len(messages(found, f"[{name!r}] of trial 1 failed")) == 1
    for trial in result.trials:
        expected = not_there_yet({"x": 0.25})
        if trial.number % 2:
            del expected[name]
            assert trial.outcomes[name].state == "failed" and f"{name}=" in trial.error.message
        assert trial.values == expected and trial.missing == []
        is_last = trial.number > 2
        assert (trial.cost, trial.attrs) == ((2.0, {"lot": "a"}) if is_last else (None, {}))
        assert {each.std for each in trial.outcomes.values() if each.value is not None} == {0.5 if is_last else None}


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_outcomes_without_a_number_of_workers(kind):
    workers = {"threads": {"n_workers": 2}, "processes": {"processes": True}}[kind]
    optimizer = bl.RandomSearch(SPACE, outcomes=OUTCOMES, seed=0)
    optimizer.enqueue([{"x": x} for x in (0.25, 0.75, 0.875, 0.5, 0.125)])
    with pytest.warns(bl.BelatedWarning, match=r"\['purity', 'pH'\] of trial"):
        result = bl.maximize(infinite, optimizer=optimizer, n_trials=5, **workers)
    for trial in result.trials:
        assert trial.values["yield"] == trial.params["x"] and not trial.missing
        assert [*trial.values] == (["yield", "purity", "pH"] if trial.params["x"] < 0.5 else ["yield"])


def infinite(params):
    x = params["x"]
    return {"yield": x} | ({"purity": 0.9, "pH": 7.0} if x < 0.5 else {"purity": float("inf"), "pH": "n.d."})


def test_a_bounded_outcome_that_is_never_a_number_ends_the_run():
    with pytest.warns(bl.BelatedWarning), pytest.raises(bl.errors.RunError, match="purity=True") as raised:
        bl.maximize(lambda p: not_there_yet({"x": 0.25}) | {"purity": True}, SPACE, outcomes=OUTCOMES, n_trials=40)
    assert [trial.values for trial in raised.value.result.trials] == [{"yield": 0.25, "pH": 7.0}] * 3


@failures_expected
def test_a_result_with_gaps_and_without_numbers_is_a_failure():
    returned = {"yield": None, "purity": float("inf"), "pH": "n.d."}
    read = read_returned(returned, {}, 0.0, tuple(OUTCOMES))
    assert read.value is None and "purity=inf" in read.problem and "pH='n.d.'" in read.problem
    result = bl.maximize(
        lambda params, trial: returned if trial.number else not_there_yet({"x": 0.25}),
        SPACE,
        outcomes=OUTCOMES,
        n_trials=2,
        seed=0,
    )
    assert states(result) == ["observed", "failed"] and result.trials[1].values == {}


@pytest.mark.parametrize("nested", [False, True])
def test_outcomes_beside_a_stopped_curve_may_have_failed(nested):
    def known(number):
        found = {"memory": float("inf"), "time": 1.0 if number < 3 else "n.d."}
        return {"value": {"error": float("inf")} | found} if nested else found

    with pytest.warns(bl.BelatedWarning, match="'memory'"):
        result = minimized_with_stops(known, n_trials=5)
    assert [trial.outcomes["error"].state for trial in result.trials[1:]] == ["stopped"] * 4
    assert [trial.outcomes["memory"].state for trial in result.trials[1:]] == ["failed"] * 4
    assert [trial.values for trial in result.trials[1:]] == [{"time": 1.0}] * 2 + [{}] * 2


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
