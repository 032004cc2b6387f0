"""For each event, a study knows the time of writing and the number of the trial."""

import itertools
import json

import pytest

import belated as bl


def test_times_and_changes_agree_with_the_stored_events(tmp_path):
    url, ticks = f"sqlite:///{tmp_path / 's.db'}", itertools.count(100.0)
    study = bl.Study("s", url, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0), time=lambda: next(ticks))
    other = bl.Study.load("s", url, time=lambda: next(ticks))
    first, second, third = study.suggest(n=3)
    other.observe(second.number, 1.0)
    study.enqueue({"x": 0.5})
    study.fail(first)
    other.observe(first.number, 2.0)
    study.observe(second, 3.0, amend=True)
    other.observe(second.number, 4.0, replicate=True)
    study.add([{"x": 0.25}, {"x": 0.75}], [5.0, None])
    third.abandon()
    study.suggest()
    # Events of some kinds start a trial. All other events contain the number of their trial.
    times, changes, n = {}, [], 0
    for record in study._store.events(study._log.id, 0):
        [(kind, facts)] = json.loads(record.body)["what"].items()
        if kind in ("Suggested", "Added"):
            number, n = n, n + 1
        else:
            number = facts.get("trial")
        changes.append(number)
        if number is not None:
            times.setdefault(number, []).append(record.at)
    assert n == study.n_trials == 7 and None in changes
    for known in (study, other, bl.Study.load("s", url)):
        known.sync()
        history = known._log.history
        for number, at in times.items():
            assert history.written(number) == (at[0], at[-1])
        for start in range(len(changes) + 2):
            assert history.changed(start) == sorted({number for number in changes[start:] if number is not None})
        last, at = history.last_of_all()
        assert last.tolist() == [history.last(number) for number in range(7)]
        assert at.tolist() == [times[number][-1] for number in range(7)]
    with pytest.raises(IndexError):
        study._log.history.written(7)


def test_events_are_added_while_the_last_events_are_in_use(tmp_path):
    study = bl.Study("s", tmp_path / "s.db", bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    history = study._log.history
    assert [column.tolist() for column in history.last_of_all()] == [[], []]
    kept = []
    for _ in range(50):
        study.suggest()
        kept.append(history.last_of_all()[0])
    assert [each.tolist() for each in kept] == [list(range(n)) for n in range(1, 51)]
