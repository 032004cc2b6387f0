"""The runs whose decisions are hashed are reproducible, and notice if a live object differs from its copy."""

import importlib
from dataclasses import replace
from pathlib import Path

import pytest

import belated as bl

_FOLDER = Path(__file__).parents[3] / "benchmarks"
_SHORT = [
    "outcomes two with failures",
    "outcomes four withdrawn",
    "given enqueued in part",
    "fixed list and range",
    "context both, several contexts",
    "copies RandomSearch",
    "revision of two handles mixed",
]


@pytest.fixture
def runs(monkeypatch):
    monkeypatch.syspath_prepend(_FOLDER)
    return importlib.import_module("hash_runs")


@pytest.fixture
def short(runs):
    """Scenarios of a few turns, by name."""
    return {name: replace(each, turns=9) for name, each in runs.scenarios()}


def test_names_are_unique_and_say_which_runs_have_a_special_case(runs):
    hashes = importlib.import_module("hashes")
    names = [name for name, _ in hashes.runs()]
    assert len(set(names)) == len(names)
    several = {name for name, each in runs.scenarios() if len({repr(a.get("context")) for a in each.arguments}) > 1}
    assert several == {name for name in names if name.endswith("several contexts")}
    reports = {name for name, each in runs.scenarios() if {"fail", "fail one"} & set(each.reports)}
    assert reports == {name for name in names if name.endswith("with failures")}


@pytest.mark.parametrize("name", _SHORT)
@pytest.mark.filterwarnings("ignore::belated.BelatedWarning")
def test_a_run_has_the_same_hash_again(runs, short, name):
    assert runs.made(short[name]) == runs.made(short[name])


@pytest.mark.filterwarnings("ignore::belated.BelatedWarning")
def test_the_hash_covers_decisions_and_values(runs, short):
    scenario = short["outcomes two complete"]
    other = replace(scenario, f=lambda params, context: runs.two(params, context) | {"impurity": 0.1})
    seeded = replace(scenario, make=lambda: bl.BayesOpt(runs.BOX, outcomes=runs.TWO, seed=3))
    assert len({runs.made(each) for each in (scenario, other, seeded)}) == 3


@pytest.mark.parametrize("name", ["copies BayesOpt", "copies study"])
def test_a_copy_with_another_value_or_another_suggestion_ends_the_run(runs, short, name, monkeypatch):
    copy = runs.Run.copy

    def amended(self, handle):
        found = copy(self, handle)
        for trial in found.trials[:1]:
            if trial.state == "observed":
                found.observe(trial, trial.value + 1e-12, amend=True)
        return found

    def ahead(self, handle):
        found = copy(self, handle)
        if found.n_trials == 3:  # a copy that has made one suggestion more than it shows
            later = copy(self, handle)
            later.suggest()
            monkeypatch.setattr(found, "suggest", later.suggest)
        return found

    for wrong, what in ((amended, "the trials"), (ahead, "the suggestions")):
        monkeypatch.setattr(runs.Run, "copy", wrong)
        with pytest.raises(AssertionError, match=what):
            runs.made(short[name])
