"""Plates with different levels: the plate as a context, controls that are subtracted, or neither.

A simulated laboratory measures one plate after another. All values of a plate are shifted by a level, which is normal
with the standard deviation `--shifts`, and each well has noise with the standard deviation `--noise`. The yield without
both is at most 80. It is a `peak` between 0 and 80, or a `parabola`, whose values fall to -86 and on which the
equivalents change the yield by at most 9. The rules are:

* ``context``: the plate is a choice of a context;
* ``ignored``: the optimizer does not know the plates;
* ``subtracted``: two wells of each plate are controls, whose mean is subtracted from the other values of the plate;
* ``controls``: two wells of each plate are controls, and the plate is a choice of a context.

After the last plate, the program asks for `recommend()`. It prints the yield of this point without level and noise: the
mean over the seeds with its standard error, and the smallest yield in parentheses.

Run: ``python benchmarks/plates.py --seeds 60``
"""

import argparse
import math
import warnings

import numpy as np

import belated as bl

RULES = ("context", "ignored", "subtracted", "controls")
FUNCTIONS = ("peak", "parabola")
SPACE = {"T": (20.0, 120.0), "equivalents": (1.0, 3.0), "solvent": ["water", "ethanol", "toluene"]}
CONTROL = {"T": 60.0, "equivalents": 2.0, "solvent": "ethanol"}
N_CONTROLS = 2


def true_yield(function, params):
    """Return the yield without level and noise; its maximum is 80."""
    top, best = {"water": (80.0, 85.0), "ethanol": (72.0, 70.0), "toluene": (65.0, 100.0)}[params["solvent"]]
    heat, excess = params["T"] - best, params["equivalents"] - 1.8
    if function == "peak":
        return top * math.exp(-((heat / 40.0) ** 2) - (excess / 1.2) ** 2)
    return top - 20.0 * (heat / 30.0) ** 2 - 6.0 * excess**2


def run(rule, function, seed, n_plates, n_wells, shift, noise):
    """Return the yield of the recommended point, without level and noise."""
    rng = np.random.default_rng([seed, 1])
    plates = [str(k + 1) for k in range(n_plates)]
    optimizer = bl.BayesOpt(SPACE, context={"plate": plates} if rule in ("context", "controls") else None, seed=seed)
    for plate in plates:
        context = {"plate": plate} if optimizer.context_space else None
        level, errors = shift * rng.normal(), noise * rng.normal(size=n_wells)
        if rule == "controls":
            optimizer.enqueue([CONTROL] * N_CONTROLS)
        n = n_wells
        if rule == "subtracted":
            n -= N_CONTROLS
            level -= np.mean([true_yield(function, CONTROL) + level + error for error in errors[n:]])
        for trial, error in zip(optimizer.suggest(n=n, context=context), errors[:n], strict=True):
            optimizer.observe(trial, true_yield(function, trial.params) + level + error)
    return true_yield(function, optimizer.recommend(context=context))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--plates", type=int, default=6)
    parser.add_argument("--wells", type=int, default=8)
    parser.add_argument("--shifts", nargs="+", type=float, default=[0.0, 6.0])
    parser.add_argument("--noise", type=float, default=1.0)
    parser.add_argument("--functions", nargs="+", choices=FUNCTIONS, default=FUNCTIONS)
    parser.add_argument("--rules", nargs="+", choices=RULES, default=RULES)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", bl.BelatedWarning)  # values of a parabola are marked
    print(f"| function | std of levels | {' | '.join(arguments.rules)} |\n|---|---|{'---|' * len(arguments.rules)}")
    for function in arguments.functions:
        for shift in arguments.shifts:
            cells = []
            for rule in arguments.rules:
                settings = arguments.plates, arguments.wells, shift, arguments.noise
                found = np.array([run(rule, function, seed, *settings) for seed in range(arguments.seeds)])
                error = found.std(ddof=1) / math.sqrt(len(found))
                cells.append(f"{found.mean():.2f} ± {error:.2f} ({found.min():.2f})")
            print(f"| {function} | {shift:g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
