"""The time of a suggestion for a growing number of observations, compared with other libraries; prints a table.

Settings are the defaults. The standard deviation of the noise is 0.2, and 8 trials are pending. The function is
Hartmann6, or with ``--space mixed`` a function of ten reals and ten categories of ten choices. The *cold* time is the
time that a new optimizer takes for the first suggestion after the data were added, with a fit of the hyperparameters
from scratch. The *warm* time is the mean time of the suggest / observe pairs that follow, refits included. An optimizer
that does not keep a model between suggestions takes the cold time for each suggestion.

Each run is a new process, which measures wall and CPU time, with one thread and with two threads. The runs of the
optimizers alternate, so that other programs on the machine slow down all optimizers alike. The table shows medians over
the repeats, and the time of the fastest other library divided by the time of belated. Of the ratios with one and with
two threads, the smaller is shown. With ``--neighbour``, another process copies memory during all measurements.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import median

import numpy as np
from peers import make, versions
from speed import processor

import belated as bl
from belated.functions import HARTMANN6

OUT = 8
NOISE = 0.2
SIZES = (50, 200, 500, 1000, 2000, 5000)
PEERS = {"botorch": "BoTorch", "optuna-gp": "Optuna GPSampler"}
THREADS = (1, 2)
TIMES = ("cold_ms", "cold_cpu_ms", "warm_ms", "warm_cpu_ms")
VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BELATED_NUM_THREADS")
# The largest number of observations for which the runs are repeated.
MOST_FOR_REPEATS = 1000
# The largest number of observations for which the other libraries are measured. With more observations, one suggestion
# of these libraries takes minutes.
MOST_FOR_PEERS = 2000


class Mixed:
    """A quadratic function of ten reals, plus a number for every choice of ten categories."""

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


def clocks():
    """Return the wall time and the CPU time of this process in milliseconds."""
    return 1e3 * np.array([time.perf_counter(), time.process_time()])


def measure(optimizer, function, n, pairs, seed=0):
    """Return the milliseconds of a cold suggestion, the mean milliseconds of the following suggest / observe pairs, and
    the peak memory in MB."""
    rng = np.random.default_rng(seed)
    points = random_points(rng, function.space, n + OUT)
    values = [function(point) + NOISE * rng.normal() for point in points[:n]] + [None] * OUT
    # The first call of an optimizer's library also loads the library.
    warm_up = make(optimizer, function.space, seed)
    warm_up.add(points[:12], values[:12])
    warm_up.suggest()
    start = clocks()
    subject = make(optimizer, function.space, seed)
    waiting = subject.add(points, values)
    waiting.append(subject.suggest())
    cold = clocks() - start
    times = []
    for _ in range(pairs):
        handle, params = waiting.pop(0)
        value = function(params) + NOISE * rng.normal()
        start = clocks()
        subject.observe(handle, value)
        waiting.append(subject.suggest())
        times.append(clocks() - start)
    warm = np.mean(times, axis=0) if times else cold
    return {
        "optimizer": optimizer,
        "n": n,
        "cold_ms": round(cold[0], 2),
        "cold_cpu_ms": round(cold[1], 2),
        "warm_ms": round(warm[0], 3),
        "warm_cpu_ms": round(warm[1], 3),
        "pairs": pairs,
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "versions": versions(optimizer),
    }


def in_process(optimizer, threads, space, n, pairs):
    """Measure an optimizer in a new process with this number of threads."""
    command = [sys.executable, __file__, "--one", optimizer, "--space", space, "--sizes", str(n), "--pairs", str(pairs)]
    environment = os.environ | dict.fromkeys(VARIABLES, str(threads))
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout) | {"threads": threads}


def copy_memory():
    """Copy arrays of 64 MB back and forth. The process ends when its standard input is closed, for example because the
    process that started it was killed."""
    threading.Thread(target=lambda: os._exit(len(sys.stdin.read())), daemon=True).start()
    a, b = np.ones(2**23), np.ones(2**23)
    while True:
        np.copyto(a, b)
        np.copyto(b, a)


@contextmanager
def neighbour():
    """Run `copy_memory` in another process."""
    process = subprocess.Popen([sys.executable, __file__, "--one", "neighbour"], stdin=subprocess.PIPE)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def commit():
    """Return the commit of this repository, and whether files were modified."""

    def git(*arguments):
        return subprocess.check_output(["git", *arguments], cwd=Path(__file__).parent, text=True).strip()

    return git("rev-parse", "--short", "HEAD") + (" (modified)" if git("status", "--porcelain") else "")


def medians(runs, optimizer, n, name):
    """Return the median of a time for each number of threads; the list is empty without runs."""
    chosen = [run for run in runs if (run["optimizer"], run["n"]) == (optimizer, n)]
    return [median(run[name] for run in chosen if run["threads"] == threads) for threads in THREADS if chosen]


def text(times, digits=1):
    return " / ".join(f"{each:.{digits}f}" for each in times) or "–"


def table(runs):
    """Return a Markdown table with one line for each number of observations."""
    peers = [peer for peer in PEERS if any(run["optimizer"] == peer for run in runs)]
    heads = ["observations", "cold", "CPU", "warm", "CPU", *map(PEERS.get, peers), "cold ×", "worse", "warm ×", "worse"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for n in sorted({run["n"] for run in runs}):
        own = {name: medians(runs, "belated", n, name) for name in TIMES}
        others = [medians(runs, peer, n, "cold_ms") for peer in peers]
        cells = [str(n), *map(text, own.values()), *(text(times, 0) for times in others)]
        for name in ("cold_ms", "warm_ms"):
            pairs = zip(own[name], *filter(None, others), strict=True)
            ratios = [min(prices) / mine for mine, *prices in pairs if prices]
            cells += [text(ratios), text(sorted(ratios)[:1])]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--space", choices=list(SPACES), default="hartmann6")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="numbers of observations")
    parser.add_argument("--pairs", type=int, default=100, help="suggest / observe pairs of a warm run")
    parser.add_argument("--repeats", type=int, default=3, help=f"runs of each up to {MOST_FOR_REPEATS} observations")
    parser.add_argument(
        "--peers", nargs="*", choices=list(PEERS), default=list(PEERS), help="optimizers to compare with"
    )
    parser.add_argument("--neighbour", action="store_true", help="copy memory in another process meanwhile")
    parser.add_argument("--out", help="file for the JSON")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one == "neighbour":
        copy_memory()
    if arguments.one:
        print(json.dumps(measure(arguments.one, SPACES[arguments.space], arguments.sizes[0], arguments.pairs)))
        return
    runs = []
    with neighbour() if arguments.neighbour else nullcontext():
        for n in arguments.sizes:
            optimizers = ["belated", *(arguments.peers if n <= MOST_FOR_PEERS else ())]
            for _ in range(arguments.repeats if n <= MOST_FOR_REPEATS else 1):
                for threads in THREADS:
                    for name in optimizers:
                        pairs = arguments.pairs if name == "belated" else 0
                        runs.append(in_process(name, threads, arguments.space, n, pairs))
                        print(runs[-1], file=sys.stderr)
    machine = f"{processor()}, {os.cpu_count()} processors"
    facts = {"commit": commit(), "machine": machine, "space": arguments.space, "neighbour": arguments.neighbour}
    load = ", next to a process that copies memory" if arguments.neighbour else ""
    print(f"Milliseconds of a suggestion with 1 / 2 threads, {arguments.space}, {OUT} trials pending{load}")
    print(f"Commit {facts['commit']}, {machine}\n\n{table(runs)}")
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(facts | {"runs": runs}, indent=1))


if __name__ == "__main__":
    main()
