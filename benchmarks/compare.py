"""Compares optimizers with late results in simulated time.

    python benchmarks/compare.py run --optimizers belated botorch random --seeds 0:20 --out results.jsonl
    python benchmarks/compare.py table results.jsonl
    python benchmarks/compare.py draw results.jsonl --out figure.png

Runs with the same seed are compared in pairs: the k-th evaluation has the same delay and the same noise for every
optimizer. Regret is the distance of the best value from the optimum. The best value is the best noiseless value of f
among the trials whose results have arrived. Regret is recorded from the first result on: after each completed
evaluation in settings with workers, and after each suggestion in other settings. The score of a run is the mean of the
logarithm (base 10) of the recorded regrets. Lower is better.

In settings with a horizon, every optimizer gets the same simulated time. Regret is then recorded at 100 equally spaced
times, and is 1 before the first result.

Runs on tables of real tuning experiments follow the rules in tables.py. The folder data/ contains the runs of the other
optimizers on these tables, so only the runs of belated have to be made:

    python benchmarks/compare.py run --optimizers belated --settings tables --seeds 0:20 --out results.jsonl
    python benchmarks/compare.py table results.jsonl --settings tables --against optuna-gp --all-seeds

The groups "tables-time" and "ours-time" contain the same tables with a horizon. The group "durations" contains settings
with a horizon and simulated durations (durations.py).

The group "dimension" contains the problems with many dimensions (dimension.py). On these problems, the initial design
of BoTorch has 20 points instead of 2d:

    python benchmarks/compare.py run --settings dimension --seeds 0:5 --out results.jsonl --optimizers \
        belated cma random optuna-gp 'botorch=botorch:{"initial": 20}'

The group "laboratory" contains tables of laboratory experiments (laboratory_tables.py).

No default was chosen on the groups "unseen" and "ours-unseen", and no optimizer had been run on them before commit
0b9dd080. data/unseen.jsonl.gz has the runs with the defaults of this commit: 20 seeds of belated, GPSampler, TPE and
random search, and fewer of BoTorch. held_out.py makes the tables of the page of comparisons from them:

    python benchmarks/compare.py table benchmarks/data/unseen.jsonl.gz --settings unseen ours-unseen --all-seeds
"""

import argparse
import gzip
import json
import math
import multiprocessing
import os
import sys
import time
import traceback
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace

if __name__ == "__main__":
    # Linear algebra uses one thread in each process, which is fastest on a busy machine. At import, numpy reads this
    # environment variable.
    for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BELATED_NUM_THREADS"):
        os.environ.setdefault(_name, "1")

import dimension  # noqa: E402
import durations  # noqa: E402
import laboratory_peers  # noqa: E402
import laboratory_tables  # noqa: E402
import numpy as np  # noqa: E402
import peers  # noqa: E402
import problems  # noqa: E402
import sklearn_tables  # noqa: E402
import tables  # noqa: E402

from belated.simulate import simple_regret, simulate, simulate_workers  # noqa: E402

SETTINGS = {
    **problems.SETTINGS,
    **tables.SETTINGS,
    **tables.TIME,
    **sklearn_tables.SETTINGS,
    **sklearn_tables.TIME,
    **sklearn_tables.MOVED,
    **dimension.SETTINGS,
    **durations.SETTINGS,
    **laboratory_tables.SETTINGS,
}
GROUPS = {
    "listed": problems.LISTED,
    "held-out": problems.HELD_OUT,
    "aside": problems.ASIDE,
    "unseen": problems.UNSEEN,
    **tables.GROUPS,
    **sklearn_tables.GROUPS,
    **dimension.GROUPS,
    **durations.GROUPS,
    **laboratory_tables.GROUPS,
}
N_READINGS = 100  # the number of times at which regret is recorded in a setting with a horizon


