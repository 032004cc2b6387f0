"""Runs on the user's executors: processes of the standard library, loky, and a Dask cluster."""

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor

import numpy as np
import pytest

import belated as bl
from tests.unit.run.runs import ROWS, SECONDS, SPACE, STEPS, by_params, f, killed_if_it_hangs, reports, search, states

posix = pytest.mark.skipif(os.name != "posix", reason="sends signals to processes")
ENGINES = ("ProcessPoolExecutor", "loky", "dask")


def pool_of(engine):
    """Return a new executor of this kind with two worker processes."""
    if engine == "loky":
        loky = pytest.importorskip("loky", reason="loky is not installed")
        return loky.ProcessPoolExecutor(2)
    return ProcessPoolExecutor(2, multiprocessing.get_context("spawn"))


@pytest.fixture(scope="module")
def dask():
    """The executor of a Dask cluster with two worker processes."""
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    arguments = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    cluster = distributed.LocalCluster(**arguments, silence_logs=logging.CRITICAL)
    with cluster, distributed.Client(cluster) as client:
        yield client.get_executor(pure=False)


@pytest.fixture(scope="module", params=ENGINES)
def executor(request):
    """An executor of each kind, with two worker processes."""
    if request.param == "dask":
        yield request.getfixturevalue("dask")
    else:
        with pool_of(request.param) as pool:
            yield pool


def in_process(params, trial):
    trial.attrs["pid"] = os.getpid()
    return f(params)


def two_outcomes(params):
    return {"error": params["x"] ** 2, "memory": float(params["n"])}


