"""Samplers of Optuna combined with Optuna's pruners: the best value after a number of trials.

    python benchmarks/pruners.py run results.jsonl --seeds 0:12 [--problems quadratic digits] \
        [--pruners median halving hyperband model none] [--samplers belated tpe random]
    python benchmarks/pruners.py table results.jsonl [--against tpe]

The problem *quadratic* has 30 trials that minimise the sum of (x_i - i)² over three parameters in [-5, 5]. At each of
ten steps, a trial reports this sum plus 1/(step + 1). The problem *digits* maximises the accuracy of an `SGDClassifier`
in 40 trials, on two thirds of scikit-learn's digits. A trial reports the accuracy after each of 27 epochs. Each line of
the results describes one run: the best value of a completed trial, and the total number of steps. The command `table`
prints medians over runs, and the mean difference, with its standard error, between each sampler and the sampler that
`--against` names, in runs with the same seed. If the difference is positive, the sampler is better than `--against`.
The pruner *model* is `BelatedPruner`; `BelatedSampler` then learns from the curves.
"""

import argparse
import json
import math
import os
import sys
import warnings
from functools import cache
from pathlib import Path

if __name__ == "__main__":
    for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BELATED_NUM_THREADS"):
        os.environ.setdefault(_name, "1")

import numpy as np
import optuna

import belated as bl

N_EPOCHS = 27


def quadratic(trial, seed):
    value = sum((trial.suggest_float(f"x{i}", -5.0, 5.0) - i) ** 2 for i in range(3))
    for step in range(10):
        trial.report(value + 1 / (step + 1), step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return value


@cache
def digits_data():
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    x, y = load_digits(return_X_y=True)
    return train_test_split(x / 16, y, test_size=2 / 3, random_state=0, stratify=y)


def digits(trial, seed):
    from sklearn.linear_model import SGDClassifier

    x, x_test, y, y_test = digits_data()
    model = SGDClassifier(
        loss=trial.suggest_categorical("loss", ["hinge", "log_loss", "modified_huber", "perceptron"]),
        penalty=trial.suggest_categorical("penalty", ["l2", "l1", "elasticnet"]),
        alpha=trial.suggest_float("alpha", 1e-7, 1e-1, log=True),
        learning_rate=trial.suggest_categorical("learning_rate", ["constant", "invscaling"]),
        eta0=trial.suggest_float("eta0", 1e-4, 10.0, log=True),
        random_state=seed,
    )
    for epoch in range(1, N_EPOCHS + 1):
        model.partial_fit(x, y, classes=np.arange(10))
        accuracy = model.score(x_test, y_test)
        trial.report(accuracy, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return accuracy


#: Each entry has the objective, the direction, and the numbers of trials and of steps.
PROBLEMS = {"quadratic": (quadratic, "minimize", 30, 10), "digits": (digits, "maximize", 40, N_EPOCHS)}
PRUNERS = {
    "median": optuna.pruners.MedianPruner,
    "halving": optuna.pruners.SuccessiveHalvingPruner,
    "hyperband": optuna.pruners.HyperbandPruner,
    "none": optuna.pruners.NopPruner,
    "model": None,
}


def pruner_of(name, n_steps):
    if name != "model":
        return PRUNERS[name]()
    from belated.integrations.optuna import BelatedPruner

    return BelatedPruner(curve=bl.Curve(n_steps))


def sampler(kind, seed, curve):
    if kind == "belated":
        from belated.integrations.optuna import BelatedSampler

        return BelatedSampler(seed=seed, warn_independent_sampling=False, curve=curve)
    return {"tpe": optuna.samplers.TPESampler, "random": optuna.samplers.RandomSampler}[kind](seed=seed)


def run(problem, pruner, kind, seed):
    """Return the record of one run."""
    objective, direction, n_trials, n_steps = PROBLEMS[problem]
    curve = bl.Curve(n_steps) if pruner == "model" else None
    # The pruner assigns trials to brackets by the study's name.
    study = optuna.create_study(
        study_name=f"{problem}-{seed}",
        direction=direction,
        sampler=sampler(kind, seed, curve),
        pruner=pruner_of(pruner, n_steps),
    )
    study.optimize(lambda trial: objective(trial, seed), n_trials)
    return {
        "problem": problem,
        "pruner": pruner,
        "sampler": kind,
        "seed": seed,
        "best": study.best_value,
        "n_steps": sum(len(trial.intermediate_values) for trial in study.trials),
        "n_pruned": sum(trial.state.name == "PRUNED" for trial in study.trials),
        "n_points": len({tuple(trial.params.values()) for trial in study.trials}),
    }


def read(path):
    lines = Path(path).read_text().splitlines() if Path(path).exists() else []
    return {(r["problem"], r["pruner"], r["sampler"], r["seed"]): r for r in map(json.loads, lines)}


def run_all(arguments):
    done = read(arguments.results)
    first, last = map(int, arguments.seeds.split(":"))
    with open(arguments.results, "a") as file:
        for problem in arguments.problems:
            for seed in range(first, last):
                for pruner in arguments.pruners:
                    for kind in arguments.samplers:
                        if (problem, pruner, kind, seed) not in done:
                            file.write(json.dumps(run(problem, pruner, kind, seed)) + "\n")
                            file.flush()


def table(arguments):
    done = read(arguments.results)
    print("problem    pruner     sampler   runs   median     mean   pruned  steps    difference ± standard error")
    for problem, pruner, kind in dict.fromkeys(key[:3] for key in done):
        sign = 1 if PROBLEMS[problem][1] == "maximize" else -1
        runs = {key[3]: each for key, each in done.items() if key[:3] == (problem, pruner, kind)}
        best = np.array([each["best"] for each in runs.values()])
        n_pruned, n_steps = (np.mean([each[name] for each in runs.values()]) for name in ("n_pruned", "n_steps"))
        others = [done.get((problem, pruner, arguments.against, seed)) for seed in runs]
        pairs = [sign * (b - other["best"]) for b, other in zip(best, others, strict=True) if other is not None]
        said = f"{problem:10} {pruner:10} {kind:8} {len(best):5} {np.median(best):8.4g} {np.mean(best):8.4g} "
        said += f"{n_pruned:8.1f} {n_steps:6.0f}"
        if kind != arguments.against and len(pairs) > 1:
            said += f"    {np.mean(pairs):+.4f} ± {np.std(pairs, ddof=1) / math.sqrt(len(pairs)):.4f}"
        print(said)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("run")
    command.add_argument("results")
    command.add_argument("--seeds", default="0:12")
    command.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    command.add_argument("--pruners", nargs="+", choices=PRUNERS, default=list(PRUNERS))
    command.add_argument("--samplers", nargs="+", choices=("belated", "tpe", "random"), default=["belated", "tpe"])
    command.set_defaults(call=run_all)
    command = commands.add_parser("table")
    command.add_argument("results")
    command.add_argument("--against", default="tpe")
    command.set_defaults(call=table)
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    arguments.call(arguments)


if __name__ == "__main__":
    sys.exit(main())