class Measured:
    """Wraps an optimizer of `peers` for simulations: passes the outcomes of the setting to the optimizer, and measures
    the real time of each call.

    ``outcome(k, params, value)`` is the observation of the k-th trial, whose value of f is ``value``; NaN is a failure.
    ``duration(params, start)`` is the simulated duration of an evaluation that starts at this time. If ``duration`` is
    None, the optimizer is not told durations.
    """

    def __init__(self, peer, outcome, n, duration=None):
        self.peer, self.outcome, self.duration = peer, outcome, duration
        self.n_trials, self.seconds = 0, np.zeros(n)
        # The simulated time (of the last result), and the duration of each trial.
        self.now, self.durations = 0.0, []

    @property
    def clock(self):
        """The optimizer's clock, which `simulate_workers` sets to the simulated time if the clock is "seconds"."""
        return getattr(self.peer, "clock", "iterations")

    def set_params(self, **settings):
        self.peer.set_params(**settings)

    def suggest(self):
        begin = time.perf_counter()
        handle, params = self.peer.suggest()
        number, self.n_trials = self.n_trials, self.n_trials + 1
        self.seconds[number] += time.perf_counter() - begin
        return SimpleNamespace(number=number, handle=handle, params=params, x=None, start=self.now)

    def time(self, params):
        """Return the duration of the last suggested trial, which starts now."""
        self.durations.append(self.duration(params, self.now))
        return self.durations[-1]

    def observe(self, trial, value):
        observed = float(self.outcome(trial.number, trial.params, value))
        told = {}
        if self.duration is not None:
            told["duration"] = self.durations[trial.number]
            self.now = trial.start + told["duration"]
        begin = time.perf_counter()
        if math.isnan(observed):
            self.peer.fail(trial.handle, **told)
        else:
            self.peer.observe(trial.handle, observed, **told)
        self.seconds[trial.number] += time.perf_counter() - begin


def run_one(optimizer, function, setting, seed):
    """Run an optimizer in a setting.

    Returns
    -------
    History
        ``seconds`` is the real time of each trial's `suggest` and `observe`.
    """
    timed = setting.horizon is not None
    # If a run ends after a number of completed evaluations, some trials are still running, so more trials are started
    # than completed.
    n = setting.n_evaluations + (0 if timed else max(0, setting.workers - 1))
    _, noise_stream = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2))
    outcome = setting.outcomes(function, noise_stream, n)
    duration = getattr(setting, "law_at", lambda params, start: setting.law(params)) if timed else None
    measured = Measured(optimizer, outcome, n, duration)
    if setting.workers:
        limits = {"duration": setting.horizon, "n_trials": n}
        times = measured.time if timed else setting.law
        history = simulate_workers(measured, function, workers=setting.workers, times=times, **limits, seed=seed)
    else:
        history = simulate(measured, function, n, setting.law, seed=seed)
    trials = zip(range(n), history.points, history.values, strict=False)
    observed = np.array([outcome(*trial) for trial in trials])
    return replace(history, observed=observed, seconds=measured.seconds[: len(history)])


def readings(setting, arrivals):
    """Return the times at which regret is recorded. Without a horizon, regret is recorded from the first result on."""
    if setting.horizon is not None:
        return setting.horizon * np.arange(1, N_READINGS + 1) / N_READINGS
    if setting.workers:
        return np.sort(arrivals)[: setting.n_evaluations]
    steps = np.arange(setting.n_evaluations + 1, dtype=float)
    return steps[steps >= arrivals.min()]


def measure(text, name, seed):
    """Return the record of one run."""
    setting = SETTINGS[name]
    if name in laboratory_tables.SETTINGS:
        return measure_weeks(text, name, seed)
    function = setting.problem(seed)
    history = run_one(peers.make(text, function.space, seed), function, setting, seed)
    at = readings(setting, history.arrivals)
    regret = setting.regret(function, simple_regret(history, function.optimum, at=at))
    regret = np.where(at < history.arrivals.min(), 1.0, regret)
    score = log10(regret, setting.smallest)
    results = int(np.sum(history.arrivals <= at[-1]))
    return record(text, name, seed, score, history.seconds, results, regret, peers.versions(text))


def measure_weeks(text, name, seed):
    """Return the record of one run on a laboratory table."""
    setting, kinds = SETTINGS[name], laboratory_peers.PEERS
    run = setting.run(lambda table, seed: peers.make(text, table, seed, kinds), seed)
    score = log10(run.regret, setting.smallest)
    results, versions = laboratory_tables.BATCH * len(score), peers.versions(text, kinds)
    return record(text, name, seed, score, run.seconds, results, run.regret, versions)


def record(text, name, seed, score, seconds, results, regret, versions):
    return {
        "setting": name,
        "optimizer": peers.label(text),
        "seed": seed,
        "score": round(float(score.mean()), 6),
        "final": round(float(score[-1]), 6),
        "seconds": round(float(seconds.mean()), 6),
        "results": results,
        "regret": [float(f"{r:.6g}") for r in regret],  # the last readings
        "spec": text,
        "versions": versions,
    }


def log10(regret, smallest):
    return np.log10(np.maximum(regret, smallest))


def run(arguments):
    """Make the runs that are not in the file yet."""
    return run_missing(arguments, peers.OPTIMIZERS | laboratory_peers.PEERS, measure)


