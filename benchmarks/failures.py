"""The share of failed trials and the regret, for functions whose trials may fail; prints JSON.

In the case *failing*, trials fail in a region that covers 30 % of the box and is next to the best point. The figures
are the share of failures after the first 40 trials, and the regret of the best value after all trials. In the case
*diverging*, trials in a corner that covers 10 % of the box fail, or have a value of 1e3, 1e6 or 1e12. In the variant
"none", trials in the corner have the usual values. All functions are minimised with one trial at a time. Runs are
paired by seed. Regrets are geometric means over seeds. A ratio of regrets is printed with the factor that corresponds
to one standard error.

In the case *border*, trials of a quadratic function fail in a half-plane, a slanted half-plane or a disc. The failing
region is next to the optimum or contains it. The figures are the share of failures among trials 61 to 120, and the
regret relative to the best point where trials succeed. In the case *accidents*, trials of this function fail by chance
with a probability of 5 or 20 %, and 4 trials are in flight. The figure is the median of log10 of the regret at the
recommended point. A run with failures is continued until it has as many successes as the run without failures. The
largest permitted figure with failures is the figure without failures, plus 1, plus two standard errors of the paired
differences.

The cases *anywhere* and *regions* run only if they are named. In the case *anywhere*, failures do not depend on the
point. Each run is continued until it has 30 successes, with 1 or 8 trials in flight. Which of the ended trials fail is
drawn beforehand: at a constant rate, at a rate that alternates between blocks of trials, or in series. The figures are
the mean difference of log10 of the regret, with its standard error, to the same run where `abandon` is called in place
of `fail`, and to random search. In the case *regions*, trials fail in 50, 80 or 95 % of the box, alone or with 30 % of
accidents elsewhere. The figure is the share of failures after the first 20 of 60 trials. To compare two versions, run
this file once with each version in PYTHONPATH.
"""

import argparse
import itertools
import json
import math
import random
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import belated as bl
from belated import functions

# All regrets below this value are treated as equal.
LEAST_REGRET = 1e-6
DIVERGING = {"none": None, "fail": math.nan, "1e3": 1e3, "1e6": 1e6, "1e12": 1e12}


def corner(share):
    """Return a predicate that is true in the corner of the unit cube where the last two coordinates are large; `share`
    is the volume of the corner."""
    bound = 2 - math.sqrt(2 * share)
    return lambda u: u[-1] + u[-2] > bound


def disc(u):
    """Return whether a point is in a disc between two minima of Branin; the disc covers 30 % of the square."""
    return math.hypot(u[0] - 0.75, u[1] - 0.45) < 0.3183


PROBLEMS = {
    "branin, corner": (functions.BRANIN, corner),
    "branin, disc": (functions.BRANIN, lambda share: disc),
    "hartmann6, corner": (functions.HARTMANN6, corner),
}


def unit(function, params):
    """Return the point in the unit cube."""
    return [(params[name] - its.low) / (its.high - its.low) for name, its in function.space.items()]


def run(function, bad, reported, seed, n):
    """For each trial of a run, return whether the trial is in the bad region, and the regret of the trial. Trials in
    the bad region are observed with the value `reported`, or with the value of the function if `reported` is None; if
    `reported` is NaN, they fail.
    """
    opt = bl.BayesOpt(function.space, direction="minimize", seed=seed)
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
    """Return the share of the box that is in the bad region, estimated from random points."""
    return float(np.mean([bad(u) for u in np.random.default_rng(0).random((n, len(function.space)))]))


def ratio(logs, reference):
    """Return the ratio of the geometric means of two samples, and the factor that corresponds to one standard error."""
    difference = np.array(logs) - np.array(reference)
    error = difference.std(ddof=1) / math.sqrt(len(difference))
    return {"ratio": round(10 ** difference.mean(), 3), "factor_of_standard_error": round(10**error, 3)}


