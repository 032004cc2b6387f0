"""How often values are marked: values without an error, and the same values with one typing error each.

    python benchmarks/typos.py [SEEDS]

Each run of `BayesOpt` observes 60 values of a function of `belated.functions`, or of a table of `laboratory_tables` if
the environment variable BELATED_DATA is set. Plates of four trials are suggested, and their values arrive out of order.
The functions have no noise, noise of 5 % of the standard deviation of f, or noise that increases with the first
parameter from 1 % to 16 %. Before a value is reported, the interval in which it is expected is compared with the value,
with the value times 100 and times 0.01, and with the value with the other sign. These errors are not reported. They are
counted from the 25th value on, if they lie beyond the range of the earlier values. "new best" are the values that are
better than all earlier ones, and "values" are the others.
"""

import os
import sys
import warnings
from collections import Counter

import laboratory_tables
import numpy as np

import belated as bl
from belated import functions

N, PLATE, FROM = 60, 4, 24
ERRORS = {"x 100": 100.0, "sign": -1.0, "x 0.01": 0.01}
NOISE = {"none": (0.0, 0.0), "5 %": (0.05, 0.0), "increasing": (0.01, 0.15)}


def count(optimizer, measure, rng, counts):
    """Count the values that would be marked in a run."""
    seen, waiting = [], []
    while len(seen) < N:
        waiting += optimizer.suggest(n=PLATE)
        rng.shuffle(waiting)
        while len(waiting) > PLATE:
            trial = waiting.pop()
            y, interval = measure(trial), optimizer._log.expected(trial.number, None, None)
            best = max if optimizer.direction == "maximize" else min
            kind = "best" if seen and best([y, *seen]) == y and y not in seen else "value"
            counts[kind, True] += 1
            counts[kind, False] += is_marked(y, interval)
            if len(seen) >= FROM:
                for name, factor in ERRORS.items():
                    wrong = factor * y
                    if not min(seen) <= wrong <= max(seen):
                        counts[name, True] += 1
                        counts[name, False] += is_marked(wrong, interval)
            optimizer.observe(trial, y)
            seen.append(y)


def is_marked(value, interval):
    return interval is not None and not interval[0] <= value <= interval[1]


def function_runs(function, noise, seeds):
    """Yield (optimizer, measure, generator) for each run on a function."""
    limits = {name: (each if isinstance(each, tuple) else (each.low, each.high))
              for name, each in function.space.items()}  # fmt: skip
    first, (low, high) = next(iter(limits.items()))
    draws = np.random.default_rng(0)
    spread = np.std([function({name: draws.uniform(*each) for name, each in limits.items()}) for _ in range(300)])
    constant, slope = NOISE[noise]
    for seed in range(seeds):
        rng = np.random.default_rng(seed)

        def measure(trial, rng=rng):
            share = (trial.params[first] - low) / (high - low)
            return function(trial.params) + spread * (constant + slope * share) * rng.normal()

        yield bl.BayesOpt(dict(function.space), seed=seed), measure, rng


def table_runs(name, seeds):
    """Yield (optimizer, measure, generator) for each run on a table."""
    import pandas

    table, sign = laboratory_tables.load(name), {**laboratory_tables.OPEN, **laboratory_tables.ASIDE}[name][3]
    direction = "maximize" if sign == 1 else "minimize"
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        rows = pandas.DataFrame(table.rows, columns=table.names)
        domain = {"space": table.space} if table.space else {"candidates": rows}

        def measure(trial, rng=rng):
            return sign * table.measure(table.find(trial.params), rng.random())

        yield bl.BayesOpt(**domain, direction=direction, seed=seed), measure, rng


def line(label, counts):
    """Print one line of the table."""
    kinds = [f"{counts[kind, False]:4}/{counts[kind, True]:<5}" for kind in ("value", "best")]
    errors = [f"{counts[kind, False] / max(counts[kind, True], 1):6.1%} of {counts[kind, True]:<5}" for kind in ERRORS]
    print(f"{label:24}", *kinds, *errors, flush=True)


def main():
    warnings.simplefilter("ignore")
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    print(f"{'':24} {'values':10} {'new best':10}", *(f"{name:15}" for name in ERRORS))
    for noise in NOISE:
        counts = Counter()
        for function in vars(functions).values():
            if isinstance(function, functions.Function):
                for run in function_runs(function, noise, seeds):
                    count(*run, counts)
        line(f"functions, noise: {noise}", counts)
    if "BELATED_DATA" in os.environ:
        together = Counter()
        for name in laboratory_tables.SETTINGS:
            counts = Counter()
            for run in table_runs(name, seeds):
                count(*run, counts)
            line(name, counts)
            together.update(counts)
        line("tables", together)


if __name__ == "__main__":
    main()
