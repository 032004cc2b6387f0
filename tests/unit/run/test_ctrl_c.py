"""After Ctrl-C during a run, the exception holds the result; at a prompt, the run returns the result."""

import os
import signal
import subprocess
import sys
from concurrent.futures import Executor, Future

import pytest

import belated as bl
from tests.unit.run.runs import METHODS, SECONDS, SPACE, f, killed_if_it_hangs, states

SCRIPT = """
import os, sys, threading, time
import belated as bl

go_on = threading.Event()

def f(params):
    if params["n"] == 1:
        return 1.0
    os.write(1, b"running\\n")
    # Waits are short, because a signal just before a wait is handled only after the wait.
    while not go_on.is_set():
        {wait}

opt = bl.RandomSearch({{"n": (1, 8)}}, seed=0)
opt.enqueue([{{"n": 1}}, {{"n": 8}}, {{"n": 8}}])
{prompt}
try:
    best = bl.maximize(f, optimizer=opt, n_trials=50, {workers})
    print("returned", flush=True)
except KeyboardInterrupt as interrupt:
    best = interrupt.result
    raise
finally:
    go_on.set()
    print(best.stop_reason, best.best_value_, *[trial.state for trial in best.trials], flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="sends a signal to another process")
@pytest.mark.parametrize(
    ("workers", "wait", "end", "prompt"),
    [
        ("n_workers=1", "time.sleep(0.01)", "interrupted 1.0 observed pending", False),
        ("n_workers=2", "go_on.wait(0.01)", "interrupted 1.0 observed pending pending", False),
        ("timeout=1000", "go_on.wait(0.01)", "interrupted 1.0 observed pending", False),
        ("n_workers=2", "go_on.wait(0.01)", "interrupted 1.0 observed pending pending", True),
    ],
)
def test_ctrl_c(workers, wait, end, prompt):
    script = SCRIPT.format(workers=workers, wait=wait, prompt="sys.ps1 = '>>> '" if prompt else "")
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(end.count("pending")):
            assert child.stdout.readline() == "running\n"
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=SECONDS)
    finally:
        child.kill()
        child.wait()
    if prompt:
        assert (child.returncode, err) == (0, "") and out == f"returned\n{end}\n"
    else:
        # The exit code of Python after an unhandled KeyboardInterrupt. A shell shows this exit code as 130.
        assert child.returncode == -signal.SIGINT and err.endswith("KeyboardInterrupt\n") and out == end + "\n"


HANGS = """
import os, threading
import belated as bl

def f(params):
    os.write(1, b"running\\n")
    threading.Event().wait()

opt = bl.Study("s", "sqlite:///{path}", bl.RandomSearch({{"x": (0.0, 1.0)}}, seed=0))
try:
    best = bl.maximize(f, optimizer=opt, n_trials=9, n_workers=2, timeout={timeout})
except KeyboardInterrupt as interrupt:
    best = interrupt.result
print(best.stop_reason, *[trial.state for trial in best.trials], flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="sends a signal to another process")
@pytest.mark.parametrize(("timeout", "reason"), [(0.5, "timeout"), (1000, "interrupted")])
def test_a_program_ends_although_threads_evaluate_for_ever(timeout, reason, tmp_path):
    script = HANGS.format(timeout=timeout, path=tmp_path / "s.db")
    arguments = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True, "start_new_session": True}
    child = subprocess.Popen([sys.executable, "-c", script], **arguments)
    with killed_if_it_hangs(child):
        assert [child.stdout.readline() for _ in range(2)] == ["running\n"] * 2
        if reason == "interrupted":
            child.send_signal(signal.SIGINT)
        out, _ = child.communicate()
    assert child.returncode == 0 and out == f"{reason} pending pending\n"
    assert len(bl.Study.load("s", tmp_path / "s.db").pending) == 2


CLEANS_UP = """
import os, threading, time
import belated as bl

def f(params):
    try:
        while True:  # waits are short, because an exception is raised only after a wait
            time.sleep(0.001)
    finally:
        os.write(1, b"cleaned up\\n")

best = bl.maximize(f, {"x": (0.0, 1.0)}, n_trials=9, n_workers=2, timeout=0.2)
"""


def test_evaluations_clean_up_at_the_end_of_the_program():
    arguments = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True, "start_new_session": True}
    child = subprocess.Popen([sys.executable, "-c", CLEANS_UP], **arguments)
    with killed_if_it_hangs(child):
        out, _ = child.communicate()
    assert (child.returncode, out) == (0, "cleaned up\n" * 2)


PROCESSES = """
import multiprocessing, os, time
from concurrent.futures import ProcessPoolExecutor
import belated as bl

def f(params):
    os.write(1, b"running\\n")
    while True:  # waits are short, because a signal just before a wait is handled only after the wait
        time.sleep(0.01)

if __name__ == "__main__":
    pool = ProcessPoolExecutor(2, multiprocessing.get_context("{method}"))
    try:
        bl.maximize(f, {{"n": (1, 8)}}, n_trials=50, executor=pool)
    except KeyboardInterrupt as interrupt:
        best = interrupt.result
    print(best.stop_reason, *[trial.state for trial in best.trials], flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="sends a signal to a group of processes")
@METHODS
def test_ctrl_c_with_processes(method, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(PROCESSES.format(method=method))
    # The program runs in a new session, so that the test can send SIGINT to all processes of the program, as a terminal
    # does.
    child = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        for _ in range(2):
            assert child.stdout.readline() == "running\n"
        os.killpg(child.pid, signal.SIGINT)
        out, _ = child.communicate(timeout=SECONDS)
    finally:
        child.kill()
        child.wait()
    assert out == "interrupted pending pending\n"


def test_a_second_ctrl_c_is_raised():
    class Pressed(Future):
        def cancel(self):
            raise KeyboardInterrupt("the second")

    class Presses(Executor):
        def submit(self, fn, /, *args):
            if opt.n_trials == 2:
                raise KeyboardInterrupt("the first")
            return Pressed()

    opt = bl.RandomSearch(SPACE)
    with pytest.raises(KeyboardInterrupt, match="the second") as raised:
        bl.maximize(f, optimizer=opt, n_trials=9, executor=Presses(), n_workers=2)
    assert len(opt.pending) == 2 and states(raised.value.result) == ["pending"] * 2
