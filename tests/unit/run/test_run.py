"""Runs: a function evaluated on many workers, and how they end."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import belated as bl
from tests.unit.run.runs import (
    ROWS,
    SECONDS,
    SPACE,
    ManualExecutor,
    by_params,
    f,
    facts,
    failures_expected,
    states,
    wait_for,
)

# Results.


def test_best_value_params_and_trial_agree():
    best = bl.maximize(f, SPACE, n_trials=30, seed=0)
    assert best.best_value_ == max(trial.value for trial in best.trials) == f(best.best_params_)
    assert best.best_value_ > -0.05 and best.recommend() == best.optimizer.recommend()
    assert best.best_trial_.params == best.best_params_
    assert best.stop_reason == "n_trials" and best.n_failed == 0 and best.seconds > 0
    lowest = bl.minimize(lambda params: -f(params), SPACE, n_trials=30, seed=0)
    assert lowest.best_value_ == -best.best_value_ and lowest.best_params_ == best.best_params_


def test_settings_are_those_of_bayes_opt():
    optimizer = bl.minimize(f, SPACE, n_trials=1, seed=3, acquisition="ucb", initial=4).optimizer
    assert repr(optimizer) == repr(bl.BayesOpt(SPACE, seed=3, acquisition="ucb", initial=4, direction="minimize"))


def test_candidates_come_as_rows():
    seen = []
    best = bl.maximize(lambda x: seen.append(x) or x[0], candidates=ROWS, n_trials=12, seed=0)
    assert all((x == trial.x).all() for x, trial in zip(seen, best.trials, strict=True))
    assert best.best_params_[0] == best.best_value_


def test_f_may_change_its_argument():
    def careless(params):
        value = params.pop("x")
        params.clear()
        return value

    best = bl.maximize(careless, SPACE, n_trials=3, seed=0)
    assert [trial.params["x"] for trial in best.trials] == [trial.value for trial in best.trials]

    def careless_row(x):
        x[:] = 0
        return 1

    assert set(bl.maximize(careless_row, candidates=ROWS, n_trials=3).best_params_) <= set(ROWS.ravel())


@pytest.mark.parametrize("workers", [{}, {"n_workers": 1}, {"timeout": SECONDS}, {"executor": ThreadPoolExecutor(1)}])
def test_a_run_with_one_worker_equals_a_loop(workers):
    loop = bl.BayesOpt(SPACE, seed=5)
    for _ in range(15):
        trial = loop.suggest()
        loop.observe(trial, f(trial.params))
    for _ in range(2):
        assert facts(bl.maximize(f, SPACE, n_trials=15, seed=5, **workers)) == [t._facts() for t in loop.trials]


# Where f is evaluated.


def test_one_worker_is_the_calling_thread():
    here = threading.get_ident()
    assert bl.maximize(lambda params: threading.get_ident() == here and 1, SPACE, n_trials=3).n_failed == 0
    elsewhere = bl.maximize(lambda params: threading.get_ident() != here and 1, SPACE, n_trials=3, n_workers=2)
    assert elsewhere.n_failed == 0


def test_n_workers_evaluations_run_at_a_time():
    barrier = threading.Barrier(4)  # evaluations pass the barrier only if four of them run at the same time
    running, largest, lock = 0, 0, threading.Lock()

    def together(params):
        nonlocal running, largest
        with lock:
            running += 1
            largest = max(largest, running)
        barrier.wait(SECONDS)
        with lock:
            running -= 1
        return f(params)

    best = bl.maximize(together, SPACE, n_trials=20, n_workers=4, seed=0)
    assert states(best) == ["observed"] * 20 and largest == 4


def test_slow_evaluation_does_not_block_other_workers():
    slow, quick = [], []
    others_done = threading.Event()
    lock = threading.Lock()

    def first_is_slow(params):
        with lock:
            mine = quick if slow else slow
            mine.append(params)
        if mine is slow:
            wait_for(others_done)
        elif len(quick) == 9:
            others_done.set()
        return f(params)

    best = bl.maximize(first_is_slow, SPACE, n_trials=10, n_workers=2, seed=0)
    assert len(slow) == 1 and states(best) == ["observed"] * 10
    assert max(best.trials, key=lambda trial: trial.delay).params == slow[0]


def test_results_that_arrived_are_observed_before_the_next_suggestion():
    hand, known = ManualExecutor({2: [0], 5: [3, 4, 5]}), []

    def watch(optimizer, trial):
        known.append((trial.number, optimizer.n_trials))
        if trial.number == 0:
            hand.evaluate(1, 2)

    bl.maximize(f, SPACE, n_trials=6, executor=hand, n_workers=3, callbacks=[watch])
    assert known == [(0, 3), (1, 3), (2, 3), (3, 6), (4, 6), (5, 6)]


@pytest.mark.parametrize("n_workers", [1, 4])
def test_runs_of_many_trials_end(n_workers):
    best = bl.maximize(f, optimizer=bl.RandomSearch(SPACE), n_trials=3_000, n_workers=n_workers)
    assert best.stop_reason == "n_trials" and len(best.trials) == 3_000


def test_own_threads_end_with_the_run():
    bl.maximize(f, SPACE, n_trials=8, n_workers=4)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("belated")]


def test_an_executor_is_not_shut_down_and_determines_the_number_of_workers():
    barrier = threading.Barrier(3)

    def together(params):
        barrier.wait(SECONDS)
        return f(params)

    with ThreadPoolExecutor(3) as pool:
        assert states(bl.maximize(together, SPACE, n_trials=6, executor=pool)) == ["observed"] * 6
        assert pool.submit(int, "7").result(SECONDS) == 7
    with pytest.raises(bl.errors.InvalidSetting, match="^n_workers is missing: ManualExecutor"):
        bl.maximize(f, SPACE, n_trials=3, executor=ManualExecutor())


# Ends of runs.


@pytest.fixture
def endless(monkeypatch):
    """Return an objective that blocks until the test ends, an optimizer, and a function that determines when the
    timeout occurs."""
    running, go_on = threading.Semaphore(0), threading.Event()
    opt = bl.RandomSearch(SPACE)

    def objective(params):
        running.release()
        wait_for(go_on)
        return f(params)

    def ends_when(n_trials, n_running):
        def clock():
            if opt.n_trials < n_trials:
                return 0.0
            for _ in range(n_running):
                assert running.acquire(timeout=SECONDS)
            for _ in range(n_running):
                running.release()
            return 1e9

        monkeypatch.setattr("belated.run.evaluations.monotonic", clock)

    yield objective, opt, ends_when
    go_on.set()


def test_timeout_leaves_running_trials_pending(endless):
    objective, opt, ends_when = endless
    ends_when(n_trials=2, n_running=2)
    with pytest.warns(bl.BelatedWarning, match="still ran at the timeout and are pending: 0, 1;") as warned:
        best = bl.maximize(objective, optimizer=opt, n_workers=2, timeout=60)
    assert len(warned) == 1 and warned[0].filename == __file__
    assert best.stop_reason == "timeout" and states(best) == ["pending"] * 2 and best.best_value_ is None
    assert best.n_pending == 2 and "n_pending=2" in repr(best)
    opt.observe(best.trials[0], 3.0)
    assert best.best_value_ == 3.0


def test_timeout_with_one_worker(endless):
    objective, opt, ends_when = endless
    ends_when(n_trials=1, n_running=1)
    with pytest.warns(bl.BelatedWarning):
        assert states(bl.maximize(objective, optimizer=opt, n_trials=9, timeout=60)) == ["pending"]


def test_timeout_abandons_trials_that_have_not_begun(endless):
    objective, opt, ends_when = endless
    pool = ThreadPoolExecutor(1)
    ends_when(n_trials=3, n_running=1)
    with pytest.warns(bl.BelatedWarning):
        best = bl.maximize(objective, optimizer=opt, executor=pool, n_workers=3, timeout=60)
    assert states(best) == ["pending", "abandoned", "abandoned"]


@failures_expected
@pytest.mark.filterwarnings("ignore:these trials still ran:belated.BelatedWarning")
def test_timeout_after_only_failures_is_an_error(endless):
    objective, opt, ends_when = endless
    opt.enqueue([{"x": 0.5, "n": n} for n in (8, 1)])
    ends_when(n_trials=2, n_running=1)
    with pytest.raises(
        bl.errors.RunError, match="none of 2 trials succeeded, and 1 failed: the last time f raised KeyError"
    ):
        bl.maximize(lambda p: {}[0] if p["n"] == 8 else objective(p), optimizer=opt, n_trials=9, timeout=60)


def test_callbacks_see_each_trial_that_has_ended():
    seen, here = [], threading.get_ident()
    opt = bl.BayesOpt(SPACE, seed=0)

    def note_trial(optimizer, trial):
        assert optimizer is opt and threading.get_ident() == here
        seen.append((trial.number, trial.state))

    with pytest.warns(bl.BelatedWarning):
        best = bl.maximize(by_params, optimizer=opt, n_trials=12, n_workers=3, callbacks=[note_trial, note_trial])
    assert seen[::2] == seen[1::2] and sorted(seen[::2]) == list(enumerate(states(best)))


@pytest.mark.parametrize("workers", [{}, {"n_workers": 3}])
def test_a_callback_ends_the_run(workers):
    def enough(optimizer, trial):
        if trial.number == 4:
            raise bl.StopRun

    best = bl.maximize(f, optimizer=bl.RandomSearch(SPACE), timeout=SECONDS, callbacks=[enough], **workers)
    assert best.stop_reason == "stopped" and best.trials[4].state == "observed"


def test_results_that_arrived_by_the_end_are_observed():
    hand = ManualExecutor({3: [0]})

    def stop(optimizer, trial):
        hand.evaluate(2)
        raise bl.StopRun

    best = bl.maximize(f, SPACE, n_trials=9, executor=hand, n_workers=4, callbacks=[stop])
    assert best.stop_reason == "stopped" and states(best) == ["observed", "abandoned", "observed", "abandoned"]


# Optimizers and studies that continue.


def test_a_run_does_not_change_earlier_trials():
    opt = bl.BayesOpt(SPACE, seed=0)
    earlier = opt.suggest(n=3)
    earlier[0].observe(0.5)
    best = bl.maximize(f, optimizer=opt, n_trials=4, n_workers=2)
    assert [trial.number for trial in best.trials] == [3, 4, 5, 6]
    assert best.best_value_ == 0.5 and best.best_trial_ == earlier[0]
    assert opt.pending == earlier[1:]
    assert len(bl.maximize(f, optimizer=opt, n_trials=2).trials) == 2 and opt.n_trials == 9


def test_a_value_reported_by_another_process_is_kept():
    hand = ManualExecutor({2: [0]})

    def meddle(optimizer, trial):
        if trial.number == 0:
            for other in optimizer.pending:
                other.observe(7)
            hand.evaluate(1, 2)

    with pytest.warns(bl.BelatedWarning, match="has the value 7.0 already.*that value stays") as warned:
        best = bl.maximize(f, SPACE, n_trials=3, executor=hand, n_workers=3, callbacks=[meddle])
    assert len(warned) == 1 and [trial.value for trial in best.trials][1:] == [7, 7]


CRASH = """
import os, sys
import belated as bl

