"""Withdrawn results: what forgets them, what remembers them, and what is refused."""

import itertools

import numpy as np
import pytest

import belated as bl
from belated.papers import Nearest
from belated.store.memory import MemoryStore

SPACE = {"x": (0.0, 1.0), "y": (-1.0, 1.0)}
GRID = {"x": (0, 3), "y": (0, 4)}
POINTS = [{"x": 0, "y": 0}, {"x": 1, "y": 1}, {"x": 1, "y": 0}]
POLICIES = {
    "integrate": bl.Integrate(),
    "hallucinate": bl.Hallucinate(),
    "ignore": bl.Ignore(),
    "censor": bl.Censor(floor=-3.0),
    "discard": bl.Censor(floor=-3.0, late="discard"),
    "liar": bl.Liar("mean"),
    "nearest": Nearest(k=3),
}
EXACT = bl.GP(noise_std=0.0)
MAKERS = {
    "random": lambda: bl.RandomSearch(SPACE, seed=3),
    "random grid": lambda: bl.RandomSearch(GRID, seed=3),
    "tree": lambda: bl.TreeSearch(SPACE, seed=3),
    "tree, variances": lambda: bl.TreeSearch(SPACE, bound="ducbv", seed=3),
    "HOO": lambda: bl.TreeSearch(SPACE, bound="ducb1", front=False, seed=3),
    "exact": lambda: bl.BayesOpt(SPACE, surrogate=EXACT, seed=3),
    "exact grid": lambda: bl.BayesOpt(GRID, surrogate=EXACT, seed=3),
    "draws": lambda: bl.BayesOpt(SPACE, acquisition="thompson", seed=3),
    **{
        name: lambda policy=policy, window=6 if name == "discard" else None: bl.BayesOpt(
            SPACE, pending=policy, window=window, seed=3
        )
        for name, policy in POLICIES.items()
    },
}


def f(params):
    return -((params["x"] - 0.3) ** 2) - (params["y"] - 0.2) ** 2


def told(optimizer, n, *, fails=True):
    """Suggest n trials and report their results; return the points."""
    trials = []
    for i in range(n):
        trial = optimizer.suggest()
        trials.append(trial)
        trial.fail() if fails and i % 5 == 3 else trial.observe(f(trial.params))
    return [tuple(trial.params.values()) for trial in trials]


# The model.


@pytest.mark.parametrize("results", ["values", "values with std", "failures"])
@pytest.mark.parametrize("kind", MAKERS)
def test_withdrawn_rows_leave_the_suggestions_of_rows_that_were_abandoned(kind, results):
    for n_before in (0, 4, 26):

        def suggestions(withdraws, n_before=n_before):
            optimizer = MAKERS[kind]()
            pending = optimizer.suggest()
            told(optimizer, n_before)
            values = [7.0, -30.0, 5.0] if withdraws and results != "failures" else None
            added = optimizer.add(POINTS, values, std=[0.1, 0.2, 0.1] if results == "values with std" else None)
            if withdraws and results == "failures":
                for trial in added:
                    trial.fail()
            optimizer.withdraw(added) if withdraws else [trial.abandon() for trial in added]
            pending.observe(f(pending.params))
            return told(optimizer, 6)

        assert suggestions(True) == suggestions(False)


def test_a_fit_that_saw_the_value_is_made_again():
    """The model is far off while it has a wrong value, and agrees with the function once the value is withdrawn."""
    optimizer = bl.BayesOpt(SPACE, surrogate=bl.GP(targets="standardized"), seed=1)
    told(optimizer, 30, fails=False)
    wrong = optimizer.add({"x": 0.31, "y": 0.21}, 1e4)
    told(optimizer, 1)
    there = {"x": 0.32, "y": 0.2}
    assert optimizer.predict(there)[0] > 100
    note = wrong._record.number, optimizer.trials[-1]._record.note
    assert note[1] is not None
    optimizer.withdraw(wrong)
    trial = optimizer.suggest()
    assert trial._record.note is not None  # the fit is written in the note
    mean, std = optimizer.predict(there)
    assert abs(mean) < 0.01 and std < 0.01


def test_a_withdrawn_failure_leaves_the_model_of_success():
    optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, seed=0)
    optimizer.add([{"x": x} for x in np.linspace(0, 1, 6)], np.linspace(0, 1, 6).tolist())
    failed = optimizer.add([{"x": 0.9 + i / 100} for i in range(8)])
    for trial in failed:
        trial.fail(error="power cut")
    optimizer.suggest()
    assert optimizer.acquisition_at({"x": 0.95}) == -np.inf
    optimizer.withdraw(failed, reason="an outage")
    assert optimizer.acquisition_at({"x": 0.95}) > -np.inf


