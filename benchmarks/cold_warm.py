"""The time of a suggestion for a growing number of observations, compared with other libraries; prints a table and
JSON.

Settings are the defaults. The standard deviation of the noise is 0.2, and 8 trials are pending. The function is
Hartmann6, or with ``--space mixed`` a function of ten reals and ten categories of ten choices. The *cold* time is the
time that a new optimizer takes for the first suggestion after the data were added. This time includes a fit of the
hyperparameters from scratch. The *warm* time is the mean time of the suggest / observe pairs that follow, refits
included. For these pairs, the JSON output also contains the median time, and the processor times. An optimizer that
does not keep a model between suggestions takes the cold time for each suggestion. Each figure is measured in a separate
process.
"""

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time

import numpy as np
from peers import make, versions
from speed import processor

import belated as bl
from belated.functions import HARTMANN6

OUT = 8
NOISE = 0.2
TARGETS = {50: (20, 3), 200: (60, 8), 500: (150, 20), 1000: (500, 60), 2000: (3000, 250), 5000: (30000, 1500)}
PEERS = ("botorch", "optuna-gp")
# The largest number of observations for which the other libraries are measured. With more observations, one suggestion
# of such a library takes minutes.
MOST_FOR_PEERS = 2000


class Mixed:
    """Return a quadratic function of ten reals, plus a number for every choice of ten categories."""

    space = {f"x{i}": bl.Real(0.0, 1.0) for i in range(10)} | {
        f"c{i}": bl.Categorical(list(range(10))) for i in range(10)
    }

    def __init__(self):
        rng = np.random.default_rng(0)
        self.centre, self.effects = rng.random(10), 0.3 * rng.normal(size=(10, 10))

    def __call__(self, params):
        bowl = sum((params[f"x{i}"] - centre) ** 2 for i, centre in enumerate(self.centre))
        return sum(effects[params[f"c{i}"]] for i, effects in enumerate(self.effects)) - bowl


SPACES = {"hartmann6": HARTMANN6, "mixed": Mixed()}


def random_points(rng, space, n):
    """Return uniformly random points; choices are numbered from 0."""
    rows = rng.random((n, len(space)))
    levels = [len(d.choices) if isinstance(d, bl.Categorical) else None for d in space.values()]

    def point(row):
        entries = zip(space, row, levels, strict=True)
        return {name: float(u) if count is None else int(count * u) for name, u, count in entries}

    return [point(row) for row in rows]


def measure(optimizer, function, n, pairs, seed=0):
    """Return the milliseconds of a cold suggestion and of each following suggest / observe pair, and the peak memory in
    MB."""
    rng = np.random.default_rng(seed)
    points = random_points(rng, function.space, n + OUT)
    values = [function(point) + NOISE * rng.normal() for point in points[:n]] + [None] * OUT
    # The first call of an optimizer's library also loads the library.
    warm_up = make(optimizer, function.space, seed)
    warm_up.add(points[:12], values[:12])
    warm_up.suggest()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    subject = make(optimizer, function.space, seed)
    waiting = subject.add(points, values)
    waiting.append(subject.suggest())
    cold = 1e3 * (time.perf_counter() - start)
    times, processor_times = [], []
    for _ in range(pairs):
        handle, params = waiting.pop(0)
        value = function(params) + NOISE * rng.normal()
        start, start_of_processor = time.perf_counter(), time.process_time()
        subject.observe(handle, value)
        waiting.append(subject.suggest())
        times.append(1e3 * (time.perf_counter() - start))
        processor_times.append(1e3 * (time.process_time() - start_of_processor))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "optimizer": optimizer,
        "n": n,
        "cold_ms": round(cold, 2),
        "warm_ms": round(sum(times) / len(times), 3) if times else None,
        "median_ms": round(float(np.median(times)), 3) if times else None,
        "worst_ms": round(max(times), 2) if times else None,
        "processor_ms": round(float(np.mean(processor_times)), 3) if times else None,
        "processor_median_ms": round(float(np.median(processor_times)), 3) if times else None,
        "pairs": pairs,
        "peak_mb": round(peak / 1024),
        "grown_mb": round((peak - before) / 1024),
        "versions": versions(optimizer),
    }


def in_process(optimizer, space, n, pairs):
    """Measure an optimizer in a separate process. Linear algebra uses one thread in this process."""
    quiet = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--one", optimizer, "--space", space, "--sizes", str(n), "--pairs", str(pairs)]
    done = subprocess.run(command, env=os.environ | quiet, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)


def repeated(optimizer, space, n, pairs, repeats):
    """Return the run with the median cold time. The warm time in the result is the median over all runs."""
    runs = sorted((in_process(optimizer, space, n, pairs) for _ in range(repeats)), key=lambda run: run["cold_ms"])
    warm = [run["warm_ms"] for run in runs if run["warm_ms"] is not None]
    return runs[len(runs) // 2] | {"warm_ms": float(np.median(warm)) if warm else None, "repeats": repeats}


def table(rows):
    """Return a Markdown table with one line for each number of observations."""
    found = {(row["optimizer"], row["n"]): row for row in rows}
    others = [name for name in dict.fromkeys(row["optimizer"] for row in rows) if name != "belated"]
    lines = ["| observations | cold | target | warm | target | " + " | ".join(others) + " | cold × | warm × |"]
    lines.append("|---" * (7 + len(others)) + "|")
    for n in sorted({row["n"] for row in rows}):
        own = found["belated", n]
        prices = [found[name, n]["cold_ms"] for name in others if (name, n) in found]
        cells = [f"{found[name, n]['cold_ms']:.0f}" if (name, n) in found else "–" for name in others]
        gains = [f"{min(prices) / own[what]:.0f}" if prices else "–" for what in ("cold_ms", "warm_ms")]
        cold, warm = TARGETS.get(n, ("–", "–"))
        cells = [n, f"{own['cold_ms']:.1f}", cold, f"{own['warm_ms']:.2f}", warm, *cells, *gains]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--space", choices=list(SPACES), default="hartmann6")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(TARGETS), help="numbers of observations")
    parser.add_argument("--pairs", type=int, default=100, help="suggest / observe pairs of a warm run")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each up to 1000 observations")
    parser.add_argument("--peers", nargs="*", default=list(PEERS), help="optimizers to compare with")
    parser.add_argument("--out", help="file for the JSON")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one, SPACES[arguments.space], arguments.sizes[0], arguments.pairs)))
        return
    rows = []
    for n in arguments.sizes:
        repeats = arguments.repeats if n <= 1000 else 1
        rows.append(repeated("belated", arguments.space, n, arguments.pairs, repeats))
        print(rows[-1], file=sys.stderr)
        for peer in arguments.peers if n <= MOST_FOR_PEERS else ():
            rows.append(repeated(peer, arguments.space, n, 0, repeats if n <= 200 else 1))
            print(rows[-1], file=sys.stderr)
    d = len(SPACES[arguments.space].space)
    print(f"Milliseconds for one suggestion, d = {d}, {OUT} trials out, on {processor()}\n\n{table(rows)}")
    own = {row["n"]: row for row in rows if row["optimizer"] == "belated"}
    if {500, 5000} <= set(own):
        power = math.log(own[5000]["warm_ms"] / own[500]["warm_ms"]) / math.log(10)
        print(f"\nWarm cost from 500 to 5000 observations grows as n^{power:.2f}.")
    for n, row in own.items():
        print(f"n = {n}: memory grows by {row['grown_mb']} MB (3·8·n² bytes are {24 * n * n / 2**20:.0f} MB)")
    if arguments.out:
        with open(arguments.out, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