def f(params):
    if study.n_trials == 6:
        os._exit(9)
    return params["x"]

study = bl.Study("s", sys.argv[1], bl.BayesOpt({"x": (0.0, 1.0)}, seed=0))
bl.maximize(f, optimizer=study, n_trials=50)
"""


@pytest.mark.parametrize("kind", ["optimizer", "study"])
def test_retry_pending_evaluates_trials_pending_before_the_run(kind, tmp_path):
    opt = bl.RandomSearch(SPACE, seed=0)
    if kind == "study":
        store = f"sqlite:///{tmp_path / 'studies.db'}"
        opt = bl.Study("s", store, opt)
    before = opt.suggest(n=3)
    before[1].observe(0.0)
    if kind == "study":
        opt = bl.Study.load("s", store)
    with pytest.warns(bl.BelatedWarning, match="were pending before this run.*: 0, 2;.*retry_pending=True"):
        best = bl.maximize(f, optimizer=opt, n_trials_total=8)
    # Three earlier trials count toward the total of eight, so five trials are started.
    assert len(best.trials) == 5 and best.pending == [] and best.n_pending == 0 and len(opt.pending) == 2
    params = {trial.number: trial.params for trial in opt.pending}
    best = bl.maximize(f, optimizer=opt, n_trials_total=8, retry_pending=True)
    assert {trial.number: trial.params for trial in best.trials} == params and best.n_pending == 0
    assert opt.n_trials == 8 and all(trial.value == f(trial.params) for trial in opt.trials[2:])


def test_pending_trials_are_evaluated_besides_n_trials_unless_they_end_meanwhile():
    opt = bl.RandomSearch(SPACE, seed=0)
    opt.suggest(n=3)

    def meddle(optimizer, trial):
        if trial.number == 0:
            optimizer.observe(1, 7.0)

    result = bl.maximize(f, optimizer=opt, n_trials=2, retry_pending=True, callbacks=[meddle])
    assert [trial.number for trial in result.trials] == [0, 2, 3, 4] and opt.trial(1).value == 7.0
    assert bl.maximize(f, optimizer=opt, n_trials=0, retry_pending=True).trials == []
    opt.suggest(n=2)
    result = bl.maximize(f, optimizer=opt, n_trials=0, retry_pending=True, n_workers=2)
    assert [trial.number for trial in result.trials] == [5, 6] and states(result) == ["observed"] * 2


def test_runs_side_by_side_do_not_warn_about_pending_trials(recwarn):
    opt = bl.RandomSearch(SPACE, seed=0)

    def other(optimizer, trial):
        if trial.number == 0:
            bl.maximize(f, optimizer=opt, n_trials_total=6)

    bl.maximize(f, optimizer=opt, n_trials_total=6, n_workers=2, callbacks=[other])
    assert [str(each.message) for each in recwarn if "pending" in str(each.message)] == []


def test_a_study_continues_after_a_crash(tmp_path):
    store = f"sqlite:///{tmp_path / 'studies.db'}"
    crashed = subprocess.run([sys.executable, "-c", CRASH, store], timeout=SECONDS)
    assert crashed.returncode == 9
    study = bl.Study.load("s", store)
    assert study.n_trials == 6 and [trial.number for trial in study.pending] == [5]
    best = bl.maximize(lambda params: params["x"], optimizer=study, n_trials=20 - study.n_trials, n_workers=3)
    assert best.optimizer is study and study.n_trials == 20
    assert bl.Study.load("s", store).best_value_ == best.best_value_ == max(t.value for t in study.trials if t.value)
    study.observe(5, 2.0)
    assert best.best_value_ == 2.0
