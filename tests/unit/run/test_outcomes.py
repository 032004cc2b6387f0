"""Outcomes of evaluations: which parts of values and errors are stored, and how outcomes are sent between processes."""

import copyreg
import errno
import importlib
import inspect
import operator
import pickle
import re
import traceback
from concurrent.futures import BrokenExecutor, CancelledError, Future

import numpy as np
import pytest

import belated as bl
from belated.run.evaluations import PICKLING_ADVICE
from belated.run.objective import Evaluation, objective, read_returned
from belated.run.raised import Place, Sendable, format_error, last_line_of_user
from belated.run.worker_errors import WorkersDoNotStart
from tests.unit.run.runs import SPACE, ManualExecutor, f, failures_expected, states

# Values.


def test_missing_fields_are_none():
    assert read_returned(1.0, {}, 0.5) == Evaluation(1.0, None, None, None, 0.5)
    assert read_returned({"value": 1.0, "attrs": {}}, {}, 0.5) == Evaluation(1.0, None, None, None, 0.5)
    assert read_returned({"value": 1.0, "attrs": {"a": 1}}, {"b": 2}, 0.5).attrs == {"b": 2, "a": 1}
    assert read_returned(None, {}, 0.5).attrs is None and read_returned(None, {"b": 2}, 0.5).attrs == {"b": 2}


# The next tests transfer errors between processes.


def raised(call):
    try:
        call()
    except BaseException as error:
        return error


def test_an_unpickled_outcome_has_its_traceback_as_text():
    outcome = objective(lambda params: params["y"], ["x"], (Exception,))(3, {"x": 0.5})
    assert outcome.caught and (outcome.place.kind, outcome.place.file) == ("builtins.KeyError", __file__)
    again = pickle.loads(pickle.dumps(outcome))
    assert type(again.error) is KeyError and again.error.args == ("y",) and again.place == outcome.place
    assert (again.caught, again.duration, again.attrs) == (True, outcome.duration, None)
    text = str(again.error.__cause__)
    assert text.startswith("in a worker:\n\nTraceback (most recent call last):\n") and "KeyError: 'y'" in text
    # The traceback does not contain the line of this package that calls f.
    assert "objective.py" not in text and 'params["y"]' in text


def test_attrs_that_cannot_be_pickled_become_text_with_a_reason():
    attrs = {"f": print, "n": 1, "g": lambda: 0}
    returned = {"value": 1.0, "std": 0.5, "cost": 2.0, "attrs": attrs}
    for sent in (
        read_returned(returned, {}, 0.25),
        read_returned({"value": 1.0, "std": 0.5, "cost": 2.0}, attrs, 0.25),
    ):
        value = pickle.loads(pickle.dumps(sent))
        assert (value.value, value.std, value.cost, value.duration, value.problem) == (1.0, 0.5, 2.0, 0.25, "")
        assert value.attrs["n"] == 1 and "<lambda>" in value.attrs["g"] and "attrs['f']" in value.notes["attrs"]
    failed = pickle.loads(pickle.dumps(read_returned(float("nan"), attrs, 0.25)))
    assert failed.value is None and failed.problem.startswith("f returned nan") and failed.attrs["n"] == 1


class Unreadable(Exception):
    """An object that can be pickled but not unpickled."""

    def __init__(self, a, b):
        super().__init__(f"{a}{b}")


def test_errors_that_cannot_be_pickled_become_runtime_errors_with_their_text(monkeypatch):
    # If distributed was imported, tblib can pickle all exceptions.
    monkeypatch.delitem(copyreg.dispatch_table, Unreadable, raising=False)

    def sent(error):
        return pickle.loads(pickle.dumps(Sendable(error)))

    error = sent(Unreadable("no ", "way"))
    assert type(error) is RuntimeError and str(error) == f"{__name__}.Unreadable: no way"
    with_lambda = ValueError("x", lambda: 0)
    assert type(sent(with_lambda)) is RuntimeError and type(sent(KeyError("y"))) is KeyError
    assert format_error(KeyError("y")) == "KeyError: 'y'" and format_error(ValueError()) == "ValueError"


def test_the_place_of_an_error_is_the_last_line_that_is_not_of_a_library():
    error = raised(lambda: np.linalg.solve(np.zeros((2, 2)), np.ones(2)))
    place = last_line_of_user(error)
    line = error.__traceback__.tb_next.tb_lineno
    assert place == Place("numpy.linalg.LinAlgError", __file__, line) and str(place) == f" at {__file__}, line {line}"
    # If the traceback does not contain a line of the user's code, the reported line is the last line of a library. For
    # an error without a traceback, no line is reported.
    error.__traceback__ = error.__traceback__.tb_next.tb_next
    in_numpy = last_line_of_user(error)
    assert "numpy" in in_numpy.file and in_numpy.line > 0
    nowhere = last_line_of_user(KeyError("y"))
    assert nowhere == Place("builtins.KeyError", "", 0) and str(nowhere) == ""


