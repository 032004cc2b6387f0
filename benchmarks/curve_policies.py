"""Policies that search a family of learning curves and stop trials early: runs, and a table of scores.

    python benchmarks/curve_policies.py run results.jsonl --families open --seeds 0:5
    python benchmarks/curve_policies.py table results.jsonl --families open

The rules of a run are in curves.py. Stopping rules see the running maximum of a curve if the declared value is the
highest value. The policies are:

``random``, ``bayes``
    `RandomSearch` and `BayesOpt` of this package, without reports.
``bayes-curves``
    `BayesOpt` with reports, without stopping.
``bayes-model``
    `BayesOpt` with ``stopping="model"``.
``bayes-time``
    ``bayes-model`` with ``acquisition=bl.LogEI(per="time")`` and the simulated durations, for ``--real-seconds``. Runs
    only if ``--policies`` names it.
``random-asha``, ``bayes-asha``
    `RandomSearch` and `BayesOpt` with reports and ``stopping=bl.ASHA()``.
``bayes-asha-observe``
    ``bayes-asha``, except that a stopped trial is observed with its last value, as if the curve were complete.
``bayes-asha-3``
    ``bayes-asha``, with the first rung at step 3.
``tpe``, ``tpe-median``, ``tpe-hyperband``
    Optuna's multivariate TPE, with the pruner that the name gives. Stopped trials are told to Optuna as pruned.
``smac``, ``dehb``, ``mobster``
    The optimizers in rivals.py. Each needs a separate environment, and runs only if ``--policies`` names it.

The columns ``ended`` and ``steps`` count the complete and stopped trials and their steps, in units of a whole training.
``winners`` are the trials whose whole curve exceeds the incumbent by two standard deviations of the noise.
"""

import argparse
import json
import math
import os
import sys
from itertools import product
from pathlib import Path

if __name__ == "__main__":
    for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BELATED_NUM_THREADS"):
        os.environ.setdefault(_name, "1")

import numpy as np
from curves import GROUPS, family, simulate_curves

import belated as bl


class Belated:
    """An optimizer of this package.

    With ``tell="observe"``, stopped trials are observed with their last values; with None, they have no values.
    """

    def __init__(self, optimizer, tell=None):
        self.optimizer, self.tell, self.trials, self.starts, self.now = optimizer, tell, [], [], 0.0
        optimizer.set_params(time=lambda: self.now)

    def ask(self):
        self.trials.append(self.optimizer.suggest())
        self.starts.append(self.now)
        return self.trials[-1].params

    def report(self, trial, step, value):
        if self.optimizer.curve is None:
            return False
        self.trials[trial].report(value, step)
        if not self.trials[trial].should_stop():
            return False
        if self.tell == "observe":
            known = [value for value in self.trials[trial].curve.values() if not math.isnan(value)]
            best = self.optimizer.curve.value == "best"
            self.trials[trial].observe(max(known) if best else known[-1])
        return True

    def end(self, trial, value):
        duration = self.now - self.starts[trial]
        if math.isnan(value):
            self.optimizer.fail(self.trials[trial], duration=duration)
        else:
            self.optimizer.observe(self.trials[trial], value, duration=duration)


class Optuna:
    """Optuna's TPE with one of its pruners."""

    def __init__(self, family, seed, pruner):
        import optuna
        from peers import OptunaTPE

        self.states = optuna.trial.TrialState
        self.peer = OptunaTPE(family.space, seed, '{"multivariate": true}')
        # Hyperband assigns trials to brackets by the name of the study.
        self.peer.study = optuna.create_study(
            study_name=f"{family.name}-{seed}", direction="maximize", sampler=self.peer.study.sampler, pruner=pruner
        )
        self.running_maximum = family.declared == "best"
        self.trials, self.highest = [], {}

    def ask(self):
        trial, params = self.peer.suggest()
        self.trials.append(trial)
        return params

    def report(self, trial, step, value):
        if self.running_maximum:
            value = self.highest[trial] = max(value, self.highest.get(trial, -math.inf))
        self.trials[trial].report(value, step)
        if not self.trials[trial].should_prune():
            return False
        self.peer.study.tell(self.trials[trial], state=self.states.PRUNED)
        return True

    def end(self, trial, value):
        if self.trials[trial].storage.get_trial(self.trials[trial]._trial_id).state.is_finished():
            return  # pruned at the last step
        if math.isnan(value):
            self.peer.fail(self.trials[trial])
        else:
            self.peer.observe(self.trials[trial], value)


def _optuna(pruner):
    def make(family, seed):
        import optuna

        pruners = {
            "none": optuna.pruners.NopPruner,
            "median": optuna.pruners.MedianPruner,
            "hyperband": lambda: optuna.pruners.HyperbandPruner(1, family.n_steps, 3),
        }
        return Optuna(family, seed, pruners[pruner]())

    return make


