"""The work that a run does for each evaluation does not grow with the number of evaluations.

Instead of times, the tests count executed lines, function calls, and the entries of lists that the log returns.
"""

import gc
import logging
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import belated as bl
from belated.run.objective import objective
from belated.run.total import Total
from tests.unit.run.runs import SPACE, f


class CountingLog:
    """A log that counts the entries of the lists that it returns."""

    def __init__(self, log):
        self.log, self.n_entries = log, 0

    def __getattr__(self, name):
        method = getattr(self.log, name)

        def call(*arguments, **keywords):
            returned = method(*arguments, **keywords)
            self.n_entries += len(returned) if isinstance(returned, list) else 0
            return returned

        return call

    def __len__(self):
        return len(self.log)


class Bar:
    """A progress bar without output."""

    def set_postfix(self, facts, refresh):
        pass

    def update(self, n):
        pass

    def close(self):
        pass


def work(opt, n, **arguments):
    """Make a run of n evaluations; for the calling thread, return (number of lines and calls, number of returned
    entries)."""
    counting = vars(opt)["_log"] = CountingLog(opt._log)
    counted = 0

    def count(frame, event, arg):
        nonlocal counted
        counted += 1
        return count

    before = sys.gettrace(), sys.getprofile()
    # The garbage collector is disabled, because its callbacks would be counted as calls at arbitrary times.
    gc.disable()
    sys.setprofile(count)
    sys.settrace(count)
    try:
        result = bl.maximize(f, optimizer=opt, n_trials=n, **arguments)
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
        gc.enable()
    assert result.n_trials == n and result.stop_reason == "n_trials"
    return counted, counting.n_entries


def random_search():
    return bl.RandomSearch(SPACE, seed=0)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"n_trials_total": 10_000},
        {"budget": 10_000.0},
        {"callbacks": [bl.NoImprovement(10_000), bl.ValueReached(1.0)]},
        {"progress": True},
        {"n_workers": 4},
        {"timeout": 600.0},
    ],
    ids=str,
)
def test_the_work_for_an_evaluation_does_not_grow(arguments, monkeypatch):
    if "progress" in arguments:
        pytest.importorskip("tqdm")
        monkeypatch.setattr("tqdm.auto.tqdm", lambda **_: Bar())
    few, many = (work(random_search(), n, **arguments) for n in (200, 2000))
    # The factor may be larger than 10, because the number of waits for other threads varies.
    at_most = 20 if "n_workers" in arguments or "timeout" in arguments else 11
    assert all(after <= at_most * before for before, after in zip(few, many, strict=True))


def test_the_work_does_not_grow_where_values_are_logged(caplog):
    with caplog.at_level(logging.INFO, logger="belated"):
        few, many = (work(random_search(), n) for n in (100, 1000))
    assert all(after <= 11 * before for before, after in zip(few, many, strict=True))


def test_a_total_reads_earlier_trials_once():
    none, some = random_search(), random_search()
    for trial in some.suggest(n=500):
        trial.abandon()
    (_, before), (_, after) = (work(opt, 100, n_trials_total=1000) for opt in (none, some))
    assert after <= before + 1000  # the events before the run


def test_a_trial_is_made_only_for_functions_that_take_one(monkeypatch):
    made = []
    monkeypatch.setattr("belated.run.objective.RunningTrial", lambda *given, **others: made.append(given))
    point = {"x": 1.0}
    assert objective(lambda params: params["x"], ["x"], ())(3, point).value == 1.0 and not made
    objective(lambda params, trial: 1.0, ["x"], (ArithmeticError, AttributeError))(3, point)
    assert made == [(3, point)] and made[0][1] is not point


steps = st.lists(st.tuples(st.sampled_from(["suggest", "add", "observe", "fail", "abandon"]), st.integers(0, 7)))


@given(steps)
def test_a_total_equals_a_count_of_all_trials(steps):
    opt = random_search()
    total, suggested = Total(opt, 5), []
    for what, i in steps:
        if what == "suggest":
            suggested.append(opt.suggest())
        elif what == "add":
            opt.add({"x": 0.5, "n": 1})
        elif i < opt.n_trials and opt.trial(i).value is None:
            trial = opt.trial(i)
            trial.observe(1.0) if what == "observe" else getattr(trial, what)()
        if i % 2:  # the total includes earlier trials
            assert total.left() == 5 - sum(trial.state != "abandoned" for trial in suggested)
    assert total.left() == 5 - sum(trial.state != "abandoned" for trial in suggested)
