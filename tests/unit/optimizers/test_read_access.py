"""Optimizers, studies and results of runs have the same attributes and methods for reading."""

import copy
import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import belated as bl
from belated.optimizers.trials import Reading
from belated.store.memory import MemoryStore
from belated.study.definition import definition_of

# Members of searches with several objectives; see test_fronts.py.
OF_FRONTS = ("pareto_", "hypervolume")
MEMBERS = [name for name in vars(Reading) if not name.startswith("_") and name not in OF_FRONTS]
CALLS = {
    "best_trial": lambda member: member(outside=True).value,
    "acquisition_at": lambda member: member({"x": 0.5}),
    "forecast": lambda member: member(),
    "importances": lambda member: member(),
    "overdue": lambda member: member(),
    "predict": lambda member: [each.tolist() for each in member([{"x": 0.5}])],
    "predict_feasible": lambda member: member({"x": 0.5}),
    "predict_final": lambda member: member(0),
    "hypervolume": lambda member: None,  # needs several objectives
    "recommend": lambda member: member(),
    "to_csv": lambda member: member(),
    "to_excel": lambda member: None,  # see test_table_files.py
    "trial": lambda member: member(0).params,
    "trials_dataframe": lambda member: member().to_csv(index=False),
}


def f(params):
    return (params["x"] - 0.3) ** 2


def read(owner):
    found = {}
    for name in MEMBERS:
        member = getattr(owner, name, None)  # members of fronts raise an AttributeError
        found[name] = CALLS[name](member) if callable(member) else repr(member)
    return found


@pytest.mark.parametrize("kind", ["optimizer", "study"])
def test_a_result_with_all_trials_equals_its_optimizer(kind, tmp_path):
    owner = bl.BayesOpt({"x": (0.0, 1.0)}, direction="minimize", seed=0)
    if kind == "study":
        owner = bl.Study("s", f"sqlite:///{tmp_path}/s.db", owner)
    result = bl.minimize(f, optimizer=owner, n_trials=8)
    assert read(result) == read(owner)
    assert (owner.direction, owner.clock, result.direction) == ("minimize", "iterations", "minimize")
    assert set(MEMBERS) >= {"trials_dataframe", "best_params_", "pending", "surrogate_", "predict", "domain"}


def test_members_of_one_class_are_read_from_the_optimizer():
    trees = bl.TreeSearch({"x": (0.0, 1.0)}, rho=[0.7, 0.5], seed=0)
    study = bl.Study("s", MemoryStore(), trees)
    result = bl.maximize(f, optimizer=trees, n_trials=8)
    assert bl.maximize(f, optimizer=study, n_trials=8).optimizer is study
    assert study.optimizer.trees_ == trees.trees_ and trees.trees_[0].n_cells >= 4
    for owner in (study, result):
        with pytest.raises(AttributeError, match=f"'{type(owner).__name__}'.*'trees_': use optimizer.trees_$"):
            _ = owner.trees_


