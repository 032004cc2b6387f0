"""Tests of runs with learning curves: generators, reports of workers, and trials that are stopped."""

import json
import math
from collections import Counter
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

import belated as bl
from belated.run.curves import DirectReports
from belated.run.worker_errors import WorkerDied
from belated.store.memory import MemoryStore
from tests.unit.run.runs import STEPS, failures_expected, forks, reports, search

SPACE = {"x": (0.0, 1.0)}


def rising(params):
    """A generator whose values rise to x."""
    for step in range(1, STEPS + 1):
        yield params["x"] * step / STEPS


def optimizer(**arguments):
    return search(SPACE, **arguments)


@pytest.mark.parametrize("f", [rising, reports])
@pytest.mark.parametrize("workers", [{}, {"n_workers": 3}, {"n_workers": 2, "processes": True}], ids=str)
def test_stopped_trials_have_shorter_curves_and_no_value(f, workers):
    result = bl.maximize(f, optimizer=optimizer(), n_trials=12, **workers)
    states = Counter(trial.state for trial in result.trials)
    assert states["stopped"] >= 3 and states["observed"] >= 1 and states.total() == 12
    for trial in result.trials:
        values = [trial.params["x"] * step / STEPS for step in trial.curve]
        assert list(trial.curve.values()) == values
        if trial.state == "observed":
            assert len(trial.curve) == STEPS and trial.value == trial.params["x"]
        else:
            assert 1 <= len(trial.curve) < STEPS and trial.value is None


def test_both_forms_and_all_workers_make_the_same_decisions():
    def run(f, **workers):
        trials = bl.maximize(f, optimizer=optimizer(), n_trials=12, **workers).trials
        return [(trial.state, trial.curve) for trial in trials]

    expected = run(rising)
    assert run(reports) == expected
    assert run(rising, processes=True) == expected
    with ThreadPoolExecutor(1) as pool:
        assert run(rising, executor=pool, n_workers=1) == expected


def test_the_finally_of_a_stopped_generator_runs():
    ended = []

    def f(params):
        try:
            yield from rising(params)
        finally:
            ended.append(params["x"])

    result = bl.maximize(f, optimizer=optimizer(), n_trials=12)
    assert ended == [trial.params["x"] for trial in result.trials]


def test_the_best_value_of_a_curve():
    def f(params):
        yield from (params["x"], 2.0, float("nan"), 1.0)

    best = optimizer(curve=bl.Curve(4, value="best"), stopping=None)
    assert bl.maximize(f, optimizer=best, n_trials=1).best_value_ == 2.0
    lowest = optimizer(curve=bl.Curve(4, value="best"), stopping=None, direction="minimize")
    result = bl.minimize(f, optimizer=lowest, n_trials=1)
    assert result.best_value_ == result.trials[0].params["x"]
    last = optimizer(curve=bl.Curve(4), stopping=None)
    assert bl.maximize(f, optimizer=last, n_trials=1).best_value_ == 1.0


def test_the_result_of_a_generator_is_its_value_and_a_difference_warns_once():
    def f(params):
        yield 1.0
        return {"value": 2.0, "attrs": {"note": "a"}}

    with pytest.warns(bl.BelatedWarning, match="the returned value is used") as warned:
        result = bl.maximize(f, optimizer=optimizer(stopping=None), n_trials=3)
    assert [trial.value for trial in result.trials] == [2.0] * 3 and len(warned) == 1
    assert result.trials[0].attrs == {"note": "a"}


def nothing(params):
    yield from ()


def only_nan(params):
    yield math.nan


def diverging(params, trial):
    """A generator whose values are infinite from step 4 on, if x is above 0.5."""
    trial.attrs["half"] = params["x"] / 2
    for step in range(1, STEPS + 1):
        yield math.inf if step >= 4 and params["x"] > 0.5 else params["x"] * step / STEPS


@pytest.mark.parametrize("workers", [{"n_workers": 2}, {"n_workers": 2, "processes": True}], ids=str)
def test_trials_whose_curves_diverge_fail(workers):
    search = optimizer(stopping=bl.MedianStopping(min_trials=100))
    with pytest.warns(bl.BelatedWarning, match="CurveDiverged: the last 3 reports are NaN") as warned:
        result = bl.maximize(diverging, optimizer=search, n_trials=12, **workers)
    failed = [trial for trial in result.trials if trial.state == "failed"]
    assert len(warned) == 1 and result.n_failed == len(failed) >= 3
    for trial in result.trials:
        assert (trial.state == "failed") == (trial.params["x"] > 0.5)
        assert trial.attrs == {"half": trial.params["x"] / 2}
        if trial.state == "failed":
            assert list(trial.curve) == [1, 2, 3, 4, 5, 6] and trial.duration > 0.0


