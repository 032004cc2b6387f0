"""The arguments of runs: valid names and values are accepted; invalid names and values raise errors."""

import inspect
from concurrent.futures import Executor, ThreadPoolExecutor

import numpy as np
import pytest

import belated as bl
from belated.run import arguments
from tests.ids import without_address
from tests.unit.run.runs import ROWS, SPACE, ManualExecutor, f

RUNS = pytest.mark.parametrize("run", [bl.maximize, bl.minimize])


@RUNS
def test_a_run_accepts_some_arguments_of_bayes_opt(run):
    of_bayes_opt = {"acquisition", "initial", "constraints", "seed", "curve", "stopping", "outcomes"}
    own = ["f", "space", "candidates", "optimizer", "n_trials", "n_trials_total", "timeout", "budget", "n_workers"]
    own += ["executor", "processes", "retries", "retry_pending", "catch", "callbacks", "progress", "fixed"]
    shown = list(inspect.signature(run).parameters.values())
    assert [each.name for each in shown[: len(own)]] == own
    assert {each.name for each in shown[len(own) :]} == of_bayes_opt and len(shown) == len(own) + len(of_bayes_opt)
    assert {each.annotation for each in shown} == {inspect.Parameter.empty}
    assert all(each.kind is inspect.Parameter.KEYWORD_ONLY for each in shown[2:])


# Names.


@RUNS
@pytest.mark.parametrize(
    ("given", "named", "parts"),
    [
        ((f, SPACE, 50), {}, ("50", "name the others")),
        ((f, SPACE, [1], 2), {}, ("[1]", "name the others")),
        ((), {"space": SPACE}, ("f is missing", "(f, space, n_trials=…)")),
        ((), {}, ("f is missing",)),
        ((f, SPACE), {"direction": "minimize"}, ("direction is fixed",)),
        ((f, SPACE), {"Maximize": True}, ("Maximize=True", "bl.maximize or bl.minimize")),
        ((f, SPACE), {"windw": 4}, ("windw=4", "did you mean optimizer=bl.BayesOpt(…, window=…)?")),
        ((f, SPACE), {"zzz": 3}, ("zzz=3", "it has f, space")),
    ],
)
def test_unknown_names_are_refused_with_advice(run, given, named, parts):
    with pytest.raises(bl.errors.UnknownArgument) as raised:
        run(*given, **({"n_trials": 1} | named))
    assert all(part in str(raised.value) for part in (*parts, run.__name__))


def test_f_and_space_may_be_given_by_name():
    for given in (bl.maximize(f=f, space=SPACE, n_trials=1, seed=0), bl.maximize(f, space=SPACE, n_trials=1, seed=0)):
        assert given.best_value_ == f(given.best_params_)


