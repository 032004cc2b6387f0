"""A request with a key starts its trials once, even if several callers repeat the request."""

import itertools
from contextlib import contextmanager

import numpy as np
import pytest

import belated as bl
from belated.errors import AlreadyObserved, InvalidSetting
from belated.store.sqlite import SqliteStore


def optimizer():
    return bl.RandomSearch({"x": (0.0, 1.0)}, seed=1)


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'studies.db'}"


def test_a_key_finds_its_trials_among_other_events(url):
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
    # Another instance, which reads the whole log at once, finds the same trial numbers for each key.
    for known in (study, bl.Study.load("s", url)):
        for key, trials in started.items():
            count = len(trials) if isinstance(trials, list) else None
            assert known.suggest(count, key=key) == trials
        assert known.n_trials == n


class Overtaken(SqliteStore):
    """A store in which another process may write just before this process acquires the write lock."""

    before = staticmethod(lambda: None)

    @contextmanager
    def writing(self, study):
        self.before()
        with super().writing(study) as transaction:
            yield transaction


@pytest.mark.parametrize("seconds", [0.0, 10.0], ids=["quick", "slow"])
@pytest.mark.parametrize("turn", [1, 2, 3])
def test_simultaneous_calls_with_one_key_get_the_same_trials(url, monkeypatch, seconds, turn):
    """Other processes write after a proposal was computed and before the write lock is acquired; one of them makes the
    same request."""
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
    # Whether a proposal is computed again under the lock depends on how long the proposal took.
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


def test_a_key_holds_for_the_cost_and_for_where_a_trial_was_run_but_not_for_attrs(url):
    study = bl.Study("s", url, optimizer())
    trial, other = study.suggest(n=2)
    report = {"std": 0.1, "cost": 2.0, "params": {"x": 0.5}, "key": "report"}
    study.observe(trial, 1.0, **report, attrs={"a": 1}, duration=3.0)
    n = study._log.n_events()
    for known in (study, bl.Study.load("s", url)):
        known.observe(trial.number, 1.0, **report)
        known.observe(trial.number, 1.0, **report, attrs={"a": 2}, duration=4.0)
        for change in (
            {"std": 0.2},
            {"cost": None},
            {"params": {"x": 0.6}},
            {"params": None},
            {"params": trial.params},
        ):
            with pytest.raises(bl.errors.InvalidSetting, match="key='report' reported another"):
                known.observe(trial.number, 1.0, **(report | change))
        for number, value in ((other.number, 1.0), (trial.number, 2.0)):
            with pytest.raises(bl.errors.InvalidSetting):
                known.observe(number, value, **report)
    assert study._log.n_events() == n and trial.attrs == {"a": 1} and trial.duration == 3.0


def test_a_key_agrees_after_later_changes_of_its_trial(url):
    study = bl.Study("s", url, optimizer())
    trial = study.suggest()
    study.observe(trial, 1.0, key="plain")
    study.observe(trial, 2.0, amend=True, params={"x": 0.5}, key="moved")
    study.observe(trial, 3.0, replicate=True, key="again")
    study.observe(trial, 4.0, replicate=True, params={"x": 0.25}, key="there")
    study.observe(trial, 5.0, amend=True, params=trial.params, key="back")
    facts = [(each.value, each.params_run["x"]) for each in study.trials]
    x = trial.params["x"]
    assert facts == [(5.0, x), (3.0, 0.5), (4.0, 0.25)]
    n = study._log.n_events()
    for known in (study, bl.Study.load("s", url)):
        known.observe(0, 1.0, key="plain")
        with pytest.raises(bl.errors.InvalidSetting, match="key='plain'"):
            known.observe(0, 1.0, params=trial.params, key="plain")
        known.observe(0, 2.0, amend=True, params={"x": 0.5}, key="moved")
        known.observe(0, 3.0, replicate=True, key="again")
        known.observe(0, 4.0, replicate=True, params={"x": 0.25}, key="there")
        known.observe(0, 5.0, amend=True, params=trial.params, key="back")
        with pytest.raises(bl.errors.InvalidSetting, match="key='there'"):
            known.observe(0, 4.0, replicate=True, key="there")
    assert study._log.n_events() == n


def test_a_key_belongs_to_one_mapping_of_outcomes(url):
    outcomes = {"error": "minimize", "memory": bl.AtMost(4.0), "note": bl.Record()}
    study = bl.Study("s", url, bl.RandomSearch({"x": (0.0, 1.0)}, outcomes=outcomes, seed=1))
    other = bl.Study.load("s", url)
    trial = study.suggest()
    trial.observe({"error": 0.5})
    values = {"error": 0.5, "memory": 3.0}
    study.observe(trial, values, key="report")
    n_events = study._log.n_events()
    for known in (study, other, bl.Study.load("s", url)):
        known.observe(trial.number, values, key="report")
        for wrong in (
            {"error": 0.5},
            {"error": 0.5, "memory": 3.5},
            {"error": 0.25, "memory": 3.0},
            values | {"note": 1.0},
        ):
            with pytest.raises((InvalidSetting, AlreadyObserved)):
                known.observe(trial.number, wrong, key="report")
        assert known._log.n_events() == n_events
    study.observe(trial, {"note": 1.0, "memory": 3.0}, replicate=True, key="again")
    other.observe(trial.number, {"note": 1.0, "memory": 3.0}, replicate=True, key="again")
    assert study.n_trials == other.n_trials == 2 and study.trial(1).values == {"note": 1.0, "memory": 3.0}


