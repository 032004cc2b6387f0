"""Runs in worker processes: workers that die are replaced, and all workers have ended when the run ends."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import BrokenExecutor

import numpy as np
import pytest

import belated as bl
from belated.run import processes
from belated.run.worker_errors import WorkerDied, WorkersDoNotStart
from tests.unit.run.runs import ROWS, SECONDS, SPACE, f, failures_expected, killed_if_it_hangs, states, wait_for_file

posix = pytest.mark.skipif(os.name != "posix", reason="sends signals to processes")


def running():
    """The worker processes of runs, but not loky's, which other tests leave running."""
    children = [process for process in multiprocessing.active_children() if process.is_alive()]
    return [process for process in children if type(process).__module__.startswith("multiprocessing")]


def in_process(params, trial):
    trial.attrs["pid"] = os.getpid()
    time.sleep(0.01)
    return f(params)


def sleeps(params):
    time.sleep(1000)


def by_level(params):
    if params["n"] > 4:
        raise OSError("no such level")
    return 1.0


class Dies:
    """An objective that records each start of an evaluation in a file, and in some trials kills its worker a given
    number of times."""

    def __init__(self, path, times, how="SIGKILL"):
        self.path, self.times, self.how = str(path), times, how

    def __call__(self, params, trial):
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(f"{trial.number}\n")
        if self.begun()[trial.number] <= self.times.get(trial.number, 0):
            os.kill(os.getpid(), signal.SIGKILL) if self.how == "SIGKILL" else os._exit(self.how)
        return f(params)

    def begun(self):
        """Return how often the evaluation of each trial was started."""
        with open(self.path, encoding="utf-8") as file:
            return Counter(map(int, file.read().split()))


class UnreadableElsewhere:
    """An object whose pickle can be read only in the process that made the pickle."""

    def __init__(self):
        self.home = os.getpid()

    def __setstate__(self, state):
        if state["home"] != os.getpid():
            raise KeyError("not here")

    def __call__(self, params):
        return 1.0


class IgnoresTheEnd:
    """Ignores SIGTERM."""

    def __init__(self, path):
        self.path = str(path)

    def __call__(self, params):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        open(self.path, "w").close()
        time.sleep(1000)


def test_evaluations_run_in_processes_of_the_run():
    result = bl.maximize(in_process, SPACE, n_trials=12, n_workers=2, processes=True, seed=0)
    pids = {trial.attrs["pid"] for trial in result.trials}
    assert states(result) == ["observed"] * 12 and 1 <= len(pids) <= 2 and os.getpid() not in pids
    assert running() == []
    one = bl.maximize(f, SPACE, n_trials=5, processes=True, seed=0)
    here = bl.maximize(f, SPACE, n_trials=5, seed=0)
    assert [(t.params, t.value) for t in one.trials] == [(t.params, t.value) for t in here.trials]


class DiesAfterASecond(Dies):
    """The first evaluation of trial 0 runs for a second and then kills its worker."""

    def __call__(self, params, trial):
        if not os.path.exists(self.path):
            time.sleep(1.0)
        return super().__call__(params, trial)


@posix
@pytest.mark.filterwarnings("ignore:the evaluation of trial 0 was lost:belated.BelatedWarning")
def test_the_duration_of_a_restarted_evaluation_is_the_duration_of_its_last_attempt(tmp_path):
    dies = DiesAfterASecond(tmp_path / "begun", {0: 1})
    [trial] = bl.maximize(dies, SPACE, n_trials=1, processes=True, retries=1).trials
    assert dies.begun()[0] == 2 and trial.duration < 1.0


def test_candidates_and_studies(tmp_path):
    study = bl.Study("s", f"sqlite:///{tmp_path / 's.db'}", bl.RandomSearch(candidates=ROWS, seed=0))
    result = bl.maximize(np.sum, optimizer=study, n_trials=5, processes=True)
    expected = bl.maximize(np.sum, optimizer=bl.RandomSearch(candidates=ROWS, seed=0), n_trials=5)
    assert [trial.value for trial in result.trials] == [trial.value for trial in expected.trials]


# Workers that die.


