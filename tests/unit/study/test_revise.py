"""Revisions: a study goes on with another problem, and keeps its trials."""

import json

import pytest

import belated as bl
from belated import _core
from belated.errors import InvalidSetting, StoreError
from belated.optimizers.optimizer import with_nested


@pytest.fixture
def store(tmp_path):
    return f"sqlite:///{tmp_path}/lab.db"


def f(params):
    return -((params["heat"] - 90.0) ** 2) / 1000 + 0.1 * params["acid"]


def make(store, name="lab", n=8, **arguments):
    """Return a study of BayesOpt with n values."""
    space = {"heat": (20.0, 120.0), "acid": (0.0, 1.0)}
    study = bl.Study(name, store, bl.BayesOpt(space, seed=1, **arguments), time=lambda: 0.0)
    for _ in range(n):
        trial = study.suggest()
        trial.observe(f(trial.params))
    return study


def replayed(study, converted):
    """Return a new optimizer of the study's present problem, to which the events before the revision are replayed.

    The points are replaced, and the notes of fits are left out.
    """
    old = study._optimizer
    fresh = type(old)(**old.get_params(deep=False) | {"seed": study.seed_, "time": None})
    for event in study._log.events(0, study._log.core.last_revision()):
        data = json.loads(event)
        [(kind, fields)] = data.items()
        if "point" in fields:
            fields["point"] = {"numbers": converted(fields["point"]["numbers"])}
        text = json.dumps(data)
        fresh._log.extend([_core.without_note(text) if kind == "Suggested" else text])
    return fresh


def test_constraint_and_bound_change_for_all_handles(store):
    study = make(store)
    before = bl.Study.load("lab", store, time=lambda: 0.0)  # opened before the revision
    pending = study.suggest()
    study.revise(space={"heat": (20.0, 150.0), "acid": (0.0, 1.0)}, constraints=[lambda p: p["heat"] < 140])
    assert study.suggest().params["heat"] < 140
    before.observe(pending.number, 0.5)
    study.sync()
    assert study.trial(pending.number).value == 0.5
    assert before.domain["heat"].high == 150.0 and before.n_trials == study.n_trials
    with pytest.raises(InvalidSetting, match="constraints"):
        before.suggest()
    later = bl.Study.load("lab", store, time=lambda: 0.0, constraints=[lambda p: p["heat"] < 140])
    assert later.suggest().params["heat"] < 140
    assert [trial.value for trial in later.trials] == [trial.value for trial in study.trials]


def test_a_revised_study_equals_a_new_study_to_which_its_history_is_replayed(store):
    study = make(store)
    study.suggest()
    study.revise(space={"heat": (20.0, 150.0), "acid": (0.0, 1.0), "time": (1.0, 24.0)}, fill={"time": 12.0})
    fresh = replayed(study, lambda numbers: [*numbers, 12.0])
    for _ in range(4):
        mine, theirs = study.suggest(), fresh.suggest()
        assert mine.params == theirs.params
        mine.observe(f(mine.params))
        theirs.observe(f(theirs.params))
    again = bl.Study.load("lab", store, time=lambda: 0.0)
    assert again.suggest().params == fresh.suggest().params


def test_the_same_problem_changes_no_suggestion(store):
    study, other = make(store), make(store, "other")
    study.revise()
    study.revise(space={"heat": bl.Real(20.0, 120.0), "acid": bl.Real(0.0, 1.0)})
    for _ in range(3):
        mine, theirs = study.suggest(), other.suggest()
        assert mine.params == theirs.params and mine._record.note == theirs._record.note
        mine.observe(f(mine.params))
        theirs.observe(f(theirs.params))
    assert study.revision == 3
