"""Outcomes of evaluations: what is kept of values and errors, and how they travel between processes."""

import copyreg
import errno
import importlib
import inspect
import operator
import pickle
import traceback
from concurrent.futures import BrokenExecutor, CancelledError, Future

import numpy as np
import pytest

import belated as bl
from belated.run.evaluations import PICKLING_ADVICE
from belated.run.lost import WorkersDoNotStart
from belated.run.objective import Outcome, objective, read_returned
from belated.run.raised import Place, format_error, last_line_of_user, picklable
from tests.unit.run.runs import SPACE, ManualExecutor, f, failures_expected, states

# Values.


def test_what_is_not_given_is_none():
    assert read_returned(1.0, {}, 0.5) == Outcome(1.0, None, None, None, 0.5)
    assert read_returned({"value": 1.0, "attrs": {}}, {}, 0.5) == Outcome(1.0, None, None, None, 0.5)
    assert read_returned({"value": 1.0, "attrs": {"a": 1}}, {"b": 2}, 0.5).attrs == {"b": 2, "a": 1}
    assert read_returned(None, {}, 0.5).attrs is None and read_returned(None, {"b": 2}, 0.5).attrs == {"b": 2}


class Shaped:
    """Not a number, with a shape that no array has, or with one and without an item."""

    def __init__(self, shape):
        self.shape = shape

    def __repr__(self):
        return "Shaped"


ACCEPTED = ": return a number, or a mapping with value and optionally std, cost and attrs"


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        (np.nan, "f returned nan, which is not one finite number"),
        (Shaped(1), "f returned Shaped, which is not one finite number"),
        (Shaped((1,)), "f returned Shaped, which is not one finite number"),
        (Shaped(None), "f returned Shaped, which is not one finite number"),
        (np.ones(3), "f returned array([1., 1., 1.]), which is not one finite number"),
        ([1.0], f"f returned [1.0], which is not one finite number{ACCEPTED}"),
        ({"value": "a"}, "f returned {'value': 'a'} with value='a', which is not one finite number"),
        ({}, f"f returned {{}}, a mapping without the key 'value'{ACCEPTED}"),
        ({"value": 1, "x": 2}, f"f returned {{'value': 1, 'x': 2}}, a mapping with the unknown key 'x'{ACCEPTED}"),
        (
            {"value": 1, "cost": -1},
            "f returned {'cost': -1, 'value': 1} with cost=-1, which is not a finite number >= 0",
        ),
        ({"value": 1, "attrs": [1]}, "f returned {'attrs': [1], 'value': 1} with attrs=[1], which is not a mapping"),
    ],
    ids=repr,
)
def test_what_is_wrong_with_a_value_is_said_whole(returned, problem):
    outcome = read_returned(returned, {}, 0.5)
    assert outcome == Outcome(duration=0.5, problem=problem, place=outcome.place)


# Errors and their way between processes.


def raised(call):
    try:
        call()
    except BaseException as error:
        return error


def test_an_outcome_with_an_error_comes_back_with_its_traceback_as_text():
    outcome = objective(lambda params: params["y"], ["x"], (KeyError,))(3, {"x": 0.5})
    assert outcome.caught and (outcome.place.kind, outcome.place.file) == ("builtins.KeyError", __file__)
    again = pickle.loads(pickle.dumps(outcome))
    assert type(again.error) is KeyError and again.error.args == ("y",) and again.place == outcome.place
    assert (again.caught, again.duration, again.attrs) == (True, outcome.duration, None)
    text = str(again.error.__cause__)
    assert text.startswith("in a worker:\n\nTraceback (most recent call last):\n") and "KeyError: 'y'" in text
    # The line of this package that called f is not part of it.
    assert "objective.py" not in text and 'params["y"]' in text


def test_attrs_that_cannot_travel_are_left_behind_with_a_reason():
    attrs = {"f": lambda: 0}
    value = pickle.loads(pickle.dumps(Outcome(1.0, 0.5, 2.0, attrs, 0.25)))
    assert (value.value, value.attrs, value.std, value.cost, value.duration) == (None, None, 0.5, 2.0, 0.25)
    assert value.problem.startswith("f left attrs that cannot be sent to another process: ")
    assert "pickle" in value.problem.lower()
    assert pickle.loads(pickle.dumps(Outcome(attrs=attrs, problem="f returned nan"))).problem == "f returned nan"
    error = pickle.loads(pickle.dumps(Outcome(attrs=attrs, error=OSError("no"))))
    assert (error.attrs, str(error.error), error.problem) == (None, "no", "")
    kept = Outcome(1.0, attrs={"a": [1]})
    assert pickle.loads(pickle.dumps(kept)) == kept


