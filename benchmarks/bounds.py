"""Bounds that an outcome touches or jumps over: the regret, and what is recommended; prints JSON.

Each problem minimises a function where an outcome stays within a bound. The same points are allowed by every outcome of
a problem: a clipped constraint ``max(0, c)``, a yield that saturates at its bound, a count, a flag, and a staircase. In
the case *inside*, the best point is inside the allowed region, and in the case *border* it is next to the border or on
it. In the run beside it, trials outside the region fail. Regrets are shares of the range of the function in the allowed
region, and medians over seeds.

With ``--recommend``, the figures are about recommended points instead: how often a point violates its bound although
`predict_feasible` says 0.9 or more, how often it was measured to violate it, how often it is worse than `best_value_`
by more than 1 % of the range, and by how much it violates an unreachable bound more than the best measured point.
"""

import argparse
import json
import math
import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import belated as bl

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def branin(p):
    x, y = 15 * p["x"] - 5, 15 * p["y"]
    valley = y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6
    return valley**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 9.602


def bowl(p):
    return (p["x"] - 0.2) ** 2 + 2 * (p["y"] - 0.7) ** 2


def load(p):
    """Return a smooth quantity; points where it is at most 2.5 are allowed."""
    return 4 * p["x"] + p["y"]


def far(p):
    return (p["x"] - 0.9) ** 2 + (p["y"] - 0.6) ** 2


FUNCTIONS = {"inside, bowl": bowl, "inside, branin": branin, "border, distance": far}
# The outcome as a function of load, and its bound.
OUTCOMES = {
    "clipped": (lambda c: max(0.0, c - 2.5), bl.AtMost(0.0)),
    "yield": (lambda c: min(100.0, 150.0 - 20 * c), bl.AtLeast(100.0)),
    "count": (lambda c: float(math.ceil(c - 0.5)), bl.AtMost(2.0)),
    "flag": (lambda c: float(c > 2.5), bl.AtMost(0.0)),
    "staircase": (lambda c: float(math.ceil(2 * c)), bl.AtMost(5.0)),
    "jump": (lambda c: float(c > 2.5) + 0.05 * c, bl.AtMost(0.7)),
    "smooth": (lambda c: c, bl.AtMost(2.5)),
}


def scale_of(function):
    """Return the smallest value in the allowed region and the range there, from a grid."""
    grid = [{"x": x, "y": y} for x in np.linspace(0, 1, 401) for y in np.linspace(0, 1, 401)]
    values = [function(p) for p in grid if load(p) <= 2.5]
    return min(values), max(values) - min(values)


def run(function, outcome, seed, n, fails=False):
    """Return the optimizer after n trials. With `fails`, trials outside the bound fail."""
    measure, bound = OUTCOMES[outcome]
    goal = {"direction": "minimize"} if fails else {"outcomes": {"f": "minimize", "g": bound}}
    opt = bl.BayesOpt(SPACE, seed=seed, **goal)
    for _ in range(n):
        trial = opt.suggest()
        f, c = function(trial.params), load(trial.params)
        if not fails:
            trial.observe({"f": f, "g": measure(c)})
        elif c <= 2.5:
            trial.observe(f)
        else:
            trial.fail()
    return opt


def regrets(function, outcome, seeds, n):
    least, span = scale_of(function)
    figures = {}
    for name, fails in (("outcome", False), ("fail", True)):
        best = [run(function, outcome, seed, n, fails).best_value_ for seed in range(seeds)]
        found = [1.0 if value is None else max(0.0, value - least) / span for value in best]
        figures[name] = {"median": float(f"{np.median(found):.2g}"), "mean": float(f"{np.mean(found):.2g}")}
    return figures


def recommended(function, outcome, seeds, n):
    """Return counts over recommendations after every tenth trial."""
    _, span = scale_of(function)
    measure, bound = OUTCOMES[outcome]
    counts = dict.fromkeys(("asked", "sure", "sure_and_violates", "measured_to_violate", "worse_than_best"), 0)
    for seed in range(seeds):
        opt = bl.BayesOpt(SPACE, outcomes={"f": "minimize", "g": bound}, seed=seed)
        measured = set()
        for i in range(n):
            trial = opt.suggest()
            c = load(trial.params)
            trial.observe({"f": function(trial.params), "g": measure(c)})
            measured.add(tuple(trial.params.values()))
            if i % 10 == 9:
                point = opt.recommend()
                violates = load(point) > 2.5
                is_sure = bool(opt.predict_feasible(point) >= 0.9)
                best = opt.best_value_
                is_measured = tuple(point.values()) in measured
                counts["asked"] += 1
                counts["sure"] += is_sure
                counts["sure_and_violates"] += int(is_sure and violates)
                counts["measured_to_violate"] += int(violates and is_measured and best is not None)
                counts["worse_than_best"] += int(best is not None and function(point) > best + 0.01 * span)
    return counts


def unreachable(function, seeds, n):
    """Return the largest excess of the violation over the least measured violation, as a share of the range of load."""
    excess = []
    for seed in range(seeds):
        opt = bl.BayesOpt(SPACE, outcomes={"f": "minimize", "g": bl.AtMost(-0.5)}, seed=seed)
        for i in range(n):
            trial = opt.suggest()
            trial.observe({"f": function(trial.params), "g": load(trial.params)})
            if i % 5 == 4:
                excess.append((load(opt.recommend()) - min(load(t.params) for t in opt.trials)) / 5)
    return float(f"{max(excess):.2g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recommend", action="store_true", help="count what recommended points do")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--outcomes", nargs="+", default=list(OUTCOMES), choices=list(OUTCOMES))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    figure = recommended if options.recommend else regrets
    found = {}
    for name, function in FUNCTIONS.items():
        found[name] = {it: figure(function, it, options.seeds, options.trials) for it in options.outcomes}
        if options.recommend:
            found[name]["unreachable"] = unreachable(function, options.seeds, options.trials)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
