"""Compares optimizers of two or three objectives, whose outcomes arrive at different times.

    python benchmarks/fronts.py run --peers belated belated-whole random optuna-tpe --seeds 0:20 --out fronts.jsonl
    python benchmarks/fronts.py show fronts.jsonl

The problems are in front_problems.py, and the optimizers in front_peers.py. A run has 100 trials; apart from the goals,
it has the same rules as a run of outcomes.py: eight trials are evaluated at once, each outcome arrives a Poisson delay
after the end of the evaluation, and it has normal noise of 0 or 5 % of its spread. The mean delay is 2, or 20 for the
first outcome and 2 for the others ("first"). Runs of the same problem with the same seed are compared in pairs.

A trial is complete when all its outcomes have arrived. After each completed trial, the hypervolume of the true values
of the complete trials is recorded, as a share of the best hypervolume, both for the reference of the problem. The score
of a run is the mean over the 100 trials of log10(1 − share + 0.001). The second score is 1 − share of the true values
of the ten points that the optimizer recommends after the run. An optimizer without recommendations gets ten of its
trials, chosen by their observed values: one after another, each with the most additional hypervolume. For both scores,
lower is better.

The problems that are held out run only with ``--held-out``. data/fronts.jsonl.gz contains runs of other optimizers,
without the recorded shares.
"""

import argparse
import os
import sys
from itertools import product

if __name__ == "__main__":
    # Linear algebra uses one thread in each process. At import, numpy reads this environment variable.
    for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BELATED_NUM_THREADS"):
        os.environ.setdefault(_name, "1")

import front_peers  # noqa: E402
import front_problems  # noqa: E402
import numpy as np  # noqa: E402
import outcomes  # noqa: E402
import peers  # noqa: E402
from compare import mean_stderr, print_row, run_missing, seed_range  # noqa: E402

SMALLEST = 1e-3  # is added to the missing share before the logarithm
SETTINGS = [f"{slow}/{noise}" for slow, noise in product(["none", "first"], ["0", "0.05"])]  # slow outcomes, noise
SCORES = {"score": "of log10 of the missing hypervolume", "missed": "hypervolume that the recommended points miss"}


def shares(problem, found, complete):
    """Return the hypervolume of the complete trials after each completed trial, as a share of the best."""
    at = {time: problem.volume({each: found[each][complete <= time] for each in found}) for time in np.unique(complete)}
    return np.array([at[time] for time in np.sort(complete)])


def measure(text, setting, seed):
    """Return the record of one run."""
    kinds = front_peers.PEERS
    name, slow, noise, *n_trials = setting.split("/")
    problem = (front_problems.OPEN | front_problems.HELD_OUT)[name]()
    problem.n_trials = int(n_trials[0]) if n_trials else front_problems.N_TRIALS
    optimizer = peers.make(text, problem, seed, kinds)
    found, complete, seconds = outcomes.run_one(optimizer, problem, slow, float(noise), seed)
    share = shares(problem, found, complete)
    chosen = [problem(params) for params in optimizer.recommend(front_peers.N_RECOMMENDED)]
    recommended = problem.volume({each: [values[each] for values in chosen] for each in problem.outcomes})
    return {
        "setting": setting,
        "optimizer": peers.label(text),
        "seed": seed,
        "score": round(float(np.log10(1 - share + SMALLEST).mean()), 6),
        "missed": round(1 - recommended, 6),
        "seconds": round(seconds, 3),
        "share": [float(f"{each:.6g}") for each in share],
        "spec": text,
        "versions": peers.versions(text, kinds),
    }


def run(arguments):
    """Make the runs that are not in the file yet."""
    return run_missing(arguments, front_peers.PEERS, measure)


def show(arguments):
    """Print the tables of outcomes.py, and for each score a table of the differences by problem."""
    outcomes.show(arguments, SCORES)
    by, labels = outcomes.grouped(arguments)
    against, others = arguments.against, [label for label in labels if label != arguments.against]
    for score, title in SCORES.items():
        found = {label: outcomes.by_problem(by, label, against, score) for label in others}
        print(f"\nMean {title}: {against} minus the other, ± two standard errors over paired seeds, all settings of a")
        print("problem together; better and worse: by two errors after Holm's correction over the problems\n")
        print_row("problem", *others)
        print_row(*["---"] * (1 + len(others)))
        verdicts = {label: _verdicts(paired) for label, paired in found.items()}
        for problem in dict.fromkeys(setting.split("/")[0] for setting in by):
            print_row(problem, *(_difference(found[each].get(problem), verdicts[each].get(problem)) for each in others))


def _verdicts(paired):
    """Return "better" or "worse" for the problems with a clear difference."""
    negative = {problem: [-value for value in sample] for problem, sample in paired.items()}
    return dict.fromkeys(outcomes.positive(negative), "better") | dict.fromkeys(outcomes.positive(paired), "worse")


def _difference(sample, verdict):
    if sample is None:
        return "–"
    mean, error = mean_stderr(sample)
    return f"{mean:+.3f} ± {2 * error:.3f}" + (f" {verdict}" if verdict else "")


def names(arguments):
    """Return the names of the chosen problems with their settings."""
    known = front_problems.HELD_OUT if arguments.held_out else front_problems.OPEN
    chosen = arguments.problems or list(known)
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise SystemExit(f"unknown problems {unknown}: pass some of {list(known)}; --held-out chooses the others")
    trials = "" if arguments.trials == front_problems.N_TRIALS else f"/{arguments.trials}"
    return [f"{name}/{setting}{trials}" for name, setting in product(chosen, arguments.settings)]


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    runner = commands.add_parser("run", help="make the missing runs, and append a JSON line for each")
    runner.set_defaults(command=run)
    runner.add_argument(
        "--peers", dest="optimizers", nargs="+", required=True, help="kind, kind:settings or label=kind:settings"
    )
    runner.add_argument("--seeds", type=seed_range, default="0:20")
    runner.add_argument("--out", default="fronts.jsonl")
    runner.add_argument("-j", "--jobs", type=int, default=1, help="processes")
    viewer = commands.add_parser("show", help="print the scores and the differences")
    viewer.set_defaults(command=show)
    viewer.add_argument("results", nargs="+", help="files written by run")
    viewer.add_argument("--peers", dest="optimizers", nargs="+", help="labels, in the order to show")
    viewer.add_argument("--against", default="belated", help="the optimizer that is compared with the others")
    for each in (runner, viewer):
        each.add_argument("--problems", nargs="+", help="names; default: all problems")
        each.add_argument("--held-out", action="store_true", help="choose the problems that are held out")
        each.add_argument("--settings", nargs="+", default=SETTINGS, choices=SETTINGS, help="slow outcomes/noise")
        each.add_argument("--trials", type=int, default=front_problems.N_TRIALS, help="number of trials of a run")
    arguments = parser.parse_args(argv)
    arguments.settings = names(arguments)
    return arguments.command(arguments)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