class Unreadable(Exception):
    """Can be pickled, and not read again."""

    def __init__(self, a, b):
        super().__init__(f"{a}{b}")


def test_errors_that_cannot_travel_become_runtime_errors_with_their_text(monkeypatch):
    # Where distributed was imported, tblib pickles all exceptions.
    monkeypatch.delitem(copyreg.dispatch_table, Unreadable, raising=False)
    error = picklable(Unreadable("no ", "way"))
    assert type(error) is RuntimeError and str(error) == f"{__name__}.Unreadable: no way"
    with_lambda = ValueError("x", lambda: 0)
    assert type(picklable(with_lambda)) is RuntimeError and picklable(error) is error
    assert format_error(KeyError("y")) == "KeyError: 'y'" and format_error(ValueError()) == "ValueError"


def test_the_place_of_an_error_is_the_last_line_that_is_not_of_a_library():
    error = raised(lambda: np.linalg.solve(np.zeros((2, 2)), np.ones(2)))
    place = last_line_of_user(error)
    line = error.__traceback__.tb_next.tb_lineno
    assert place == Place("numpy.linalg.LinAlgError", __file__, line) and str(place) == f" at {__file__}, line {line}"
    # Where no line is the user's, the last one of a library; where there is none at all, nothing.
    error.__traceback__ = error.__traceback__.tb_next.tb_next
    in_numpy = last_line_of_user(error)
    assert "numpy" in in_numpy.file and in_numpy.line > 0
    nowhere = last_line_of_user(KeyError("y"))
    assert nowhere == Place("builtins.KeyError", "", 0) and str(nowhere) == ""


