"""A study stores the number and the names of its constraints, but not the functions."""

import pickle
import re

import pytest

import belated as bl
from belated.store import open_store

SPACE = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
BAD = {"a": 0.9, "b": 0.9}


def below_one(params):
    return params["a"] + params["b"] <= 1


def not_tiny(params):
    return params["a"] >= 0.01


def never_half(params):
    return params["a"] > 2


BOTH = [below_one, not_tiny]


@pytest.fixture
def store(tmp_path):
    return f"sqlite:///{tmp_path / 'studies.db'}"


def optimizer(constraints=BOTH, kind=bl.BayesOpt):
    return kind(SPACE, seed=3, constraints=constraints)


@pytest.fixture
def study(store):
    study = bl.Study("s", store, optimizer())
    study.add(BAD, 5.0)
    for trial in study.suggest(6):
        assert below_one(trial.params)
        trial.observe(trial.params["a"])
    return study


def test_without_constraints_a_study_refuses_only_suggest_enqueue_and_recommend(study, store):
    loaded = bl.Study.load("s", store)
    before = loaded._log.n_events()
    for name, call in (
        ("suggest", loaded.suggest),
        ("enqueue", lambda: loaded.enqueue({"a": 0.5, "b": 0.1})),
        ("recommend", loaded.recommend),
    ):
        names = re.escape(f"{[each.__name__ for each in BOTH]}")
        with pytest.raises(bl.errors.InvalidSetting, match=f"{names}.* {name} has.*constraints="):
            call()
    assert loaded._log.n_events() == before
    trial = study.suggest()
    loaded.observe(trial.number, 1.0)
    loaded.fail(study.suggest().number)
    loaded.add({"a": 0.8, "b": 0.8}, 0.5)
    assert loaded.best_value_ == 5.0 and "BayesOpt" in repr(loaded) and loaded.n_trials == 10
    assert len(loaded.predict([BAD])[0]) == 1


def test_with_constraints_a_study_suggests_and_refuses_infeasible_points(study, store):
    for loaded in (
        bl.Study.load("s", store, constraints=BOTH),
        bl.Study("s", store, constraints=BOTH),
        bl.Study("s", store, optimizer()),
        pickle.loads(pickle.dumps(bl.Study.load("s", store, constraints=BOTH))),
    ):
        assert below_one(loaded.suggest().params) and below_one(loaded.recommend())
        with pytest.raises(bl.errors.InvalidPoint, match=r"constraints\[0\] \(below_one\)"):
            loaded.enqueue(BAD)


def test_the_wrong_number_is_refused(study, store):
    bl.Study("free", store, optimizer(None))
    opened = open_store(store)
    before = opened.events(study._log.id, 0)
    for call, message in (
        (lambda: bl.Study.load("s", store, constraints=[below_one]), "has 1 functions, and .* has 2"),
        (lambda: bl.Study("s", store, optimizer([below_one])), "constraints has 2 functions there and 1 here"),
        (lambda: bl.Study("s", store, optimizer(None)), ""),
        (lambda: bl.Study.load("free", store, constraints=BOTH), ""),
        (lambda: bl.Study("new", store, optimizer(None), constraints=BOTH), "pass constraints= to the optimizer"),
        (lambda: bl.Study.load("s", store, constraints=below_one), ""),
    ):
        with pytest.raises(bl.errors.InvalidSetting, match=message):
            call()
        assert opened.names() == ["s", "free"] and opened.events(study._log.id, 0) == before
    assert below_one(study.suggest().params)


def test_other_constraints_are_checked_against_the_suggestions(study, store):
    # Trial 0 was added by `add`, so it may violate the first constraint.
    with pytest.raises(
        bl.errors.InvalidSetting, match=r"trial 1 .*violates constraints\[1\] \(never_half\) with params="
    ):
        bl.Study.load("s", store, constraints=[below_one, never_half])


def test_a_study_with_lambdas_cannot_be_pickled(study, store):
    loaded = bl.Study.load("s", store, constraints=[below_one, lambda p: True])
    with pytest.raises(bl.errors.InvalidSetting):
        pickle.dumps(loaded)


@pytest.mark.parametrize("kind", [bl.RandomSearch, bl.BayesOpt])
def test_errors_in_constraints_write_nothing(store, kind):
    def using(params):
        return study.suggest() is None

    study = bl.Study("using", store, optimizer([using], kind))
    with pytest.raises(bl.errors.InvalidSetting):
        study.suggest(2)
    assert study._log.n_events() == 0
    study = bl.Study("raising", store, optimizer([lambda p: p["c"] > 1], kind))
    with pytest.raises(bl.errors.InvalidSetting, match="raised KeyError: 'c'"):
        study.suggest(2)
    assert study._log.n_events() == 0
