"""Evaluations that fail because of an exception or an invalid result of f, or because the executor does not work."""

import copyreg
import os
import pickle
import sys
import threading
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest

import belated as bl
from tests.unit.run.runs import SPACE, ManualExecutor, by_params, f, failures_expected, forks, states, wait_for

# Exceptions of f.


def test_a_trial_whose_evaluation_raises_has_failed():
    with pytest.warns(bl.BelatedWarning, match="^trial [0-9]+ failed: f raised .*OSError.* no such level") as warned:
        best = bl.maximize(by_params, SPACE, n_trials=20, n_workers=3, seed=0)
    assert len(warned) == 1 and warned[0].filename == __file__
    assert states(best) == ["failed" if trial.params["n"] > 4 else "observed" for trial in best.trials]
    assert best.n_failed == states(best).count("failed") > 0


def test_warnings_name_the_line_of_the_caller_however_deep_the_call_is():
    def from_a_callback(optimizer, trial):
        bl.minimize(by_params, SPACE, n_trials=20, seed=0)  # warns here

    with pytest.warns(bl.BelatedWarning, match="^trial [0-9]+ failed") as warned:
        bl.maximize(f, SPACE, n_trials=1, callbacks=[from_a_callback])
    with open(__file__, encoding="utf-8") as file:
        lines = file.readlines()
    assert [("# warns here" in lines[each.lineno - 1], each.filename) for each in warned] == [(True, __file__)]


@pytest.mark.parametrize("catch", [(), [], ValueError, (ValueError, KeyError)])
@pytest.mark.parametrize("workers", [{}, {"n_workers": 3}])
def test_other_exceptions_surface(catch, workers):
    opt = bl.BayesOpt(SPACE, seed=0)
    opt.enqueue({"x": 0.5, "n": 8})
    with warnings.catch_warnings(), pytest.raises(OSError, match="no such level") as raised:
        warnings.simplefilter("error")
        bl.maximize(by_params, optimizer=opt, n_trials=20, catch=catch, **workers)
    assert "by_params" in [entry.name for entry in raised.traceback]
    assert opt.trial(0).state == "failed"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert bl.maximize(by_params, optimizer=opt, n_trials=5, catch=OSError).stop_reason == "n_trials"


def test_system_exit_is_not_swallowed():
    opt = bl.RandomSearch(SPACE, seed=0)
    for workers in (1, 2):
        with pytest.raises(SystemExit):
            bl.maximize(lambda params: sys.exit(3), optimizer=opt, n_trials=5, n_workers=workers)
    assert opt.trial(0).state == "failed"


class Awkward(Exception):
    """An exception that can be pickled but not unpickled, like many exceptions with additional arguments."""

    def __init__(self, what, reason):
        super().__init__(f"{what} because {reason}")


def awkward(params):
    raise Awkward("nothing works", "it is Monday")


@forks
def test_exceptions_from_processes_have_their_traceback(monkeypatch):
    # If distributed was imported, tblib can pickle all exceptions.
    monkeypatch.delitem(copyreg.dispatch_table, Awkward, raising=False)
    opt = bl.RandomSearch(SPACE, seed=0)
    with ProcessPoolExecutor(1) as pool:
        with pytest.raises(OSError) as raised:
            bl.maximize(by_params, optimizer=opt, n_trials=20, executor=pool, catch=())
        assert "in by_params" in str(raised.value.__cause__)
        with pytest.raises(RuntimeError, match="Awkward: nothing works because it is Monday"):
            bl.maximize(awkward, SPACE, n_trials=3, executor=pool, catch=ValueError)
        # `catch` is compared with the class of the original error.
        with pytest.warns(bl.BelatedWarning, match="Awkward"), pytest.raises(bl.errors.RunError, match="Awkward"):
            bl.maximize(awkward, SPACE, n_trials=3, executor=pool, catch=Awkward)