def test_the_machinery_of_imports_is_no_line_of_the_user():
    error = raised(lambda: importlib.import_module("no_such_module"))
    assert "<frozen importlib._bootstrap>" in [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    assert last_line_of_user(error).file == __file__


@failures_expected
def test_a_function_without_lines_of_its_own_fails_without_a_place():
    message = r"^the first 3 evaluations all failed in the same way: f raised KeyError: 'y'; the run ends here, because"
    with pytest.raises(bl.RunError, match=message):
        bl.maximize(operator.itemgetter("y"), SPACE, n_trials=9)


@pytest.mark.parametrize("catch", [BaseException, (KeyboardInterrupt, ValueError)])
def test_an_interrupt_is_never_caught(catch):
    def interrupted(params):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as raised:
        bl.maximize(interrupted, SPACE, n_trials=9, catch=catch)
    best = raised.value.result
    assert best.stop_reason == "interrupted" and states(best) == ["pending"]


@failures_expected
def test_other_exceptions_that_are_no_errors_can_be_caught():
    def exits(params):
        if params["n"] > 4:
            raise SystemExit(3)
        return 1.0

    best = bl.maximize(exits, SPACE, n_trials=12, catch=SystemExit, seed=0)
    assert states(best) == ["failed" if trial.params["n"] > 4 else "observed" for trial in best.trials]


# How f is called.


class NoSignature:
    """A callable whose signature cannot be read."""

    __signature__ = 3

    def __call__(self, params):
        return params["x"]


def test_a_function_without_a_signature_is_called_with_the_params():
    with pytest.raises(TypeError):
        inspect.signature(NoSignature())
    best = bl.maximize(NoSignature(), SPACE, n_trials=2, seed=0)
    assert [trial.value for trial in best.trials] == [trial.params["x"] for trial in best.trials]


def test_a_function_of_the_trial_and_the_rest_gets_both():
    best = bl.maximize(lambda trial, *rest: rest[0]["x"] + 0 * trial.number, SPACE, n_trials=2, seed=0)
    assert [trial.value for trial in best.trials] == [trial.params["x"] for trial in best.trials]


@pytest.mark.parametrize(
    ("names", "advice"),
    [
        (
            "suggest_float suggest_int suggest_categorical suggest_uniform suggest_loguniform",
            "declare the space as an argument of the run, and read trial.params[name]",
        ),
        ("set_user_attr set_metric_names", "write trial.attrs[name] = value"),
        ("user_attrs", "use trial.attrs"),
        ("report should_prune", "belated does not prune by intermediate values"),
    ],
)
def test_a_trial_says_what_to_use_in_place_of_what_others_have(names, advice):
    for name in names.split():
        with pytest.raises(AttributeError) as caught:
            getattr(bl.RunningTrial(0, {}), name)
        assert str(caught.value) == f"'RunningTrial' object has no attribute {name!r}: {advice}"
    with pytest.raises(AttributeError) as caught:
        _ = bl.RunningTrial(0, {}).other
    assert str(caught.value) == "'RunningTrial' object has no attribute 'other'"


# Errors of executors.


class FailsWith(ManualExecutor):
    """Its second future ends with an error of its own."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def submit(self, fn, /, *args):
        future = Future()
        if args[1] == 0:
            future.set_result(fn(*args))
        else:
            future.set_exception(self.error)
        return future


@pytest.mark.parametrize(
    ("error", "text", "state"),
    [
        (
            BrokenExecutor("all gone."),
            "concurrent.futures._base.BrokenExecutor: all gone; a worker was killed, ran out of memory, or could not "
            "import f (which must be defined in a module, not in a notebook or at the prompt); the trials that were "
            "running are still pending; processes=True, in place of executor, replaces workers that die",
            "pending",
        ),
        (
            CancelledError(),
            "concurrent.futures._base.CancelledError; the future was cancelled, or the executor shut down, from "
            "elsewhere",
            "abandoned",
        ),
        (TypeError("cannot Pickle it"), f"TypeError: cannot Pickle it; {PICKLING_ADVICE}", "abandoned"),
        (TypeError("not SERIALIZABLE"), f"TypeError: not SERIALIZABLE; {PICKLING_ADVICE}", "abandoned"),
        (AttributeError("no f"), f"AttributeError: no f; {PICKLING_ADVICE}", "abandoned"),
        (ModuleNotFoundError("no m"), f"ModuleNotFoundError: no m; {PICKLING_ADVICE}", "abandoned"),
        (ConnectionError("the cluster is gone."), "ConnectionError: the cluster is gone", "abandoned"),
        (
            WorkersDoNotStart("3 in a row"),
            "belated.run.lost.WorkersDoNotStart: 3 in a row; where f is in a notebook or in no file, "
            f"{PICKLING_ADVICE}",
            "abandoned",
        ),
        (
            OSError(errno.EMFILE, "Too many open files"),
            f"OSError: [Errno {errno.EMFILE}] Too many open files; a worker process takes about 8 files: pass a "
            "smaller n_workers than 1, or raise the limit with ulimit -n",
            "abandoned",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_an_error_of_the_executor_ends_the_run_with_advice(error, text, state):
    with pytest.raises(bl.RunError) as caught:
        bl.maximize(f, SPACE, n_trials=9, executor=FailsWith(error), n_workers=1)
    assert str(caught.value) == f"FailsWith could not evaluate trial 1: {text}"
    assert caught.value.__cause__ is error and states(caught.value.result) == ["observed", state]


# What is said about trials that are left.


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (
            1,
            "trial 0 still ran at the timeout and is pending: report a value with observe when it is known, or abandon",
        ),
        (
            2,
            "trials 0, 1 still ran at the timeout and are pending: report a value with observe when it is known, or "
            "abandon",
        ),
    ],
)
def test_trials_that_still_run_at_the_timeout_are_named(n, text):
    with pytest.warns(bl.BelatedWarning) as warned:
        best = bl.maximize(f, SPACE, executor=Running(), n_workers=n, timeout=0.05)
    assert [str(each.message) for each in warned] == [text]
    assert best.stop_reason == "timeout" and states(best) == ["pending"] * n


class Running(ManualExecutor):
    """Its evaluations have begun, and never end."""

    def submit(self, fn, /, *args):
        future = super().submit(fn, *args)
        future.set_running_or_notify_cancel()
        return future


@pytest.mark.filterwarnings("ignore:trial 0 failed:belated.BelatedWarning")
def test_a_failed_trial_whose_attrs_cannot_be_kept_keeps_its_error():
    def fails(params, trial):
        trial.attrs["f"] = object()
        raise OSError("no such level")

    message = "^attrs of trial 0 were not kept: "
    with pytest.warns(bl.BelatedWarning, match=message) as warned, pytest.raises(bl.RunError) as caught:
        bl.maximize(fails, SPACE, n_trials=2)
    assert len([each for each in warned if "were not kept" in str(each.message)]) == 1
    trials = caught.value.result.trials
    assert [(str(trial.error), trial.attrs) for trial in trials] == [("OSError: no such level", {})] * 2