class Waits:
    """An objective that records its start and returns when a file named `go_on` exists. All workers then become
    free."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __call__(self, params, trial):
        with open(os.path.join(self.folder, f"begun {trial.number}"), "w"):
            end = time.monotonic() + SECONDS
            while not os.path.exists(os.path.join(self.folder, "go_on")) and time.monotonic() < end:
                time.sleep(0.01)
        return 1.0

    def n_begun(self):
        return len([name for name in os.listdir(self.folder) if name.startswith("begun")])

    def go_on(self):
        open(os.path.join(self.folder, "go_on"), "w").close()


class Counts:
    """An objective that holds a study and adds the number of its trials to the value."""

    def __init__(self, study):
        self.study = study

    def __call__(self, params):
        stored = bl.Study.load(self.study.name, self.study.store)
        return float(stored.n_trials + self.study.n_trials)


def to_the_total(study):
    """Make a run in a worker; return its number of trials."""
    return len(bl.maximize(f, optimizer=study, n_trials_total=12).trials)


class KillsOnce:
    """An objective that records each call in a file, and kills its worker at the first call with a given trial
    number."""

    def __init__(self, path, number):
        self.path, self.number = str(path), number

    def __call__(self, params, trial):
        begun = self.begun()[trial.number]
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(f"{trial.number}\n")
        if trial.number == self.number and not begun:
            os.kill(os.getpid(), signal.SIGKILL)
        return f(params)

    def begun(self):
        if not os.path.exists(self.path):
            return Counter()
        with open(self.path, encoding="utf-8") as file:
            return Counter(map(int, file.read().split()))


class Rises:
    """A generator whose values rise to x. At its end it writes its trial and its last step to a file. In the first
    evaluation of a trial in `killed`, it kills its worker after step 3."""

    def __init__(self, path, killed=()):
        self.path, self.killed = str(path), killed

    def __call__(self, params, trial):
        attempt, step = self.notes().count(("began", trial.number, 0)), 0
        self.note("began", trial.number, 0)
        try:
            for step in range(1, STEPS + 1):
                # Each attempt reports different values.
                yield params["x"] * step / STEPS - attempt * (step < STEPS)
                if trial.number in self.killed and attempt == 0 and step == 3:
                    os.kill(os.getpid(), signal.SIGKILL)
        finally:
            self.note("ended", trial.number, step)

    def note(self, what, number, step):
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(f"{what} {number} {step}\n")

    def notes(self):
        if not os.path.exists(self.path):
            return []
        with open(self.path, encoding="utf-8") as file:
            return [(what, int(number), int(step)) for what, number, step in map(str.split, file)]


def reports_twice(params, trial):
    """Report two values of one step; return the error of the second report."""
    trial.report(0.5, 1)
    try:
        trial.report(0.75, 1)
    except bl.errors.AlreadyObserved as error:
        return {"value": 0.5, "attrs": {"error": str(error)}}
    return 0.5


def test_a_run_uses_all_workers(executor):
    result = bl.maximize(in_process, SPACE, n_trials=16, executor=executor, seed=0, initial=16)
    assert states(result) == ["observed"] * 16
    assert [trial.value for trial in result.trials] == [f(trial.params) for trial in result.trials]
    assert os.getpid() not in {trial.attrs["pid"] for trial in result.trials}


def test_functions_are_sent_by_value_or_refused_with_advice(executor):
    if isinstance(executor, ProcessPoolExecutor) and type(executor).__module__.startswith("concurrent."):
        with pytest.raises(bl.errors.InvalidSetting, match="cannot be sent to another process"):
            bl.maximize(lambda params: 1.0, SPACE, n_trials=2, executor=executor)
    else:
        assert bl.maximize(lambda params: 1.0, SPACE, n_trials=2, executor=executor).best_value_ == 1.0


def test_candidates(executor):
    arguments = {"candidates": ROWS, "n_trials": 6, "initial": 6, "seed": 0}
    values = [trial.value for trial in bl.maximize(np.sum, executor=executor, **arguments).trials]
    assert values == [trial.value for trial in bl.maximize(np.sum, **arguments).trials]


def test_mappings_of_outcomes(executor):
    goals = {"error": "minimize", "memory": bl.AtMost(4.0), "note": bl.Record()}
    optimizer = bl.RandomSearch(SPACE, outcomes=goals, seed=0)
    trials = bl.minimize(two_outcomes, optimizer=optimizer, n_trials=6, executor=executor).trials
    assert [each.values for each in trials] == [two_outcomes(each.params) for each in trials]
    assert {each.state for each in trials} == {"pending"} and trials[0].missing == ["note"]


def test_a_budget_and_callbacks(executor):
    seen = []
    result = bl.maximize(f, SPACE, budget=5, executor=executor, callbacks=[lambda _, trial: seen.append(trial.number)])
    assert result.stop_reason == "budget" and sorted(seen) == list(range(5))
    stopped = bl.maximize(f, SPACE, n_trials=50, executor=executor, callbacks=[bl.NoImprovement(1)])
    assert stopped.stop_reason == "stopped" and len(stopped.trials) < 50


def test_errors_of_f_reach_the_run(executor):
    opt = bl.RandomSearch(SPACE, seed=0)
    opt.enqueue([{"x": 0.5, "n": n} for n in (1, 8, 2, 7)])
    with pytest.warns(bl.BelatedWarning, match="^trial [13] failed: f raised OSError: .* no such level"):
        result = bl.maximize(by_params, optimizer=opt, n_trials=4, executor=executor, retries=2)
    assert states(result) == ["observed", "failed", "observed", "failed"]
    assert "in by_params" in result.trials[1].error.traceback
    opt.enqueue({"x": 0.5, "n": 8})
    with pytest.raises(OSError) as raised:
        bl.maximize(by_params, optimizer=opt, n_trials=1, executor=executor, catch=ValueError)
    assert states(raised.value.result) == ["failed"]


@pytest.mark.filterwarnings("ignore:these trials still ran:belated.BelatedWarning")
def test_a_timeout_with_the_number_of_workers_that_the_executor_has(executor, tmp_path):
    waits = Waits(tmp_path)
    result = bl.maximize(waits, SPACE, timeout=1.0, executor=executor)
    waits.go_on()
    # Dask does not report that a future is running, so the future can be cancelled, and its trial is abandoned.
    expected = "pending" if isinstance(executor, ProcessPoolExecutor) or is_loky(executor) else "abandoned"
    assert result.stop_reason == "timeout" and states(result) == [expected] * 2
    assert states(bl.maximize(f, SPACE, n_trials=4, executor=executor)) == ["observed"] * 4


def is_loky(executor):
    return type(executor).__module__.startswith("loky")


def test_workers_open_a_study_by_its_url(executor, tmp_path):
    study = bl.Study("s", f"sqlite:///{tmp_path / 's.db'}", bl.RandomSearch(SPACE, seed=0))
    result = bl.maximize(Counts(study), optimizer=study, n_trials=6, executor=executor)
    assert states(result) == ["observed"] * 6 and all(2 <= trial.value <= 12 for trial in result.trials)
    # Each worker makes a run on the same study.
    counts = [executor.submit(to_the_total, study) for _ in range(2)]
    assert sum(count.result(SECONDS) for count in counts) == 6
    assert study.n_trials == 12 and states(study) == ["observed"] * 12


# Learning curves.


@pytest.mark.parametrize("by_generator", [True, False], ids=["generator", "function"])
def test_curves_and_stops_are_those_of_threads(executor, by_generator, tmp_path):
    rises = Rises(tmp_path / "notes")
    given = {"optimizer": search(), "n_trials": 9, "n_workers": 1}
    result = bl.maximize(rises if by_generator else reports, executor=executor, **given)
    expected = bl.maximize(reports, **given | {"optimizer": search()})
    assert facts_of_curves(result) == facts_of_curves(expected)
    assert {"stopped", "observed"} == set(states(result))
    if by_generator:
        ended = {number: step for what, number, step in rises.notes() if what == "ended"}
        assert ended == {trial.number: max(trial.curve) for trial in result.trials}


def facts_of_curves(result):
    return [(trial.params, trial.state, trial.value, trial.curve) for trial in result.trials]


def test_all_workers_report(executor):
    result = bl.maximize(reports, optimizer=search(stopping=None), n_trials=8, executor=executor)
    assert [list(trial.curve) for trial in result.trials] == [list(range(1, STEPS + 1))] * 8


class Endless:
    """A generator that writes a file when it starts, and another file when it is closed."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __call__(self, params, trial):
        try:
            open(os.path.join(self.folder, f"begun {trial.number}"), "w").close()
            while True:
                yield 0.0
                time.sleep(0.01)
        finally:
            open(os.path.join(self.folder, f"closed {trial.number}"), "w").close()


