"""Remarks and attributes may arrive at any time, and decisions do not depend on them."""

import copy
import pickle
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

import belated as bl
from belated.errors import AlreadyObserved, InvalidValue, UnknownTrial

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
TEXTS = st.none() | st.sampled_from(["cloudy", "again", ""])
ATTRS = st.none() | st.dictionaries(st.sampled_from("ab"), st.integers(0, 2), max_size=2)


def texts(trial):
    return [remark.text for remark in trial.remarks]


def test_attributes_of_a_known_value_are_stored():
    optimizer = bl.RandomSearch(SPACE, seed=0)
    trial = optimizer.suggest()
    trial.observe(0.5, attrs={"well": "A1"})
    for amend in (False, True):
        trial.observe(0.5, attrs={"remark": f"cloudy {amend}"}, amend=amend)
    assert trial.attrs == {"well": "A1", "remark": "cloudy True"}
    failed = optimizer.suggest()
    failed.fail(error="spilled")
    failed.fail(attrs={"well": "A2"})
    assert failed.attrs == {"well": "A2"} and str(failed.error) == "spilled"


@given(notes=st.lists(st.tuples(st.integers(0, 1), TEXTS, ATTRS), max_size=8))
def test_attributes_are_merged_and_remarks_are_listed(notes):
    optimizer = bl.RandomSearch(SPACE, seed=0)
    trials = optimizer.suggest(n=2)
    attrs, remarks = [{}, {}], [[], []]
    for i, text, given_attrs in notes:
        trials[i].note(text, attrs=given_attrs)
        attrs[i] |= given_attrs or {}
        if text is not None and remarks[i][-1:] != [text]:
            remarks[i].append(text)
    for again in (optimizer, pickle.loads(pickle.dumps(optimizer)), copy.deepcopy(optimizer)):
        assert [trial.attrs for trial in again.trials] == attrs
        assert [texts(trial) for trial in again.trials] == remarks


def noted_run(optimizer, notes):
    """Return the suggested points and predictions of a run, with or without notes after every step."""
    points = []
    for i in range(14):
        trial = optimizer.suggest()
        points.append(trial.params)
        if notes:
            trial.note("started", attrs={"i": i})
        if i % 5 == 3:
            trial.fail()
        elif i % 7 != 5:
            trial.observe(trial.params["x"] - trial.params["y"] ** 2)
        if notes:
            optimizer.note(optimizer.trials, f"after step {i}")
    predicted = [each.tolist() for each in optimizer.predict(points)] if isinstance(optimizer, bl.BayesOpt) else None
    return points, predicted, optimizer.best_value_


@pytest.mark.parametrize("make", [bl.RandomSearch, bl.BayesOpt, bl.TreeSearch], ids=lambda make: make.__name__)
def test_decisions_do_not_depend_on_notes(make):
    assert noted_run(make(SPACE, seed=3), notes=True) == noted_run(make(SPACE, seed=3), notes=False)


def test_a_study_keeps_notes(tmp_path):
    before = datetime.now(timezone.utc)
    study = bl.Study("plates", tmp_path / "a.db", bl.RandomSearch(SPACE, seed=0))
    asleep = bl.Study.load("plates", tmp_path / "a.db")
    study.suggest(n=3)
    study.note([0, 2], "cloudy", attrs={"lot": 7})
    for number in range(3):
        study.observe(number, 0.5)
    asleep.trial(2).note("repeated")
    study.copy("copied")
    for again in (
        study,
        asleep,
        bl.Study.load("plates", tmp_path / "a.db"),
        bl.Study.load("copied", tmp_path / "a.db"),
    ):
        assert [texts(trial) for trial in again.trials] == [["cloudy"], [], ["cloudy", "repeated"]]
        assert [trial.attrs for trial in again.trials] == [{"lot": 7}, {}, {"lot": 7}]
        assert all(before <= remark.at <= datetime.now(timezone.utc) for remark in again.trial(2).remarks)


@pytest.mark.parametrize("new", ["optimizer", "study"])
@pytest.mark.parametrize("verb", ["fail", "abandon", "note"])
def test_lists_change_all_trials_or_none(verb, new, tmp_path):
    optimizer = bl.RandomSearch(SPACE, seed=0)
    if new == "study":
        optimizer = bl.Study("plates", tmp_path / "a.db", optimizer)
    trials = optimizer.suggest(n=4)
    call = getattr(optimizer, verb)
    arguments = ("cloudy",) if verb == "note" else ()
    with pytest.raises(UnknownTrial):
        call([0, 9], *arguments)
    optimizer.observe(2, 0.5)
    if verb != "note":
        with pytest.raises(AlreadyObserved, match="trial 2 has the value 0.5"):
            call([1, 2], *arguments)
    call([], *arguments)
    assert [trial.state for trial in trials] == ["pending", "pending", "observed", "pending"]
    assert not any(texts(trial) for trial in trials)
    call([trials[0], 3, 3], *arguments)
    ended = {"fail": "failed", "abandon": "abandoned", "note": "pending"}[verb]
    assert [trial.state for trial in trials] == [ended, "pending", "observed", ended]
    assert [texts(trial) for trial in trials] == [[*arguments], [], [], [*arguments]]


@pytest.mark.parametrize(
    ("arguments", "named", "error", "text"),
    [
        ((0, 5), {}, InvalidValue, "remark=5"),
        ((7, "text"), {}, UnknownTrial, "7"),
        ((-1, "text"), {}, UnknownTrial, "-1"),
    ],
)
def test_unusable_notes_are_refused(arguments, named, error, text):
    optimizer = bl.RandomSearch(SPACE, seed=0)
    optimizer.suggest()
    with pytest.raises(error, match=text):
        optimizer.note(*arguments, **named)
    assert optimizer.trials[0].attrs == {} and not optimizer.trials[0].remarks