def test_all_values_can_be_withdrawn():
    for make in MAKERS.values():
        optimizer = make()
        told(optimizer, 8)
        optimizer.withdraw([trial for trial in optimizer.trials if trial.state != "pending"])
        assert (optimizer.best_trial_, optimizer.best_value_, optimizer.best_params_) == (None, None, None)
        with pytest.raises(bl.errors.NotFitted):
            optimizer.recommend()
        told(optimizer, 3)
        assert optimizer.best_trial_.number >= 8


@pytest.mark.parametrize("kind", ["random grid", "exact grid"])
def test_the_point_may_be_suggested_again(kind):
    optimizer = MAKERS[kind]()
    points = told(optimizer, 20, fails=False)
    assert len(set(points)) == 20
    optimizer.withdraw(7)
    assert told(optimizer, 1) == [points[7]]


def test_best_falls_back_to_a_lower_fidelity():
    optimizer = bl.TreeSearch({"x": (0.0, 1.0)}, fidelity=bl.Fidelity(100, 7000), seed=0)
    low, lower = optimizer.add([{"x": 0.1}, {"x": 0.2}], [1.0, 2.0], fidelity=[100, 100])
    high = optimizer.add({"x": 0.3}, 0.5, fidelity=7000)
    assert optimizer.best_trial_ == high
    optimizer.withdraw(high)
    assert optimizer.best_trial_ == lower
    optimizer.withdraw(lower)
    assert optimizer.best_trial_ == low
    optimizer.suggest()


# The trial, and what stays.


def test_arrivals_stay():
    optimizer = bl.BayesOpt(SPACE, seed=0)
    first, failed, other = trials = optimizer.suggest(n=3)
    first.observe(54.0, std=0.5, cost=2.0, duration=3.0, attrs={"operator": "Ada"})
    failed.fail(error="power cut", duration=1.0)
    other.observe(1.0, duration=2.0)
    known = optimizer.delays_, optimizer.durations_.predict({"x": 0.5, "y": 0.5})
    facts = [(trial.delay, trial.ended_at, trial.duration, trial.cost, trial.attrs) for trial in trials]
    optimizer.withdraw([first, failed], reason="contaminated flask")
    assert repr(optimizer.delays_) == repr(known[0]) and optimizer.n_trials == 3
    assert optimizer.durations_.predict({"x": 0.5, "y": 0.5}) == known[1]
    assert [(trial.delay, trial.ended_at, trial.duration, trial.cost, trial.attrs) for trial in trials] == facts
    assert (first.state, first.value, first.std) == ("withdrawn", None, None)
    withdrawn = first.withdrawal
    assert (withdrawn.state, withdrawn.value, withdrawn.reason) == ("observed", 54.0, "contaminated flask")
    assert (failed.withdrawal.state, failed.withdrawal.value) == ("failed", None)
    assert other.withdrawal is None
    assert "withdrawn_value=54.0, withdrawn_reason='contaminated flask'" in repr(first)


def test_a_repeated_report_does_not_restore_the_value():
    study = bl.Study("s", MemoryStore(), bl.RandomSearch(SPACE, seed=0))
    trial, failed = study.suggest(n=2)
    study.observe(trial, 54.0, key="report 1")
    failed.fail(error="power cut")
    study.withdraw([trial, failed])
    study.observe(trial, 54.0, key="report 1")
    study.observe(trial, 54.0)
    trial.observe(54.0, std=0.1, attrs={"again": True})
    failed.fail(error="power cut")
    failed.fail()
    trial.abandon()
    assert [each.state for each in study.trials] == ["withdrawn"] * 2 and trial.attrs == {}
    trial.observe(54.5)
    assert (trial.state, trial.value, study.best_value_) == ("observed", 54.5, 54.5)
    trial.withdraw()
    trial.observe(54.0, amend=True)
    failed.observe(1.0)
    assert (trial.value, failed.value, trial.withdrawal.value) == (54.0, 1.0, 54.5)


def test_a_repeated_report_does_not_restore_a_value_that_is_awaited_again():
    optimizer = bl.RandomSearch(SPACE, outcomes={"f": "maximize", "g": bl.AtMost(1.0)}, seed=0)
    trial = optimizer.suggest()
    trial.observe({"g": 0.5})
    trial.withdraw()  # g is pending again, because f is missing
    trial.observe({"g": 0.5})
    assert trial.outcomes["g"].state == trial.state == "pending"
    trial.observe({"f": 2.0, "g": 0.5})  # the repeated value is left out, and the new one counts
    assert (trial.state, trial.values) == ("pending", {"f": 2.0})
    trial.observe({"g": 0.5}, amend=True)
    assert (trial.state, trial.values) == ("observed", {"f": 2.0, "g": 0.5})