@pytest.mark.filterwarnings("ignore:these trials still ran:belated.BelatedWarning")
def test_evaluations_end_at_their_next_report_after_a_timeout(executor, tmp_path):
    endless = search(curve=bl.Curve(10**6), stopping=None)
    assert bl.maximize(Endless(tmp_path), optimizer=endless, timeout=1.0, executor=executor).stop_reason == "timeout"
    end = time.monotonic() + SECONDS
    while any(not (tmp_path / f"closed {name.split()[1]}").exists() for name in os.listdir(tmp_path)):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_refused_report_raises_in_the_worker(executor):
    result = bl.maximize(reports_twice, optimizer=search(stopping=None), n_trials=1, executor=executor)
    assert "step 1 of trial 0 has the value 0.5 already" in result.trials[0].attrs["error"]


@posix
def test_dask_continues_the_curves_of_killed_workers_with_a_new_attempt(dask, tmp_path):
    rises = Rises(tmp_path / "notes", killed=(1, 2))
    result = bl.maximize(rises, optimizer=search(stopping=None), n_trials=5, executor=dask)
    assert states(result) == ["observed"] * 5
    for trial in result.trials:
        n_begun = rises.notes().count(("began", trial.number, 0))
        # A worker may die before it has sent the value of its previous trial; Dask then repeats this trial, too.
        assert n_begun >= 1 + (trial.number in rises.killed)
        x, attempt = trial.params["x"], n_begun - 1
        assert trial.curve == {i: x * i / STEPS - attempt * (i < STEPS) for i in range(1, STEPS + 1)}
        assert trial.value == x


