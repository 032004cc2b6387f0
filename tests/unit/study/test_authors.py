"""Events have an author if the caller names one. Decisions do not depend on authors."""

import pickle
import threading

import pytest

import belated as bl
from belated.cli import main
from belated.errors import InvalidSetting
from belated.store.memory import MemoryStore
from belated.warn import BelatedWarning

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def run(store, **authors):
    """Make the same calls by these authors and return the study."""
    study = bl.Study("s", store, bl.BayesOpt(SPACE, seed=0))
    bench, office = (study.as_user(authors[who]) if who in authors else study for who in ("bench", "office"))
    trials = office.suggest(n=6)
    for trial in trials:
        bench.observe(trial, trial.params["x"] - trial.params["y"])
    office.note(trials[0], "cloudy")
    office.observe(trials[1], 0.25, amend=True)
    bench.withdraw(trials[2])
    office.enqueue({"x": 0.5})
    office.revise(space=SPACE | {"y": (0.0, 2.0)})
    bench.suggest(n=2)
    return study


def test_authors_are_stored_and_have_no_effect_on_suggestions(store):
    plain, study = run(MemoryStore()), run(store, bench="bench-2", office="Ana")
    assert [trial.params for trial in study.trials] == [trial.params for trial in plain.trials]
    loaded = bl.Study.load("s", store)
    assert [trial.started_by for trial in loaded.trials] == ["Ana"] * 6 + ["bench-2"] * 2
    assert [trial.finished_by for trial in loaded.trials[:2]] == ["bench-2", "bench-2"]
    assert [(remark.text, remark.by) for remark in loaded.trial(0).remarks] == [("cloudy", "Ana")]
    assert '"by":"Ana"' in loaded._log.core.events(0)[-3]  # the event of the revision
    assert all(trial.started_by is trial.finished_by is None for trial in plain.trials)
    frames = [each.trials_dataframe() for each in (plain, loaded)]
    assert "started_by" not in frames[0]
    assert list(frames[1]["started_by"]) == [trial.started_by for trial in loaded.trials]
    # A table with authors is read again.
    other = bl.Study("t", MemoryStore(), bl.RandomSearch(SPACE | {"y": (0.0, 2.0)}, seed=0))
    assert len(other.add(frames[1][frames[1]["state"] == "observed"])) == 5


def test_authors_belong_to_a_handle(store):
    study = bl.Study("s", store, bl.RandomSearch(SPACE, seed=0))
    ana, ben = study.as_user("Ana"), study.as_user("Ben")
    trial = ana.suggest()
    assert study.trial(0) == trial and trial.started_by == "Ana"
    ben.observe(trial, 1.0)
    assert trial.finished_by == "Ben"
    assert study.suggest().started_by is None
    assert pickle.loads(pickle.dumps(ana)).suggest().started_by == "Ana"
    for name in ("", "a" * 201, "two\nlines", 3, None):
        with pytest.raises(InvalidSetting, match="name="):
            study.as_user(name)
    assert study.as_user("é" * 200).suggest().started_by == "é" * 200


def test_the_command_line_takes_an_author(store, capsys):
    bl.Study("s", store, bl.RandomSearch(SPACE, seed=0))
    path = store.removeprefix("sqlite:///")
    assert not main(["study", "suggest", path, "s", "-n", "2", "--by", "Ana"])
    assert not main(["study", "observe", path, "s", "0", "0.5", "--by", "bench-2"])
    assert not main(["study", "withdraw", path, "s", "0", "--by", "Ben"])
    study = bl.Study.load("s", store)
    assert [(trial.started_by, trial.finished_by) for trial in study.trials] == [("Ana", "bench-2"), ("Ana", None)]
    assert '"by":"Ben"' in study._log.core.events(0)[-1]  # the withdrawal