@posix
def test_a_worker_that_dies_fails_only_its_own_trial(tmp_path):
    dies = Dies(tmp_path / "begun", {1: 1, 4: 1})
    with pytest.warns(bl.BelatedWarning, match="^trial [14] failed: its worker process was killed by SIGKILL, as"):
        result = bl.maximize(dies, SPACE, n_trials=8, n_workers=2, processes=True)
    assert states(result) == ["failed" if number in (1, 4) else "observed" for number in range(8)]
    assert {result.trials[number].error.type for number in (1, 4)} == {"WorkerDied"}
    assert dies.begun() == Counter(range(8)) and running() == []


@posix
@pytest.mark.filterwarnings("ignore::belated.BelatedWarning")
def test_a_trial_whose_worker_died_is_retried(tmp_path):
    dies = Dies(tmp_path / "begun", {0: 1, 3: 2})
    result = bl.maximize(dies, SPACE, n_trials=5, n_workers=2, processes=True, retries=1)
    assert states(result) == ["failed" if number == 3 else "observed" for number in range(5)]
    assert dies.begun() == Counter({number: {0: 2, 3: 2}.get(number, 1) for number in range(5)})


@failures_expected
def test_a_function_that_ends_every_process_ends_the_run(tmp_path):
    dies = Dies(tmp_path / "begun", dict.fromkeys(range(9), 9), how=3)
    match = "^the first 3 evaluations all failed in the same way: its worker process ended with exit code 3; "
    with pytest.raises(bl.errors.RunError, match=match):
        bl.maximize(dies, SPACE, n_trials=9, processes=True)
    assert running() == []


@posix
def test_a_worker_that_dies_while_idle_is_replaced():
    with processes.WorkerProcesses() as pool:
        first = pool.submit(os.getpid).result(SECONDS)
        [process] = running()
        assert process.pid == first
        process.kill()
        process.join(SECONDS)
        # The executor may send the call to the dead worker, because it may not have noticed the death yet.
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            try:
                second = pool.submit(os.getpid).result(SECONDS)
                break
            except WorkerDied:
                continue
        assert second != first
    assert running() == []


def test_calls_after_the_end_are_refused():
    pool = processes.WorkerProcesses()
    pool.shutdown()
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(os.getpid)


@posix
def test_an_evaluation_is_kept_if_a_process_dies_before_it_is_ready(monkeypatch):
    # The function is pickled by name, so the worker calls the original function.
    starts, start = [], processes._Worker

    class Killed(start):
        def __init__(self):
            super().__init__()
            starts.append(self)
            if len(starts) <= n_killed:
                self.process.kill()

    monkeypatch.setattr(processes, "_Worker", Killed)
    for n_killed in (2, 3):
        starts.clear()
        with processes.WorkerProcesses() as pool:
            future = pool.submit(divmod, 7, 2)
            if n_killed == 2:
                assert future.result(SECONDS) == (3, 1)
            else:
                error = future.exception(SECONDS)
                assert type(error) is WorkersDoNotStart and not isinstance(error, BrokenExecutor)
                assert str(error).startswith("3 worker processes in a row died while they started, the last one was")
        assert len(starts) == 3


# The next tests use functions and results that cannot be sent.


def test_a_function_that_cannot_be_pickled():
    opt = bl.RandomSearch(SPACE)
    with pytest.raises(
        bl.errors.InvalidSetting, match="^f=<function .*cannot be sent.*top level of a module.* for threads$"
    ):
        bl.maximize(lambda params: 1.0, optimizer=opt, n_trials=3, processes=True)
    assert opt.n_trials == 0


def test_a_function_that_workers_cannot_read():
    match = "^WorkerProcesses could not evaluate trial 0: _pickle.UnpicklingError: a worker .*KeyError: 'not here'; def"
    with pytest.raises(bl.errors.RunError, match=match) as raised:
        bl.maximize(UnreadableElsewhere(), SPACE, n_trials=3, processes=True, retries=3)
    assert states(raised.value.result) == ["abandoned"] and running() == []


def read_at_home_alone():
    return UnreadableElsewhere()


def test_a_result_that_cannot_be_read_here():
    with processes.WorkerProcesses() as pool:
        error = pool.submit(read_at_home_alone).exception(SECONDS)
        assert str(error) == "what a worker returned cannot be read: KeyError: 'not here'"
        assert pool.submit(divmod, 7, 2).result(SECONDS) == (3, 1)


