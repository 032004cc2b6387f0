"""Failures that do not depend on the point, and a region of failures that a run enters late; prints JSON.

In the part *outages*, all trials that end during an outage fail, at any point. An outage covers the first 5, 12 or 20
trials, or 20 trials in mid-run. Each run is continued until it has 40 successes after the outage, with 1 or 8 trials in
flight. A figure is the mean over seeds of log10 of the regret, minus log10 of the regret of a run without outage that
has as many successes. Regrets below 1e-3 of the range of f count as 1e-3 of the range. The share of runs whose regret
is above the median of random search is also printed.

The part *late* has two cases. Both maximise a quadratic function on the unit square whose maximum is in a region of
failures. In the case *late*, the region is a disc, and trials in the disc fail only after the first 30 trials. In the
case *entered late*, the region is a half-plane in which trials always fail. 30 random points outside the half-plane are
observed before the run. The figures are the share of failures among the 60 trials that follow, and log10 of the regret
relative to the best point outside the region, with standard errors.

In the part *lost*, a quarter or half of the results never arrive, at any point. All other results arrive after 8
further suggestions. Lost trials stay pending, or are abandoned after 20 further suggestions, or the policy leaves
pending trials out of the model. Each run ends after 40 results. The figure is the mean over seeds of log10 of the
regret, minus log10 of the regret of the same policy without lost results.
"""

import argparse
import json
import math
import os
from collections import deque
from concurrent.futures import ProcessPoolExecutor

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "BELATED_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402

import belated as bl  # noqa: E402
from belated import functions  # noqa: E402

LEAST = 1e-3
N_SUCCESSES = 40
FIRST = 25  # trials before an outage in mid-run
OUTAGES = {"first 5": (0, 5), "first 12": (0, 12), "first 20": (0, 20), "20 in mid-run": (FIRST, 20)}
SEARCHES = ("log_ei", "ucb", "thompson", "GP-UCB-SDF")


def mixed(params):
    """A function of a real, an integer and a choice; the maximum is 0."""
    shift = {"a": 0.2, "b": 0.6, "c": 0.8}[params["kind"]]
    level = {"a": 0.0, "b": 0.3, "c": 0.6}[params["kind"]]
    return -((params["x"] - shift) ** 2) - 0.02 * (params["n"] - 7) ** 2 - level


def on_box(params):
    return functions.HARTMANN3(params) - functions.HARTMANN3.optimum


# For each problem: the space, f, whose maximum is 0, and the range of f.
PROBLEMS = {
    "box": (functions.HARTMANN3.space, on_box, 3.86),
    "mixed": ({"x": (0.0, 1.0), "n": (1, 10), "kind": ["a", "b", "c"]}, mixed, 1.4),
}


#: The shares of lost results.
LOST = (0.25, 0.5)
#: How lost trials are treated: the pending policy, and the number of suggestions after which they are abandoned.
TREATED = {"pending": ("integrate", math.inf), "abandoned": ("integrate", 20), "ignored": ("ignore", math.inf)}

SQUARE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def made(search, space, seed):
    if search == "random":
        return bl.RandomSearch(space, seed=seed)
    if search in bl.algorithms():
        return bl.algorithm(search, space, window=20, seed=seed)
    return bl.BayesOpt(space, acquisition=search, seed=seed)


def run(search, problem, first, length, n_successes, workers, seed):
    """Return log10 of the regret of a run whose trials first, …, first + length - 1 fail."""
    space, f, extent = PROBLEMS[problem]
    opt = made(search, space, seed)
    in_flight = deque(opt.suggest() for _ in range(workers))
    ended = successes = 0
    best = -math.inf
    while successes < n_successes:
        trial = in_flight.popleft()
        if first <= ended < first + length:
            trial.fail()
        else:
            value = f(trial.params)
            best = max(best, value)
            trial.observe(value)
            successes += 1
        ended += 1
        in_flight.append(opt.suggest())
    return math.log10(max(-best / extent, LEAST))


def cell(search, problem, outage, workers, seeds):
    first, length = OUTAGES[outage]
    n = N_SUCCESSES + first
    logs, without, random = (
        np.array([run(kind, problem, first, k, n, workers, seed) for seed in range(seeds)])
        for kind, k in ((search, length), (search, 0), ("random", 0))
    )
    difference = logs - without
    return {
        "difference": round(float(difference.mean()), 3),
        "error": round(float(difference.std(ddof=1)) / math.sqrt(seeds), 3),
        "worse than random": round(float(np.mean(logs > np.median(random))), 3),
        "without": round(float(np.mean(without > np.median(random))), 3),
    }


