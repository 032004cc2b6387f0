"""The overhead of belated per evaluation: in a run whose function takes no time, and in suggest and observe.

Prints JSON. Times are in microseconds per evaluation, and each time is the minimum over several repetitions. Both the
wall time and the processor time of all threads are printed. Other programs on the machine affect the processor time
less than the wall time.
"""

import argparse
import itertools
import json
import os
import platform
import sys
import time
from collections import deque

import numpy as np

import belated as bl
from belated._core import Action, Observation

D = 6
SPACE = {f"x{i}": (0.0, 1.0) for i in range(D)}
IN_FLIGHT = 1000


def f(params):
    return params["x0"]


def random_search():
    return bl.RandomSearch(SPACE, seed=0)


def tree_search():
    return bl.TreeSearch(SPACE, seed=0)


def bayes_opt():
    return bl.BayesOpt(SPACE, seed=0)


def run(n, **arguments):
    """Return a function that makes a run of n evaluations."""

    def call():
        bl.maximize(f, optimizer=random_search(), n_trials=n, progress=False, **arguments)

    return call


def pairs(n, params, new=random_search, before=0, in_flight=IN_FLIGHT):
    """Return a function that makes n calls of suggest and of observe, with 1,000 trials in flight.

    If `params` is True, the function also reads the params of each trial. `new` makes the optimizer. The first `before`
    trials are observed before the time is measured.
    """
    optimizer = new()
    waiting = deque(optimizer.suggest(n=in_flight))
    values = itertools.cycle(np.random.default_rng(0).random(1009).tolist())

    def call(n=n):
        for _ in range(n):
            waiting.append(optimizer.suggest())
            trial = waiting.popleft()
            if params:
                _ = trial.params
            optimizer.observe(trial, next(values))

    if new is bayes_opt:
        points = np.random.default_rng(0).random((before, D))
        optimizer.add(points, -points.sum(axis=1))
        call(1)  # the first suggestion fits the hyperparameters
    else:
        call(before)
    return call


def pairs_of_the_core(n):
    """Return a function that makes the same calls as the result of `pairs`, but directly on the strategy and the log of
    the compiled core."""
    core = random_search()._log
    waiting = deque(core.suggest(IN_FLIGHT, None, None))

    def call():
        for _ in range(n):
            waiting.extend(core.suggest(1, None, None))
            core.record(Action.observe(waiting.popleft(), Observation(0.5), False, False), None)

    return call


def cost(make, n, repeat):
    """Call the function that `make` returns; return the microseconds per operation, of which there are n."""
    wall, processor = [], []
    for _ in range(repeat):
        call = make()
        start, start_processor = time.perf_counter(), time.process_time()
        call()
        wall.append(time.perf_counter() - start)
        processor.append(time.process_time() - start_processor)
    return {"wall_us": round(1e6 * min(wall) / n, 2), "processor_us": round(1e6 * min(processor) / n, 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evaluations", type=int, nargs="*", default=[1000, 10_000, 100_000])
    parser.add_argument("--workers", type=int, nargs="*", default=[2, 4, 8], help="numbers of threads, with 10000 each")
    parser.add_argument("--tree", type=int, default=0, help="also measure TreeSearch after this number of trials")
    parser.add_argument("--bayes", type=int, default=0, help="also measure BayesOpt after this number of trials")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    run(100)()  # not measured, because the first run imports further modules
    results = []

    def measure(name, make, n):
        results.append({"what": name, "evaluations": n} | cost(make, n, arguments.repeat))
        print(results[-1], flush=True, file=sys.stderr)

    for n in arguments.evaluations:
        measure("maximize", lambda n=n: run(n), n)
    for n_workers in arguments.workers:
        measure(f"maximize, n_workers={n_workers}", lambda w=n_workers: run(10_000, n_workers=w), 10_000)
    for n in arguments.evaluations:
        measure("suggest, observe", lambda n=n: pairs(n, params=False), n)
        measure("suggest, params, observe", lambda n=n: pairs(n, params=True), n)
        measure("suggest, observe of the core", lambda n=n: pairs_of_the_core(n), n)
    if arguments.tree:
        n = arguments.tree
        for params in (False, True):
            what = f"TreeSearch after {n}, suggest, {'params, ' * params}observe"
            measure(what, lambda params=params: pairs(20_000, params, tree_search, n), 20_000)
    if arguments.bayes:
        n = arguments.bayes
        for in_flight, calls in ((8, 50), (IN_FLIGHT, 3)):
            what = f"BayesOpt after {n}, {in_flight} in flight, suggest, observe"
            measure(what, lambda p=in_flight, calls=calls: pairs(calls, False, bayes_opt, n, p), calls)
    machine = {"machine": platform.machine(), "processors": os.cpu_count(), "python": platform.python_version()}
    print(json.dumps({"belated": bl.__version__, **machine, "d": D, "costs": results}, indent=2))


if __name__ == "__main__":
    main()
