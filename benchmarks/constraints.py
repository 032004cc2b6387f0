"""The number of suggestions that violate constraints, and the time of a suggestion with and without constraints; prints
JSON.

The constrained spaces are a simplex in the cube, a ring that covers 5 % of a box, and a space with an integer, a
category and a real parameter. Violations are counted over suggestions of RandomSearch, and of BayesOpt with several
acquisitions, batches and pending trials. The *warm* time is the median time of a suggest / observe pair at n
observations, refits included. The figure is the warm time with constraints divided by the warm time without
constraints. Pairs with and without constraints alternate, so that the load of the machine is the same for both.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import belated as bl
from tests.unit.optimizers.constrained import SPACES, value

ACQUISITIONS = ("log_ei", "ucb", "thompson")
# A BayesOpt run makes RUN suggestions in batches of size BATCH. The values of a batch are observed after two further
# batches have been suggested.
RUN, BATCH, LAG = 100, 5, 2


def violations(optimizer, constraints, n):
    """Suggest n points. Return the number of points that violate a constraint, and n."""
    found, count, batches = 0, 0, []
    while count < n:
        trials = optimizer.suggest(min(BATCH, n - count))
        batches.append(trials)
        count += len(trials)
        found += sum(not all(function(trial.params) for function in constraints) for trial in trials)
        if len(batches) > LAG:
            for trial in batches[-1 - LAG]:
                trial.observe(value(trial.params))
    return found, count


def count_violations(total, share):
    """Return violations by optimizer and space; BayesOpt makes the fraction `share` of the `total` suggestions."""
    result = {}
    for name, (space, constraints) in SPACES.items():
        n_random = int(total * (1 - share)) // len(SPACES)
        optimizer = bl.RandomSearch(space, constraints=constraints, seed=0)
        result[f"RandomSearch, {name}"] = violations(optimizer, constraints, n_random)
        n_each = -(-int(total * share) // (len(SPACES) * len(ACQUISITIONS)))
        for acquisition in ACQUISITIONS:
            found, count, seed = 0, 0, 0
            while count < n_each:
                optimizer = bl.BayesOpt(space, constraints=constraints, acquisition=acquisition, seed=seed)
                more = violations(optimizer, constraints, min(RUN, n_each - count))
                found, count, seed = found + more[0], count + more[1], seed + 1
            result[f"BayesOpt, {acquisition}, {name}"] = found, count
    return result


def warm(name, acquisition, n, pairs):
    """Return the median times of a warm suggest / observe pair at n observations, in milliseconds: with and without
    constraints."""
    space, constraints = SPACES[name]
    # All points satisfy the constraints, so that both optimizers have the same data.
    data = [t.params for t in bl.RandomSearch(space, constraints=constraints, seed=1).suggest(n)]
    optimizers = []
    for given in (constraints, None):
        optimizer = bl.BayesOpt(space, constraints=given, acquisition=acquisition, seed=0)
        optimizer.add(data, [value(params) for params in data])
        for _ in range(3):
            trial = optimizer.suggest()
            trial.observe(value(trial.params))
        optimizers.append(optimizer)
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(pairs):
        for optimizer, own in zip(optimizers, times, strict=True):
            start = time.perf_counter()
            trial = optimizer.suggest()
            trial.observe(value(trial.params))
            own.append(1e3 * (time.perf_counter() - start))
    constrained, free = map(statistics.median, times)
    return {"constrained_ms": round(constrained, 2), "free_ms": round(free, 2), "ratio": round(constrained / free, 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suggestions", type=int, default=10_000)
    parser.add_argument("--share", type=float, default=0.3, help="share of BayesOpt in the suggestions")
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--spaces", nargs="*", default=list(SPACES), choices=list(SPACES))
    parser.add_argument("--acquisitions", nargs="*", default=list(ACQUISITIONS), choices=ACQUISITIONS)
    arguments = parser.parse_args()
    counted = count_violations(arguments.suggestions, arguments.share) if arguments.suggestions else {}
    result = {
        "violations": sum(found for found, _ in counted.values()),
        "suggestions": sum(count for _, count in counted.values()),
        "by": {name: {"violations": found, "suggestions": count} for name, (found, count) in counted.items()},
        "warm": {
            f"{name}, {acquisition}": warm(name, acquisition, arguments.n, arguments.pairs)
            for name in arguments.spaces
            for acquisition in arguments.acquisitions
        },
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
