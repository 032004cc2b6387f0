"""The arguments of runs: which there are, what they may be, and what is said about others."""

import inspect
import re
from concurrent.futures import Executor, ThreadPoolExecutor

import numpy as np
import pytest

import belated as bl
from belated.run import arguments
from tests.unit.run.runs import ROWS, SPACE, ManualExecutor, f

RUNS = pytest.mark.parametrize("run", [bl.maximize, bl.minimize])


@RUNS
def test_a_run_has_its_own_arguments_and_those_of_bayes_opt(run):
    of_bayes_opt = set(inspect.signature(bl.BayesOpt).parameters) - {"space", "candidates", "direction", "context"}
    own = ["f", "space", "candidates", "optimizer", "n_trials", "n_trials_total", "timeout", "budget", "n_workers"]
    own += ["executor", "processes", "retries", "retry_pending", "catch", "callbacks", "progress"]
    shown = list(inspect.signature(run).parameters.values())
    assert [each.name for each in shown[: len(own)]] == own
    assert {each.name for each in shown[len(own) :]} == of_bayes_opt and len(shown) == len(own) + len(of_bayes_opt)
    assert {each.annotation for each in shown} == {inspect.Parameter.empty}
    assert all(each.kind is inspect.Parameter.KEYWORD_ONLY for each in shown[2:])


# Names.


@RUNS
@pytest.mark.parametrize(
    ("given", "named", "message"),
    [
        (
            (f, SPACE, 50),
            {},
            "{} takes f and space by position, and got 50 besides: name the others, as in n_trials=50",
        ),
        ((f, SPACE, [1], 2), {}, "{} takes f and space by position, and got [1] besides: name the others"),
        ((), {"space": SPACE}, "f is missing: call {}(f, space, n_trials=…), with a function of the params"),
        ((), {}, "f is missing: call {}(f, "),
        (
            (f, SPACE),
            {"direction": "minimize"},
            "direction is fixed by the name of {}: leave it out, or call the other one",
        ),
        (
            (f, SPACE),
            {"mode": "max"},
            "mode='max' is not an argument of {}: call bl.maximize or bl.minimize, by what you want",
        ),
        (
            (f, SPACE),
            {"Maximize": True},
            "Maximize=True is not an argument of {}: call bl.maximize or bl.minimize, by what you want",
        ),
        ((f, SPACE), {"n_trial": 3}, "n_trial=3 is not an argument of {}: did you mean n_trials?"),
    ],
)
def test_names_that_a_run_does_not_have(run, given, named, message):
    with pytest.raises(bl.UnknownArgument) as raised:
        run(*given, **({"n_trials": 1} | named))
    assert str(raised.value).startswith(message.format(run.__name__))


def test_f_and_space_may_be_given_by_name():
    for given in (bl.maximize(f=f, space=SPACE, n_trials=1, seed=0), bl.maximize(f, space=SPACE, n_trials=1, seed=0)):
        assert given.best_value_ == f(given.best_params_)


