"""Compare rules for a value that all trials of a batch share, such as the temperature of an oven.

There are three problems with a temperature T and two other parameters:

* ``peak``: at T = 40, earlier trials show the flank of one narrow peak, so the best single point is its top. At the
  other temperatures, f is a random function without earlier trials. The model has the true hyperparameters, so that
  only the rules differ;
* ``choice``: f is an independent random function at each of four temperatures, and one of them was explored;
* ``number``: f is a random function that changes with the number T, and one temperature was explored.

Each run continues with batches of 8. The rules are:

* ``shared``: ``suggest(n=8, shared=["T"])``, whose batch has the temperature of the best single point;
* ``random``: the batch has a random temperature;
* ``free``: each trial has its own temperature, which a real oven does not allow.

The program prints the mean improvement of the best value of f after each batch, in units of the standard deviation of
f, and the paired differences to ``shared`` with two standard errors.

Run: ``python benchmarks/shared_batches.py --seeds 50``
"""

import argparse
import math

import numpy as np

import belated as bl

KINDS = ("peak", "choice", "number")
RULES = ("shared", "random", "free")
LENGTHSCALE, NOISE, N_FEATURES, N_CHOICES, HEIGHT = 0.15, 0.1, 400, 4, 1.0


def space_of(kind):
    """Return the space: T is one of four choices, or a number."""
    temperature = bl.Real(20.0, 80.0) if kind == "number" else bl.Categorical([20, 40, 60, 80])
    return bl.Space({"T": temperature, "x": (0.0, 1.0), "y": (0.0, 1.0)})


def function_of(kind, seed):
    """Return a random function of params with mean 0 and standard deviation 1, from random Fourier features."""
    rng = np.random.default_rng([seed, 1])
    n = 1 if kind == "number" else N_CHOICES
    frequencies = rng.normal(size=(n, N_FEATURES, 3)) / LENGTHSCALE
    if kind != "number":
        frequencies[:, :, 0] = 0.0
    phases = rng.uniform(0, 2 * math.pi, size=(n, N_FEATURES))
    weights = rng.normal(size=(n, N_FEATURES)) * math.sqrt(2 / N_FEATURES)

    def f(params):
        t = (params["T"] - 20.0) / 60.0
        if kind == "peak" and params["T"] == 40:
            return HEIGHT * math.exp(-((params["x"] - 0.6) ** 2 + (params["y"] - 0.4) ** 2) / (2 * LENGTHSCALE**2))
        which = 0 if kind == "number" else round(t * (N_CHOICES - 1))
        z = np.array([t, params["x"], params["y"]])
        return float(weights[which] @ np.cos(frequencies[which] @ z + phases[which]))

    return f


def run(kind, rule, seed, n_batches, n_explored=25, n=8):
    """Return the best value of f before the first batch, and after each batch."""
    space, f, rng = space_of(kind), function_of(kind, seed), np.random.default_rng([seed, 2])
    surrogate = bl.GP(lengthscale=LENGTHSCALE, signal_std=1.0, noise_std=NOISE, targets="raw")
    surrogate = surrogate if kind == "peak" else bl.GP()
    optimizer = bl.BayesOpt(space, initial=bl.Initial(0), surrogate=surrogate, seed=seed)

    def measured(params):
        return f(params) + NOISE * float(rng.normal())

    # One temperature was explored.
    explored = 40.0 if kind == "number" else 40
    earlier = [{"T": explored, "x": float(x), "y": float(y)} for x, y in rng.random((n_explored, 2))]
    optimizer.add(earlier, [measured(params) for params in earlier])
    best = [max(f(params) for params in earlier)]
    for _ in range(n_batches):
        if rule == "shared":
            trials = optimizer.suggest(n=n, shared=["T"])
        elif rule == "random":
            drawn = rng.uniform(20.0, 80.0) if kind == "number" else int(rng.choice([20, 40, 60, 80]))
            trials = optimizer.suggest(n=n, fixed={"T": drawn})
        else:
            trials = optimizer.suggest(n=n)
        for trial in trials:
            optimizer.observe(trial, measured(trial.params))
        best.append(max(best[-1], *(f(trial.params) for trial in trials)))
    return np.array(best)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--batches", type=int, default=3)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--rules", nargs="+", choices=RULES, default=RULES)
    arguments = parser.parse_args()
    for kind in arguments.kinds:
        runs = {
            rule: np.array([run(kind, rule, seed, arguments.batches) for seed in range(arguments.seeds)])
            for rule in arguments.rules
        }
        gains = {rule: found[:, 1:] - found[:, :1] for rule, found in runs.items()}
        for rule, gain in gains.items():
            difference = gains["shared"] - gain
            errors = 2 * difference.std(axis=0, ddof=1) / math.sqrt(arguments.seeds)
            pairs = zip(gain.mean(axis=0), difference.mean(axis=0), errors, strict=True)
            text = "; ".join(f"{mean:.3f} (shared {ahead:+.3f} ± {error:.3f})" for mean, ahead, error in pairs)
            print(f"{kind:7} {rule:12} {text}", flush=True)


if __name__ == "__main__":
    main()
