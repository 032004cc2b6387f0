"""`suggest(attrs=)` stores data, such as wells, with the trials that it starts."""

import pytest

import belated as bl
from belated.errors import InvalidValue
from belated.store.memory import MemoryStore

SPACE = {"x": (0.0, 1.0)}


def study_of(seed=0):
    return bl.Study("plate", MemoryStore(), bl.RandomSearch(SPACE, seed=seed))


@pytest.mark.parametrize("make", [lambda: bl.RandomSearch(SPACE, seed=0), study_of])
def test_trials_have_the_attrs(make):
    owner = make()
    wells = owner.suggest(n=2, attrs=[{"well": "A1"}, {"well": "A2"}])
    lot = owner.suggest(n=2, attrs={"lot": 7})
    single = owner.suggest(attrs={"well": "B1"})
    assert [trial.attrs for trial in (*wells, *lot, single)] == [
        *({"well": "A1"}, {"well": "A2"}),
        *({"lot": 7}, {"lot": 7}, {"well": "B1"}),
    ]
    n_trials = owner.n_trials
    with pytest.raises(InvalidValue, match="attrs has 3 entries for 2 trials"):
        owner.suggest(n=2, attrs=[{}, {}, {}])
    assert owner.n_trials == n_trials
    # Suggestions do not depend on attrs.
    plain = make()
    assert [trial.params for trial in plain.suggest(n=5)] == [trial.params for trial in owner.trials]


def test_the_worklist_has_the_attrs():
    study = study_of()
    study.suggest(n=2, attrs=[{"well": "A1"}, {"well": "A2"}], key="plate")
    study.suggest(n=2, attrs=[{"well": "C1"}, {"well": "C2"}], key="plate")  # a repetition changes nothing
    table = study.worklist()
    assert table["attrs_well"].tolist() == ["A1", "A2"] and "<th>well</th>" in study.worklist_html()
    table["value"] = [0.5, 0.25]
    summary = study.observe(table)
    assert len(summary.new) == 2 and summary.noted == []


def test_an_enqueued_point_keeps_its_attrs():
    study = study_of()
    study.enqueue({"x": 0.5})
    assert study.suggest(attrs={"well": "A1"}).attrs == {"well": "A1"}
