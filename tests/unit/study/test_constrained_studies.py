"""A study stores the number and the names of its constraints, but not the functions."""

import pickle
import re
from functools import partial

import pytest

import belated as bl
from belated.store import open_store

SPACE = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
BAD = {"a": 0.9, "b": 0.9}


def below_one(params):
    return params["a"] + params["b"] <= 1


def not_tiny(params):
    return params["a"] >= 0.01


BOTH = [below_one, not_tiny]


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


def test_another_number_or_name_is_refused(study, store):
    bl.Study("free", store, optimizer(None))
    opened = open_store(store)
    before = opened.events(study._log.id, 0)
    for call, message in (
        (lambda: bl.Study.load("s", store, constraints=[below_one]), r"\['below_one'\], and .* has \['below_one', "),
        (lambda: bl.Study.load("s", store, constraints=BOTH[::-1]), r"\['not_tiny', .* has \['below_one', "),
        (lambda: bl.Study.load("s", store, constraints=[below_one, optimizer]), r"'optimizer'\], and .* 'not_tiny'\]"),
        (lambda: bl.Study("s", store, optimizer([below_one])), r"'not_tiny'\] there and \['below_one'\] here"),
        (lambda: bl.Study("s", store, optimizer(BOTH[::-1])), r"'not_tiny'\] there and \['not_tiny', .* here"),
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
    def not_tiny(params):
        return params["a"] > 2

    # Trial 0 was added by `add`, so it may violate the first constraint.
    with pytest.raises(bl.errors.InvalidSetting, match=r"trial 1 .*violates constraints\[1\] \(not_tiny\) with "):
        bl.Study.load("s", store, constraints=[below_one, not_tiny])


def test_a_study_is_opened_again_after_a_partial_point_without_a_feasible_completion(study, store):
    study.enqueue({"a": 0.0})
    with pytest.warns(bl.BelatedWarning, match="violates"):
        violating = study.suggest()
    assert violating.params["a"] == 0.0
    for loaded in (bl.Study.load("s", store, constraints=BOTH), bl.Study("s", store, optimizer())):
        assert not_tiny(loaded.suggest().params)


def test_a_study_with_lambdas_cannot_be_pickled(study, store):
    lambdas = bl.Study("lambdas", store, optimizer([below_one, lambda p: True]))
    with pytest.raises(bl.errors.InvalidSetting):
        pickle.dumps(lambdas)


def below_half(params):
    return params["a"] + params["b"] <= 0.5


below_half.__name__ = "below_one"


def refuses(handle, number=2):
    """Return whether a handle refuses to suggest because it lacks the functions of a revision."""
    handle.sync()
    events = handle._log.n_events()
    for call in (handle.suggest, handle.recommend, lambda: handle.enqueue({"a": 0.1, "b": 0.1})):
        with pytest.raises(bl.errors.InvalidSetting, match=rf"'below_one'\] since revision {number}, which are"):
            call()
    with pytest.raises(bl.errors.InvalidSetting, match=f"since revision {number}"):
        bl.maximize(lambda p: p["a"], optimizer=handle, n_trials=1)
    return handle._log.n_events() == events


@pytest.mark.parametrize("kind", [bl.RandomSearch, bl.BayesOpt])
def test_functions_are_outdated_once_another_process_replaces_the_constraints(store, kind):
    first = bl.Study("s", store, optimizer([below_one], kind))
    first.add([{"a": 0.9, "b": 0.05}, {"a": 0.4, "b": 0.05}], [2.0, 1.0])
    others = [bl.Study.load("s", store, constraints=[below_one]), bl.Study("s", store, optimizer([below_one], kind))]
    pickled = [pickle.dumps(each) for each in (first, *others)]
    first.revise(constraints=[below_half])
    # Pickles have the functions of the time at which they were made.
    outdated = [*others, *map(pickle.loads, pickled)]
    assert all(refuses(handle) for handle in outdated)
    assert {handle.best_value_ for handle in outdated} == {2.0}  # as of a study without functions
    new = bl.Study.load("s", store, constraints=[below_half])
    first.revise(space=SPACE | {"b": (0.0, 0.5)})
    assert all(refuses(handle) for handle in outdated)
    for handle in (first, new, pickle.loads(pickle.dumps(new)), bl.Study.load("s", store, constraints=[below_half])):
        assert all(below_half(trial.params) for trial in handle.suggest(4))
        assert handle.best_params_ == {"a": 0.4, "b": 0.05} and below_half(handle.recommend())
    for handle in (*outdated, first):
        handle._log._read_anew(partial(handle._store.events, handle._log.id))
    assert all(refuses(handle) for handle in outdated) and below_half(first.suggest().params)


def test_revisions_without_constraints_keep_the_functions_of_all_processes(store):
    first = bl.Study("s", store, optimizer([below_one]))
    other = bl.Study.load("s", store, constraints=[below_one])
    pickled = pickle.dumps(other)
    first.revise(space={"a": (0.0, 2.0), "b": (0.0, 2.0)})
    for handle in (first, other, pickle.loads(pickled)):
        assert all(below_one(trial.params) for trial in handle.suggest(3))
    first.revise(constraints=None)
    assert len(other.suggest(3)) == 3
    first.revise(constraints=[below_one])
    assert refuses(other, 4)


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
