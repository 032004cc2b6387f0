"""A long suggestion can be interrupted by Ctrl-C, and other threads run while it is computed."""

import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest

import belated as bl

N, D = 500, 6
GENEROUS = 2.0  # limit in seconds; benchmarks/interrupt.py measures the latency

BOX = {f"x{i}": (0.0, 1.0) for i in range(D)}
POINTS = np.random.default_rng(0).random((N, D))
VALUES = np.sin(3 * POINTS).sum(axis=1)

in_main_thread = pytest.mark.skipif(
    os.name != "posix" or threading.current_thread() is not threading.main_thread(),
    reason="sends itself a signal, which comes to the main thread",
)


class Stopped(Exception):
    """The exception that the signal handler of these tests raises; KeyboardInterrupt would stop pytest."""


def observed(**arguments):
    if "candidates" in arguments:
        opt = bl.BayesOpt(seed=0, initial=0, **arguments)
        opt.add(list(range(N)), list(VALUES))
    else:
        opt = bl.BayesOpt(BOX, seed=0, initial=0, **arguments)
        opt.add([dict(zip(BOX, point, strict=True)) for point in POINTS], list(VALUES))
    return opt


THETA = {"surrogate": bl.GP(lengthscale=0.5, signal_std=1.0, noise_std=0.01)}
LONG = {
    "a fit": {"surrogate": bl.GP(n_restarts=1000)},
    "a search of the box": THETA | {"search": bl.Search(multistart=(10_000, 100_000))},
    "a draw of many features": THETA | {"acquisition": bl.ThompsonSampling(n_features=200_000)},
    "many candidates": THETA | {"candidates": np.random.default_rng(1).random((60_000, D))},
}


def endless(opt):
    """Request a batch that cannot be completed before the interrupt. The log must then contain either all suggestions
    of the batch or none of them."""
    return opt.suggest(n=1_000_000)


def interrupted(call, after):
    """Send SIGINT `after` seconds after the start of the call; return the seconds from the signal to the handler's
    exception."""
    sent = []

    def send():
        time.sleep(after)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    def handler(_signal, _frame):
        raise Stopped

    previous = signal.signal(signal.SIGINT, handler)
    sender = threading.Thread(target=send)
    try:
        sender.start()
        with pytest.raises(Stopped):
            call()
        return time.perf_counter() - sent[0]
    finally:
        sender.join()
        signal.signal(signal.SIGINT, previous)


@in_main_thread
@pytest.mark.parametrize("what", LONG)
def test_ctrl_c_stops_a_call_and_leaves_the_optimizer_unchanged(what):
    opt = observed(**LONG[what])
    before = pickle.dumps(opt)
    for after in (0.05, 0.15):
        latency = interrupted(lambda: endless(opt), after)
        print(f"{what}: {1e3 * latency:.0f} ms")
        assert latency < GENEROUS
        assert pickle.dumps(opt) == before and opt.n_trials == N


@in_main_thread
def test_ctrl_c_stops_a_call_while_another_thread_suggests():
    opt = observed(surrogate=bl.GP(n_restarts=900))
    other = threading.Thread(target=opt.suggest)
    other.start()
    time.sleep(0.05)
    interrupted(lambda: opt.observe(0, VALUES[0]), 0.05)
    assert other.is_alive()  # the other call still holds the lock
    other.join()
    assert opt.n_trials == N + 1


def test_other_threads_run_during_a_suggestion():
    opt = observed(surrogate=bl.GP(n_restarts=50))
    ticks, done = [], threading.Event()

    def tick():
        while not done.wait(0.001):
            ticks.append(None)

    ticker = threading.Thread(target=tick)
    ticker.start()
    try:
        before = len(ticks)
        opt.suggest(n=20)
        during = len(ticks) - before
    finally:
        done.set()
        ticker.join()
    assert during > 5  # the thread ticks only if the GIL is free