def test_a_withdrawn_curve_does_not_stop_other_trials():
    optimizer = bl.RandomSearch(SPACE, curve=bl.Curve(4), stopping=bl.MedianStopping(min_trials=1), seed=0)
    good, running = optimizer.suggest(n=2)
    for step in range(1, 5):
        good.report(9.0, step)
    good.observe(9.0)
    running.report(1.0, 1)
    good.withdraw()
    assert not running.should_stop()
    good.observe(9.0, amend=True)
    assert running.should_stop()
    running.withdraw()
    assert (running.state, running.withdrawal.state) == ("withdrawn", "stopped")
    assert not running.should_stop()


@pytest.mark.parametrize("through", ["table", "pandas", "to_csv"])
@pytest.mark.parametrize(("value", "reason"), [(54.25, "spilled, then dried"), (0.25, "=no"), (-0.125, None)])
def test_tables_show_the_reason_and_are_read_back(through, value, reason, tmp_path):
    optimizer = bl.RandomSearch(SPACE, seed=0)
    trials = optimizer.suggest(n=4)
    trials[0].observe(1.5)
    trials[1].observe(value, cost=2.0)
    trials[2].fail(error="bad")
    assert "withdrawn_value" not in optimizer.trials_dataframe()
    optimizer.withdraw([1, 2], reason=reason)
    table = optimizer.trials_dataframe()
    assert list(table["state"]) == ["observed", "withdrawn", "withdrawn", "pending"]
    assert table["withdrawn_value"].tolist()[1] == value and table["withdrawn_reason"][2] == reason
    assert np.isnan(table["value"][1])
    if through == "pandas":
        table.to_csv(tmp_path / "trials.csv", index=False)
    elif through == "to_csv":
        optimizer.to_csv(tmp_path / "trials.csv")
    if through != "table":
        table = pytest.importorskip("pandas").read_csv(tmp_path / "trials.csv")
    again = bl.RandomSearch(SPACE, seed=0)
    again.add(table)
    assert [(each.state, each.value) for each in again.trials] == [(each.state, each.value) for each in trials]
    for mine, theirs in zip(again.trials, trials, strict=True):
        facts = [each and (each.state, each.value, each.reason) for each in (mine.withdrawal, theirs.withdrawal)]
        assert facts[0] == facts[1]


# Refusals.


@pytest.mark.parametrize("make", ["optimizer", "study"])
def test_refused_withdrawals_change_nothing(make):
    optimizer = bl.RandomSearch(SPACE, seed=0)
    owner = optimizer if make == "optimizer" else bl.Study("s", MemoryStore(), optimizer)
    pending, observed, abandoned, withdrawn = owner.suggest(n=4)
    observed.observe(1.0)
    abandoned.abandon()
    withdrawn.observe(2.0)
    withdrawn.withdraw()
    stranger = bl.RandomSearch(SPACE, seed=0).suggest()
    events = owner._log.events(0)
    wrong = [
        (pending, bl.errors.InvalidValue, "trial 0 is pending and cannot be withdrawn"),
        (abandoned, bl.errors.InvalidValue, "trial 2 is abandoned and cannot be withdrawn"),
        (withdrawn, bl.errors.InvalidValue, "trial 3 is withdrawn and cannot be withdrawn"),
        (stranger, bl.errors.UnknownTrial, "another study or optimizer"),
        (4, bl.errors.UnknownTrial, "trial 4 is unknown"),
        ("1", bl.errors.UnknownTrial, "trial '1' is unknown"),
    ]
    for (trial, error, match), several in itertools.product(wrong, [False, True]):
        with pytest.raises(error, match=match) as raised:
            owner.withdraw([observed, trial] if several else trial)
        assert "\n" not in str(raised.value)
    with pytest.raises(bl.errors.InvalidValue, match="reason=3 is not usable"):
        owner.withdraw(observed, reason=3)
    for call in (owner.fail, owner.abandon, owner.stop):
        with pytest.raises(bl.errors.AlreadyObserved, match="withdraw takes"):
            call(observed)
    assert owner._log.events(0) == events
    owner.withdraw([])
    assert owner._log.events(0) == events
    owner.withdraw((observed, 1, np.int64(1)), reason="漢 " * 2000)
    assert observed.state == "withdrawn" and len(observed.withdrawal.reason) < 2100


def test_a_handle_that_has_not_read_the_value_withdraws_it():
    store = MemoryStore()
    study = bl.Study("s", store, bl.RandomSearch(SPACE, seed=0))
    trial = study.suggest()
    other = bl.Study.load("s", store)
    trial.observe(1.0)
    other.withdraw(0, reason="seen elsewhere")
    study.sync()
    assert trial.withdrawal.reason == "seen elsewhere"


def test_a_process_that_has_not_read_a_revision_withdraws(tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    study = bl.Study("s", url, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    study.observe(study.suggest(), 1.0)
    other = bl.Study.load("s", url)
    study.revise(space={"x": (0.0, 2.0)})
    other.withdraw(0, reason="wrong flask")
    assert study.trial(0).state == "withdrawn"