@pytest.mark.filterwarnings("ignore::belated.BelatedWarning")
def test_a_run_in_which_every_curve_diverges_names_the_cause():
    def f(params):
        yield from [1.0, math.nan, math.nan, math.nan]

    with pytest.raises(bl.errors.RunError, match="of 4 trials succeeded, and 4 failed: the last time CurveDiverged"):
        bl.maximize(f, optimizer=optimizer(stopping="median"), n_trials=4)


def test_other_outcomes_of_a_diverged_trial_are_observed():
    def f(params, trial):
        for step in range(1, STEPS + 1):
            trial.report(1.0 if step == 1 else math.nan, step)
            if trial.should_stop():
                break
        return {"loss": math.nan, "memory": 0.5}

    search = optimizer(stopping="median", outcomes={"loss": "minimize", "memory": bl.AtMost(1.0)})
    with pytest.warns(bl.BelatedWarning, match="CurveDiverged"):
        result = bl.minimize(f, optimizer=search, n_trials=4)
    assert [trial.values for trial in result.trials] == [{"memory": 0.5}] * 4


def always_nan(params):
    for _ in range(STEPS):
        yield math.nan


def too_long(params):
    for _ in range(STEPS + 1):
        yield 1.0


@pytest.mark.filterwarnings("ignore::belated.BelatedWarning")
@pytest.mark.parametrize("f", [nothing, only_nan, always_nan, too_long])
def test_a_curve_without_a_value_or_with_too_many_steps_fails(f):
    with pytest.raises(bl.errors.RunError):
        bl.maximize(f, optimizer=optimizer(), n_trials=2)


def test_a_generator_needs_a_curve():
    with pytest.raises(bl.errors.InvalidSetting, match=r"curve=bl\.Curve"):
        bl.maximize(rising, SPACE, n_trials=1)
    assert bl.maximize(rising, SPACE, n_trials=1, curve=bl.Curve(STEPS)).trials[0].value is not None


class OtherExecutor(Executor):
    """An executor whose workers may be anywhere."""

    def submit(self, fn, /, *args, **kwargs):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(fn, *args, **kwargs)


@pytest.mark.filterwarnings("ignore::belated.BelatedWarning")
def test_an_executor_without_reports_refuses_them():
    with pytest.raises(bl.errors.InvalidSetting, match="OtherExecutor cannot report"):
        bl.maximize(rising, optimizer=optimizer(), n_trials=1, executor=OtherExecutor(), n_workers=1)
    with pytest.raises(bl.errors.RunError, match="does not take reports"):
        bl.maximize(reports, optimizer=optimizer(), n_trials=1, executor=OtherExecutor(), n_workers=1)


def test_a_function_that_raises_after_a_stop_does_not_fail():
    class Pruned(Exception):
        pass

    def f(params, trial):
        for step in range(1, STEPS + 1):
            trial.report(params["x"], step)
            if trial.should_stop():
                raise Pruned
        return params["x"]

    result = bl.maximize(f, optimizer=optimizer(), n_trials=12)
    assert Counter(trial.state for trial in result.trials).keys() == {"stopped", "observed"}


def test_a_restarted_evaluation_is_a_new_attempt():
    started = []

    def f(params, trial):
        started.append(trial.number)
        trial.report(float(len(started)), 1)
        return float(len(started))

    search = optimizer(stopping=None)
    trial = search.suggest()
    trial.report(-1.0, 1)
    trial.report(-2.0, 2)
    bl.maximize(f, optimizer=search, n_trials=0, retry_pending=True)
    assert (trial.curve, trial.value) == ({1: 1.0}, 1.0)


class LosesStopped(ThreadPoolExecutor):
    """An executor whose worker dies between stopping a trial and sending this outcome."""

    def __init__(self):
        super().__init__(1)
        self.lost = set()

    def submit(self, fn, f, number, *args):
        def call():
            outcome = fn(f, number, *args)
            if outcome.stopped and number not in self.lost:
                self.lost.add(number)
                raise WorkerDied("killed")
            return outcome

        return super().submit(call)


