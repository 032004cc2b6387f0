"""Tests of discrete parameters: a category that f ignores, and repeated points on finite domains; prints JSON.

*Category* is the regret on Branin with an additional category that f ignores (1 to 200 choices), divided by the regret
on Branin alone. A regret is the geometric mean over seeds of the simple regret after 50 sequential trials without
noise. *Four points* counts the runs that repeat a point before all points have been tried, out of 200 runs on spaces of
four points. *In flight* counts the suggestions on finite domains that repeat a point in flight while an untried point
is left.
"""

import argparse
import json
import math

import numpy as np

import belated as bl
from belated import functions

CHOICES = (0, 1, 2, 5, 20, 50, 200)
N_TRIALS = 50
FOUR_POINTS = (
    {"a": bl.Integer(1, 4)},
    {"a": [10, 20, 30, 40]},
    {"a": [1, 2], "b": bl.Integer(0, 1)},
    {"a": bl.Ordinal([1, 2, 8, 9])},
)
FINITE = (
    {"a": bl.Integer(0, 9), "b": ["x", "y", "z"]},
    {"a": bl.Ordinal([1, 2, 4, 8]), "b": bl.Integer(1, 3), "c": [True, False]},
    {"a": bl.Categorical(list(range(40)))},
)
IN_FLIGHT = 8


def regret(choices, seed):
    """Return the simple regret on Branin with an additional category that has the given number of choices."""
    branin = functions.BRANIN
    space = dict(branin.space) | ({"idle": bl.Categorical(list(range(choices)))} if choices else {})
    optimizer = bl.BayesOpt(space, seed=seed)
    for _ in range(N_TRIALS):
        trial = optimizer.suggest()
        trial.observe(branin({name: trial.params[name] for name in branin.space}))
    return branin.optimum - optimizer.best_value_


def returned_early(space, seed):
    """Return whether a point was suggested twice before all four points had been observed."""
    optimizer = bl.BayesOpt(space, seed=seed)
    values = np.random.default_rng(seed).normal(size=64)
    seen = set()
    for _ in range(4):
        trial = optimizer.suggest()
        key = tuple(trial.params.values())
        if key in seen:
            return True
        seen.add(key)
        trial.observe(float(values[hash(key) % 64]))
    return False


def repeats_in_flight(space, seed, n):
    """Make n suggestions. Return how many suggestions repeated a point in flight although an untried point was left."""
    optimizer = bl.BayesOpt(space, seed=seed)
    values = np.random.default_rng(seed).normal(size=64)
    size = math.prod(len(getattr(d, "choices", None) or getattr(d, "values", None) or range(d.low, d.high + 1))
                     for d in optimizer.domain.values())  # fmt: skip
    in_flight, tried, found = [], set(), 0
    for _ in range(n):
        trial = optimizer.suggest()
        key = tuple(trial.params.values())
        found += key in [other for other, _ in in_flight] and len(tried) < size
        tried.add(key)
        in_flight.append((key, trial))
        if len(in_flight) > IN_FLIGHT:
            key, trial = in_flight.pop(0)
            trial.observe(float(values[hash(key) % 64]))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--suggestions", type=int, default=10_000, help="on finite domains")
    parser.add_argument("--choices", type=int, nargs="*", default=CHOICES)
    arguments = parser.parse_args()
    logs = {n: np.log([max(regret(n, seed), 1e-12) for seed in range(arguments.seeds)]) for n in arguments.choices}
    plain = logs.get(0)
    each = 60  # suggestions of a run
    runs = -(-arguments.suggestions // (each * len(FINITE)))
    result = {
        "category": {
            n: {
                "regret": float(f"{math.exp(log.mean()):.3g}"),
                **({} if plain is None else {"ratio": round(float(np.exp((log - plain).mean())), 2)}),
            }
            for n, log in logs.items()
        },
        "four points, early returns": sum(returned_early(s, seed) for s in FOUR_POINTS for seed in range(50)),
        "repeats in flight": sum(repeats_in_flight(s, seed, each) for s in FINITE for seed in range(runs)),
        "suggestions on finite domains": each * runs * len(FINITE),
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
