"""The latency of Ctrl-C during every call that may take long: interrupt.py [--rows N …].

Each call is repeated, and receives a SIGINT at a different time in each repetition. The latency is the time from the
signal to the exception that the handler raises. Prints JSON with times in milliseconds.
"""

import argparse
import json
import os
import platform
import signal
import sys
import threading
import time

import numpy as np

import belated as bl
from belated import _core

D = 6
BOX = {f"x{i}": (0.0, 1.0) for i in range(D)}
THETA = {"surrogate": bl.GP(lengthscale=0.5, signal_std=1.0, noise_std=0.01)}
CANDIDATES = np.random.default_rng(1).random((20_000, D))


class Stopped(Exception):
    """The exception that the handler of SIGINT raises."""


def data(n):
    points = np.random.default_rng(0).random((n, D))
    return points, np.sin(3 * points).sum(axis=1)


def suggest(**arguments):
    """Return a function that takes n, prepares an optimizer with these settings and n observations, and returns a
    function that calls `suggest`."""

    def make(n):
        points, values = data(n)
        if "candidates" in arguments:
            opt = bl.BayesOpt(seed=0, initial=0, **arguments)
            opt.add(list(range(n)), list(values))
        else:
            opt = bl.BayesOpt(BOX, seed=0, initial=0, **arguments)
            opt.add([dict(zip(BOX, point, strict=True)) for point in points], list(values))
        return lambda: opt.suggest(n=50)

    return make


def recommend(n):
    points, values = data(n)
    opt = bl.BayesOpt(BOX, seed=0, initial=0, **THETA)
    opt.add([dict(zip(BOX, point, strict=True)) for point in points], list(values))
    return opt.recommend


def process(call):
    """Return a function that takes n, prepares a Gaussian process with n rows, and returns a function that calls a
    method of the Gaussian process."""

    def make(n):
        gp = _core.GaussianProcess("matern52", 0.5, 1.0, 1e-4)
        gp.fit(*data(n))
        return lambda: call(gp, n)

    return make


CALLS = {
    "fit": suggest(surrogate=bl.GP(n_restarts=10)),
    "box, log_ei": suggest(**THETA),
    "box, thompson": suggest(acquisition="thompson", **THETA),
    "box, thompson, 10000 features": suggest(acquisition=bl.ThompsonSampling(n_features=10_000), **THETA),
    "box, multistart": suggest(search=bl.Search(multistart=(100_000, 100)), **THETA),
    "20000 candidates, ucb": suggest(candidates=CANDIDATES, acquisition=bl.UCB(beta=1.0), **THETA),
    "4000 candidates, thompson": suggest(candidates=CANDIDATES[:4000], acquisition="thompson", **THETA),
    "recommend": recommend,
    "GaussianProcess.optimize": process(lambda gp, n: gp.optimize()),
    "GaussianProcess.predict": process(lambda gp, n: gp.predict(CANDIDATES)),
    "Acquisition, 20000 points": process(lambda gp, n: _core.Acquisition.upper_confidence_bound(gp, 1.0)(CANDIDATES)),
}


def latency(call, after):
    """Start the call, and send a SIGINT `after` seconds later. Return the latency in seconds, or None if the call ended
    before the signal."""
    sent = []

    def send():
        time.sleep(after)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send)
    through = None
    try:
        sender.start()
        call()
        through = time.perf_counter()
        sender.join()
        time.sleep(0.01)
    except Stopped:
        answered = time.perf_counter()
        return None if through else answered - sent[0]
    finally:
        sender.join()
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[500, 1000, 2000])
    parser.add_argument("--moments", type=int, default=12, help="number of interruptions of each call")
    parser.add_argument("--only", default="", help="only calls whose name contains this text")
    arguments = parser.parse_args()

    def handler(_signal, _frame):
        raise Stopped

    signal.signal(signal.SIGINT, handler)
    results = []
    for name, make in CALLS.items():
        if arguments.only not in name:
            continue
        for n in arguments.rows:
            call = make(n)
            measured = []
            for after in np.geomspace(0.005, 2.0, arguments.moments):
                seconds = latency(call, after)
                if seconds is None:
                    call = make(n)  # the call ended before the signal
                else:
                    measured.append(1e3 * seconds)
            results.append(
                {
                    "call": name,
                    "rows": n,
                    "interrupted": len(measured),
                    "median_ms": round(float(np.median(measured)), 1) if measured else None,
                    "worst_ms": round(max(measured), 1) if measured else None,
                }
            )
            print(results[-1], flush=True, file=sys.stderr)
    machine = {"machine": platform.machine(), "processors": os.cpu_count(), "python": platform.python_version()}
    print(json.dumps({"belated": bl.__version__, **machine, "latencies": results}, indent=2))


if __name__ == "__main__":
    main()
