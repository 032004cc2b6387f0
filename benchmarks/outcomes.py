"""Compares optimizers of one objective with bounds on other outcomes, which arrive at different times.

    python benchmarks/outcomes.py run --optimizers belated belated-whole random --seeds 0:20 --out outcomes.jsonl
    python benchmarks/outcomes.py run --optimizers botorch optuna-gp optuna-tpe --seeds 0:10 --out outcomes.jsonl
    python benchmarks/outcomes.py show outcomes.jsonl

The problems are in outcome_problems.py, and the optimizers in outcome_peers.py. A run has the following rules.

Time is counted in suggestions. Eight trials are evaluated at once: the evaluation of trial k ends before suggestion
k + 8. Each outcome arrives a Poisson delay after this end. The mean delay is 20 for slow outcomes, and 2 for other
outcomes. Either the bounded outcomes are slow ("bounds") or the objective is slow ("objective"). An observed outcome is
the true value plus normal noise, whose standard deviation is 0 or 5 % of the outcome's standard deviation over random
points. Runs of the same problem with the same seed are compared in pairs: the outcomes of the k-th trial have the same
delays and the same noise for every optimizer.

A trial is complete when all its outcomes have arrived. The regret is the distance of the best true value among the
complete trials that are feasible from the optimum, divided by the range of the objective over random points. The regret
is 1 before the first such trial; feasibility is judged by the true values. Regrets below 1e-4 count as 1e-4. The regret
is recorded at each time from the first complete trial to the last, which is after the last suggestion. The score of a
run is the mean of log10 of the recorded regrets. The second score is the time of the first feasible complete trial, or
the time after the last record if there is none. For both scores, lower is better.

The problems that are set aside run only with ``--aside``.
"""

import argparse
import os
import sys
import time
import zlib
from itertools import product

if __name__ == "__main__":
    # Linear algebra uses one thread in each process. At import, numpy reads this environment variable.
    for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BELATED_NUM_THREADS"):
        os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402
import outcome_peers  # noqa: E402
import outcome_problems  # noqa: E402
import peers  # noqa: E402
from compare import cell, key, log10, mean_stderr, pooled, print_row, read, run_missing, seed_range  # noqa: E402

AT_ONCE, FAST, SLOW = 8, 2, 20
FLOOR = 1e-4  # all regrets below this value are treated as equal
NOISE = [0.0, 0.05]
DELAYS = ["bounds", "objective"]  # which outcomes are slow
SCORES = {"score": "of log10 regret", "first": "time of the first feasible trial"}
TWO_ERRORS = 0.02275  # the probability that a normal variate exceeds two standard deviations


def draws(problem, seed, slow):
    """Return the arrival times (n, m), and the noise (n, m) in units of the spread, for n trials of m outcomes.

    Slow are the first outcome ("objective" or "first"), the others ("bounds"), or none ("none").
    """
    rng = np.random.default_rng(np.random.SeedSequence([seed, zlib.crc32(problem.name.encode())]))
    size = problem.n_trials, len(problem.outcomes)
    fast, late = rng.poisson(FAST, size), rng.poisson(SLOW, size)
    first = np.arange(size[1]) == 0
    delays = np.where(np.where(first, slow in ("objective", "first"), slow == "bounds"), late, fast)
    return AT_ONCE + np.arange(size[0])[:, None] + delays, rng.standard_normal(size)


def run_one(optimizer, problem, slow, noise, seed):
    """Run an optimizer of `outcome_peers`.

    Returns
    -------
    found : dict of str to array (n,)
        The true outcomes of the trials.
    complete : array (n,)
        The times at which the trials were complete.
    seconds : float
        The real time of the calls of the optimizer.
    """
    arrivals, errors = draws(problem, seed, slow)
    true, seconds = [], 0.0
    for now in range(int(arrivals.max()) + 1):
        begin = time.perf_counter()
        for number in np.flatnonzero((arrivals[: len(true)] == now).any(axis=1)).tolist():
            came = [(j, problem.outcomes[j]) for j in np.flatnonzero(arrivals[number] == now).tolist()]
            observed = {
                name: true[number][name] + noise * problem.spread[name] * float(errors[number, j]) for j, name in came
            }
            optimizer.tell(number, observed)
        params = optimizer.suggest() if now < problem.n_trials else None
        seconds += time.perf_counter() - begin
        if params is not None:
            true.append(problem(params))
    found = {name: np.array([each[name] for each in true]) for name in problem.outcomes}
    return found, arrivals.max(axis=1), seconds