# Values.


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ({"n_trials": -1}, "n_trials=-1 is not usable: pass an integer >= 0"),
        ({"n_trials_total": 1.0}, "n_trials_total=1.0 is not usable: pass an integer >= 0"),
        ({"n_workers": 0}, "n_workers=0 is not usable: pass an integer >= 1"),
        ({"timeout": 0.0}, "timeout=0.0 is not usable: pass seconds > 0, or None"),
        ({"timeout": float("inf")}, "timeout=inf is not usable: pass seconds > 0, or None"),
        ({"budget": 0}, "budget=0 is not usable: pass a finite number > 0, or None"),
        ({"budget": -1.5}, "budget=-1.5 is not usable: pass a finite number > 0, or None"),
        ({"budget": float("nan")}, "budget=nan is not usable: pass a finite number > 0, or None"),
        ({"budget": float("inf")}, "budget=inf is not usable: pass a finite number > 0, or None"),
        ({"budget": "all"}, "budget='all' is not usable: pass a finite number > 0, or None"),
        ({"timeout": "60"}, "timeout='60' is not usable: pass seconds > 0, or None"),
        (
            {"executor": 4},
            "executor=4 is not usable: pass a concurrent.futures.Executor "
            "(of a Dask client: client.get_executor(pure=False))",
        ),
        ({"processes": 4}, "processes=4 is not usable: pass True or False, and their number as n_workers"),
        (
            {"processes": True, "executor": ThreadPoolExecutor(1)},
            "processes=True starts workers, and executor=<concurrent.",
        ),
        ({"retries": -1}, "retries=-1 is not usable: pass an integer >= 0"),
        ({"retries": None}, "retries=None is not usable: pass an integer >= 0"),
        ({"retries": True}, "retries=True is not usable: pass an integer >= 0"),
        ({"catch": None}, "catch=None is not usable: pass exception classes, () for none"),
        ({"catch": [ValueError()]}, "catch=[ValueError()] is not usable: pass exception classes, () for none"),
        ({"catch": int}, "catch=<class 'int'> is not usable: pass exception classes, () for none"),
        ({"callbacks": 3}, "callbacks=3 is not usable: pass a list of functions callback(optimizer, trial)"),
        ({"callbacks": [print, 3]}, "callbacks=[<built-in function print>, 3] is not usable: pass a list of functions"),
        ({"callbacks": [bl.NoImprovement]}, "callbacks has the class NoImprovement: pass one made of it, NoImprov"),
        (
            {"n_trials": None},
            "n_trials, n_trials_total, timeout and budget are all missing: pass one, or the run would never end",
        ),
    ],
    ids=str,
)
def test_values_that_are_refused(argument, message):
    opt = bl.RandomSearch(SPACE)
    with pytest.raises(bl.InvalidSetting) as raised:
        bl.maximize(f, **({"optimizer": opt, "n_trials": 1} | argument))
    assert str(raised.value).startswith(message)
    assert opt.n_trials == 0


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ({"direction": "minimize"}, "optimizer has direction='minimize': call minimize, or pass another one"),
        (
            {"context": {"age": (0, 9)}},
            "optimizer has a context, which maximize cannot give with its suggestions: use suggest and observe",
        ),
    ],
)
def test_optimizers_that_a_run_cannot_use(made, message):
    with pytest.raises(bl.InvalidSetting, match=f"^{re.escape(message)}$"):
        bl.maximize(f, optimizer=bl.RandomSearch(SPACE, **made), n_trials=1)
    with pytest.raises(bl.InvalidSetting, match=r"^optimizer has direction='maximize': call maximize, or pass another"):
        bl.minimize(f, optimizer=bl.RandomSearch(SPACE), n_trials=1)


def test_settings_beside_an_optimizer_are_named():
    opt = bl.RandomSearch(SPACE)
    message = "^['space', 'candidates', 'seed', 'window'] would make a new optimizer, and one is given: leave them out$"
    with pytest.raises(bl.InvalidSetting, match=message.replace("[", r"\[").replace("]", r"\]")):
        bl.maximize(f, SPACE, candidates=[[1]], optimizer=opt, n_trials=1, seed=0, window=3)
    assert bl.maximize(f, optimizer=opt, n_trials=1, seed=None, window=None).n_trials == 1
    with pytest.raises(bl.InvalidSetting, match="^space=.* is not usable: pass it as optimizer=$"):
        bl.maximize(f, opt, n_trials=1)
    with pytest.raises(
        bl.InvalidSetting, match="^optimizer=.* is not usable: pass an optimizer or a Study of belated$"
    ):
        bl.maximize(f, optimizer=bl.RandomSearch, n_trials=1)


def test_callbacks_may_be_any_iterable():
    seen = []
    bl.maximize(f, SPACE, n_trials=2, callbacks=(callback for callback in [lambda opt, trial: seen.append(trial)]))
    assert [trial.number for trial in seen] == [0, 1]


# How many evaluations run at a time.


class Sized(Executor):
    """An executor with some of the attributes that executors have."""

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
    """Stands for that of Dask, whose client knows the number of threads by worker."""

    __module__ = "distributed.cfexecutor"

    def __init__(self, **n_threads):
        super().__init__(_client=self)
        self.nthreads = lambda: n_threads


def test_the_size_of_a_cluster_of_dask():
    assert arguments.size(None, ClientExecutor(a=2, b=4)) == 6 and arguments.size(3, ClientExecutor(a=2)) == 3
    with pytest.raises(bl.InvalidSetting, match="^n_workers is missing: ClientExecutor "):
        arguments.size(None, ClientExecutor())


@pytest.mark.parametrize("attributes", [{}, {"num_workers": None}, {"_max_workers": 0}, {"_max_workers": True}])
def test_an_executor_that_does_not_say_its_size(attributes):
    message = "^n_workers is missing: Sized has no attribute with its number of workers; pass how many evaluations are"
    with pytest.raises(bl.InvalidSetting, match=message):
        bl.maximize(f, SPACE, n_trials=1, executor=Sized(**attributes))


@pytest.mark.parametrize(("n_workers", "most"), [(None, 1), (1, 1), (3, 3)])
def test_no_more_evaluations_are_submitted_than_there_are_workers(n_workers, most):
    hand = ManualExecutor({k: [k - most + 1] for k in range(most - 1, 9)} | {8: range(9 - most, 9)})
    best = bl.maximize(f, SPACE, n_trials=9, executor=hand, n_workers=most)
    assert best.stop_reason == "n_trials" and len(best.trials) == 9
    assert arguments.size(n_workers, None) == most