@pytest.mark.filterwarnings("ignore:the evaluation of trial:belated.BelatedWarning")
@pytest.mark.parametrize("retries", [0, 1])
def test_a_stopped_trial_whose_worker_dies_is_not_evaluated_again(retries):
    called = []

    def f(params):
        called.append(params["x"])
        yield from rising(params)

    expected = bl.maximize(rising, optimizer=optimizer(), n_trials=12)
    with LosesStopped() as pool:
        result = bl.maximize(f, optimizer=optimizer(), n_trials=12, executor=pool, n_workers=1, retries=retries)
        assert len(pool.lost) >= 3
    assert called == [trial.params["x"] for trial in result.trials]
    facts = [[(trial.state, trial.curve) for trial in each.trials] for each in (result, expected)]
    assert facts[0] == facts[1]


class Busy(MemoryStore):
    """A store that is busy when step 2 or the value of trial 1 is reported."""

    refused = ("Reported", 2)

    @contextmanager
    def writing(self, study):
        with super().writing(study) as log:
            yield log
            for record in log.added:
                [(kind, facts)] = json.loads(record.body)["what"].items()
                if (kind, facts.get("step")) == self.refused and facts["trial"] == 1:
                    raise bl.errors.StoreError("the store is busy")


def wrapping(params, trial):
    """A function whose library turns every error into another."""
    try:
        return reports(params, trial)
    except Exception as error:
        raise RuntimeError("the training failed") from error


def catching(params, trial):
    """A function that continues without reports."""
    try:
        return reports(params, trial)
    except bl.errors.StoreError:
        return params["x"]


def failing_later(params, trial):
    """A function that continues with reports, and fails later."""
    try:
        trial.report(0.25, 1)
        trial.report(0.5, 2)
    except bl.errors.StoreError:
        trial.report(0.75, 3)
    if trial.number == 1:
        raise ZeroDivisionError
    return 0.5


ENGINES = pytest.mark.parametrize(
    "workers", [{}, {"n_workers": 2}, {"processes": True}, {"executor": ProcessPoolExecutor}], ids=str
)


def run_in(store, f, workers):
    """Return the study, and the error that ended the run or None."""
    study = bl.Study("s", store, optimizer(stopping=None))
    pool = workers["executor"](1) if "executor" in workers else None
    error = None
    try:
        bl.maximize(f, optimizer=study, n_trials=4, **(workers | ({} if pool is None else {"executor": pool})))
    except bl.errors.StoreError as raised:
        error = raised
    finally:
        if pool is not None:
            pool.shutdown()
    return study, error


@forks
@ENGINES
@pytest.mark.parametrize("f", [rising, reports, wrapping])
def test_an_error_of_the_store_ends_the_run_and_the_trial_stays_pending(f, workers):
    study, error = run_in(Busy(), f, workers)
    assert "the store is busy" in str(error) and error.result.trials[1].number == 1
    trial = study.trial(1)
    assert trial.state == "pending" and trial.error is None and list(trial.curve) == [1]
    # With two workers, trial 0 may still run when the run ends.
    assert study.trial(0).state == "observed" or "n_workers" in workers
    trial.observe(0.5)
    assert study.trial(1).value == 0.5


@forks
@ENGINES
def test_a_function_that_catches_an_error_of_the_store_goes_on(workers):
    study, error = run_in(Busy(), catching, workers)
    assert (
        error is None and {trial.state for trial in study.trials} == {"observed"} and list(study.trial(1).curve) == [1]
    )


@forks
@ENGINES
@failures_expected
def test_a_later_failure_of_f_is_a_failure(workers):
    study, error = run_in(Busy(), failing_later, workers)
    assert error is None and str(study.trial(1).error) == "ZeroDivisionError" and list(study.trial(1).curve) == [1, 3]


def test_the_first_and_the_last_exchange_with_the_store():
    """The store is busy when an evaluation starts, when the evaluation asks whether to stop, and when its value is
    reported."""
    for name in ("start", "should_stop"):
        with pytest.MonkeyPatch.context() as patch:
            real = getattr(DirectReports, name)

            def busy(self, number, real=real):
                if number == 1:
                    raise bl.errors.StoreError("the store is busy")
                return real(self, number)

            patch.setattr(DirectReports, name, busy)
            study, error = run_in(MemoryStore(), reports, {})
        assert str(error) == "the store is busy" and study.trial(1).state == "pending"
    store = Busy()
    store.refused = ("Resulted", None)
    study, error = run_in(store, reports, {})
    value = study.trial(1).params["x"]
    assert study.trial(
        1
    ).state == "pending" and f"the value of trial 1, which may still be pending, is {value!r}" in str(error)