def regrets(problem, found, complete):
    """Return the regret at each time from the first complete trial to the last."""
    of_trial = np.where(problem.feasible(found), problem.regret(found), 1.0)
    times = np.arange(complete.min(), complete.max() + 1)
    return np.array([of_trial[complete <= now].min() for now in times])


def first_feasible(problem, found, complete):
    """Return the time of the first feasible complete trial, or the time after the last record."""
    feasible = problem.feasible(found)
    return int(complete[feasible].min() if feasible.any() else complete.max() + 1)


def measure(text, setting, seed):
    """Return the record of one run."""
    kinds = outcome_peers.PEERS
    name, slow, noise = setting.split("/")
    problem = (outcome_problems.OPEN | outcome_problems.ASIDE)[name]()
    optimizer = peers.make(text, problem, seed, kinds)
    found, complete, seconds = run_one(optimizer, problem, slow, float(noise), seed)
    regret = regrets(problem, found, complete)
    scores = log10(regret, FLOOR)
    return {
        "setting": setting,
        "optimizer": peers.label(text),
        "seed": seed,
        "score": round(float(scores.mean()), 6),
        "final": round(float(scores[-1]), 6),
        "first": first_feasible(problem, found, complete),
        "feasible": int(problem.feasible(found).sum()),
        "seconds": round(seconds, 3),
        "regret": [float(f"{each:.6g}") for each in regret],
        "spec": text,
        "versions": peers.versions(text, kinds),
    }


def run(arguments):
    """Make the runs that are not in the file yet."""
    return run_missing(arguments, outcome_peers.PEERS, measure)


def grouped(arguments):
    """Return the records as a dict setting → optimizer → seed → record, and the labels of the optimizers to show."""
    records = {key(record): record for record in read(arguments.results)}.values()
    kept = [record for record in records if record["setting"] in arguments.settings]
    by = {}
    for record in kept:
        by.setdefault(record["setting"], {}).setdefault(record["optimizer"], {})[record["seed"]] = record
    return by, arguments.optimizers or list(dict.fromkeys(record["optimizer"] for record in kept))


def show(arguments, scores=SCORES):
    """Print a table for each score: a row for each setting, a column for each optimizer."""
    by, labels = grouped(arguments)
    against = arguments.against
    for score, title in scores.items():
        print(f"\nMean {title} ± its standard error; in brackets {against} minus this optimizer, paired by seed\n")
        print_row("setting", "seeds", *labels)
        print_row(*["---"] * (2 + len(labels)))
        for setting, runs in by.items():
            seeds = "/".join(map(str, dict.fromkeys(len(found) for found in runs.values())))
            print_row(setting, seeds, *(_cell(runs, label, against, score) for label in labels))
        print()
        for label in labels:
            if label != against:
                print(summary(by, label, against, score))
    print()
    for label in labels:
        seconds = [record["seconds"] for runs in by.values() for record in runs.get(label, {}).values()]
        print(f"{label}: {np.mean(seconds):.1f} s a run, {len(seconds)} runs")


def differences(runs, label, against, measure):
    """Return a dict of the differences ``against`` − ``label`` of a setting, by seed."""
    ours, theirs = runs.get(against, {}), runs.get(label, {})
    return {seed: ours[seed][measure] - theirs[seed][measure] for seed in sorted(ours.keys() & theirs.keys())}


def _cell(runs, label, against, measure):
    if label not in runs:
        return "–"
    paired = differences(runs, label, against, measure) if label != against else {}
    return cell(
        mean_stderr([record[measure] for record in runs[label].values()]), paired and mean_stderr(list(paired.values()))
    )