def test_the_pool_of_a_run():
    calling = arguments.own_pool(1, None)
    assert calling.submit(divmod, 7, 2).result() == (3, 1) and not isinstance(calling, ThreadPoolExecutor)
    for size, timeout in ((1, 5.0), (3, None), (3, 5.0)):
        with arguments.own_pool(size, timeout) as pool:
            assert isinstance(pool, ThreadPoolExecutor) and pool._max_workers == size


# Values.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_trials": None}, "^n_trials, n_trials_total, timeout and budget"),
        ({"n_trials": -1}, "^n_trials=-1"),
        ({"n_trials_total": -1}, "^n_trials_total=-1"),
        ({"retry_pending": 1}, "^retry_pending=1 is not usable: pass True or False"),
        ({"n_trials_total": "5"}, "^n_trials_total=.5"),
        ({"n_trials": 2.5}, "^n_trials=2.5"),
        ({"timeout": 0}, "^timeout=0"),
        ({"timeout": np.nan}, "^timeout=nan"),
        ({"n_workers": 0}, "^n_workers=0"),
        ({"n_workers": True}, "^n_workers=True"),
        ({"executor": 4}, "^executor=4.*concurrent.futures"),
        ({"catch": "ValueError"}, "^catch='ValueError'"),
        ({"catch": (ValueError, 3)}, "^catch="),
        ({"callbacks": print}, "^callbacks="),
        ({"callbacks": [None]}, "^callbacks="),
        ({"progress": "yes"}, "^progress='yes'"),
        ({"f": {}}, "^f={}"),
        ({"optimizer": "GP-EI"}, "^optimizer='GP-EI'"),
        ({"space": SPACE}, r"^\['space'\] would make"),
        ({"seed": 3}, r"^\['seed'\] would make"),
        ({"candidates": ROWS}, r"^\['candidates'\] would make"),
        ({"direction": "maximize"}, "^direction is fixed"),
        ({"n_trial": 3}, "^n_trial=3 is not an argument of maximize: did you mean n_trials?"),
        ({"random_state": 3}, "^random_state=3 is not an argument of maximize: did you mean seed?"),
        ({"zzz": 3}, "^zzz=3 is not an argument of maximize: it has f, space"),
        ({"optimizer": None, "space": bl.BayesOpt(SPACE)}, "pass it as optimizer="),
        ({"optimizer": None, "space": SPACE, "direction": "minimize"}, "^direction is fixed"),
        ({"optimizer": None, "space": SPACE, "windw": 4}, "^windw=4.*did you mean window"),
        ({"optimizer": None, "space": SPACE, "window": -1}, "window"),
        ({"optimizer": None}, "neither of space and candidates"),
        ({"optimizer": bl.BayesOpt(SPACE, direction="minimize")}, "^optimizer has direction='minimize': call minimize"),
        ({"optimizer": bl.BayesOpt(SPACE, context={"age": (0, 9)})}, "^optimizer has a context"),
    ],
)
def test_bad_arguments(arguments, message):
    opt = bl.BayesOpt(SPACE)
    call = {"f": f, "optimizer": opt, "n_trials": 3} | arguments
    with pytest.raises((bl.InvalidSetting, bl.InvalidSpace), match=message):
        bl.maximize(**call)
    assert opt.n_trials == 0


def test_the_direction_of_a_study_counts(tmp_path):
    study = bl.Study("s", f"sqlite:///{tmp_path / 'studies.db'}", bl.RandomSearch(SPACE, direction="minimize"))
    with pytest.raises(bl.InvalidSetting, match="call minimize"):
        bl.maximize(f, optimizer=study, n_trials=3)
    assert bl.minimize(f, optimizer=study, n_trials=3).best_value_ == min(trial.value for trial in study.trials)


class Counter:
    """A callback of one parameter too many."""

    def __call__(self, optimizer, trial, more):
        raise AssertionError


@pytest.mark.parametrize("callback", [lambda trial: None, lambda: None, Counter(), [].append], ids=repr)
def test_a_callback_that_cannot_be_called_is_refused_before_the_first_evaluation(callback):
    opt = bl.RandomSearch(SPACE)
    with pytest.raises(bl.InvalidSetting, match=r"^callbacks\[1\]=.* cannot be called as callback\(optimizer, trial\)"):
        bl.maximize(f, optimizer=opt, n_trials=3, callbacks=[lambda *both: None, callback])
    assert opt.n_trials == 0


def test_callbacks_of_two_parameters_are_called_as_before():
    seen = []

    def plain(optimizer, trial, more=None):
        seen.append(trial.number)

    bl.maximize(f, SPACE, n_trials=2, callbacks=[plain, lambda *both: seen.append(len(both)), bl.NoImprovement(5)])
    assert seen == [0, 2, 1, 2]