def failing(name, seeds, first, n):
    function, part = PROBLEMS[name]
    bad = part(0.3)
    runs = [run(function, bad, math.nan, seed, n) for seed in range(seeds)]
    logs = [log_regret(trials) for trials in runs]
    later = [np.mean([is_bad for is_bad, _ in trials[first:]]) for trials in runs]
    return {
        "share_of_the_box": round(share_of(function, bad), 4),
        "after_the_first": first,
        "failed": round(float(np.mean(later)), 4),
        "standard_error": round(float(np.std(later, ddof=1)) / math.sqrt(seeds), 4),
        "regret": float(f"{10 ** np.mean(logs):.3g}"),
        "log10_regret": [round(float(np.mean(logs)), 3), round(float(np.std(logs, ddof=1)) / math.sqrt(seeds), 3)],
    }


def diverging(name, seeds, n):
    function, part = PROBLEMS[name]
    bad = part(0.1)
    logs = {}
    for as_what, reported in DIVERGING.items():
        logs[as_what] = [log_regret(run(function, bad, reported, seed, n)) for seed in range(seeds)]
    return {
        "regret": {as_what: float(f"{10 ** np.mean(each):.3g}") for as_what, each in logs.items()},
        "to_none": {as_what: ratio(each, logs["none"]) for as_what, each in logs.items() if as_what != "none"},
    }


SQUARE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def quadratic(x, y):
    return -((x - 0.3) ** 2) - (y - 0.7) ** 2


# For each name: the region in which trials fail, and the smallest regret where trials succeed.
BORDERS = {
    "half": (lambda x, y: x < 0.5, 0.04),
    "slanted": (lambda x, y: x + 0.5 * y < 0.9, 0.05),
    "disc beside the optimum": (lambda x, y: math.hypot(x - 0.45, y - 0.7) < 0.12, 0.0),
    "disc over the optimum": (lambda x, y: math.hypot(x - 0.35, y - 0.75) < 0.2, (0.2 - math.hypot(0.05, 0.05)) ** 2),
}