def by_problem(by, label, against, measure):
    """Return a dict of the differences ``against`` − ``label`` of each problem: a list of the differences by seed.

    The settings of a problem use the same random numbers, so they are averaged for each seed first. A seed counts if it
    has all settings of the problem. Problems with fewer than two seeds are left out.
    """
    problems = {}
    for setting, runs in by.items():
        problems.setdefault(setting.split("/")[0], []).append(differences(runs, label, against, measure))
    found = {}
    for problem, settings in problems.items():
        settings = [paired for paired in settings if paired]
        seeds = set.intersection(*map(set, settings)) if settings else set()
        if len(seeds) > 1:
            found[problem] = [float(np.mean([paired[seed] for paired in settings])) for seed in sorted(seeds)]
    return found


def overall(by, label, against, measure):
    """Return the mean over problems of the differences, with its standard error, and the number of problems."""
    estimates = [mean_stderr(paired) for paired in by_problem(by, label, against, measure).values()]
    return (*pooled(estimates), len(estimates)) if estimates else None


def worse(by, label, against, measure):
    """Return the settings in which ``against`` is worse than ``label`` by two errors after Holm's correction, as a dict
    setting → corrected probability of the one-sided t-test."""
    paired = {name: list(differences(runs, label, against, measure).values()) for name, runs in by.items()}
    return positive(paired)


def positive(samples):
    """Return the names whose samples have a positive mean by two errors after Holm's correction, as a dict name →
    corrected probability of the one-sided t-test. The argument is a dict name → sample."""
    from scipy import stats

    found = {}
    for name, sample in samples.items():
        if len(sample) > 1:
            mean, error = mean_stderr(sample)
            found[name] = float(stats.t.sf(mean / error, len(sample) - 1)) if error else float(mean <= 0)
    return {name: p for name, p in holm(found).items() if p < TWO_ERRORS}


def holm(probabilities):
    """Return Holm's corrected probabilities of a dict of probabilities."""
    corrected, largest = {}, 0.0
    for i, (name, p) in enumerate(sorted(probabilities.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, (len(probabilities) - i) * p))
        corrected[name] = largest
    return corrected


def summary(by, label, against, measure):
    found = overall(by, label, against, measure)
    if found is None:
        return f"{against} minus {label}: fewer than two seeds in common"
    mean, error, n = found
    places = worse(by, label, against, measure)
    names = ", ".join(f"{setting} (p = {p:.2g})" for setting, p in places.items()) or "nowhere"
    return (
        f"{against} minus {label}: {mean:+.3f} ± {error:.3f} over {n} problems, "
        f"two errors above: {mean + 2 * error:+.3f}; worse by two errors after Holm's correction: {names}"
    )


def settings(arguments):
    """Return the names of the chosen settings."""
    known = outcome_problems.ASIDE if arguments.aside else outcome_problems.OPEN
    chosen = arguments.problems or list(known)
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise SystemExit(f"unknown problems {unknown}: pass some of {list(known)}; --aside chooses those set aside")
    return [f"{name}/{slow}/{noise:g}" for name, slow, noise in product(chosen, arguments.slow, arguments.noise)]


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    runner = commands.add_parser("run", help="make the missing runs, and append a JSON line for each")
    runner.set_defaults(command=run)
    runner.add_argument("--optimizers", nargs="+", required=True, help="kind, kind:settings or label=kind:settings")
    runner.add_argument("--seeds", type=seed_range, default="0:20")
    runner.add_argument("--out", default="outcomes.jsonl")
    runner.add_argument("--jobs", type=int, default=1, help="processes")
    viewer = commands.add_parser("show", help="print the scores and the differences")
    viewer.set_defaults(command=show)
    viewer.add_argument("results", nargs="+", help="files written by run")
    viewer.add_argument("--optimizers", nargs="+", help="labels, in the order to show")
    viewer.add_argument("--against", default="belated", help="the optimizer that is compared with the others")
    for each in (runner, viewer):
        each.add_argument("--problems", nargs="+", help="names; default: all problems")
        each.add_argument("--aside", action="store_true", help="choose the problems that are set aside")
        each.add_argument("--slow", nargs="+", default=DELAYS, choices=DELAYS, help="which outcomes are slow")
        each.add_argument("--noise", nargs="+", type=float, default=NOISE)
    arguments = parser.parse_args(argv)
    arguments.settings = settings(arguments)
    return arguments.command(arguments)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
