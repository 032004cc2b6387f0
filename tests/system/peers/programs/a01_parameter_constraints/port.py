"""belated: shares of a mixture, with linear constraints on the parameters."""

import math

import belated as bl


def strength(cement, slag, ash):
    water = 1 - cement - slag - ash
    binder = cement + 0.7 * slag + 0.4 * ash
    return 80 * binder * math.exp(-12 * (water - 0.35 * binder) ** 2) - 30 * cement**2


space = {"cement": (0.1, 0.8), "slag": (0.0, 0.6), "ash": (0.0, 0.4)}
constraints = [
    lambda p: p["cement"] + p["slag"] + p["ash"] <= 0.85,
    lambda p: p["slag"] <= 2.0 * p["ash"] + 0.1,
]
opt = bl.BayesOpt(space, constraints=constraints, seed=0)
for _ in range(15):
    trial = opt.suggest()
    opt.observe(trial, strength(**trial.params))
print("best value:", opt.best_value_)