def run_missing(arguments, kinds, measure):
    """Make the runs that are not in the file yet. All settings and optimizers are run with one seed before any of them
    is run with the next seed. ``measure(text, name, seed)`` returns the record of a run."""
    for text in arguments.optimizers:
        peers.parse(text, kinds)
    tasks = [
        (text, name, seed, arguments.out)
        for seed, name, text in product(arguments.seeds, arguments.settings, arguments.optimizers)
    ]
    done = {key(record) for record in read([arguments.out])}
    tasks = [task for task in tasks if (task[1], peers.label(task[0]), task[2]) not in done]
    make = partial(execute, measure)
    if arguments.jobs == 1:
        return report(map(make, tasks), len(tasks))
    with multiprocessing.get_context("spawn").Pool(arguments.jobs) as pool:
        return report(pool.imap_unordered(make, tasks), len(tasks))


def execute(measure, task):
    """Make one run and append its record to the file, unless another process has already made the run. Return None or
    the error."""
    text, name, seed, out = task
    try:
        if (name, peers.label(text), seed) not in {key(record) for record in read([out])}:
            append(out, measure(text, name, seed))
    except peers.Unavailable as error:
        return f"{name}, seed {seed}: {error}"
    except Exception:
        return f"{text} in {name}, seed {seed}:\n{traceback.format_exc()}"
    return None


def report(outcomes, n):
    """Print the progress of the runs and the failed runs; return the number of failed runs."""
    failed, start = 0, time.monotonic()
    for i, problem in enumerate(outcomes, start=1):
        if problem:
            failed += 1
            print(problem, file=sys.stderr, flush=True)
        elapsed = (time.monotonic() - start) / 60
        left = elapsed / i * (n - i)
        print(f"{i} of {n} runs, {elapsed:.1f} min, about {left:.1f} to go", file=sys.stderr, flush=True)
    return failed


def append(path, record):
    """Append a line to a file in a single write. Several processes can therefore share the file."""
    descriptor = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)
    try:
        os.write(descriptor, (json.dumps(record) + "\n").encode())
    finally:
        os.close(descriptor)


def read(paths):
    """Return the records in the files; files that do not exist are skipped. Files that end in .gz are compressed.

    In the other files, a last line without a line break is skipped, because another process may be writing it.
    """
    lines = []
    for path in map(Path, paths):
        if path.exists():
            content = path.read_bytes()
            whole = gzip.decompress(content) if path.suffix == ".gz" else content[: content.rfind(b"\n") + 1]
            lines += whole.decode().splitlines()
    return [json.loads(line) for line in lines]


def key(record):
    return record["setting"], record["optimizer"], record["seed"]


def collect(arguments):
    """Return a dict setting → optimizer → records. The records are for all seeds, or only for the seeds with which
    every shown optimizer was run."""
    records = read([tables.PEERS, tables.TIME_PEERS, *arguments.results])
    records = {key(record): record for record in records if record["setting"] in arguments.settings}
    optimizers = arguments.optimizers or list(dict.fromkeys(record["optimizer"] for record in records.values()))
    shown = {}
    for name in arguments.settings:
        seeds = {o: {s for n, other, s in records if (n, other) == (name, o)} for o in optimizers}
        seeds = {o: found for o, found in seeds.items() if found}
        if seeds and not arguments.all_seeds:
            seeds = dict.fromkeys(seeds, set.intersection(*seeds.values()))
        if any(seeds.values()):
            shown[name] = {o: [records[name, o, s] for s in sorted(found)] for o, found in seeds.items()}
    return shown, optimizers


def table(arguments):
    """Return a Markdown table: mean ± standard error, and the paired difference from the reference optimizer."""
    shown, optimizers = collect(arguments)
    print(f"Mean {arguments.measure} (log10 regret, lower is better) ± its standard error; in brackets the paired")
    print(f"difference from {arguments.against} ± its standard error.\n")
    print_row("setting", "runs", *optimizers)
    print_row(*["---"] * (2 + len(optimizers)))
    complete = []
    for name, by_optimizer in shown.items():
        by_seed = {o: {r["seed"]: r[arguments.measure] for r in records} for o, records in by_optimizer.items()}
        scores = {o: np.array(list(found.values())) for o, found in by_seed.items()}
        against = by_seed.get(arguments.against, {})
        pairs = {
            o: [found[seed] - against[seed] for seed in found if seed in against]
            for o, found in by_seed.items()
            if o != arguments.against
        }
        differences = {o: difference for o, difference in pairs.items() if difference}
        print_row(
            name,
            "/".join(map(str, dict.fromkeys(len(found) for found in scores.values()))),
            *(cell(mean_stderr(scores[o]), o in differences and mean_stderr(differences[o])) if o in scores else "–"
              for o in optimizers),
        )  # fmt: skip
        if set(scores) == set(optimizers):
            complete.append((scores, differences))
    if len(complete) > 1:
        cells = []
        for o in optimizers:
            score = pooled([mean_stderr(scores[o]) for scores, _ in complete])
            paired = [mean_stderr(differences[o]) for _, differences in complete if o in differences]
            cells.append(cell(score, len(paired) == len(complete) and pooled(paired)))
        print_row(f"mean of {len(complete)} settings", "", *cells)
    seconds = {o: [r["seconds"] for by in shown.values() for r in by.get(o, [])] for o in optimizers}
    print_row("seconds per suggestion", "", *(f"{np.mean(s):.4f}" if s else "–" for s in seconds.values()))


