"""Values that are far from what the model expects without them are stored with a mark, until they are confirmed."""

import copy
import json
import pickle
import warnings

import numpy as np
import pytest

import belated as bl
from belated.errors import InvalidSetting, InvalidValue, UnknownTrial
from belated.store.memory import MemoryStore

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def value_of(params):
    return 0.6 + 0.3 * np.cos(3 * params["x"]) * params["y"]


def filled(owner, n=20):
    """Suggest and observe n trials, without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(n):
            trial = owner.suggest()
            trial.observe(value_of(trial.params))
    return owner


@pytest.fixture(params=["optimizer", "study"])
def owner(request):
    optimizer = bl.BayesOpt(SPACE, seed=0)
    return optimizer if request.param == "optimizer" else bl.Study("s", MemoryStore(), optimizer)


def marked(trial, value, **facts):
    """Observe a value that is marked, and return the text of the warning."""
    with pytest.warns(bl.BelatedWarning) as caught:
        trial.observe(value, **facts)
    (text,) = [str(each.message) for each in caught]
    return text


def test_a_typing_error_counts_and_is_marked(owner):
    trial = filled(owner).suggest()
    text = marked(trial, 76.0)
    low, high = trial.marks[None]
    assert f"trial {trial.number} has the value 76.0" in text and f"{low:.4g} to {high:.4g}" in text
    assert low < value_of(trial.params) < high < 76.0
    assert trial.state == "observed" and owner.best_value_ == 76.0
    assert all(not each.marks for each in owner.trials if each.number != trial.number)


def test_values_of_both_sides_are_marked(owner):
    filled(owner)
    for value in (-0.75, 0.0075, 7.5):
        assert marked(owner.suggest(), value)


def test_a_mark_ends_by_confirm_amend_and_withdraw_only(owner):
    filled(owner)
    for end, is_ended in (
        (lambda trial: trial.observe(76.0), False),
        (lambda trial: trial.observe(76.0, amend=True), False),
        (lambda trial: trial.observe(76.0, cost=3.0, amend=True), False),
        (lambda trial: owner.note(trial, "checked"), False),
        (lambda trial: trial.observe(0.76, amend=True), True),
        (lambda trial: trial.withdraw(), True),
        (lambda trial: owner.confirm(trial), True),
    ):
        trial = owner.suggest()
        marked(trial, 76.0)
        end(trial)
        assert (trial.marks == {}) is is_ended
        owner.confirm(trial)
        assert trial.marks == {}
        if trial.state == "observed":
            trial.withdraw()


def test_confirm_takes_lists_all_or_none_and_repetitions_have_no_effect(owner):
    trials = filled(owner).suggest(n=2)
    for trial in trials:
        marked(trial, -50.0)
    with pytest.raises(UnknownTrial):
        owner.confirm([trials[0], 99])
    assert all(trial.marks for trial in trials)
    owner.confirm(trials)
    n_events = owner._log.n_events()
    owner.confirm([trial.number for trial in trials])
    owner.confirm(0)
    assert not any(trial.marks for trial in trials) and owner._log.n_events() == n_events
    with pytest.raises(InvalidValue, match="was not declared"):
        owner.confirm(0, outcome="error")


def test_a_plate_is_judged_before_the_first_fit():
    optimizer = bl.BayesOpt(SPACE, seed=0)
    trials = optimizer.suggest(n=12)
    filled_values = [0.6 + 0.02 * i for i in range(11)]
    for trial, value in zip(trials, filled_values, strict=False):
        trial.observe(value)
    assert marked(trials[11], 79.1)
    trial = optimizer.suggest()
    assert list(optimizer.trials[11].marks) == [None] and trial.marks == {}


def test_the_first_values_and_equal_values_are_not_marked():
    optimizer = bl.BayesOpt(SPACE, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i, trial in enumerate(optimizer.suggest(n=7)):
            trial.observe(10.0**i)
        constant = bl.BayesOpt(SPACE, seed=0)
        for _ in range(30):
            constant.suggest().observe(0.0)
        constant.suggest().observe(0.4)
        sparse = bl.BayesOpt(SPACE, seed=0, surrogate=bl.GP(noise_std=0.0))
        for _ in range(20):
            sparse.fail(sparse.suggest())
        for _ in range(12):
            trial = sparse.suggest()
            trial.observe(value_of(trial.params))


def test_random_search_does_not_mark():
    optimizer = bl.RandomSearch(SPACE, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in [*range(20), 1e6]:
            optimizer.suggest().observe(float(value))


def test_decisions_do_not_read_marks():
    optimizer = filled(bl.BayesOpt(SPACE, seed=0))
    marked(optimizer.suggest(), 76.0)
    other = bl.BayesOpt(SPACE, seed=0)
    events = [json.loads(text) for text in optimizer._log.events(0)]
    assert events[-1]["what"]["Resulted"]["data"].pop("marks")
    del events[-1]["what"]["Resulted"]["data"]
    other._log.extend([json.dumps(event) for event in events])
    assert not other.trials[-1].marks
    confirmed = copy.deepcopy(optimizer)
    confirmed.confirm(20)
    for _ in range(4):
        trials = [each.suggest() for each in (optimizer, other, confirmed)]
        assert trials[0].params == trials[1].params == trials[2].params
        for trial in trials:
            trial.observe(value_of(trial.params))


def test_marks_are_pickled_and_read_by_other_handles(tmp_path):
    optimizer = filled(bl.BayesOpt(SPACE, seed=0))
    trial = optimizer.suggest()
    marked(trial, 76.0)
    assert pickle.loads(pickle.dumps(optimizer)).trial(20).marks == trial.marks
    store = f"sqlite:///{tmp_path}/s.db"
    study = filled(bl.Study("s", store, bl.BayesOpt(SPACE, seed=0)))
    marked(study.suggest(), 76.0)
    other = bl.Study.load("s", store)
    assert other.trial(20).marks == study.trial(20).marks != {}
    other.confirm(20)
    study.sync()
    assert study.trial(20).marks == {}


def test_a_handle_that_only_reports_marks_large_errors(tmp_path):
    store = f"sqlite:///{tmp_path}/s.db"
    trial = filled(bl.Study("s", store, bl.BayesOpt(SPACE, seed=0))).suggest()
    worker = bl.Study.load("s", store)
    assert marked(worker.trial(trial.number), 76.0)


def outcomes(**options):
    goals = {"error": "minimize", "purity": bl.AtLeast(0.8, **options), "colour": bl.Record(plausible=(0, 255))}
    return bl.BayesOpt(SPACE, outcomes=goals, seed=0)


def test_outcomes_are_marked_and_confirmed_one_by_one():
    optimizer = outcomes()
    for _ in range(20):
        trial = optimizer.suggest()
        trial.observe({"error": 2.0 + trial.params["x"], "purity": value_of(trial.params), "colour": 100.0})
    trial = optimizer.suggest()
    with pytest.warns(bl.BelatedWarning) as caught:
        trial.observe({"error": 240.0, "purity": 88.0})
    assert len(caught) == 2 and list(trial.marks) == ["error", "purity"]
    assert f"confirm({trial.number}, outcome='purity')" in str(caught[1].message)
    optimizer.confirm(trial, outcome="purity")
    assert list(trial.marks) == ["error"]


def test_values_outside_the_plausible_range_are_refused():
    optimizer = outcomes(plausible=(0, 1))
    trial = optimizer.suggest()
    with pytest.raises(InvalidValue, match=r"79.1.*purity.*trial 0.*from 0 to 1"):
        trial.observe({"error": 1.0, "purity": 79.1})
    assert trial.values == {}
    trial.observe({"error": 1.0, "purity": 1.0, "colour": 0})
    with pytest.raises(InvalidValue, match="purity"):
        trial.observe({"purity": -0.1}, amend=True)
    with pytest.raises(InvalidValue, match="colour"):
        optimizer.add({"x": 0.5, "y": 0.5}, {"colour": 256})
    assert optimizer.n_trials == 1
    with pytest.raises(InvalidSetting, match="leaves no range"):
        bl.Maximize(plausible=(1, 0))


def test_the_expected_interval_can_be_asked_for(tmp_path):
    store = f"sqlite:///{tmp_path}/s.db"
    trial = filled(bl.Study("s", store, bl.BayesOpt(SPACE, seed=0))).suggest()
    low, high = bl.Study.load("s", store)._log.expected(trial.number, None, None, True)
    assert low < value_of(trial.params) < high < 3.0


def test_unlike_contexts_need_values_of_their_own():
    optimizer = bl.BayesOpt(SPACE, context={"batch": ["a", "b"]}, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for batch, factor in (("a", 1.0), ("b", 100.0)):
            for _ in range(12):
                trial = optimizer.suggest(context={"batch": batch})
                trial.observe(factor * value_of(trial.params))


def test_an_amended_value_is_compared_with_what_is_expected_without_the_earlier_value(owner):
    trial = filled(owner).trials[7]
    with pytest.warns(bl.BelatedWarning, match="trial 7 has the value 81.0"):
        trial.observe(81.0, amend=True)
    assert trial.marks
    right = value_of(trial.params)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trial.observe(right + 0.01, amend=True)  # the correction of a typing error
        assert not trial.marks
        trial.observe(right, cost=2.0, amend=True)
        trial.observe(right, std=0.1, amend=True)
    assert not trial.marks
    owner.suggest()  # a fit that has seen the values
    with pytest.warns(bl.BelatedWarning, match="trial 7 has the value -0.7"):
        trial.observe(-0.7, amend=True)


def test_check_fits_the_model_in_a_new_process(tmp_path):
    study = filled(bl.Study("s", tmp_path / "a.db", bl.BayesOpt(SPACE, seed=0)), 24)
    trial = study.suggest()
    new = bl.Study.load("s", tmp_path / "a.db")
    with pytest.warns(bl.BelatedWarning, match="was expected"):
        new.observe(trial.number, -value_of(trial.params), check=True)
    assert new.trial(trial.number).marks


def test_a_typing_error_that_replaces_another_one_stays_marked(owner):
    trial = filled(owner, 24).suggest()
    marked(trial, 76.0)
    owner.suggest()
    for value in (67.0, 6.7):
        assert "was expected" in marked(trial, value, amend=True) and trial.marks
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trial.observe(value_of(trial.params), amend=True)
    assert not trial.marks
