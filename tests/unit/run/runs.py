"""For tests of runs: a function, a space, and an executor that the test controls."""

import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import Executor, Future
from contextlib import contextmanager

import numpy as np
import pytest

import belated as bl

SPACE = {"x": (-1.0, 1.0), "n": bl.Integer(1, 8)}
ROWS = np.array([[i, i % 3] for i in range(12)], dtype=float)
STEPS = 9  # of learning curves
SECONDS = 120  # the limit in seconds, reached only by a test that hangs

# As with "spawn", workers of "forkserver" import the functions that they call.
METHODS = pytest.mark.parametrize(
    "method", [each for each in multiprocessing.get_all_start_methods() if each != "forkserver"]
)
forks = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
failures_expected = pytest.mark.filterwarnings("ignore:trial .* failed:belated.BelatedWarning")


def f(params):
    return -((params["x"] - 0.3) ** 2) - 0.01 * params["n"]


def by_params(params):
    if params["n"] > 4:
        raise OSError(params["n"], "no such level")
    return params["x"]


def reports(params, trial):
    """Report values that rise to x; a stopped evaluation returns -1."""
    for step in range(1, STEPS + 1):
        trial.report(params["x"] * step / STEPS, step)
        if trial.should_stop():
            return -1.0
    return params["x"]


def facts(result):
    return [trial._facts() for trial in result.trials]


def states(result):
    return [trial.state for trial in result.trials]


def wait_for(event):
    assert event.wait(SECONDS)


def wait_for_file(path):
    end = time.monotonic() + SECONDS
    while not os.path.exists(path) and time.monotonic() < end:
        time.sleep(0.01)


@contextmanager
def killed_if_it_hangs(child):
    """Kill a program and the processes of its group if the ``with`` block does not end in time."""
    timer = threading.Timer(SECONDS, os.killpg, (child.pid, signal.SIGKILL))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def search(space=SPACE, **arguments):
    """Return an optimizer with a learning curve, which stops trials."""
    return bl.RandomSearch(space, seed=0, **({"curve": bl.Curve(STEPS), "stopping": "asha"} | arguments))


class ManualExecutor(Executor):
    """An executor that evaluates calls in a given order. script[k] lists the calls to evaluate once call k has been
    submitted."""

    def __init__(self, script=()):
        self.script = dict(script)
        self.calls, self.futures = [], []

    def submit(self, fn, /, *args):
        self.calls.append((fn, args))
        self.futures.append(future := Future())
        self.evaluate(*self.script.get(len(self.calls) - 1, ()))
        return future

    def evaluate(self, *which):
        for i in which:
            fn, args = self.calls[i]
            self.futures[i].set_result(fn(*args))