def border(fails, least, acquisition, seeds, n=120):
    shares, regrets = [], []
    for seed in range(seeds):
        opt = bl.BayesOpt(SQUARE, acquisition=acquisition, seed=seed)
        for _ in range(n):
            trial = opt.suggest()
            trial.fail() if fails(**trial.params) else trial.observe(quadratic(**trial.params))
        shares.append(np.mean([trial.state == "failed" for trial in opt.trials[n // 2 :]]))
        regrets.append(-opt.best_value_ - least)
    return {"failed": round(float(np.median(shares)), 3), "most": round(max(shares), 3)} | {
        "regret": float(f"{np.median(regrets):.2g}"),
        "largest": float(f"{max(regrets):.2g}"),
    }


# All regrets below this value are treated as equal.
LEAST_OF_ACCIDENTS = 1e-9
# Number of successes in a run, and number of trials in flight.
N_SUCCESSES, N_IN_FLIGHT = 60, 4
SEARCHES = ("log_ei", "ucb", "thompson", "max_variance")
MODELLED = ("GP-", "asy", "seq", "syn", "BPE")
NAMED = [name for name in bl.algorithms() if name.startswith(MODELLED) and not name.endswith("RAND")]


def made(name, seed):
    if name in SEARCHES:
        return bl.BayesOpt(SQUARE, acquisition=name, seed=seed)
    needed = {"window": 20} if name.endswith("SDF") else {}
    if name.startswith("BPE"):
        needed = {"horizon": 2 * N_SUCCESSES, "lengthscale": 0.4, "noise_std": 0.01}
    return bl.algorithm(name, SQUARE, seed=seed, **needed)


def accident(name, chance, seed):
    """Return log10 of the regret at the recommended point after `N_SUCCESSES` successes."""
    opt, rng, in_flight, n = made(name, seed), random.Random(seed), [], 0
    while n < N_SUCCESSES:
        in_flight.append(opt.suggest())
        if len(in_flight) > N_IN_FLIGHT:
            trial = in_flight.pop(0)
            if rng.random() < chance:
                trial.fail()
            else:
                trial.observe(quadratic(**trial.params))
                n += 1
    return math.log10(max(-quadratic(**opt.recommend()), LEAST_OF_ACCIDENTS))


def accidents(name, seeds):
    without = np.array([accident(name, 0.0, seed) for seed in range(seeds)])
    result = {"0": round(float(np.median(without)), 2)}
    for chance in (0.05, 0.2):
        logs = np.array([accident(name, chance, seed) for seed in range(seeds)])
        error = (logs - without).std(ddof=1) / math.sqrt(seeds)
        result[str(chance)] = round(float(np.median(logs)), 2)
        result[f"{chance}, more"] = round(float(np.median(logs) - np.median(without)), 2)
        result[f"{chance}, allowed"] = round(1 + 2 * error, 2)
    return result


# Case *anywhere*: number of successes, length of a block, and mean length of a series of failures.
N_ANYWHERE, BLOCK, SERIES = 30, 20, 10
RATES = (0.5, 0.7, 0.9, 0.95)


def mixed(params):
    """A function of a real, an integer and a choice; the maximum is 0."""
    shift = {"a": 0.2, "b": 0.6, "c": 0.8}[params["kind"]]
    level = {"a": 0.0, "b": 0.3, "c": 0.6}[params["kind"]]
    return -((params["x"] - shift) ** 2) - 0.02 * (params["n"] - 7) ** 2 - level


# For each problem: the space, and f, whose maximum is 0.
ANYWHERE = {
    "branin": (functions.BRANIN.space, lambda p: functions.BRANIN(p) - functions.BRANIN.optimum),
    "hartmann3": (functions.HARTMANN3.space, lambda p: functions.HARTMANN3(p) - functions.HARTMANN3.optimum),
    "mixed": ({"x": (0.0, 1.0), "n": (1, 10), "kind": ["a", "b", "c"]}, mixed),
}


def constant(rate, rng):
    """Yield whether each trial fails, with this probability."""
    while True:
        yield bool(rng.random() < rate)


def changing(rate, rng):
    """Yield whether each trial fails. The probability alternates between two numbers with the mean `rate`."""
    step, sign = min(rate, 1 - rate), rng.choice([-1, 1])
    while True:
        for _ in range(BLOCK):
            yield bool(rng.random() < rate + sign * step)
        sign = -sign


def in_series(rate, rng):
    """Yield whether each trial fails. The outcomes are a Markov chain whose stationary share of failures is `rate`."""
    begins = min(rate / (1 - rate) / SERIES, 1.0)
    ends = begins * (1 - rate) / rate
    fails = rng.random() < rate
    while True:
        yield bool(fails)
        fails = rng.random() >= ends if fails else rng.random() < begins


PATTERNS = {"constant": constant, "changing": changing, "series": in_series}


def run_anywhere(problem, pattern, rate, workers, how, seed):
    """Return log10 of the regret after `N_ANYWHERE` successes. Failures are reported by the method `how` of a trial; if
    `how` is "random", points are drawn by random search."""
    space, f = ANYWHERE[problem]
    opt = (bl.RandomSearch if how == "random" else bl.BayesOpt)(space, seed=seed)
    fails = PATTERNS[pattern](rate, np.random.default_rng([seed, 58]))
    in_flight, best, n = [opt.suggest() for _ in range(workers)], -math.inf, 0
    while n < N_ANYWHERE:
        trial = in_flight.pop(0)
        if next(fails):
            trial.abandon() if how == "abandon" else trial.fail()
        else:
            value = f(trial.params)
            best = max(best, value)
            trial.observe(value)
            n += 1
        in_flight.append(opt.suggest())
    return math.log10(max(-best, LEAST_REGRET))


def anywhere(problem, pattern, rate, workers, seeds):
    logs = {
        how: np.array([run_anywhere(problem, pattern, rate, workers, how, seed) for seed in seeds])
        for how in ("fail", "abandon", "random")
    }
    result = {"log10_regret": {how: round(float(each.mean()), 2) for how, each in logs.items()}}
    for how in ("abandon", "random"):
        difference = logs["fail"] - logs[how]
        error = difference.std(ddof=1) / math.sqrt(len(difference))
        result[f"to_{how}"] = [round(float(difference.mean()), 2), round(float(error), 2)]
    return result


def radius(d, volume):
    """Return the radius of the ball of this volume in d dimensions."""
    return (volume * math.gamma(d / 2 + 1) / math.pi ** (d / 2)) ** (1 / d)


# For each region: whether a point of the unit cube fails, if the region covers this share of the cube.
REGIONS = {
    "slab": lambda u, share: u[0] > 1 - share,
    "all but a corner": lambda u, share: max(u) > (1 - share) ** (1 / len(u)),
    "all but a ball": lambda u, share: math.dist(u, [0.5] * len(u)) > radius(len(u), 1 - share),
}


def regions(function, region, share, accidents, seeds, first=20, n=60):
    """Return the mean share of failures after the first trials, with its standard error."""
    shares = []
    for seed in seeds:
        opt = bl.BayesOpt(function.space, seed=seed)
        rng = np.random.default_rng([seed, 59])
        for _ in range(n):
            trial, accident = opt.suggest(), rng.random() < accidents
            fails = accident or REGIONS[region](unit(function, trial.params), share)
            trial.fail() if fails else trial.observe(function(trial.params))
        shares.append(np.mean([trial.state == "failed" for trial in opt.trials[first:]]))
    error = np.std(shares, ddof=1) / math.sqrt(len(shares))
    return [round(float(np.mean(shares)), 3), round(float(error), 3)]


PARTS = ["failing", "diverging", "border", "accidents"]
NAMED_PARTS = ["anywhere", "regions"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=40, help="trials before failures are counted")
    parser.add_argument("--n", type=int, default=60, help="trials of a run")
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--parts", nargs="*", default=PARTS, choices=[*PARTS, *NAMED_PARTS])
    parser.add_argument("--first-seed", type=int, default=0, help="first seed of the cases anywhere and regions")
    parser.add_argument("--patterns", nargs="*", default=list(PATTERNS), choices=list(PATTERNS))
    parser.add_argument("--rates", nargs="*", type=float, default=RATES)
    parser.add_argument("--workers", nargs="*", type=int, default=[1, 8])
    parser.add_argument("--searches", nargs="*", default=[*SEARCHES, *NAMED], choices=[*SEARCHES, *NAMED])
    arguments = parser.parse_args()
    result = {}
    if "failing" in arguments.parts:
        result["failing"] = {
            name: failing(name, arguments.seeds, arguments.first, arguments.n) for name in arguments.problems
        }
    if "diverging" in arguments.parts:
        # The disc in which trials fail does not contain a corner of the square.
        corners = [name for name in arguments.problems if PROBLEMS[name][1] is corner]
        result["diverging"] = {name: diverging(name, arguments.seeds, arguments.n) for name in corners}
    searches = arguments.searches
    if "border" in arguments.parts:
        result["border"] = {
            name: {part: border(*it, name, arguments.seeds) for part, it in BORDERS.items()}
            for name in searches
            if name in SEARCHES
        }
    if "accidents" in arguments.parts:
        result["accidents"] = {name: accidents(name, arguments.seeds) for name in searches}
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    if "anywhere" in arguments.parts:
        its = (arguments.workers, arguments.patterns, arguments.rates, ANYWHERE)
        for workers, pattern, rate, problem in itertools.product(*its):
            name = f"{problem}, {pattern}, {rate:.0%}, {workers} in flight"
            print(json.dumps({name: anywhere(problem, pattern, rate, workers, seeds)}), flush=True)
    if "regions" in arguments.parts:
        boxes = {"branin": functions.BRANIN, "hartmann3": functions.HARTMANN3}
        for accident, box, region, share in itertools.product((0.0, 0.3), boxes, REGIONS, (0.5, 0.8, 0.95)):
            name = f"{box}, {region}, {share:.0%}, {accident:.0%} accidents"
            print(json.dumps({name: regions(boxes[box], region, share, accident, seeds)}), flush=True)
    if result:
        print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
