"""Accuracy of predictions and recommendations in runs without noise; prints JSON.

Every function is maximised in 120 sequential trials. *Coverage* is the share of 200 random points at which the value of
the function is in the 95 % interval of `predict`; the program prints its mean over seeds after 40, 60, … trials.
*Worse* is the best observed value minus the value at the recommended point, in units of the function's range; the
program prints the maximum and the median over seeds and over the readings after 40, 44, … trials.

Usage: python benchmarks/calibration.py [--seeds 10] [--jobs 2]
"""

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from itertools import product

import numpy as np

import belated as bl
from belated.functions import BRANIN, HARTMANN3, Function

N_TRIALS, FIRST = 120, 40


def _six_hump(x):
    a, b = x
    return -((4 - 2.1 * a**2 + a**4 / 3) * a**2 + a * b + (-4 + 4 * b**2) * b**2)


def _quadratic(x):
    return -((x[0] - 0.3) ** 2) - (x[1] - 0.7) ** 2


SQUARE = {"x": bl.Real(0.0, 1.0), "y": bl.Real(0.0, 1.0)}
FUNCTIONS = {
    "branin": BRANIN,
    "six-hump camel": Function(
        "six-hump", {"x": bl.Real(-2.0, 2.0), "y": bl.Real(-1.0, 1.0)}, 1.0316284534898774, _six_hump
    ),
    "hartmann3": HARTMANN3,
    "quadratic": Function("quadratic", SQUARE, 0.0, _quadratic),
}


def run(name, seed):
    """Return the coverage after each number of trials, and the differences between the best and the recommended
    values."""
    function, rng = FUNCTIONS[name], np.random.default_rng(1000 + seed)
    low = np.array([parameter.low for parameter in function.space.values()])
    high = np.array([parameter.high for parameter in function.space.values()])
    values = function(low + (high - low) * rng.random((20_000, len(low))))
    size = values.max() - values.min()
    points = low + (high - low) * rng.random((200, len(low)))
    truth = function(points)
    opt, coverage, worse = bl.BayesOpt(function.space, seed=seed), {}, []
    for n in range(1, N_TRIALS + 1):
        trial = opt.suggest()
        trial.observe(function(trial.params))
        if n >= FIRST and n % 4 == 0:
            worse.append((opt.best_value_ - function(opt.recommend())) / size)
        if n >= FIRST and n % 20 == 0:
            mean, std = opt.predict(points)
            coverage[n] = float(np.mean(np.abs(truth - mean) <= 1.96 * std))
    return coverage, worse


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    names, seeds = zip(*product(FUNCTIONS, range(arguments.seeds)), strict=True)
    with ProcessPoolExecutor(arguments.jobs) as pool:
        runs = list(pool.map(run, names, seeds))
    result, pooled = {}, []
    for name in FUNCTIONS:
        coverages, worse = zip(*(it for it, other in zip(runs, names, strict=True) if other == name), strict=True)
        pooled += [share for coverage in coverages for share in coverage.values()]
        result[name] = {
            "coverage": {n: round(float(np.mean([c[n] for c in coverages])), 3) for n in coverages[0]},
            "worse, largest": float(f"{max(map(max, worse)):.2g}"),
            "worse, median": float(f"{np.median(np.concatenate(worse)):.2g}"),
        }
    print(json.dumps(result | {"coverage, pooled": round(float(np.mean(pooled)), 3)}, indent=1))


if __name__ == "__main__":
    main()