PROMPT = """
import functools
import belated as bl

def f(params, shift=0.0):
    return params["x"] - shift

opt = bl.RandomSearch({{"x": (0.0, 1.0)}}, seed=0)
objective = {objective}
print(len(bl.maximize(objective, optimizer=opt, n_trials=2, n_workers=2).trials))
bl.maximize(objective, optimizer=opt, n_trials=3, n_workers=2, processes=True)
"""


@pytest.mark.parametrize("how", ["-c", "-"])
@pytest.mark.parametrize("objective", ["f", "functools.partial(f, shift=0.3)"])
def test_a_function_defined_at_the_prompt_is_refused_at_once(how, objective):
    program = PROMPT.format(objective=objective)
    command, standard_input = [sys.executable, how], program
    if how == "-c":
        command, standard_input = [*command, program], None
    run = subprocess.run(command, input=standard_input, capture_output=True, text=True, timeout=SECONDS)
    *traceback, message = run.stderr.strip().splitlines()
    assert run.returncode == 1 and run.stdout == "2\n" and len(traceback) < 12
    assert message.startswith("belated.errors.InvalidSetting: f=") and "defined in a notebook or at a prompt" in message
    assert "at the top level of a module" in message and message.endswith("n_workers, for threads")


LIMITED = """
import resource
import belated as bl

def f(params):
    return 1.0

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
    try:
        bl.maximize(f, {"x": (0.0, 1.0)}, n_trials=20, n_workers=20, processes=True, optimizer=None, initial=20)
    except bl.errors.RunError as error:
        print(error)
"""


@posix
def test_too_many_workers_for_the_limit_of_files(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(LIMITED)
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=SECONDS)
    assert "pass a smaller n_workers than 20, or raise the limit with ulimit -n" in run.stdout, run.stderr


UNGUARDED = """
import belated as bl

def f(params):
    return 1.0

if {condition}:
    bl.maximize(f, {{"x": (0.0, 1.0)}}, n_trials=3, processes=True, retries=3)
"""


def test_a_script_that_every_worker_would_run(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED.format(condition="True"))
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=SECONDS)
    assert run.returncode == 1 and 'under if __name__ == "__main__"' in run.stderr.splitlines()[-1]
    # The run starts three workers before it gives up, for every value of `retries`. Each worker prints the first line
    # of its program.
    assert run.stderr.count('File "<string>", line 1, in <module>') == 3
    script.write_text(UNGUARDED.format(condition='__name__ == "__main__"'))
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=SECONDS)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


# Ends.


@pytest.mark.filterwarnings("ignore:these trials still ran:belated.BelatedWarning")
def test_a_timeout_ends_the_processes():
    result = bl.maximize(sleeps, SPACE, timeout=2.0, n_workers=2, processes=True)
    assert result.stop_reason == "timeout" and states(result) == ["pending"] * 2 and running() == []


def test_an_error_ends_the_processes():
    opt = bl.RandomSearch(SPACE, seed=0)
    opt.enqueue([{"x": 0.5, "n": n} for n in (1, 8)])
    with pytest.raises(OSError) as raised:
        bl.maximize(by_level, optimizer=opt, n_trials=2, n_workers=2, processes=True, catch=())
    assert "in by_level" in str(raised.value.__cause__) and opt.trial(1).state == "failed" and running() == []


def test_a_callback_ends_the_processes():
    def stop(optimizer, trial):
        raise bl.StopRun

    result = bl.maximize(f, SPACE, n_trials=9, n_workers=2, processes=True, callbacks=[stop])
    assert result.stop_reason == "stopped" and running() == []


@posix
def test_a_process_that_does_not_end_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "_MAX_END", 0.2)
    ignores = IgnoresTheEnd(tmp_path / "begun")
    with processes.WorkerProcesses() as pool:
        future = pool.submit(ignores, {})
        wait_for_file(ignores.path)
    assert isinstance(future.exception(SECONDS), WorkerDied) and running() == []


def test_a_second_ctrl_c_ends_the_processes(monkeypatch):
    def stop(optimizer, trial):
        raise KeyboardInterrupt

    def again(self):
        raise KeyboardInterrupt("the second")

    monkeypatch.setattr("belated.run.evaluations.Evaluations.finalize", again)
    with pytest.raises(KeyboardInterrupt, match="the second"):
        bl.maximize(f, SPACE, n_trials=9, n_workers=2, processes=True, callbacks=[stop])
    assert running() == []


