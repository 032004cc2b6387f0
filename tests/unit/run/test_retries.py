"""A lost evaluation is started again under the number of its trial, or the trial fails."""

from concurrent.futures import BrokenExecutor, CancelledError, Future
from time import monotonic

import pytest

import belated as bl
from belated.run.evaluations import Evaluations
from belated.run.worker_errors import WorkerDied, WorkersDoNotStart
from tests.unit.run.runs import SECONDS, SPACE, ManualExecutor, f, states

DIED = "its worker process was killed by SIGKILL"


class KilledWorker(Exception):
    """A replacement for Dask's error, which belated recognises by the name of the class."""

    __module__ = "distributed.scheduler"


class Loses(ManualExecutor):
    """An executor that loses calls. script[number] lists the errors of a trial's first futures."""

    def __init__(self, script):
        super().__init__()
        self.script = {number: list(errors) for number, errors in script.items()}
        self.numbers = []

    def submit(self, fn, /, *args):
        number = args[1]
        self.numbers.append(number)
        future = Future()
        if self.script.get(number):
            future.set_exception(self.script[number].pop(0))
        else:
            future.set_result(fn(*args))
        return future


class RayTaskError(Exception):
    """A replacement for Ray's error, which belated recognises by the name of the class."""

    __module__ = "ray.exceptions"


def lost(n):
    return [WorkerDied(DIED) for _ in range(n)]


@pytest.mark.parametrize(
    "error", [WorkerDied(DIED), KilledWorker("Attempted to run it."), ConnectionError("the network is down")]
)
def test_a_lost_evaluation_is_started_again_under_its_number(error):
    pool, seen = Loses({1: [error, error]}), []
    expected = bl.maximize(f, SPACE, n_trials=4, seed=0)
    with pytest.warns(bl.BelatedWarning, match="^the evaluation of trial 1 was lost and is started again: ") as warned:
        result = bl.maximize(
            f, SPACE, n_trials=4, executor=pool, n_workers=1, retries=2, seed=0, callbacks=[lambda _, t: seen.append(t)]
        )
    assert len(warned) == 1 and warned[0].filename == __file__
    assert pool.numbers == [0, 1, 1, 1, 2, 3] and [trial.number for trial in seen] == [0, 1, 2, 3]
    # Apart from lost evaluations, the results equal the results of a run without losses.
    assert [(t.params, t.value) for t in result.trials] == [(t.params, t.value) for t in expected.trials]


@pytest.mark.parametrize("catch", [Exception, ()])
def test_a_trial_whose_worker_died_too_often_has_failed(catch):
    pool, seen = Loses({1: lost(3), 2: lost(1)}), []
    with pytest.warns(bl.BelatedWarning) as warned:
        result = bl.maximize(
            f,
            SPACE,
            n_trials=4,
            executor=pool,
            n_workers=1,
            retries=1,
            catch=catch,
            callbacks=[lambda _, t: seen.append(t)],
        )
    assert pool.numbers == [0, 1, 1, 2, 2, 3] and [trial.number for trial in seen] == [0, 1, 2, 3]
    assert states(result) == ["observed", "failed", "observed", "observed"]
    error = result.trials[1].error
    assert (error.type, error.message) == ("WorkerDied", DIED)
    assert [str(each.message) for each in warned] == [
        f"the evaluation of trial 1 was lost and is started again: {DIED}; further ones do not warn",
        f"trial 1 failed: {DIED}; it was started 2 times; further ones do not warn",
    ]


def test_without_retries_a_lost_trial_fails():
    pool = Loses({0: [KilledWorker("Attempted to run it.")]})
    with pytest.warns(
        bl.BelatedWarning, match="^trial 0 failed: its worker died: Attempted to run it; further ones do not warn$"
    ):
        result = bl.maximize(f, SPACE, n_trials=3, executor=pool, n_workers=1)
    assert pool.numbers == [0, 1, 2] and states(result) == ["failed", "observed", "observed"]