def test_a_repeated_call_of_enqueue_with_a_key_adds_nothing(store):
    study = bl.Study("s", store, bl.RandomSearch(SPACE, seed=0))
    points = [{"x": 0.5}, {"x": 0.25, "y": 0.5}]
    for each in (study, study, bl.Study.load("s", store)):
        each.enqueue(points, key="paper")
    with pytest.raises(InvalidSetting, match="enqueued 2 other points before"):
        study.enqueue(points[:1], key="paper")
    assert [trial.params["x"] for trial in study.suggest(n=2)] == [0.5, 0.25]
    study.enqueue(points, key="paper")  # after the points were suggested
    study.observe(0, 1.0, key="paper")  # keys of reports are other keys
    assert study._log.core.queued() == []


@pytest.mark.parametrize("kind", ["number", "mapping", "function"])
def test_values_of_a_new_outcome_are_filled(kind):
    study = bl.Study("s", MemoryStore(), bl.BayesOpt(SPACE, outcomes={"yield": "maximize"}, seed=0))
    for trial in study.suggest(n=3):
        trial.observe({"yield": trial.params["x"]})
    study.suggest()
    fill = {
        "number": 2.0,
        "mapping": {0: 2.0, 1: None, 2: 2.0},
        "function": lambda trial: None if trial.number == 1 else 2.0,
    }[kind]
    lacking = [] if kind == "number" else [1]
    outcomes = {"yield": "maximize", "cost": bl.AtMost(3.0)}
    for wrong in ("two", {0: "two"}, lambda trial: float("nan")):
        with pytest.raises(bl.BelatedError, match="fill\\['cost'\\] has"):
            study.revise(outcomes=outcomes, fill={"cost": wrong})
    assert study.revision == 1
    if lacking:
        with pytest.warns(BelatedWarning, match="1 trials of study 's' lack"):
            study.revise(outcomes=outcomes, fill={"cost": fill})
    else:
        study.revise(outcomes=outcomes, fill={"cost": fill})
    assert [trial.number for trial in study.lacking("cost")] == lacking
    assert [trial.values.get("cost") for trial in study.trials] == [2.0, None if lacking else 2.0, 2.0, None]


def test_values_of_pending_trials_are_filled_and_wrong_values_change_nothing():
    study = bl.Study("s", MemoryStore(), bl.BayesOpt(SPACE, outcomes={"yield": "maximize"}, seed=0))
    for trial in study.suggest(n=3)[:2]:
        trial.observe({"yield": 1.0})
    outcomes = {"yield": "maximize", "cost": bl.AtMost(3.0, plausible=(0.0, 10.0))}
    with pytest.raises(bl.BelatedError, match="plausible"):
        study.revise(outcomes=outcomes, fill={"cost": {0: 20.0}})
    assert study.revision == 1
    with pytest.warns(BelatedWarning, match="lack"):
        study.revise(outcomes=outcomes)
    study.revise(outcomes=outcomes, fill={"cost": {0: 2.0, 1: 3.0, 2: 4.0}})  # later, and for a pending trial
    assert [trial.values.get("cost") for trial in study.trials] == [2.0, 3.0, 4.0]


def test_all_handles_of_a_busy_log_are_opened_again_after_a_fork(store):
    study = bl.Study("s", store, bl.RandomSearch(SPACE, seed=0))
    user, log = study.as_user("Ana"), study._log
    holder = threading.Thread(target=log.lock.acquire)  # a thread of the parent was using the log
    holder.start()
    holder.join()
    log._forked = (-1, True)  # the child has not asked yet
    for each in (study, user):
        each._after_fork()
        assert each._log is not log
    assert user.suggest().started_by == "Ana" and study.n_trials == 1


def test_a_key_belongs_to_its_author(store):
    study = bl.Study("s", store, bl.RandomSearch(SPACE, seed=0))
    ana, ben = study.as_user("Ana"), study.as_user("Ben")
    trial = ana.suggest(key="plate")
    ana.observe(trial, 1.0, replicate=True, key="value")
    for other in (ben, study):
        with pytest.raises(InvalidSetting, match="key='plate'"):
            other.suggest(key="plate")
        with pytest.raises(InvalidSetting, match="key='value'"):
            other.observe(trial.number, 1.0, replicate=True, key="value")
    again = bl.Study.load("s", store).as_user("Ana")
    again.observe(trial.number, 1.0, replicate=True, key="value")
    assert again.suggest(key="plate").number == 0 and study.n_trials == 1