SPACE = {"x": (0.0, 1.0), "n": (1, 9), "c": ["a", "b", "d"], "layers": bl.Categorical([(64, 32, 8), (32, 64, 8)])}
TABLE = {"T": [10, 20, 30], "s": ["a", "b", None]}


@pytest.mark.parametrize(
    "space, first, second",
    [
        (SPACE, {"fixed": {}}, {}),
        (SPACE, {"shared": []}, {}),
        (SPACE, {"shared": ["x", "c"]}, {"shared": ("c", "x", "c")}),
        (SPACE, {"shared": ["x", "c"]}, {"shared": np.array(["c", "x"])}),
        (SPACE, {"fixed": {"c": ["a", "b"]}}, {"fixed": {"c": ["b", "a", "b"]}}),
        (SPACE, {"fixed": {"c": "a", "n": np.array([1, 3])}}, {"fixed": {"n": [3.0, 1], "c": ["a"]}}),
        (SPACE, {"fixed": {"layers": (64, 32, 8)}}, {"fixed": {"layers": [(64, 32, 8)]}}),
        (TABLE, {"fixed": {"s": None, "T": [30, 10]}}, {"fixed": {"T": [10, 30.0], "s": None}}),
        (np.eye(3), {"fixed": {0: [1, 0]}, "shared": [1]}, {"fixed": {"0": [0, 1]}, "shared": ["1"]}),
    ],
)
def test_equal_requests_have_the_same_key(url, space, first, second):
    domain = {"space": space} if space is SPACE else {"candidates": space}
    study = bl.Study("s", url, bl.RandomSearch(**domain, seed=1))
    started = study.suggest(2, **first, key="a")
    assert study.suggest(2, **second, key="a") == started
    study.suggest(2, **second, key="b")
    assert study.suggest(2, **first, key="b") == study.trials[2:]


@pytest.mark.parametrize(
    "first, second",
    [
        ({"fixed": {"c": ["a", "b"]}}, {"fixed": {"c": ["a", "d"]}}),
        ({"fixed": {"x": (0.2, 0.7)}}, {"fixed": {"x": [0.2, 0.7]}}),
        ({"fixed": {"layers": (64, 32, 8)}}, {"fixed": {"layers": (32, 64, 8)}}),
        ({"shared": ["x"]}, {"shared": ["x", "c"]}),
        ({"fixed": {"x": 0.5}}, {"fixed": {}}),
        ({}, {"fixed": np.zeros((2, 2))}),
        ({}, {"shared": np.zeros((2, 2))}),
    ],
)
def test_different_requests_have_different_keys(url, first, second):
    study = bl.Study("s", url, bl.RandomSearch(SPACE, seed=1))
    study.suggest(2, **first, key="a")
    with pytest.raises(InvalidSetting, match="request other than this one"):
        study.suggest(2, **second, key="a")


@pytest.mark.parametrize(
    "first, second",
    [
        (({"y": 1, "p": None}, {}), ({"y": 1.0}, {})),
        (({"y": 1, "p": float("nan")}, {"std": float("nan"), "cost": None}), ({"y": 1}, {"cost": float("nan")})),
        (({"y": 1, "p": 2}, {"std": {"y": None}}), ({"p": 2, "y": 1}, {})),
        (({"y": 1, "p": 2}, {"std": {"y": 0.5, "p": None}}), ({"p": 2, "y": 1}, {"std": {"y": 0.5}})),
        (({"y": 1}, {"params": {"T": 10, "s": None}}), ({"y": 1}, {"params": {"T": 10}})),
    ],
)
@pytest.mark.filterwarnings("ignore:.*NaN")
def test_equal_reports_have_the_same_key(url, first, second):
    outcomes = {"y": "maximize", "p": bl.Record()}
    study = bl.Study("s", url, bl.RandomSearch(candidates=TABLE | {"s": [None, "b", "a"]}, outcomes=outcomes, seed=1))
    for key, reports in (("a", (first, second)), ("b", (second, first))):
        number = study.suggest().number
        for value, facts in reports:
            study.observe(number, value, **facts, key=key)
        assert dict(study.trials[number].values)["y"] == 1.0
        with pytest.raises(InvalidSetting, match="reported another"):
            study.observe(number, {"y": 1.5}, key=key)


def test_a_report_without_effect_keeps_its_key(url):
    study = bl.Study("a", url, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    study.suggest(2)
    study.observe(0, 0.5)
    before = repr(study.trials)
    study.observe(0, 0.5, key="k")
    n_events = study._log.n_events()
    assert repr(study.trials) == before and n_events == 4
    study.observe(0, 0.75, amend=True)
    for each in (study, bl.Study.load("a", url)):
        each.observe(0, 0.5, key="k")  # would be refused as a new report
        assert each.trial(0).value == 0.75 and each._log.n_events() == n_events + 1
    with pytest.raises(InvalidSetting, match="key=.k."):
        study.observe(1, 0.5, key="k")
    # Without a key, a repetition is not logged.
    study.observe(0, 0.75)
    assert study._log.n_events() == n_events + 1