def test_other_errors_of_the_executor_end_the_run_after_the_retries():
    error = ConnectionError("the network is down")
    pool = Loses({1: [error] * 3})
    match = "^Loses could not evaluate trial 1: ConnectionError: the network is down$"
    with pytest.warns(bl.BelatedWarning), pytest.raises(bl.errors.RunError, match=match) as raised:
        bl.maximize(f, SPACE, n_trials=4, executor=pool, n_workers=1, retries=2)
    assert pool.numbers == [0, 1, 1, 1] and states(raised.value.result) == ["observed", "abandoned"]


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (BrokenExecutor("all gone"), "pending"),
        (CancelledError(), "abandoned"),
        (TypeError("cannot pickle it"), "abandoned"),
        (ModuleNotFoundError("no module"), "abandoned"),
        (WorkersDoNotStart("3 in a row"), "abandoned"),
        (RayTaskError("No module named 'm'"), "abandoned"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_errors_that_would_repeat_are_not_retried(error, state):
    pool = Loses({1: [error]})
    with pytest.raises(bl.errors.RunError, match="^Loses could not evaluate trial 1: ") as raised:
        bl.maximize(f, SPACE, n_trials=4, executor=pool, n_workers=1, retries=5)
    assert pool.numbers == [0, 1] and states(raised.value.result) == ["observed", state]


@pytest.mark.filterwarnings("ignore:trial 0 failed:belated.BelatedWarning")
def test_a_function_that_kills_all_its_workers_ends_the_run():
    pool = Loses({number: lost(1) for number in range(9)})
    with pytest.raises(
        bl.errors.RunError, match=f"^the first 3 evaluations all failed in the same way: {DIED}; "
    ) as raised:
        bl.maximize(f, SPACE, n_trials=9, executor=pool, n_workers=1)
    assert states(raised.value.result) == ["failed"] * 3 and isinstance(raised.value.__cause__, WorkerDied)


@pytest.mark.filterwarnings("ignore:the evaluation of trial:belated.BelatedWarning")
def test_a_trial_is_charged_once_however_often_it_is_started():
    pool = Loses({0: lost(2), 1: lost(2)})
    result = bl.maximize(f, SPACE, budget=3, executor=pool, n_workers=1, retries=2)
    assert states(result) == ["observed"] * 3 and result.cost == 3.0 and len(pool.numbers) == 7


@pytest.mark.filterwarnings("ignore:the evaluation of trial:belated.BelatedWarning")
def test_a_total_counts_a_restarted_trial_once():
    pool = Loses({0: lost(2), 1: lost(1)})
    result = bl.maximize(f, SPACE, n_trials_total=3, executor=pool, n_workers=1, retries=2)
    assert states(result) == ["observed"] * 3 and pool.numbers == [0, 0, 0, 1, 1, 2]


@pytest.mark.filterwarnings("ignore::belated.BelatedWarning")
@pytest.mark.parametrize(("retries", "state"), [(0, "failed"), (1, "abandoned")])
def test_evaluations_are_not_restarted_after_the_end_of_a_run(retries, state):
    hand = ManualExecutor({1: [0]})

    def stop(optimizer, trial):
        hand.futures[1].set_exception(WorkerDied(DIED))
        raise bl.StopRun

    result = bl.maximize(f, SPACE, n_trials=9, executor=hand, n_workers=2, callbacks=[stop], retries=retries)
    assert states(result) == ["observed", state] and len(hand.calls) == 2


@pytest.mark.parametrize("error", [WorkerDied(DIED), ConnectionError("the network is down")])
def test_evaluations_are_not_restarted_after_the_timeout(error):
    class Late(ManualExecutor):
        def submit(self, fn, /, *args):
            future = super().submit(fn, *args)
            evaluations.deadline = 0.0
            future.set_exception(error)
            return future

    opt, pool = bl.RandomSearch(SPACE), Late()
    evaluations = Evaluations(f, opt, pool, 1, 9, None, None, monotonic() + SECONDS, 5, [], None)
    assert evaluations.run() == "timeout"
    assert len(pool.calls) == 1 and states(opt) == ["abandoned"] and not evaluations.running