def test_frames_of_importlib_are_not_lines_of_the_user():
    error = raised(lambda: importlib.import_module("no_such_module"))
    assert "<frozen importlib._bootstrap>" in [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    assert last_line_of_user(error).file == __file__


@failures_expected
def test_errors_of_functions_without_source_lines_have_no_place():
    message = r"^the first 3 evaluations all failed in the same way: f raised KeyError: 'y'; the run ends here, because"
    with pytest.raises(bl.errors.RunError, match=message):
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
def test_system_exit_can_be_caught():
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


def test_a_function_of_trial_and_kwargs_gets_both():
    best = bl.maximize(lambda trial, *rest: rest[0]["x"] + 0 * trial.number, SPACE, n_trials=2, seed=0)
    assert [trial.value for trial in best.trials] == [trial.params["x"] for trial in best.trials]


@pytest.mark.parametrize(
    ("names", "advice"),
    [
        ("suggest_float suggest_int suggest_categorical suggest_uniform suggest_loguniform", "trial.params[name]"),
        ("set_user_attr set_metric_names", "trial.attrs[name] = value"),
        ("user_attrs", "trial.attrs"),
        ("should_prune", "use trial.should_stop()"),
    ],
)
def test_error_for_a_trial_attribute_of_another_package_gives_advice(names, advice):
    for name in names.split():
        with pytest.raises(AttributeError, match=f"{name!r}: .*{re.escape(advice)}"):
            getattr(bl.RunningTrial(0, {}), name)
    with pytest.raises(AttributeError, match="no attribute 'other'$"):
        _ = bl.RunningTrial(0, {}).other


# Errors of executors.


class FailsWith(ManualExecutor):
    """An executor whose second call ends with the given error."""

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
    ("error", "parts", "state"),
    [
        (BrokenExecutor("all gone."), ("BrokenExecutor: all gone;", "still pending", "processes=True"), "pending"),
        (CancelledError(), ("CancelledError;", "cancelled"), "abandoned"),
        (TypeError("cannot Pickle it"), ("TypeError: cannot Pickle it;", PICKLING_ADVICE), "abandoned"),
        (TypeError("not SERIALIZABLE"), ("TypeError: not SERIALIZABLE;", PICKLING_ADVICE), "abandoned"),
        (AttributeError("no f"), ("AttributeError: no f;", PICKLING_ADVICE), "abandoned"),
        (ModuleNotFoundError("no m"), ("ModuleNotFoundError: no m;", PICKLING_ADVICE), "abandoned"),
        (ConnectionError("the cluster is gone."), ("ConnectionError: the cluster is gone",), "abandoned"),
        (WorkersDoNotStart("3 in a row"), ("WorkersDoNotStart: 3 in a row;", PICKLING_ADVICE), "abandoned"),
        (
            OSError(errno.EMFILE, "Too many open files"),
            ("Too many open files;", "smaller n_workers than 1", "ulimit -n"),
            "abandoned",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_error_of_the_executor_ends_the_run_with_advice(error, parts, state):
    with pytest.raises(bl.errors.RunError, match="^FailsWith could not evaluate trial 1: ") as caught:
        bl.maximize(f, SPACE, n_trials=9, executor=FailsWith(error), n_workers=1)
    assert all(part in str(caught.value) for part in parts)
    assert caught.value.__cause__ is error and states(caught.value.result) == ["observed", state]


# Warnings about remaining trials.


@pytest.mark.filterwarnings("ignore:trial 0 failed:belated.BelatedWarning")
def test_a_failed_trial_whose_attrs_are_not_json_keeps_its_error():
    def fails(params, trial):
        trial.attrs["f"] = 1j
        raise OSError("no such level")

    message = r"^trial 0: attrs\['f'\]=1j is not JSON data.*; the report is stored"
    with pytest.warns(bl.BelatedWarning, match=message) as warned, pytest.raises(bl.errors.RunError) as caught:
        bl.maximize(fails, SPACE, n_trials=2)
    assert len([each for each in warned if "the report is stored" in str(each.message)]) == 1
    trials = caught.value.result.trials
    assert [(str(trial.error), trial.attrs) for trial in trials] == [("OSError: no such level", {"f": "1j"})] * 2