def print_row(*cells):
    print("| " + " | ".join(map(str, cells)) + " |")


def cell(score, difference):
    text = "{:.3f} ± {:.3f}".format(*score)
    return text + " ({:+.3f} ± {:.3f})".format(*difference) if difference else text


def mean_stderr(sample):
    """Return the mean over the first axis, and the standard error of the mean."""
    sample = np.asarray(sample, dtype=float)
    if len(sample) == 1:
        return sample[0], np.full_like(sample[0], math.nan)
    return sample.mean(axis=0), sample.std(axis=0, ddof=1) / math.sqrt(len(sample))


def pooled(estimates):
    """Return the mean of independent estimates, and the standard error of this mean. Each estimate is a pair (mean,
    standard error)."""
    means, errors = np.array(estimates).T
    return means.mean(), math.sqrt(np.sum(errors**2)) / len(errors)


def draw(arguments):
    """Draw the mean of log10 regret against time, one panel for each setting."""
    from belated import plotting

    shown, _ = collect(arguments)
    columns = min(3, len(shown))
    figure, axes = plotting.grid(math.ceil(len(shown) / columns), columns)
    for ax, (name, by_optimizer) in zip(axes, shown.items(), strict=False):
        n, xlabel = axis(SETTINGS[name])
        smallest = SETTINGS[name].smallest
        curves = [
            (o, *mean_stderr([padded(r["regret"], n, smallest) for r in records]))
            for o, records in by_optimizer.items()
        ]
        plotting.plot_curves(
            curves,
            ax,
            x=np.arange(1, n + 1),
            title=name,
            xlabel=xlabel,
            ylabel="log10 regret",
        )
    plotting.save(figure, arguments.out)


def axis(setting):
    """Return the number of readings of a run, and the label of their axis."""
    if setting.horizon is not None:
        return N_READINGS, "Time (percent of the horizon)"
    if isinstance(setting, laboratory_tables.LaboratorySetting):
        return setting.n_evaluations, "Weeks with results"
    return setting.n_evaluations, f"Evaluations by {setting.workers} workers" if setting.workers else "Suggestions"


def padded(regret, n, smallest):
    """Return log10 of the regret at n recorded times; the entries before the first result are NaN."""
    return np.concatenate([np.full(n - len(regret), math.nan), log10(np.array(regret), smallest)])


def seed_range(text):
    """Return the seeds given by a text such as ``0:20`` or ``7``."""
    first, _, last = text.partition(":")
    return range(int(first), int(last) if last else int(first) + 1)


def setting_names(given):
    names = [name for each in given for name in GROUPS.get(each, [each])]
    unknown = [name for name in names if name not in SETTINGS]
    if unknown:
        raise SystemExit(f"unknown settings {unknown}: pass some of {[*GROUPS, *SETTINGS]}")
    return list(dict.fromkeys(names))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    runner = commands.add_parser("run", help="make the missing runs, and append a JSON line for each")
    runner.set_defaults(command=run)
    runner.add_argument("--optimizers", nargs="+", required=True, help="kind, kind:settings or label=kind:settings")
    runner.add_argument("--seeds", type=seed_range, default="0:20")
    runner.add_argument("--out", default="results.jsonl")
    runner.add_argument("--jobs", type=int, default=1, help="processes")
    runner.add_argument("--settings", nargs="+", default=["listed"], help=f"names, or {', '.join(GROUPS)}")
    viewers = {"table": (table, "markdown"), "draw": (draw, "regret curves")}
    for name, (command, text) in viewers.items():
        viewer = commands.add_parser(name, help=text)
        viewer.set_defaults(command=command)
        viewer.add_argument("results", nargs="+", help="files written by run")
        viewer.add_argument("--optimizers", nargs="+", help="labels, in the order to show")
        viewer.add_argument("--settings", nargs="+", default=["listed", "held-out"])
        viewer.add_argument("--all-seeds", action="store_true", help="also seeds that another optimizer lacks")
        if command is table:
            viewer.add_argument("--measure", choices=["score", "final"], default="score")
            viewer.add_argument("--against", default="botorch")
        else:
            viewer.add_argument("--out", default="compare.png")
    arguments = parser.parse_args(argv)
    arguments.settings = setting_names(arguments.settings)
    return arguments.command(arguments)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
