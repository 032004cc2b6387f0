"""The benefit of earlier results: how many evaluations a run saves if 50 results are added before the run; prints a
table.

Runs are on the open tables (`tables.py`), with one evaluation at a time. The value of an evaluation is a random
replicate of its point; f is the mean over the replicates. The target is the regret at the best point of a run without
earlier results, after a given number of evaluations. A second run starts with 50 earlier results, either of random
points or of the first 50 evaluations of another run. The figure is the number of evaluations that the second run needs
to reach the target: 0 if one of the 50 earlier points reaches it, and all evaluations of the second run if this run
does not reach it.
"""

import argparse

import numpy as np
import tables

import belated as bl

N_EARLIER = 50


def run(table, seed, n, earlier=None):
    """Return the values of f and the observed values at the points of a run, in the order of the trials."""
    optimizer = bl.BayesOpt(table.space, seed=seed)
    if earlier is not None:
        optimizer.add(*earlier)
    rng = np.random.default_rng(seed)
    points, observed, means = [], [], []
    for _ in range(n):
        trial = optimizer.suggest()
        value = table.replicate(trial.params, rng.random())
        trial.observe(value)
        points.append(trial.params)
        observed.append(value)
        means.append(table(trial.params))
    return np.array(means), (points, observed)


def of_random_points(table, seed):
    rng = np.random.default_rng(1000 + seed)
    points = [trial.params for trial in bl.RandomSearch(table.space, seed=1000 + seed).suggest(N_EARLIER)]
    return points, [table.replicate(params, rng.random()) for params in points]


def evaluations_to(means, mark, given=-np.inf):
    """Return the number of evaluations that are needed until f reaches the target."""
    if given >= mark:
        return 0
    reached = np.flatnonzero(means >= mark)
    return int(reached[0]) + 1 if reached.size else len(means)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--evaluations", type=int, default=100)
    parser.add_argument("--tables", nargs="+", default=list(tables.OPEN))
    arguments = parser.parse_args()
    print("| table | regret at the mark | alone | after 50 random results | after 50 of a run |\n|---|---|---|---|---|")
    shares = []
    for name in arguments.tables:
        table = tables.open_table(name)
        rows = []
        for seed in range(arguments.seeds):
            alone, _ = run(table, seed, arguments.evaluations)
            mark = alone.max()
            _, before = run(table, 500 + seed, N_EARLIER)
            others = [of_random_points(table, seed), before]
            counts = [
                evaluations_to(
                    run(table, seed, arguments.evaluations, other)[0], mark, max(table(params) for params in other[0])
                )
                for other in others
            ]
            rows.append([(table.optimum - mark) / table.unit, evaluations_to(alone, mark), *counts])
        mean = np.mean(rows, axis=0)
        shares.append(mean[2:] / mean[1])
        print(f"| {name} | {mean[0]:.3f} | {mean[1]:.0f} | {mean[2]:.0f} | {mean[3]:.0f} |", flush=True)
    saved = 1 - np.mean(shares, axis=0)
    print(f"\nSaved, mean over tables: {saved[0]:.0%} after random results, {saved[1]:.0%} after results of a run")


if __name__ == "__main__":
    main()