def test_threads_of_dask_report():
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0")
    with cluster, distributed.Client(cluster) as client:
        pool = client.get_executor(pure=False)
        result = bl.maximize(reports, optimizer=search(stopping=None), n_trials=4, executor=pool)
    assert [list(trial.curve) for trial in result.trials] == [list(range(1, STEPS + 1))] * 4


# Killed workers.


@posix
@pytest.mark.parametrize("engine", ["ProcessPoolExecutor", "loky"])
def test_a_broken_pool_ends_the_run_and_leaves_the_study(engine, tmp_path):
    study = bl.Study("s", f"sqlite:///{tmp_path / 's.db'}", bl.RandomSearch(SPACE, seed=0))
    kills = KillsOnce(tmp_path / "begun", 3)
    with pool_of(engine) as pool:
        with pytest.raises(bl.errors.RunError, match="(?s)could not evaluate trial .*processes=True, in ") as raised:
            bl.maximize(kills, optimizer=study, n_trials=20, executor=pool, retries=3)
        assert isinstance(raised.value.__cause__, BrokenExecutor)
        assert raised.value.result.stop_reason == "error"
        # A pool that has lost a worker does not accept further calls.
        with pytest.raises(bl.errors.RunError):
            bl.maximize(kills, optimizer=study, n_trials=20, executor=pool, retries=3)
    study = bl.Study.load("s", study.store)
    *first, last = states(study)
    assert first.count("pending") <= 2 and first[3] == "pending"
    # Trials whose evaluation has not begun are abandoned.
    assert set(first) <= {"observed", "pending", "abandoned"} and last == "abandoned"
    left = [trial.number for trial in study.pending]
    result = bl.maximize(kills, optimizer=study, n_trials=5)
    assert states(result) == ["observed"] * 5 and [trial.number for trial in study.pending] == left
    study.observe(3, 1.0)


@posix
def test_dask_repeats_the_evaluations_of_a_killed_worker(dask, tmp_path):
    kills = KillsOnce(tmp_path / "begun", 3)
    result = bl.maximize(kills, SPACE, n_trials=8, executor=dask, seed=0)
    assert [trial.number for trial in result.trials] == list(range(8)) and states(result) == ["observed"] * 8
    assert kills.begun()[3] == 2 and set(kills.begun()) == set(range(8))


# Ctrl-C.

CTRL_C = """
import multiprocessing, os, time
from concurrent.futures import ProcessPoolExecutor
import belated as bl

def f(params):
    os.write(1, b"running\\n")
    while True:  # waits are short, because a signal just before a wait is handled only after the wait
        time.sleep(0.01)

if __name__ == "__main__":
    {start}
    try:
        bl.maximize(f, {{"n": (1, 8)}}, n_trials=50, executor=executor)
    except KeyboardInterrupt as interrupt:
        best = interrupt.result
    print(best.stop_reason, *[trial.state for trial in best.trials], flush=True)
    os.killpg(0, 9)
"""
STARTS = {
    "loky": """
    from loky import get_reusable_executor
    executor = get_reusable_executor(max_workers=2)
    """,
    "dask": """
    from distributed import Client, LocalCluster
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0")
    executor = Client(cluster).get_executor(pure=False)
    """,
}


@posix
@pytest.mark.parametrize("engine", STARTS)
def test_ctrl_c(engine, tmp_path):
    pytest.importorskip({"dask": "distributed"}.get(engine, engine), reason=f"{engine} is not installed")
    script = tmp_path / "script.py"
    script.write_text(CTRL_C.format(start=STARTS[engine].strip()))
    child = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        with killed_if_it_hangs(child):
            for _ in range(2):
                assert child.stdout.readline() == "running\n"
            # Send SIGINT to all processes of the group, as a terminal does.
            os.killpg(child.pid, signal.SIGINT)
            line = child.stdout.readline()
    finally:
        child.kill()
        child.wait()
    # Dask does not report that a future is running, so the future can be cancelled, and its trial is abandoned.
    assert line == f"interrupted {' '.join(['abandoned' if engine == 'dask' else 'pending'] * 2)}\n"