def _belated(optimizer, stopping=None, tell=None, reports=True, **arguments):
    def make(family, seed):
        curve = bl.Curve(family.n_steps, value=family.declared) if reports else None
        return Belated(optimizer(family.space, curve=curve, stopping=stopping, seed=seed, **arguments), tell)

    return make


def _rival(name, **options):
    def make(family, seed):
        import rivals

        return getattr(rivals, name)(family, seed, **options)

    return make


# : Name → function of the family and the seed that returns a policy.
POLICIES = {
    "random": _belated(bl.RandomSearch),
    "random-asha": _belated(bl.RandomSearch, bl.ASHA()),
    "bayes": _belated(bl.BayesOpt, reports=False),
    "bayes-curves": _belated(bl.BayesOpt),
    "bayes-model": _belated(bl.BayesOpt, bl.ModelStopping()),
    "bayes-asha": _belated(bl.BayesOpt, bl.ASHA()),
    "bayes-asha-observe": _belated(bl.BayesOpt, bl.ASHA(), "observe"),
    "bayes-asha-3": _belated(bl.BayesOpt, bl.ASHA(min_step=3)),
    "tpe": _optuna("none"),
    "tpe-median": _optuna("median"),
    "tpe-hyperband": _optuna("hyperband"),
}
DEFAULT = list(POLICIES)
POLICIES |= {
    "bayes-time": _belated(bl.BayesOpt, bl.ModelStopping(), acquisition=bl.LogEI(per="time")),
    "smac": _rival("SMAC"),
    "dehb": _rival("DEHB"),
    "mobster": _rival("MOBSTER"),
}


COLUMNS = ["score", "final", "trials", "complete", "ended", "steps", "winners", "winners_stopped", "seconds"]


def measure(policy, name, seed, real_seconds=False):
    """Return the record of one run."""
    of = family(name)
    run = simulate_curves(POLICIES[policy](of, seed), of, seed, real_seconds=real_seconds)
    return {
        "family": name,
        "policy": policy,
        "seed": seed,
        "real_seconds": real_seconds,
        "score": round(run.score, 4),
        "final": round(float(np.log10(np.clip(run.regret[-1], 1e-3, 10))), 4),
        "trials": len(run.trials),
        "complete": run.n_complete,
        "ended": len(run.ended()),
        "steps": sum(trial.n_steps for trial in run.ended()) / of.n_steps,
        "winners": len(run.winners(of.noise)),
        "winners_stopped": sum(trial.value is None for trial in run.winners(of.noise)),
        "seconds": round(run.seconds, 3),
    }


def read(path):
    lines = Path(path).read_text().splitlines() if Path(path).exists() else []
    records = map(json.loads, lines)
    return {(r["family"], r["policy"], r["seed"], r["real_seconds"]): r for r in records}


def run(arguments):
    """Make the runs that are not in the file yet."""
    done = read(arguments.results)
    with open(arguments.results, "a") as file:
        for seed, name, policy in product(arguments.seeds, arguments.families, arguments.policies):
            if (name, policy, seed, arguments.real_seconds) not in done:
                file.write(json.dumps(measure(policy, name, seed, arguments.real_seconds)) + "\n")
                file.flush()


def table(arguments):
    """Print the mean score of each policy and its standard error, and the mean numbers of trials."""
    done = read(arguments.results)
    print(f"{'':24}" + "".join(f"{policy:>20}" for policy in arguments.policies))
    means = {}
    for name in arguments.families:
        line = f"{name:24}"
        for policy in arguments.policies:
            keys = [(name, policy, seed, arguments.real_seconds) for seed in arguments.seeds]
            x = np.array([done[key][arguments.column] for key in keys if key in done])
            if len(x):
                means.setdefault(policy, []).append(x.mean())
            error = x.std(ddof=1) / math.sqrt(len(x)) if len(x) > 1 else math.nan
            line += f"{x.mean():13.2f} ± {error:.2f}" if len(x) else f"{'':20}"
        print(line)
    means = [np.mean(means.get(policy, [math.nan])) for policy in arguments.policies]
    print(f"{'mean':24}" + "".join(f"{mean:13.2f}       " for mean in means))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "table"])
    parser.add_argument("results")
    parser.add_argument("--families", nargs="+", default=["open"], help="names of families or groups")
    parser.add_argument("--policies", nargs="+", default=DEFAULT, choices=POLICIES)
    parser.add_argument("--seeds", default="0:5")
    parser.add_argument("--real-seconds", action="store_true")
    parser.add_argument("--column", default="score", choices=COLUMNS)
    arguments = parser.parse_args(argv)
    first, last = map(int, arguments.seeds.split(":"))
    arguments.seeds = range(first, last)
    arguments.families = [name for each in arguments.families for name in GROUPS.get(each, [each])]
    (run if arguments.command == "run" else table)(arguments)


if __name__ == "__main__":
    sys.exit(main())
