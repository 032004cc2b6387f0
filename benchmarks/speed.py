"""The time of a suggestion by an optimizer that has made suggestions before; prints JSON. The hyperparameters are
given, so the times do not include refits."""

import argparse
import json
import os
import platform
import statistics
import sys
import time
from pathlib import Path

import numpy as np

import belated as bl

STEPS = 100


def processor() -> str:
    """Return the processor's name from the operating system."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def step_times(optimizer, objective, pending, steps=STEPS):
    """Return the time of each of `steps` suggest / observe pairs, in milliseconds, while `pending` trials are
    pending."""
    waiting = [optimizer.suggest() for _ in range(pending)]
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        waiting.append(optimizer.suggest())
        suggested = time.perf_counter()
        trial = waiting.pop(0)
        value = objective(trial)
        observing = time.perf_counter()
        optimizer.observe(trial, value)
        times.append(1e3 * (suggested - start + time.perf_counter() - observing))
    return times


def summary(times):
    """Return the median, the minimum and the maximum in milliseconds."""
    return {
        "median_ms": round(statistics.median(times), 4),
        "min_ms": round(min(times), 4),
        "max_ms": round(max(times), 4),
        "steps": len(times),
    }


def on_candidates(name):
    """Measure a step of a published algorithm: 1000 candidates in one dimension, 150 observations, 10 pending
    trials."""
    rng = np.random.default_rng(0)
    grid = np.linspace(0.0, 1.0, 1000)[:, None]
    values = np.sin(20.0 * grid[:, 0]) + np.sin(43.0 * grid[:, 0])
    optimizer = bl.algorithm(
        name,
        candidates=grid,
        window=20,
        seed=0,
        pending__floor=-2.0,
        pending__late="accept",
        surrogate__lengthscale=0.02,
        surrogate__signal_std=0.3**0.5,
        surrogate__noise_std=1e-3**0.5,
    )
    chosen = rng.choice(1000, size=100, replace=False)
    optimizer.add([int(i) for i in chosen], [float(values[i]) for i in chosen])
    # After 50 unmeasured steps there are 150 observations. The measured steps follow.
    step_times(optimizer, lambda trial: values[trial.index], 10, 50)
    for trial in optimizer.pending:
        optimizer.observe(trial, values[trial.index])
    return summary(step_times(optimizer, lambda trial: values[trial.index], 10))


def in_a_box(acquisition):
    """Measure a box of six dimensions with 200 observations and 8 pending trials."""
    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(6)]
    points = rng.random((200, 6))

    def f(x):
        return float(np.sin(3.0 * x).sum() + 0.1 * rng.standard_normal())

    optimizer = bl.BayesOpt(
        {name: (0.0, 1.0) for name in names},
        acquisition=acquisition,
        pending="hallucinate",
        seed=0,
        surrogate=bl.GP(lengthscale=1.0, signal_std=1.0, noise_std=0.1),
    )
    optimizer.add([dict(zip(names, x, strict=True)) for x in points], [f(x) for x in points])
    return summary(step_times(optimizer, lambda trial: f(np.array(list(trial.params.values()))), 8))


BENCHMARKS = {
    "candidates=1000 n=150 GP-UCB-SDF": (lambda: on_candidates("GP-UCB-SDF"), 1.0),
    "candidates=1000 n=150 GP-TS-SDF": (lambda: on_candidates("GP-TS-SDF"), 5.0),
    "box d=6 n=200 pending=8 ucb": (lambda: in_a_box("ucb"), 25.0),
    "box d=6 n=200 pending=8 log_ei": (lambda: in_a_box("log_ei"), 25.0),
    "box d=6 n=200 pending=8 thompson": (lambda: in_a_box("thompson"), 25.0),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE", help="write there instead of to standard output")
    arguments = parser.parse_args()
    results = {}
    for name, (run, target) in BENCHMARKS.items():
        results[name] = run() | {"target_ms": target}
        print(f"{name}: {results[name]['median_ms']} ms (target {target})", file=sys.stderr)
    report = {
        "belated": bl.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": f"{processor()}, {os.cpu_count()} processors",
        "results": results,
    }
    text = json.dumps(report, indent=2)
    if arguments.json:
        Path(arguments.json).write_text(text + "\n")
    else:
        print(text)


if __name__ == "__main__":
    main()
