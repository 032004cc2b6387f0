"""A trial stores the function's error. A run ends if its first evaluations all raise the same error. The exception of a
run holds the result."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from traceback import TracebackException

import numpy as np
import pytest

import belated as bl
from tests.ids import without_address
from tests.unit.run.runs import METHODS, SECONDS, SPACE, ManualExecutor, f, failures_expected, forks, states


def line_of(text):
    with open(__file__, encoding="utf-8") as file:
        return [number for number, line in enumerate(file, 1) if text in line and "line_of" not in line][0]


def typo(params):
    return params["lr"] ** 2  # the typo


def long_text(params):
    try:
        raise ValueError("first\n" * 1_000_000)
    except ValueError as error:
        raise RuntimeError("start" + "\n" * 4_000_000 + "end") from error


def by_level(params):
    if params["n"] > 4:
        raise OSError("a large one")
    raise OSError("a small one")


def in_a_library(params):
    if params["n"] > 4:
        return np.linalg.solve(np.zeros((2, 2)), np.ones(2))  # raises
    return np.linalg.solve(np.zeros((2, 2)), np.ones(2))


# The stored error of a trial.


@forks
@failures_expected
@pytest.mark.parametrize("processes", [False, True])
def test_a_failed_trial_keeps_its_error_and_attrs(processes):
    opt = bl.RandomSearch(SPACE, seed=0)
    opt.add({"x": 0.5, "n": 1}, 1.0)
    executor = ProcessPoolExecutor(1) if processes else None
    with pytest.raises(bl.errors.RunError):
        bl.maximize(typo_with_attrs, optimizer=opt, n_trials=2, executor=executor)
    trial = opt.trial(1)
    assert trial.state == "failed" and trial.value is None and trial.attrs == {"machine": "a"}
    assert (trial.error.type, trial.error.message) == ("KeyError", "'lr'")
    assert "typo_with_attrs" in trial.error.traceback
    if executor is not None:
        executor.shutdown()


def typo_with_attrs(params, trial):
    trial.attrs["machine"] = "a"
    return params["lr"]


@failures_expected
def test_callbacks_see_failed_trials_without_a_value():
    seen = []

    def see(optimizer, trial):
        seen.append((trial.value, trial.state, str(trial.error)))

    with pytest.raises(bl.errors.RunError):
        bl.maximize(typo, SPACE, n_trials=2, callbacks=[see])
    assert seen == [(None, "failed", "KeyError: 'lr'")] * 2


# The first evaluations all raise the same error.


@failures_expected
@pytest.mark.parametrize(("n_workers", "n_first"), [(1, 3), (2, 3), (5, 5)])
def test_equal_first_errors_end_the_run(n_workers, n_first):
    message = f"^the first {n_first} evaluations all failed in the same way: f raised KeyError: 'lr' at .*test_errors"
    with pytest.raises(bl.errors.RunError, match=message) as raised:
        bl.maximize(typo, SPACE, n_trials=40, n_workers=n_workers, seed=0)
    assert f"line {line_of('# the typo')}" in str(raised.value)
    assert isinstance(raised.value.__cause__, KeyError)
    result = raised.value.result
    assert result.stop_reason == "error" and n_first <= result.n_failed <= len(result.trials) < n_first + n_workers


@failures_expected
@pytest.mark.parametrize("catch", [LookupError, (OSError, KeyError, Exception)])
@pytest.mark.parametrize("workers", [{}, {"processes": True}])
def test_errors_that_catch_names_are_expected_and_do_not_end_the_run(catch, workers):
    opt = bl.RandomSearch(SPACE, seed=0)
    opt.enqueue([{"x": 0.5, "n": n} for n in (8, 8, 8, 1)])
    result = bl.maximize(at_most_4, optimizer=opt, n_trials=4, catch=catch, **workers)
    assert states(result) == ["failed"] * 3 + ["observed"]


def at_most_4(params):
    if params["n"] > 4:
        raise KeyError(params["n"])
    return params["x"]


@failures_expected
@pytest.mark.parametrize(
    "bad",
    [None, np.nan, "0.5", {"loss": 0.5}, (0.9, 76.0)],
    ids=without_address,
)
@pytest.mark.parametrize(("n_workers", "n_first"), [(1, 3), (5, 5)])
def test_equal_first_unusable_values_end_the_run(bad, n_workers, n_first):
    calls = []

    def f_returning(params):
        calls.append(params)
        return bad

    with pytest.raises(
        bl.errors.RunError, match=f"^the first {n_first} evaluations all failed in the same way: f returned"
    ):
        bl.maximize(f_returning, SPACE, n_trials=40, n_workers=n_workers, seed=0)
    assert n_first <= len(calls) < n_first + n_workers


@failures_expected
def test_equal_first_unusable_values_in_processes_end_the_run():
    message = "^the first 3 evaluations all failed in the same way: f returned None"
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context) as pool, pytest.raises(bl.errors.RunError, match=message):
        bl.maximize(no_value, SPACE, n_trials=9, executor=pool)


def no_value(params):
    return None


@failures_expected
def test_unusable_values_of_several_types_do_not_end_a_run():
    returns = iter([None, np.nan, None] + [np.nan] * 6)
    with pytest.raises(bl.errors.RunError) as raised:
        bl.maximize(lambda params: next(returns), SPACE, n_trials=9)
    assert raised.value.result.n_failed == 9


@METHODS
@forks
@failures_expected
def test_equal_first_errors_in_processes_end_the_run(method):
    with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
        with pytest.raises(bl.errors.RunError, match=f"^the first 3 .*line {line_of('# the typo')}") as raised:
            bl.maximize(typo, SPACE, n_trials=40, executor=pool)
        assert isinstance(raised.value.__cause__, KeyError) and "typo" in str(raised.value.__cause__.__cause__)


@failures_expected
@pytest.mark.parametrize("f_raising", [by_level, in_a_library])
def test_errors_at_several_lines_do_not_end_a_run(f_raising):
    opt = bl.RandomSearch(SPACE, seed=0)
    opt.enqueue([{"x": 0.5, "n": n} for n in (1, 8, 8)])
    with pytest.raises(bl.errors.RunError) as raised:
        bl.maximize(f_raising, optimizer=opt, n_trials=9)
    assert raised.value.result.n_failed == 9


@failures_expected
def test_the_line_of_an_error_is_in_the_users_code_not_in_a_library():
    opt = bl.RandomSearch(SPACE, seed=0)
    opt.enqueue([{"x": 0.5, "n": 8}] * 3)
    with pytest.raises(
        bl.errors.RunError, match=f"^the first 3.*LinAlgError.*test_errors.py, line {line_of('# raises')};"
    ):
        bl.maximize(in_a_library, optimizer=opt, n_trials=9)


@failures_expected
def test_errors_of_several_types_do_not_end_a_run():
    kinds = iter([ValueError, ValueError, KeyError] + [ValueError] * 9)

    def raising(params):
        raise next(kinds)("…")

    with pytest.raises(bl.errors.RunError) as raised:
        bl.maximize(raising, SPACE, n_trials=9)
    assert raised.value.result.n_failed == 9


@failures_expected
def test_equal_errors_do_not_end_a_run_with_a_value():
    opt = bl.RandomSearch(SPACE, seed=0)
    opt.add({"x": 0.5, "n": 1}, 1.0)
    with pytest.raises(bl.errors.RunError) as raised:
        bl.maximize(typo, optimizer=opt, n_trials=9)
    assert raised.value.result.n_failed == 9
    outcomes = iter([typo, f] + [typo] * 7)
    assert bl.maximize(lambda params: next(outcomes)(params), SPACE, n_trials=9).n_failed == 8


@failures_expected
def test_equal_errors_after_another_one_do_not_end_a_run():
    returns = iter([np.nan])

    def fails(params):
        return next(returns)

    with pytest.raises(bl.errors.RunError, match="^none of 9 trials succeeded, and 9 failed"):
        bl.maximize(fails, SPACE, n_trials=9)


# Exceptions that end a run.


class Frozen(Exception):
    """An exception that does not take attributes."""

    def __setattr__(self, name, value):
        if not name.startswith("__"):
            raise AttributeError(name)
        super().__setattr__(name, value)


@pytest.mark.parametrize("workers", [{}, {"n_workers": 2}])
@pytest.mark.parametrize("kind", [ValueError, SystemExit, GeneratorExit])
def test_errors_of_f_have_the_result(kind, workers):
    def raising(params):
        if params["n"] == 8:
            raise kind("…")
        return f(params)

    opt = bl.RandomSearch(SPACE, seed=0)
    opt.enqueue([{"x": 0.5, "n": n} for n in (1, 8)])
    with pytest.raises(kind) as raised:
        bl.maximize(raising, optimizer=opt, n_trials=9, catch=(), **workers)
    result = raised.value.result
    assert result.optimizer is opt and result.stop_reason == "error" and result.n_failed == 1
    assert states(result)[1] == "failed" and result.best_value_ is not None


def test_exceptions_without_attributes_are_raised_unchanged():
    def callback(optimizer, trial):
        raise Frozen("…")

    with pytest.raises(Frozen) as raised:
        bl.maximize(f, SPACE, n_trials=9, callbacks=[callback])
    assert not hasattr(raised.value, "result")


def test_a_callback_that_raises_leaves_the_result():
    def callback(optimizer, trial):
        if trial.number == 2:
            raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match="the disk is full") as raised:
        bl.maximize(f, SPACE, n_trials=9, callbacks=[callback])
    assert states(raised.value.result) == ["observed"] * 3
    assert raised.value.result.best_value_ == max(trial.value for trial in raised.value.result.trials)


def test_an_optimizer_that_raises_leaves_the_result(monkeypatch):
    opt = bl.RandomSearch(SPACE)
    suggest = opt.suggest

    def third(*arguments):
        if opt.n_trials == 2:
            raise OSError("no more numbers")
        return suggest(*arguments)

    monkeypatch.setitem(vars(opt), "suggest", third)
    with pytest.raises(OSError, match="no more numbers") as raised:
        bl.maximize(f, optimizer=opt, n_trials=9)
    assert len(raised.value.result.trials) == 2


def test_a_run_within_a_run_keeps_its_own_result():
    inner = []

    def outer(params):
        try:
            bl.maximize(f, SPACE, n_trials=3, executor=ManualExecutor({0: [0, 1]}), n_workers=1)
        except Exception as error:
            inner.append(error.result)
            raise

    with pytest.raises(bl.errors.RunError, match="ManualExecutor") as raised:
        bl.maximize(outer, SPACE, n_trials=9, catch=())
    assert raised.value.result is inner[0]


@failures_expected
def test_an_interrupt_has_the_result_and_a_prompt_returns_it(monkeypatch):
    def interrupted(params):
        if params["n"] == 8:
            raise KeyboardInterrupt
        return f(params)

    def outer(params):
        return bl.maximize(interrupted, optimizer=inner, n_trials=9).best_value_

    opt, inner = bl.RandomSearch(SPACE), bl.RandomSearch(SPACE)
    opt.enqueue([{"x": 0.5, "n": n} for n in (1, 8)])
    inner.enqueue([{"x": 0.5, "n": n} for n in (1, 8)])
    with pytest.raises(KeyboardInterrupt) as raised:
        bl.maximize(interrupted, optimizer=opt, n_trials=9, timeout=SECONDS)
    best = raised.value.result
    assert best.stop_reason == "interrupted" and best.optimizer is opt and states(best) == ["observed", "pending"]
    with pytest.raises(KeyboardInterrupt) as raised:
        bl.maximize(outer, SPACE, n_trials=9)
    assert raised.value.result.optimizer is not inner and states(raised.value.result) == ["pending"]
    assert [trial.state for trial in inner.trials] == ["observed", "pending"]
    monkeypatch.setattr("sys.ps1", ">>> ", raising=False)
    opt.enqueue({"x": 0.5, "n": 8})
    best = bl.maximize(interrupted, optimizer=opt, n_trials=9)
    assert best.stop_reason == "interrupted" and states(best) == ["pending"]


@failures_expected
@pytest.mark.parametrize("n_workers", [1, 2])
def test_a_long_text_is_shortened_before_it_is_formatted(n_workers, monkeypatch):
    # Python's traceback module formats a text line by line, which would take several seconds for the whole text.
    lengths, format_text = [], TracebackException.format_exception_only

    def noted(self, **arguments):
        lengths.append(len(self._str))
        return format_text(self, **arguments)

    monkeypatch.setattr(TracebackException, "format_exception_only", noted)
    with pytest.raises(bl.errors.RunError) as end:
        bl.maximize(long_text, SPACE, n_trials=4, n_workers=n_workers, seed=0)
    assert 1000 < max(lengths) <= 2048
    assert len(str(end.value)) < 3000 and "start" in str(end.value) and "end" in str(end.value)
    error = end.value.result.trials[0].error
    assert len(error.message) <= 2048 and error.message.startswith("start") and error.message.endswith("end")
    assert "long_text" in error.traceback and "ValueError: first" in error.traceback
