"""Tree search that chooses fidelities, compared with tree search at full fidelity for equal costs.

    python benchmarks/tree_fidelity.py --seeds 0:20

The program uses every function of `belated.functions` that has a fidelity. The declared bias is the supremum of |f_z -
f|/(1 - z), found numerically. The regret is the optimum of f minus the noise-free value at the recommended point, both
at z = 1. Costs count full evaluations. Prints JSON: medians over the seeds at every budget, and whether the search that
chooses fidelities reaches the regret of the other search at half of the cost.
"""

import argparse
import json
import math
import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402
from compare import seed_range  # noqa: E402

import belated as bl  # noqa: E402
from belated import functions  # noqa: E402

BUDGETS = (12.5, 25, 50, 100, 200, 400)
KINDS = ("recommended", "best", "evaluations")
#: For each function: the exponent of its cost.
FUNCTIONS = {
    "hartmann3": (functions.HARTMANN3_MF, 3),
    "hartmann6": (functions.HARTMANN6_MF, 3),
    "currin-exponential": (functions.CURRIN_EXPONENTIAL_MF, 2),
    "branin": (functions.BRANIN_MF, 3),
    "borehole": (functions.BOREHOLE_MF, 1.5),
}


def bias(function):
    """Return the supremum of |f_z - f|/(1 - z), found by local searches from the best of many random points."""
    from scipy.optimize import minimize

    low, high = np.array([(each.low, each.high) for each in function.space.values()]).T
    rng = np.random.default_rng(0)

    def ratio(point, z):
        x = np.clip(low + point * (high - low), low, high)
        return abs(function.formula(x, z) - function.formula(x, 1.0)) / (1 - z)

    levels = (0.0, 0.5, 0.9, 0.99)
    starts = sorted(((ratio(u, z), z, tuple(u)) for u in rng.random((500, len(low))) for z in levels), reverse=True)[:5]
    box = [(0.0, 1.0)] * len(low)
    found = [minimize(lambda u, z=z: -ratio(u, z), u, bounds=box, method="L-BFGS-B") for _, z, u in starts]
    return max(starts[0][0], *(float(-each.fun) for each in found))


def spread(function):
    """Evaluate f at 500 random points; return the maximum minus the median."""
    low, high = np.array([(each.low, each.high) for each in function.space.values()]).T
    values = function(np.random.default_rng(0).uniform(low, high, (500, len(low))))
    return float(values.max() - np.median(values))


def run(function, seed, fidelity, noise_std, **settings):
    """For each budget, return the regret of the recommended point and the regret of the best point evaluated at full
    fidelity."""
    optimizer = bl.TreeSearch(function.space, seed=seed, fidelity=fidelity, **settings)
    full, spent, regrets, n = function.cost(1.0), 0.0, [], 0
    rng = np.random.default_rng([seed, 1])
    while True:
        trial = optimizer.suggest()
        z = 1.0 if fidelity is None else trial.fidelity
        spent += function.cost(z) / full
        while len(regrets) < len(BUDGETS) and spent > BUDGETS[len(regrets)]:
            points = optimizer.recommend(), optimizer.best_params_
            regrets.append([function.optimum - function(point) for point in points] + [n])
        if len(regrets) == len(BUDGETS):
            return regrets
        n += 1
        optimizer.observe(trial, function(trial.params, z) + noise_std * rng.standard_normal())


def rounded(row):
    return [float(f"{each:.3g}") for each in row]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=seed_range, default="0:20")
    parser.add_argument("--functions", nargs="+", choices=FUNCTIONS, default=list(FUNCTIONS))
    parser.add_argument("--noise", action="store_true", help="add noise with the standard deviation of each function")
    parser.add_argument("--bias", type=float, default=1.0, help="factor of the declared bias")
    parser.add_argument("--settings", type=json.loads, default={}, help="settings of both searches, as JSON")
    parser.add_argument("--nu", type=float, help="nu of the search with fidelities, in spreads of f")
    parser.add_argument("--decay", type=float, help="rho**d of the search with fidelities")
    parser.add_argument("--only", choices=["low", "full"], help="run only one of the two searches")
    arguments = parser.parse_args()
    for name in arguments.functions:
        function, exponent = FUNCTIONS[name]
        base, full = function.cost(0.0), function.cost(1.0)
        cost = bl.PowerCost(base / full, exponent)
        assert all(math.isclose(cost.at(z) * full, function.cost(z)) for z in (0.25, 0.5))
        constant = bias(function)
        declared = bl.Fidelity(0.0, 1.0, cost=cost, bias=arguments.bias * constant)
        noise = function.noise_std if arguments.noise else 0.0
        result = {"function": name, "bias": float(f"{constant:.4g}"), "noise": noise}
        result |= {"settings": arguments.settings, "nu": arguments.nu, "decay": arguments.decay}
        for label, fidelity in (("low", declared), ("full", None)):
            if arguments.only not in (None, label):
                continue
            settings = dict(arguments.settings)
            if fidelity and arguments.nu:
                settings["nu"] = arguments.nu * spread(function)
            if fidelity and arguments.decay:
                settings["rho"] = arguments.decay ** (1 / len(function.space))
            runs = [run(function, seed, fidelity, noise, **settings) for seed in arguments.seeds]
            medians = np.median(np.array(runs), axis=0).T
            result |= {f"{label}: {kind}": rounded(row) for kind, row in zip(KINDS, medians, strict=True)}
        if arguments.only is None:
            # Compare the point that is recommended after half of the cost with the better of the two points that the
            # search at full fidelity finds.
            full = np.minimum(result["full: recommended"], result["full: best"])
            result["half"] = [
                bool(low <= high) for low, high in zip(result["low: recommended"], full[1:], strict=False)
            ]
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    sys.exit(main())
