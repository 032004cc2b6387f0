"""A study has the life cycle of an optimizer, and several objects, processes and threads can share it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import threading
import time

import numpy as np
import pytest

import belated as bl
from belated.store import sqlite
from tests.clock import Clock
from tests.unit.study.forks import suggests_in_a_fork

SPACE = {"x": (0.0, 1.0), "kind": ["a", None, 3, 2.5, True]}


def random_search(**arguments):
    return bl.RandomSearch(SPACE, seed=1, **arguments)


def events(study):
    return study._log.events(0)


# The interface of an optimizer.


def test_a_study_behaves_as_its_optimizer_does(store):
    plain = bl.BayesOpt(SPACE, seed=3, direction="minimize", initial=4)
    study = bl.Study("s", store, bl.BayesOpt(SPACE, seed=3, direction="minimize", initial=4))
    for each in (plain, study):
        each.add([{"x": 0.1, "kind": "a"}, {"x": 0.2, "kind": None}], [1.0, None])
        each.enqueue({"x": 0.5, "kind": 3})
        trials = each.suggest(n=6)
        for trial in trials[:4]:
            each.observe(trial, trial.params["x"])
        trials[4].fail()
        each.abandon(trials[5].number)
        each.suggest().observe(0.5)
        each.observe(1, 0.25)
        each.observe(1, 0.125, amend=True)
    assert [trial._facts() for trial in study.trials] == [trial._facts() for trial in plain.trials]
    assert study.recommend() == plain.recommend()
    assert (study.best_value_, study.best_params_) == (plain.best_value_, plain.best_params_)
    assert study.best_trial_.number == plain.best_trial_.number
    assert len(study.pending) == len(plain.pending)
    here = {"x": 0.3, "kind": "a"}
    for ours, theirs in zip(study.predict([here]), plain.predict([here]), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert study.trial(2) == study.trials[2]
    assert "Study" in study._repr_html_() and repr(study).startswith("Study('s'")


def test_a_log_is_shared_in_both_directions(store):
    one = bl.Study("s", store, random_search())
    other = bl.Study.load("s", store)
    trial = one.suggest()
    other.observe(trial, 0.5)
    assert one.best_value_ == 0.5 and trial.value == 0.5
    assert other.suggest().number == 1 and one.suggest().number == 2
    one.abandon(1)
    assert [trial.state for trial in other.trials] == ["observed", "abandoned", "pending"]
    assert other.sync() == 0


def test_opening_with_an_equal_optimizer_needs_no_seed_and_a_different_one_is_refused(store):
    first = bl.Study("s", store, bl.RandomSearch(SPACE))
    assert bl.Study("s", store, bl.RandomSearch(SPACE))._token == first._token
    with pytest.raises(bl.errors.InvalidSetting, match="direction is 'maximize' there and 'minimize' here"):
        bl.Study("s", store, bl.RandomSearch(SPACE, direction="minimize"))
    with pytest.raises(bl.errors.InvalidSetting, match="optimizer is RandomSearch there and BayesOpt here"):
        bl.Study("s", store, bl.BayesOpt(SPACE))
    with pytest.raises(bl.errors.InvalidSetting, match="seed"):
        bl.Study("s", store, bl.RandomSearch(SPACE, seed=12))
    used = bl.RandomSearch(SPACE)
    used.suggest()
    with pytest.raises(bl.errors.InvalidSetting, match="has trials: pass one without"):
        bl.Study("s", store, used)


@pytest.mark.parametrize(
    "given, difference",
    [
        ({"acquisition": bl.UCB(beta=1.0)}, "acquisition.beta is 2.0 there and 1.0 here"),
        ({"acquisition": "log_ei"}, "acquisition is 'UCB' there and 'LogEI' here"),
        ({"pending": bl.Censor(-2, late="accept")}, "pending.floor is -1.0 there and -2.0 here"),
        ({"pending": None}, "pending is 'Censor' there and None here"),
        ({"surrogate": bl.GP(lengthscale=0.5)}, "surrogate.lengthscale is [0.5, 1.0] there and 0.5 here"),
        ({"initial": 7}, "initial.n is 6 there and 7 here"),
        ({"window": 9}, "window is 5.0 there and 9.0 here"),
    ],
    ids=str,
)
def test_differences_are_named_by_nested_name(store, given, difference):
    space = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
    arguments = {"acquisition": "ucb", "pending": bl.Censor(-1), "window": 5, "initial": 6}
    arguments |= {"surrogate": bl.GP(lengthscale=(0.5, 1))}
    study = bl.Study("s", store, bl.BayesOpt(space, **arguments, direction="minimize"))
    assert study.get_params()["pending"] == bl.Censor(-1.0)
    assert study.get_params()["surrogate"] == bl.GP(lengthscale=[0.5, 1.0])
    values = {"acquisition": bl.UCB(2), "pending": bl.Censor(-1.0, late="accept"), "initial": bl.Initial(6)}
    bl.Study("s", store, bl.BayesOpt(space, **arguments | values, direction="minimize"))
    with pytest.raises(bl.errors.InvalidSetting) as caught:
        bl.Study("s", store, bl.BayesOpt(space, **arguments | given, direction="minimize"))
    assert difference in str(caught.value)


def test_an_optimizer_with_trials_becomes_a_study(store):
    optimizer = random_search()
    optimizer.suggest(3)
    optimizer.observe(1, 2.0)
    study = bl.Study("s", store, optimizer)
    assert study.n_trials == 3 and study.best_value_ == 2.0


def test_several_studies_share_a_store(store):
    studies = [bl.Study(name, store, random_search()) for name in ("a", "b")]
    trial = studies[0].suggest()
    studies[1].suggest(2)
    assert [study.n_trials for study in studies] == [1, 2]
    with pytest.raises(bl.errors.UnknownTrial, match="another study"):
        studies[1].observe(trial, 1.0)


# Each call wrote exactly one event.


def test_refused_calls_leave_the_study_unchanged(store):
    study = bl.Study("s", store, random_search())
    trial = study.suggest()
    study.observe(trial, 1.0)
    before = events(study)
    study.observe(trial, 1.0)
    for error, call in [
        (bl.errors.AlreadyObserved, lambda: study.observe(trial, 2.0)),
        (bl.errors.AlreadyObserved, lambda: study.fail(0)),
        (bl.errors.InvalidValue, lambda: study.observe(trial, float("nan"))),
        (bl.errors.UnknownTrial, lambda: study.observe(1, 1.0)),
        (bl.errors.InvalidSetting, lambda: study.observe(0, 1.0, amend=True, replicate=True)),
        (bl.errors.InvalidSetting, lambda: study.observe(0, 1.0, key=3)),
        (bl.errors.InvalidPoint, lambda: study.add([{"x": 0.5, "kind": "a"}, {"x": 0.5, "kind": "z"}])),
        (bl.errors.InvalidSetting, lambda: study.suggest(expires_after=-1)),
        (bl.errors.InvalidSetting, lambda: study.suggest(n=-1)),
    ]:
        with pytest.raises(error):
            call()
    assert study.sync() == 0 and events(study) == before
    assert study.suggest(0) == []


def test_a_key_gives_the_same_trials_again(store):
    study, other = bl.Study("s", store, random_search()), bl.Study.load("s", store)
    three = study.suggest(3, key="job 7")
    study.suggest()
    assert other.suggest(3, key="job 7") == three
    assert bl.Study.load("s", store).suggest(3, key="job 7") == three
    assert study.n_trials == 4
    with pytest.raises(bl.errors.InvalidSetting, match="job 7"):
        study.suggest(2, key="job 7")


def test_the_noise_of_a_value_is_stored_with_it(store):
    study = bl.Study("s", store, optimizer=bl.BayesOpt({"x": (0.0, 1.0)}, initial=2, seed=0))
    for value in (0.1, 0.4, 0.2):
        study.observe(study.suggest(), value, std=0.05, key=f"v{value}")
    study.add({"x": 0.5}, 0.3, std=0.1)
    study.observe(0, 0.1, std=0.05, key="v0.1")
    with pytest.raises(bl.errors.InvalidSetting, match="v0.1"):
        study.observe(0, 0.1, std=0.06, key="v0.1")
    again = bl.Study.load("s", store)
    assert [trial.std for trial in again.trials] == [0.05, 0.05, 0.05, 0.1]
    assert again.suggest().params == study.trials[-1].params


def test_replicates_are_separate_trials_once_for_each_key(store):
    study = bl.Study("s", store, random_search(direction="minimize"))
    trial = study.suggest()
    for value, key in [(1.0, "a"), (3.0, "b"), (3.0, "b"), (1.0, "c"), (1.0, "a")]:
        bl.Study.load("s", store).observe(trial.number, value, replicate=True, key=key)
    assert [t.value for t in study.trials] == [1.0, 3.0, 1.0]
    assert {t.params["x"] for t in study.trials} == {trial.params["x"]}
    with pytest.raises(bl.errors.InvalidSetting, match="'b'"):
        study.observe(trial, 9.0, replicate=True, key="b")


def test_an_amendment_with_a_key_is_made_once(store):
    study = bl.Study("s", store, random_search())
    study.suggest().observe(1.0)
    study.observe(0, 2.0, amend=True, key="correction")
    study.observe(0, 3.0, amend=True)
    study.observe(0, 2.0, amend=True, key="correction")
    assert study.best_value_ == 3.0


def test_a_value_400_days_after_a_lease_of_an_hour_is_accepted_and_used(store):
    clock = Clock(1e9)
    study = bl.Study("s", store, bl.BayesOpt({"x": (0.0, 1.0)}, initial=4, seed=0), time=clock)
    late = study.suggest(expires_after=3600)
    for trial in study.suggest(5):
        trial.observe(trial.params["x"])
    assert late.state == "pending"
    clock.now += 400 * 86400
    study.suggest()
    before, _ = study.predict([late.params])
    late = bl.Study.load("s", store, time=clock).trial(late.number)
    late.observe(100.0)
    assert study.best_trial_ == late
    study.suggest()
    after, _ = study.predict([late.params])
    assert after[0] > before[0] + 10


def test_an_expired_lease_changes_the_suggestion(store):
    def next_after(seconds, name):
        clock = Clock(1e9)
        study = bl.Study(name, store, bl.BayesOpt({"x": (0.0, 1.0)}, initial=4, seed=0), time=clock)
        for trial in study.suggest(6):
            trial.observe(-((trial.params["x"] - 0.4) ** 2))
        study.suggest(expires_after=60)
        clock.now += seconds
        return study.suggest().params

    assert next_after(1, "a") == next_after(59, "b") != next_after(61, "c")


def test_predictions_count_expired_leases(store):
    clock = Clock(1e9)
    settings = {"pending": "hallucinate", "initial": 4, "seed": 0}
    study = bl.Study("s", store, bl.BayesOpt({"x": (0.0, 1.0)}, **settings), time=clock)
    for trial in study.suggest(6):
        trial.observe(-((trial.params["x"] - 0.4) ** 2) + 0.1 * trial.number)
    params = [study.suggest(expires_after=60).params]
    without = study.predict(params)[1]
    during = study.predict(params, pending=True)[1]
    clock.now += 61
    after = study.predict(params, pending=True)[1]
    assert during < without
    np.testing.assert_array_equal(after, without)


def test_seconds_come_from_the_given_clock(store):
    clock = Clock(1e9)
    study = bl.Study("s", store, random_search(clock="seconds"), time=clock)
    trial = study.suggest()
    clock.now += 99.5
    bl.Study.load("s", store, time=clock).observe(trial.number, 1.0)
    study.sync()
    assert trial.delay == 99.5


# Processes, threads, forks.


def worker(study, seed, n, out):
    random = np.random.default_rng(seed)
    for k in range(n):
        trial = study.suggest(key=f"{seed}/{k}")
        study.observe(trial, random.normal())
    out.put(seed)


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_processes_write_every_call_exactly_once(store, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    study = bl.Study("s", store, random_search())
    context = multiprocessing.get_context(method)
    out = context.Queue()
    processes = [context.Process(target=worker, args=(study, seed, 10, out)) for seed in range(4)]
    for process in processes:
        process.start()
    assert sorted(out.get(timeout=120) for _ in processes) == [0, 1, 2, 3]
    for process in processes:
        process.join(30)
        assert process.exitcode == 0
    assert study.n_trials == 40 and len(events(study)) == 80 and not study.pending
    points = [trial.params["x"] for trial in study.trials]
    assert len(set(points)) == 40


def test_threads_share_a_study_object(store):
    study = bl.Study("s", store, bl.BayesOpt({"x": (0.0, 1.0)}, initial=4, seed=0))
    failures = []

    def run():
        try:
            for _ in range(5):
                study.suggest().observe(0.5)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures and study.n_trials == 30 and not study.pending


@pytest.mark.parametrize("quick", [0.0, 1e9])
def test_simultaneous_suggestions_equal_sequential_suggestions(store, monkeypatch, quick):
    """If another process makes a suggestion while this process computes a proposal, the proposal is computed again. The
    point of the other process is then pending."""
    monkeypatch.setattr("belated.study.shared_log._QUICK", quick)

    def make():
        return bl.BayesOpt({"x": (0.0, 1.0), "y": (0.0, 1.0)}, initial=4, seed=0)

    plain, one = make(), bl.Study("s", store, make())
    for each in (plain, one):
        for trial in each.suggest(6):
            each.observe(trial, trial.params["x"] - trial.params["y"] ** 2)
    other = bl.Study.load("s", store)
    seconds, asked = other._problem.wall_time, 0
    writing, locked = other._store.writing, []

    @contextlib.contextmanager
    def noted(name):
        with writing(name) as log:
            locked.append(name)
            yield log
        locked.clear()

    def now():
        nonlocal asked
        asked += 1
        if not locked:  # this process does not hold the write lock, so other processes may write
            one.suggest()
        return seconds()

    monkeypatch.setattr(other._store, "writing", noted)
    other._problem.wall_time = now
    trial = other.suggest()
    assert asked == (4 if quick == 0.0 else 2)
    plain.suggest(asked)
    assert trial.params == plain.trials[-1].params
    assert [trial.params for trial in other.pending] == [trial.params for trial in plain.pending]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_opens_its_own_connection(store):
    study = bl.Study("s", store, random_search())
    trial = study.suggest()
    connection = study._store._connection
    child = os.fork()
    if child == 0:
        code = 1
        try:
            assert study._store._connection is None
            study.observe(trial, 1.0)
            study.suggest()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert study._store._connection is connection
    study.suggest()
    assert trial.value == 1.0 and study.n_trials == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_during_a_call_of_another_thread_leaves_a_usable_child(store):
    study = bl.Study("s", store, random_search())
    study.suggest()
    assert suggests_in_a_fork(study, study._log.lock)
    assert study.n_trials == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_studies_that_were_deleted_do_not_keep_another_from_being_usable_in_a_child(store, capfd):
    study, *deleted = [bl.Study(name, store, random_search()) for name in "abcdefgh"]
    for each in deleted:
        bl.Study.delete(each.name, store)
    assert suggests_in_a_fork(study, *(each._log.lock for each in (study, *deleted)))
    assert study.n_trials == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_fork_during_a_transaction_of_another_thread_leaves_a_usable_child(store):
    study = bl.Study("s", store, random_search())
    begun = threading.Event()

    def write():
        with study._store.writing(study._header().id):
            begun.set()
            time.sleep(0.2)

    thread = threading.Thread(target=write)
    thread.start()
    begun.wait()
    assert suggests_in_a_fork(study)
    thread.join()
    assert study.n_trials == 1 and study.suggest().number == 1


def test_studies_and_trials_can_be_pickled(store):
    study = bl.Study("s", store, random_search())
    trial = pickle.loads(pickle.dumps(study.suggest()))
    trial.observe(2.0)
    assert study.best_trial_ == trial and len(pickle.dumps(study)) < 500


def test_a_failed_write_does_not_change_the_store(store, monkeypatch):
    study = bl.Study("s", store, random_search())
    trial = study.suggest()
    monkeypatch.setattr(sqlite._Transaction, "append", lambda self, records: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        study.observe(trial, 1.0)
    with pytest.raises(ZeroDivisionError):
        study.add([{"x": 0.5, "kind": "a"}] * 2)
    monkeypatch.undo()
    assert study.sync() == 0 and trial.state == "pending"
    study.observe(trial, 2.0)
    assert bl.Study.load("s", store).best_value_ == 2.0


def test_optimizers_that_cannot_be_stored_are_refused(store):
    with pytest.raises(bl.errors.InvalidSpace):
        bl.Study("s", store, bl.RandomSearch({"f": [np.sin, np.cos]}))
    with pytest.raises(bl.errors.InvalidSetting, match="one of"):
        bl.Study("s", store, type("Mine", (bl.RandomSearch,), {})({"x": (0.0, 1.0)}))
    with pytest.raises(bl.errors.StoreError, match="optimizer="):
        bl.Study("s", store)
