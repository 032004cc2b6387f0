"""Where trials fail: how often suggestions do, and what that costs in regret; prints JSON.

*failing*: a part of the box that is 30 % of it, beside the best point, fails. Failures are counted among the trials
after the first 40; regret is that of the best value after all of them, where failed trials have a model of their own
and where they count as worse than the worst value. *diverging*: a corner that is 10 % of the box is reported as failed,
or as a value of 1e3, 1e6 or 1e12, or is as good as the rest ("none"). Everything is minimised, one trial after another,
and paired by seed; regrets are geometric means, their ratios come with a factor of one standard error.
"""

import argparse
import json
import math
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import belated as bl
from belated import functions

# Regret is not told apart below.
LEAST_REGRET = 1e-6
DIVERGING = {"none": None, "fail": math.nan, "1e3": 1e3, "1e6": 1e6, "1e12": 1e12}


def corner(share):
    """Whether the last two coordinates of a point of the unit cube are both large: a corner that is this part of it."""
    bound = 2 - math.sqrt(2 * share)
    return lambda u: u[-1] + u[-2] > bound


def disc(u):
    """A disc between two of the best points of Branin, 30 % of the square with what is cut off."""
    return math.hypot(u[0] - 0.75, u[1] - 0.45) < 0.3183


PROBLEMS = {
    "branin, corner": (functions.BRANIN, corner),
    "branin, disc": (functions.BRANIN, lambda share: disc),
    "hartmann6, corner": (functions.HARTMANN6, corner),
}


def unit(function, params):
    """The point in the unit cube."""
    return [(params[name] - its.low) / (its.high - its.low) for name, its in function.space.items()]


def run(function, bad, reported, seed, n, failures):
    """The trials of one run as (whether it is in the bad part, regret); `reported` is what is observed there.

    None: the value of the function; NaN: a failure.
    """
    opt = bl.BayesOpt(function.space, acquisition=bl.LogEI(failures=failures), direction="minimize", seed=seed)
    trials = []
    for _ in range(n):
        trial = opt.suggest()
        is_bad = bad(unit(function, trial.params))
        value = function.optimum - function(trial.params)
        if is_bad and reported is not None:
            trials.append((True, math.inf))
            trial.fail() if math.isnan(reported) else trial.observe(reported)
        else:
            trials.append((is_bad, value))
            trial.observe(value)
    return trials


def log_regret(trials):
    return math.log10(max(min(regret for _, regret in trials), LEAST_REGRET))


def share_of(function, bad, n=20_000):
    """The measured share of the box that is bad."""
    return float(np.mean([bad(u) for u in np.random.default_rng(0).random((n, len(function.space)))]))


def ratio(logs, reference):
    """Of geometric means, and the factor of one standard error."""
    difference = np.array(logs) - np.array(reference)
    error = difference.std(ddof=1) / math.sqrt(len(difference))
    return {"ratio": round(10 ** difference.mean(), 3), "factor_of_standard_error": round(10**error, 3)}


def failing(name, seeds, first, n):
    function, part = PROBLEMS[name]
    bad = part(0.3)
    logs, shares = {}, {}
    for failures in ("model", "impute"):
        runs = [run(function, bad, math.nan, seed, n, failures) for seed in range(seeds)]
        logs[failures] = [log_regret(trials) for trials in runs]
        later = [np.mean([is_bad for is_bad, _ in trials[first:]]) for trials in runs]
        shares[failures] = {
            "failed": round(float(np.mean(later)), 4),
            "standard_error": round(float(np.std(later, ddof=1)) / math.sqrt(seeds), 4),
        }
    return {
        "share_of_the_box": round(share_of(function, bad), 4),
        "after_the_first": first,
        "shares": shares,
        "regret": {failures: float(f"{10 ** np.mean(each):.3g}") for failures, each in logs.items()},
        "model_to_impute": ratio(logs["model"], logs["impute"]),
    }


def diverging(name, seeds, n):
    function, part = PROBLEMS[name]
    bad = part(0.1)
    logs = {}
    for as_what, reported in DIVERGING.items():
        logs[as_what] = [log_regret(run(function, bad, reported, seed, n, "model")) for seed in range(seeds)]
    return {
        "regret": {as_what: float(f"{10 ** np.mean(each):.3g}") for as_what, each in logs.items()},
        "to_none": {as_what: ratio(each, logs["none"]) for as_what, each in logs.items() if as_what != "none"},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=40, help="trials before failures are counted")
    parser.add_argument("--n", type=int, default=60, help="trials of a run")
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--parts", nargs="*", default=["failing", "diverging"], choices=["failing", "diverging"])
    arguments = parser.parse_args()
    result = {}
    if "failing" in arguments.parts:
        result["failing"] = {
            name: failing(name, arguments.seeds, arguments.first, arguments.n) for name in arguments.problems
        }
    if "diverging" in arguments.parts:
        # The disc holds no corner.
        corners = [name for name in arguments.problems if PROBLEMS[name][1] is corner]
        result["diverging"] = {name: diverging(name, arguments.seeds, arguments.n) for name in corners}
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