# Values.


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ({"n_trials": -1}, ("n_trials=-1", "integer >= 0")),
        ({"n_trials": 2.5}, ("n_trials=2.5", "integer >= 0")),
        ({"n_trials_total": 1.0}, ("n_trials_total=1.0", "integer >= 0")),
        ({"n_trials_total": "5"}, ("n_trials_total='5'", "integer >= 0")),
        ({"n_workers": 0}, ("n_workers=0", "integer >= 1")),
        ({"n_workers": True}, ("n_workers=True", "integer >= 1")),
        ({"timeout": 0.0}, ("timeout=0.0", "seconds > 0")),
        ({"timeout": np.nan}, ("timeout=nan", "seconds > 0")),
        ({"timeout": float("inf")}, ("timeout=inf", "seconds > 0")),
        ({"timeout": "60"}, ("timeout='60'", "seconds > 0")),
        ({"budget": 0}, ("budget=0", "finite number > 0")),
        ({"budget": float("nan")}, ("budget=nan", "finite number > 0")),
        ({"budget": float("inf")}, ("budget=inf", "finite number > 0")),
        ({"budget": "all"}, ("budget='all'", "finite number > 0")),
        ({"executor": 4}, ("executor=4", "concurrent.futures.Executor", "get_executor(pure=False)")),
        ({"processes": 4}, ("processes=4", "True or False")),
        ({"processes": True, "executor": ThreadPoolExecutor(1)}, ("processes=True", "executor=<concurrent.")),
        ({"retries": -1}, ("retries=-1", "integer >= 0")),
        ({"retries": None}, ("retries=None", "integer >= 0")),
        ({"retry_pending": 1}, ("retry_pending=1", "True or False")),
        ({"catch": None}, ("catch=None", "exception classes")),
        ({"catch": "ValueError"}, ("catch='ValueError'", "exception classes")),
        ({"catch": [ValueError()]}, ("catch=[ValueError()]", "exception classes")),
        ({"catch": int}, ("catch=<class 'int'>", "exception classes")),
        ({"callbacks": 3}, ("callbacks=3", "callback(optimizer, trial)")),
        ({"callbacks": print}, ("callbacks=<built-in function print>", "callback(optimizer, trial)")),
        ({"callbacks": [print, 3]}, ("callbacks=[<built-in function print>, 3]", "callback(optimizer, trial)")),
        ({"callbacks": [bl.NoImprovement]}, ("the class NoImprovement: pass an instance, NoImprovement(",)),
        ({"n_trials": None}, ("n_trials, n_trials_total, timeout and budget",)),
        ({"f": {}}, ("f={}",)),
        ({"optimizer": "GP-EI"}, ("optimizer='GP-EI'",)),
        ({"space": SPACE}, ("['space'] would make",)),
        (
            {"space": SPACE, "candidates": ROWS, "seed": 0, "initial": 3},
            ("['space', 'candidates', 'seed', 'initial'] would make",),
        ),
        ({"space": bl.RandomSearch(SPACE)}, ("space=", "pass it as optimizer=")),
        ({"optimizer": None, "space": SPACE, "initial": -1}, ("initial",)),
        ({"optimizer": None, "space": SPACE, "window": 9}, ("pass optimizer=bl.BayesOpt(…, window=…)",)),
        ({"optimizer": None, "space": SPACE, "fidelity": 9}, ("pass optimizer=bl.RandomSearch(…, fidelity=…)",)),
        ({"optimizer": None, "space": SPACE, "context": SPACE}, ("context", "use suggest and observe")),
        ({"optimizer": None}, ("neither of space and candidates",)),
        ({"optimizer": bl.BayesOpt(SPACE, direction="minimize")}, ("direction='minimize'", "call minimize")),
        ({"optimizer": bl.RandomSearch(SPACE, context={"age": (0, 9)})}, ("context", "use suggest and observe")),
    ],
    ids=without_address,
)
def test_unusable_values_are_refused(arguments, parts):
    opt = bl.RandomSearch(SPACE)
    with pytest.raises((bl.errors.InvalidSetting, bl.errors.InvalidSpace)) as raised:
        bl.maximize(**({"f": f, "optimizer": opt, "n_trials": 1} | arguments))
    assert all(part in str(raised.value) for part in parts) and opt.n_trials == 0


def test_none_arguments_are_allowed_with_an_optimizer():
    assert bl.maximize(f, optimizer=bl.RandomSearch(SPACE), n_trials=1, seed=None, initial=None).n_trials == 1


def test_minimize_refuses_an_optimizer_that_maximizes():
    with pytest.raises(bl.errors.InvalidSetting, match="direction='maximize': call maximize"):
        bl.minimize(f, optimizer=bl.RandomSearch(SPACE), n_trials=1)


def test_callbacks_may_be_any_iterable():
    seen = []
    bl.maximize(f, SPACE, n_trials=2, callbacks=(callback for callback in [lambda opt, trial: seen.append(trial)]))
    assert [trial.number for trial in seen] == [0, 1]


# The next tests check how many evaluations run at the same time.


