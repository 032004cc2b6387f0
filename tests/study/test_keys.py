"""Keys of suggestions: one request, however often and by however many it is made, starts its trials once."""

import itertools
from contextlib import contextmanager

import pytest

import belated as bl
from belated.store.sqlite import SqliteStore


def optimizer():
    return bl.RandomSearch({"x": (0.0, 1.0)}, seed=1)


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'studies.db'}"


def test_a_key_finds_its_trials_among_those_added_and_reported(url):
    study = bl.Study("s", url, optimizer())
    study.add([{"x": 0.25}, {"x": 0.75}], [1.0, None])
    started = {"a": study.suggest(key="a"), "b": study.suggest(n=2, key="b")}
    study.observe(started["a"], 2.0, key="report")
    study.add({"x": 0.5}, 3.0)
    study.enqueue({"x": 0.125})
    started["c"] = study.suggest(key="c")
    study.observe(started["a"], 4.0, replicate=True)
    started["d"] = study.suggest(n=3, key="d")
    n = study.n_trials
    # A study that reads the whole log at once finds the same numbers.
    for known in (study, bl.Study.load("s", url)):
        for key, trials in started.items():
            count = len(trials) if isinstance(trials, list) else None
            assert known.suggest(count, key=key) == trials
        assert known.n_trials == n


class Overtaken(SqliteStore):
    """A store where others may write just before its write lock is taken."""

    before = staticmethod(lambda: None)

    @contextmanager
    def writing(self, name):
        self.before()
        with super().writing(name) as transaction:
            yield transaction


@pytest.mark.parametrize("seconds", [0.0, 10.0], ids=["quick", "slow"])
@pytest.mark.parametrize("turn", [1, 2, 3, 4])
def test_who_asks_at_the_same_moment_with_the_same_key_gets_the_same_trials(url, monkeypatch, seconds, turn):
    """Between a proposal and the write lock others write; the one of this turn makes the same request."""
    other = bl.Study("s", url, optimizer())
    store = Overtaken.from_location(url.removeprefix("sqlite://"))
    study = bl.Study.load("s", store)
    turns, same = itertools.count(1), []

    def write():
        if next(turns) == turn:
            same.extend(other.suggest(n=2, key="job"))
        else:
            other.suggest()

    store.before = write
    # How long a proposal takes decides whether it is made anew under the lock.
    ticks = itertools.count(0.0, seconds)
    monkeypatch.setattr("time.perf_counter", lambda: next(ticks))
    mine = study.suggest(n=2, key="job")
    monkeypatch.undo()
    store.before = lambda: None
    if turn == 1 or seconds > 0:
        assert same, "the turn never came"
    assert mine == other.suggest(n=2, key="job") == bl.Study.load("s", url).suggest(n=2, key="job")
    if same:
        assert mine == same


def test_reports_with_the_same_key_at_the_same_moment_count_once(url):
    other = bl.Study("s", url, optimizer())
    store = Overtaken.from_location(url.removeprefix("sqlite://"))
    study = bl.Study.load("s", store)
    number = other.suggest().number
    study.sync()
    store.before = lambda: other.observe(number, 1.0, replicate=True, key="report")
    study.observe(number, 1.0, replicate=True, key="report")
    assert [trial.value for trial in bl.Study.load("s", url).trials] == [1.0]