@failures_expected
@pytest.mark.parametrize("workers", [{}, {"n_workers": 3}])
def test_a_run_without_a_success_is_an_error(workers):
    opt = bl.BayesOpt(SPACE, seed=0)
    opt.add({"x": 0.5, "n": 1}, 1.0)
    with pytest.raises(bl.errors.RunError, match="KeyError: 'y'") as raised:
        bl.maximize(lambda params: params["y"], optimizer=opt, n_trials=6, **workers)
    assert isinstance(raised.value.__cause__, KeyError)
    assert raised.value.result.n_failed == 6 and raised.value.result.best_value_ == 1.0
    with pytest.raises(bl.errors.RunError) as raised:
        bl.minimize(lambda params: np.nan, SPACE, n_trials=2)
    assert raised.value.result.n_failed == 2


@failures_expected
def test_a_failure_does_not_block_other_workers():
    fail_now = threading.Event()

    def fails(params):
        if params["n"] == 8:
            wait_for(fail_now)
            raise ValueError("late, too")
        fail_now.set()
        return f(params)

    opt = bl.BayesOpt(SPACE, seed=0)
    opt.enqueue([{"x": 0.5, "n": 8}, {"x": 0.5, "n": 1}, {"x": 0.5, "n": 8}])
    best = bl.maximize(fails, optimizer=opt, n_trials=12, n_workers=2)
    assert states(best)[:3] == ["failed", "observed", "failed"] and "pending" not in states(best)


# Executors that do not work.


def test_functions_that_cannot_be_sent():
    opt = bl.BayesOpt(SPACE)
    unusable = pytest.raises(bl.errors.InvalidSetting, match="^f=<function .*cannot be sent.*top level of a module")
    with ProcessPoolExecutor(2) as pool, unusable:
        bl.maximize(lambda params: 1.0, optimizer=opt, n_trials=50, executor=pool)
    assert opt.n_trials == 0


class Sends(ThreadPoolExecutor):
    """An executor that accepts a call that cannot be sent, and reports the error as late as possible."""

    def submit(self, fn, /, *args):
        return super().submit(pickle.dumps, args)


@pytest.mark.parametrize("n_workers", [1, 4])
def test_functions_that_an_executor_cannot_send(n_workers):
    opt = bl.BayesOpt(SPACE)
    with Sends(1) as pool, pytest.raises(bl.errors.RunError, match="^Sends could not.*top level of a module") as raised:
        bl.maximize(lambda params: 1.0, optimizer=opt, n_trials=50, executor=pool, n_workers=n_workers)
    assert raised.value.__cause__ is not None and raised.value.result.stop_reason == "error"
    assert opt.n_trials <= n_workers and opt.trial(0).state == "abandoned" and opt.best_value_ is None


def die(params):
    if params["n"] > 4:
        os._exit(1)
    return f(params)


@forks
def test_a_process_that_dies():
    opt = bl.BayesOpt(SPACE, seed=0)
    opt.enqueue([{"x": 0.5, "n": 1}, {"x": 0.5, "n": 8}])
    with ProcessPoolExecutor(1) as pool:
        with pytest.raises(
            bl.errors.RunError, match="^ProcessPoolExecutor could not evaluate trial 1: .*worker"
        ) as raised:
            bl.maximize(die, optimizer=opt, n_trials=50, executor=pool)
        assert isinstance(raised.value.__cause__, BrokenProcessPool)
        assert [trial.state for trial in opt.trials] == ["observed", "pending"]
        # A broken pool does not accept another call, so the next trial is abandoned.
        with pytest.raises(bl.errors.RunError, match="trial 2"):
            bl.maximize(die, optimizer=opt, n_trials=50, executor=pool)
        assert opt.trial(2).state == "abandoned" and opt.n_trials == 3


def test_an_executor_that_was_shut_down():
    pool = ThreadPoolExecutor(2)
    pool.shutdown()
    with pytest.raises(bl.errors.RunError, match="shutdown"):
        bl.maximize(f, SPACE, n_trials=3, executor=pool)


def test_an_evaluation_that_is_cancelled_elsewhere():
    hand = ManualExecutor({1: [0]})
    with pytest.raises(bl.errors.RunError, match="trial 1.*was cancelled") as raised:
        bl.maximize(f, SPACE, n_trials=2, executor=hand, n_workers=2, callbacks=[lambda *_: hand.futures[1].cancel()])
    assert states(raised.value.result) == ["observed", "abandoned"]