class Sized(Executor):
    """An executor with the given attributes."""

    def __init__(self, **attributes):
        vars(self).update(attributes)


@pytest.mark.parametrize(
    ("attributes", "n_workers", "size"),
    [
        ({"num_workers": 3}, None, 3),
        ({"_max_workers": 2}, None, 2),
        ({"num_workers": 3, "_max_workers": 2}, None, 3),
        ({"num_workers": 0, "_max_workers": 1}, None, 1),
        ({"num_workers": "many", "_max_workers": 4}, None, 4),
        ({"num_workers": 3}, 2, 2),
        ({}, 2, 2),
    ],
)
def test_the_size_of_an_executor(attributes, n_workers, size):
    assert arguments.size(n_workers, Sized(**attributes)) == size


class ClientExecutor(Sized):
    """A replacement for Dask's executor. The executor's client reports the number of threads of each worker."""

    __module__ = "distributed.cfexecutor"

    def __init__(self, **n_threads):
        super().__init__(_client=self)
        self.nthreads = lambda: n_threads


def test_the_size_of_a_cluster_of_dask():
    assert arguments.size(None, ClientExecutor(a=2, b=4)) == 6 and arguments.size(3, ClientExecutor(a=2)) == 3
    with pytest.raises(bl.errors.InvalidSetting, match="^n_workers is missing: ClientExecutor "):
        arguments.size(None, ClientExecutor())


@pytest.mark.parametrize("attributes", [{}, {"num_workers": None}, {"_max_workers": 0}, {"_max_workers": True}])
def test_an_executor_of_unknown_size(attributes):
    message = "^n_workers is missing: Sized has no attribute with its number of workers; pass the number of evaluations"
    with pytest.raises(bl.errors.InvalidSetting, match=message):
        bl.maximize(f, SPACE, n_trials=1, executor=Sized(**attributes))


@pytest.mark.parametrize(("n_workers", "most"), [(None, 1), (1, 1), (3, 3)])
def test_at_most_one_evaluation_per_worker_is_submitted(n_workers, most):
    hand = ManualExecutor({k: [k - most + 1] for k in range(most - 1, 9)} | {8: range(9 - most, 9)})
    best = bl.maximize(f, SPACE, n_trials=9, executor=hand, n_workers=most)
    assert best.stop_reason == "n_trials" and len(best.trials) == 9
    assert arguments.size(n_workers, None) == most


# Studies and callbacks.


def test_the_direction_of_a_study_must_match(tmp_path):
    study = bl.Study("s", f"sqlite:///{tmp_path / 'studies.db'}", bl.RandomSearch(SPACE, direction="minimize"))
    with pytest.raises(bl.errors.InvalidSetting, match="call minimize"):
        bl.maximize(f, optimizer=study, n_trials=3)
    assert bl.minimize(f, optimizer=study, n_trials=3).best_value_ == min(trial.value for trial in study.trials)


class Counter:
    """A callback with three parameters."""

    def __call__(self, optimizer, trial, more):
        raise AssertionError


@pytest.mark.parametrize("callback", [lambda trial: None, lambda: None, Counter(), [].append], ids=without_address)
def test_a_callback_that_cannot_be_called_is_refused_before_the_first_evaluation(callback):
    opt = bl.RandomSearch(SPACE)
    with pytest.raises(
        bl.errors.InvalidSetting, match=r"^callbacks\[1\]=.* cannot be called as callback\(optimizer, trial\)"
    ):
        bl.maximize(f, optimizer=opt, n_trials=3, callbacks=[lambda *both: None, callback])
    assert opt.n_trials == 0


def test_callbacks_of_two_parameters_are_called():
    seen = []

    def plain(optimizer, trial, more=None):
        seen.append(trial.number)

    bl.maximize(f, SPACE, n_trials=2, callbacks=[plain, lambda *both: seen.append(len(both)), bl.NoImprovement(5)])
    assert seen == [0, 2, 1, 2]
