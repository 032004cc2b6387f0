"""The warning of runs in which workers mostly wait for suggestions; the clock is set by the tests."""

import warnings
from concurrent.futures import Executor, Future

import pytest

import belated as bl
from belated.run.pace import Pace
from belated.store.memory import MemoryStore
from tests.clock import Clock
from tests.unit.run.runs import SPACE


class AtOnce(Executor):
    """An executor of any number of workers, each of which evaluates a call when it is submitted."""

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("belated.run.pace.monotonic", clock)
    monkeypatch.setattr("belated.run.objective.perf_counter", clock)
    return clock


def warned(clock, monkeypatch, suggestion, evaluation, n_trials, n_workers=1, optimizer=None, **arguments):
    """Return the warnings of a run whose suggestions and evaluations take the given seconds."""
    optimizer = bl.BayesOpt(SPACE, initial=1000, seed=0) if optimizer is None else optimizer
    suggest = type(optimizer).suggest

    def slow(self, *args, **kwargs):
        clock.now += suggestion
        return suggest(self, *args, **kwargs)

    def f(params):
        clock.now += evaluation
        return 1.0

    monkeypatch.setattr(type(optimizer), "suggest", slow)
    executor = None if n_workers == 1 else AtOnce()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bl.maximize(f, optimizer=optimizer, n_trials=n_trials, n_workers=n_workers, executor=executor, **arguments)
    assert all(each.category is bl.BelatedWarning for each in caught)
    return [str(each.message) for each in caught]


def test_a_run_warns_once_after_30_seconds_of_suggestions(clock, monkeypatch):
    found = warned(clock, monkeypatch, 3.0, 1.0, 40)
    assert found == [
        "a suggestion takes 3e+03 ms and an evaluation 1e+03 ms, so the worker was busy 25 % of the time; "
        "optimizer=bl.TreeSearch(space) or optimizer=bl.RandomSearch(space) is faster, and so is BayesOpt with "
        "search=bl.Search(effort=0.25)"
    ]


@pytest.mark.parametrize(
    ("suggestion", "evaluation", "n_trials", "expected"),
    [(3.0, 1.0, 9, False), (3.0, 1.0, 10, True), (3.0, 3.1, 100, False), (1.0, 0.0, 29, False), (1.0, 0.0, 30, True)],
)
def test_short_runs_and_slow_functions_do_not_warn(clock, monkeypatch, suggestion, evaluation, n_trials, expected):
    assert bool(warned(clock, monkeypatch, suggestion, evaluation, n_trials)) == expected


def test_the_share_of_several_workers_and_searches_without_models(clock, monkeypatch):
    # The evaluations follow each other: 40 of 160 seconds, in which 4 workers could evaluate.
    [found] = warned(clock, monkeypatch, 3.0, 1.0, 40, n_workers=4)
    assert "so the 4 workers were busy 6 % of the time" in found
    assert warned(clock, monkeypatch, 3.0, 1.0, 40, optimizer=bl.RandomSearch(SPACE, seed=0)) == []


def test_advice_names_only_searches_that_support_the_problem(clock):
    parts = dict.fromkeys("abc", (0.0, 1.0))
    for optimizer, names in (
        (bl.BayesOpt(SPACE, direction="minimize"), ["TreeSearch", "RandomSearch"]),
        (bl.BayesOpt(parts, constraints=[bl.Mixture(list("abc"))]), ["RandomSearch"]),
        (bl.BayesOpt(SPACE, context={"t": (0.0, 1.0)}), ["RandomSearch"]),
        (bl.BayesOpt(candidates=[[0.0], [1.0]]), ["RandomSearch"]),
        (bl.BayesOpt(SPACE, outcomes={"y": "maximize", "z": bl.Record()}), ["RandomSearch"]),
        (bl.Study("s", MemoryStore(), bl.BayesOpt(SPACE)), ["TreeSearch", "RandomSearch"]),
    ):
        pace = Pace(2)
        pace.submit(0)
        pace.finished(0, None)
        with pace.suggestion():
            clock.now += 40.0
        advice = pace.advice(optimizer)
        assert [name for name in ("TreeSearch", "RandomSearch") if name in advice] == names
        assert ("direction='minimize'" in advice) == (optimizer.direction == "minimize")
        assert ("candidates=" in advice) == ("effort" not in advice)
        # A worker that evaluates throughout is busy, also before its evaluation ends.
        pace.submitted[1] = clock.now - 40.0
        assert pace.advice(optimizer) is None