@posix
def test_ctrl_c_while_processes_end_kills_them(tmp_path):
    ignores = IgnoresTheEnd(tmp_path / "begun")
    pool = processes.WorkerProcesses()
    future = pool.submit(ignores, {})
    wait_for_file(ignores.path)
    # Libraries that other tests use may have replaced the handler.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    again = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    again.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            pool.shutdown()
        again.join()
    finally:
        signal.signal(signal.SIGINT, handler or signal.default_int_handler)
    assert isinstance(future.exception(SECONDS), WorkerDied) and running() == []


class StartsAnother:
    """An objective that starts a process, which continues after the objective, and then sleeps or kills its worker.

    The process takes a minute, and creates a file at its end.
    """

    def __init__(self, path, how, is_killed):
        self.path, self.how, self.is_killed = str(path), how, is_killed

    def __call__(self, params):
        if self.how == "os.system":
            os.system(f"(sleep 60; touch '{self.path}') >/dev/null 2>&1 &")
        elif os.fork() == 0:
            time.sleep(60)
            open(self.path, "w").close()
            os._exit(0)
        if self.is_killed:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(1000)


@posix
@pytest.mark.parametrize("how", ["os.system", "os.fork"])
@pytest.mark.filterwarnings("ignore:trial 0 failed:belated.BelatedWarning")
@pytest.mark.filterwarnings("ignore:these trials still ran:belated.BelatedWarning")
def test_a_run_does_not_wait_for_programs_that_f_started(how, tmp_path):
    path = tmp_path / "ended"
    result = bl.maximize(StartsAnother(path, how, False), SPACE, timeout=2.0, n_trials=1, processes=True)
    assert states(result) == ["pending"] and running() == []
    with pytest.raises(bl.errors.RunError) as raised:
        bl.maximize(StartsAnother(path, how, True), SPACE, n_trials=1, processes=True)
    assert states(raised.value.result) == ["failed"]
    assert running() == [] and not path.exists()


SCRIPT = """
import os, time
import belated as bl

def f(params):
    os.write(1, b"running\\n")
    while True:  # waits are short, because a signal just before a wait is handled only after the wait
        time.sleep(0.01)

if __name__ == "__main__":
    try:
        bl.maximize(f, {"n": (1, 8)}, n_trials=50, n_workers=2, processes=True)
    except KeyboardInterrupt as interrupt:
        best = interrupt.result
    print(best.stop_reason, *[trial.state for trial in best.trials], flush=True)
"""


def group_ended(group):
    """Return whether all processes of a group end soon."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


@posix
@pytest.mark.parametrize("how", ["to all", "to one", "while they start", "SIGKILL"])
def test_signals(how, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    # The program runs in a new session, so that the test can send SIGINT to all processes of the program, as a terminal
    # does.
    child = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        with killed_if_it_hangs(child):
            for _ in range(1 if how == "while they start" else 2):
                assert child.stdout.readline() == "running\n"
        if how == "SIGKILL":
            child.kill()
        elif how == "to one":
            child.send_signal(signal.SIGINT)
        else:
            os.killpg(child.pid, signal.SIGINT)
        out, err = child.communicate(timeout=SECONDS)
        assert group_ended(child.pid)
    finally:
        child.kill()
        child.wait()
    if how != "SIGKILL":
        assert (child.returncode, err) == (0, "")
        assert out.splitlines()[-1] == "interrupted pending pending"


STARTED = """
import json, os, signal, subprocess, sys
import belated as bl

def f(params, trial):
    code = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    trial.attrs["default"] = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()
    trial.attrs["blocked"] = [int(each) for each in signal.pthread_sigmask(signal.SIG_BLOCK, [])]
    return 1.0

if __name__ == "__main__":
    print(json.dumps(bl.maximize(f, {"n": (1, 8)}, n_trials=1, processes=True).trials[0].attrs))
"""


@posix
def test_programs_that_f_starts_get_ctrl_c_as_usual(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(STARTED)
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=SECONDS)
    assert json.loads(run.stdout) == {"default": "True", "blocked": []}
