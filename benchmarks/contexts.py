"""A new context after results of other contexts, beside a new optimizer without these results; prints a table.

Earlier results come from runs of `--earlier` evaluations, one in each of the other contexts. f has the same shape in
every context. In the other contexts, its values are multiplied by the scale, and the level is added, in units of the
range of the values of f. Then a run in a new context follows, with one evaluation at a time. A cell is a level, a
scale, a number of contexts and a noise. For each cell, the table shows the difference of log10 regret, in units of the
range, to a run with the same seed without earlier results, with its standard error, after a quarter, a half and all of
the evaluations. Negative differences are gains. `Holm` is the adjusted p value of the hypothesis that the difference
after all evaluations is at most 0.05.

With `--mirrored`, the optimum lies elsewhere in the other contexts, whose points are mirrored, so that their results
mislead.
"""

import argparse
import itertools
import math

import numpy as np

import belated as bl
from belated import functions

FUNCTIONS = {"branin": functions.BRANIN, "hartmann3": functions.HARTMANN3}
LEVELS, SCALES, NUMBERS, NOISES = (0.0, 5.0, 100.0), (1.0, 10.0), (2, 3), (0.0, 0.05)
SMALLEST = 1e-4  # all regrets below this share of the range are treated as equal
TOLERATED = 0.05


class Problem:
    """A function in units of its range, which is the difference between its optimum and its median."""

    def __init__(self, name, seed=0):
        self.f = FUNCTIONS[name]
        rng = np.random.default_rng(seed)
        self.space = self.f.space
        values = [self.f(self.random(rng)) for _ in range(2000)]
        self.unit = self.f.optimum - float(np.median(values))

    def random(self, rng):
        return {name: rng.uniform(real.low, real.high) for name, real in self.space.items()}

    def mirrored(self, params):
        return {name: real.low + real.high - params[name] for name, real in self.space.items()}

    def __call__(self, params):
        return (self.f(params) - self.f.optimum) / self.unit


def run(problem, seed, n, noise, earlier=()):
    """Return the points and the observed values of a run, and the regret of the best point so far. `earlier` contains
    the context, the points and the values of earlier results."""
    contexts = {"lot": ["new", "one", "two"][: 1 + len(earlier)]} if earlier else None
    optimizer = bl.BayesOpt(problem.space, context=contexts, seed=seed)
    context = {"lot": "new"} if earlier else None
    for name, points, values in earlier:
        optimizer.add(points, values, context=[{"lot": name}] * len(points))
    rng = np.random.default_rng(seed)
    points, observed, means = [], [], []
    for _ in range(n):
        trial = optimizer.suggest(context=context)
        means.append(problem(trial.params))
        observed.append(means[-1] + noise * rng.standard_normal())
        trial.observe(observed[-1])
        points.append(trial.params)
    return points, observed, -np.maximum.accumulate(means)


def log_regrets(regrets):
    n = len(regrets)
    places = [math.ceil(n / 4) - 1, math.ceil(n / 2) - 1, n - 1]
    return np.log10(np.maximum(regrets[places], SMALLEST))


def holm(p_values):
    """Return the p values, adjusted by the method of Holm."""
    order = np.argsort(p_values)
    scaled = np.array(p_values)[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--earlier", type=int, default=40)
    parser.add_argument("--evaluations", type=int, default=20)
    parser.add_argument("--functions", nargs="+", default=list(FUNCTIONS), choices=list(FUNCTIONS))
    parser.add_argument("--levels", nargs="+", type=float, default=LEVELS)
    parser.add_argument("--scales", nargs="+", type=float, default=SCALES)
    parser.add_argument("--contexts", nargs="+", type=int, default=NUMBERS)
    parser.add_argument("--noises", nargs="+", type=float, default=NOISES)
    parser.add_argument("--mirrored", action="store_true")
    arguments = parser.parse_args()
    cells = list(itertools.product(arguments.noises, arguments.contexts, arguments.levels, arguments.scales))
    differences = {cell: [] for cell in cells}
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    for name, noise, seed in itertools.product(arguments.functions, arguments.noises, seeds):
        problem = Problem(name)
        alone = log_regrets(run(problem, seed, arguments.evaluations, noise)[2])
        known = [run(problem, 1000 + 2 * seed + i, arguments.earlier, noise)[:2] for i in range(2)]
        if arguments.mirrored:
            known = [([problem.mirrored(point) for point in points], values) for points, values in known]
        for cell in cells:
            of_cell, number, level, scale = cell
            if of_cell != noise:
                continue
            # The second of the other contexts has the opposite level.
            others = [
                (context, points, [scale * value + (1 - 2 * i) * level for value in values])
                for i, (context, (points, values)) in enumerate(zip(("one", "two"), known, strict=True))
            ][: number - 1]
            after = log_regrets(run(problem, seed, arguments.evaluations, noise, others)[2])
            differences[cell].append(after - alone)
        print(f"{name}, noise {noise}, seed {seed} done", flush=True)
    rows, p_values = [], []
    for cell in cells:
        values = np.array(differences[cell])
        mean, error = values.mean(0), values.std(0, ddof=1) / math.sqrt(len(values))
        rows.append((cell, mean, error))
        p_values.append(0.5 * math.erfc((mean[-1] - TOLERATED) / max(error[-1], 1e-12) / math.sqrt(2)))
    print("\n| noise | contexts | level | scale | a quarter | a half | all | Holm |\n|---|---|---|---|---|---|---|---|")
    for (cell, mean, error), p in zip(rows, holm(p_values), strict=True):
        noise, number, level, scale = cell
        shown = " | ".join(f"{m:+.2f} ± {e:.2f}" for m, e in zip(mean, error, strict=True))
        print(f"| {noise:g} | {number} | {level:g} | {scale:g} | {shown} | {p:.2g} |")
    everything = np.concatenate([differences[cell] for cell in cells])
    print(f"\nMean over cells, after all evaluations: {everything[:, -1].mean():+.3f}")


if __name__ == "__main__":
    main()