def test_the_optimizer_of_a_study_reads_what_other_processes_wrote(tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    study = bl.Study("s", url, bl.BayesOpt({"x": (0.0, 1.0)}, seed=0))
    view = study.optimizer
    other = bl.Study.load("s", url)
    bl.maximize(f, optimizer=other, n_trials=8)
    assert view.n_trials == 8 and read(view) == read(other)
    other.observe(other.suggest(), 0.5)
    assert [trial.value for trial in view.trials][-1] == 0.5
    view.trials[0].observe(0.25, amend=True)  # the trials are trials of the study
    assert other.sync() == 1
    assert other.trial(0).value == view.trial(0).value == study.trial(0).value == 0.25


@pytest.mark.parametrize(
    "write",
    [
        lambda view: view.suggest(),
        lambda view: view.suggest(2),
        lambda view: view.observe(0, 0.5),
        lambda view: view.observe(view.trial(0), 0.5),
        lambda view: view.fail(0),
        lambda view: view.abandon(0),
        lambda view: view.report(0, 0.5, 1),
        lambda view: view.should_stop(0),
        lambda view: view.stop(0),
        lambda view: view.add({"x": 0.5}, 0.5),
        lambda view: view.enqueue({"x": 0.5}),
        lambda view: view.set_params(seed=3),
        lambda view: bl.maximize(f, optimizer=view, n_trials=1),
        lambda view: bl.Study("other", MemoryStore(), view),
        pickle.dumps,
        copy.deepcopy,
    ],
)
def test_the_optimizer_of_a_study_is_not_written(write):
    study = bl.Study("s", MemoryStore(), bl.RandomSearch({"x": (0.0, 1.0)}, curve=bl.Curve(3), stopping="asha", seed=0))
    study.suggest()
    before = study._log.events(0)
    with pytest.raises(bl.errors.InvalidSetting, match="optimizer of study 's'"):
        write(study.optimizer)
    assert study._log.events(0) == before


def test_all_searches_have_a_window():
    for window in (None, 7):
        owner = bl.BayesOpt({"x": (0.0, 1.0)}, window=window, seed=0)
        study = bl.Study("s", MemoryStore(), owner)
        result = bl.maximize(f, optimizer=study, n_trials=1)
        assert owner.window_ == study.window_ == study.optimizer.window_ == result.window_ == window
    assert bl.TreeSearch({"x": (0.0, 1.0)}).window_ is None


LACKS = {
    bl.BayesOpt: {"fidelity": bl.Fidelity(1, 9)},
    bl.BPEDelay: {
        "context": {"age": (0, 9)},
        "constraints": [bool],
        "fidelity": bl.Fidelity(1, 9),
        "curve": bl.Curve(3),
        "stopping": bl.ASHA(),
    },
    bl.TreeSearch: {"context": {"age": (0, 9)}, "candidates": [[0.0], [1.0]], "curve": bl.Curve(3), "stopping": "asha"},
}
REQUIRED = {bl.BPEDelay: {"horizon": 9, "lengthscale": 0.5, "noise_std": 0.1}}


@pytest.mark.parametrize("kind", LACKS)
def test_arguments_that_a_class_refuses_are_hidden(kind):
    lacked, required = LACKS[kind], REQUIRED.get(kind, {})
    made = kind({"x": (0.0, 1.0)}, **required)
    shown = [*inspect.signature(kind).parameters, *made.get_params(), *definition_of(made)["problem"]]
    assert (
        lacked.keys().isdisjoint(shown) and lacked.keys() <= inspect.signature(bl.Optimizer.__init__).parameters.keys()
    )
    assert clone(made).get_params() == made.get_params()
    for name, value in lacked.items():
        space = None if name == "candidates" else {"x": (0.0, 1.0)}
        for call in (
            lambda name=name, value=value, space=space: kind(space, **required, **{name: value}),
            lambda name=name, value=value, space=space: made.set_params(**{name: value, "space": space}),
        ):
            with pytest.raises(bl.errors.InvalidSetting, match="does not support|needs a curve"):
                call()


def test_a_result_lists_the_trials_of_its_run_and_reads_the_model_of_all():
    opt = bl.BayesOpt({"x": (0.0, 1.0)}, direction="minimize", seed=0)
    opt.add([{"x": 0.3}, {"x": 0.9}], [0.0, None])
    first = bl.minimize(f, optimizer=opt, n_trials=3)
    second = bl.minimize(f, optimizer=opt, n_trials=2)
    assert [trial.number for trial in first.trials] == list(first.trials_dataframe()["number"]) == [2, 3, 4]
    assert [trial.number for trial in second.trials] == list(second.trials_dataframe()["number"]) == [5, 6]
    assert (second.n_trials, second.pending, len(opt.pending)) == (2, [], 1)
    assert second.best_params_ == {"x": 0.3} and second.best_trial_ == opt.trial(0)
    assert np.array_equal(first.predict({"x": 0.5}), opt.predict({"x": 0.5}))
    assert first.surrogate_.n_observed == 6


def test_an_optimizer_still_reads_and_sets_its_settings():
    opt = bl.RandomSearch({"x": (0.0, 1.0)}, direction="minimize", clock="seconds", seed=0)
    assert (opt.direction, opt.clock, opt.get_params()["direction"]) == ("minimize", "seconds", "minimize")
    opt.set_params(direction="maximize")
    assert opt.direction == "maximize"
    with pytest.raises(bl.errors.InvalidSetting):
        opt.direction = "minimize"