def with_region(search, workers, seeds, f, fails, least, added=lambda seed: [], first=0, n=60):
    """Return the share of failures among the last n trials, and log10 of the regret, for a function with a region of
    failures; each figure is a mean over seeds with its standard error.

    Trials in the region fail, except the `first` trials of the run. The points `added(seed)` are observed before the
    run. `least` is the smallest value of -f outside the region.
    """
    shares, regrets = [], []
    for seed in range(seeds):
        opt = made(search, SQUARE, seed)
        for p in added(seed):
            opt.add(p, f(p))
        in_flight = deque(opt.suggest() for _ in range(workers))
        failed, best = [], -math.inf
        for number in range(first + n):
            trial = in_flight.popleft()
            value, inside = f(trial.params), fails(trial.params)
            failed.append(inside and number >= first)
            if failed[-1]:
                trial.fail()
            else:
                trial.observe(value)
            if not inside:
                best = max(best, value)
            in_flight.append(opt.suggest())
        shares.append(np.mean(failed[first:]))
        regrets.append(math.log10(max(-best - least, 1e-6)))
    of = {"failed": shares, "log10 regret": regrets}
    return {
        name: [round(float(np.mean(each)), 3), round(float(np.std(each, ddof=1)) / math.sqrt(seeds), 3)]
        for name, each in of.items()
    }


def late(search, workers, seeds):
    """Return the figures of a disc that contains the optimum, in which trials fail only after the first 30 trials."""

    def f(p):
        return -((p["x"] - 0.3) ** 2) - (p["y"] - 0.7) ** 2

    def fails(p):
        return math.hypot(p["x"] - 0.35, p["y"] - 0.75) < 0.2

    return with_region(search, workers, seeds, f, fails, (0.2 - math.hypot(0.05, 0.05)) ** 2, first=30)


def entered_late(search, workers, seeds):
    """Return the figures of a half-plane that contains the optimum, after 30 points outside it."""

    def f(p):
        return -((p["x"] - 0.8) ** 2) - (p["y"] - 0.7) ** 2

    def added(seed):
        rng = np.random.default_rng(seed)
        return [{"x": float(0.55 * rng.random()), "y": float(rng.random())} for _ in range(30)]

    return with_region(search, workers, seeds, f, lambda p: p["x"] > 0.6, 0.04, added)


def run_lost(policy, abandoned_after, problem, share, seed):
    """Return log10 of the regret after N_SUCCESSES results, if a share of the results is lost."""
    space, f, extent = PROBLEMS[problem]
    opt = bl.BayesOpt(space, pending=policy, seed=seed)
    rng = np.random.default_rng([seed, 1])
    best, successes, trials = -math.inf, 0, []
    while successes < N_SUCCESSES:
        trials.append((opt.suggest(), rng.random() < share))
        if len(trials) > abandoned_after and trials[-abandoned_after - 1][1]:
            trials[-abandoned_after - 1][0].abandon()
        if len(trials) > 8 and not trials[-9][1]:
            trial = trials[-9][0]
            best = max(best, f(trial.params))
            trial.observe(f(trial.params))
            successes += 1
    return math.log10(max(-best / extent, LEAST))


def lost(treated, problem, share, seeds):
    """Return the difference of log10 of the regret to runs without lost results, with its standard error."""
    runs = [[run_lost(*TREATED[treated], problem, each, seed) for seed in range(seeds)] for each in (share, 0.0)]
    logs, without = np.array(runs)
    difference, error = (logs - without).mean(), (logs - without).std(ddof=1) / math.sqrt(seeds)
    return {"lost": round(float(difference), 3), "error": round(float(error), 3), "log10": round(float(logs.mean()), 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--searches", nargs="*", default=SEARCHES, choices=SEARCHES)
    parser.add_argument("--parts", nargs="*", default=["outages", "late"], choices=["outages", "late", "lost"])
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS), choices=list(PROBLEMS))
    arguments = parser.parse_args()
    seeds = arguments.seeds
    tasks = {}
    with ProcessPoolExecutor(arguments.jobs) as pool:
        if "outages" in arguments.parts:
            for problem in arguments.problems:
                for search in arguments.searches:
                    for workers in (1, 8):
                        for outage in OUTAGES:
                            name = f"{problem}, {search}, {workers} workers, {outage}"
                            tasks[name] = pool.submit(cell, search, problem, outage, workers, seeds)
        if "late" in arguments.parts:
            for search in arguments.searches:
                for workers in (1, 8):
                    tasks[f"late, {search}, {workers} workers"] = pool.submit(late, search, workers, seeds)
                    name = f"entered late, {search}, {workers} workers"
                    tasks[name] = pool.submit(entered_late, search, workers, seeds)
        if "lost" in arguments.parts:
            for problem in arguments.problems:
                for share in LOST:
                    for treated in TREATED:
                        name = f"{problem}, {share:.0%} lost, {treated}"
                        tasks[name] = pool.submit(lost, treated, problem, share, seeds)
        result = {}
        for name, task in tasks.items():
            result[name] = task.result()
            print(json.dumps({name: result[name]}), flush=True)
    cells = [each for each in result.values() if "difference" in each]
    if cells:
        keys = ("difference", "worse than random", "without")
        print(json.dumps({"mean": {key: round(float(np.mean([each[key] for each in cells])), 3) for key in keys}}))


if __name__ == "__main__":
    main()
