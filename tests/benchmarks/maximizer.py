"""How near the search of a box comes to the best of 64 dense starts: 200 posteriors, d = 1 to 10, mixed ones included.

A posterior counts as reached if the value found is at least the best of the dense runs less 1 % of the range that the
acquisition has over the box. The dense runs start from the 64 best of 20,000 points and of steps around the incumbents.
"""

import argparse
import json

import numpy as np
from scipy.optimize import minimize

from belated._core import Acquisition, Domain, GaussianProcess

LEVELS = 5
INTEGER = {"kind": "Integer", "low": 0, "high": LEVELS - 1, "log": False}


def posterior(number):
    """A fitted model of 10 d to 30 d rows, and whether its last columns are integers and a choice."""
    rng = np.random.default_rng(number)
    d, mixed = number % 10 + 1, number % 4 == 3 and number % 10 >= 2
    coordinates = [{"kind": "Continuous"}] * d
    if mixed:
        coordinates = [{"kind": "Continuous"}] * (d - 2) + [INTEGER, {"kind": "Categorical", "n": 3}]
    width = d + 2 if mixed else d
    n = int(rng.integers(10, 31)) * d
    x = rng.random((n, width))
    if mixed:
        x[:, d - 2] = np.round(x[:, d - 2] * (LEVELS - 1)) / (LEVELS - 1)
        x[:, d - 1 :] = np.eye(3)[rng.integers(3, size=n)]
    direction, wave = rng.normal(size=width), rng.normal(size=width)
    y = np.sin(4 * x @ wave) + np.cos(3 * x @ direction) - ((x - rng.random(width)) ** 2).sum(axis=1)
    y += 0.1 * rng.normal(size=n)
    gp = GaussianProcess("matern52", np.full(width, 0.7), 1.0, 0.01)
    gp.fit(x, (y - y.mean()) / y.std())
    gp.optimize(seed=number)
    return gp, coordinates, mixed, d


def acquisition_of(gp, number):
    incumbent = float(gp.predict(gp.x)[0].max())
    kinds = [
        lambda: Acquisition.log_expected_improvement(gp, incumbent),
        lambda: Acquisition.upper_confidence_bound(gp, 2.0),
        lambda: Acquisition.thompson(gp, nu=1.0, n_features=1024, seed=number),
    ]
    return ["log_ei", "ucb", "thompson"][number % 3], kinds[number % 3]()


def members(rng, n, d, mixed):
    """Random members of the box."""
    if not mixed:
        return rng.random((n, d))
    steps = rng.integers(LEVELS, size=(n, 1)) / (LEVELS - 1)
    return np.hstack([rng.random((n, d - 2)), steps, np.eye(3)[rng.integers(3, size=n)]])


def dense(acquisition, gp, d, mixed, number):
    """The best of 64 local searches over the continuous columns, and the range of the acquisition."""
    rng = np.random.default_rng(10_000 + number)
    points = members(rng, 20_000, d, mixed)
    free = d - 2 if mixed else d
    best_rows = gp.x[np.argsort(-gp.predict(gp.x)[0])[:20]]
    near = np.repeat(best_rows, 50, axis=0)
    near[:, :free] = np.clip(near[:, :free] + 0.1 * rng.normal(size=(len(near), free)), 0, 1)
    points = np.vstack([points, near])
    values = acquisition(points)
    finite = values[np.isfinite(values)]

    best = finite.max()
    for start in points[np.argsort(-values)[:64]]:

        def negated(part, start=start):
            value, gradient = acquisition.gradient(np.concatenate([part, start[free:]]))
            return -value, -np.asarray(gradient)[:free]

        found = minimize(negated, start[:free], jac=True, method="L-BFGS-B", bounds=[(0, 1)] * free)
        best = max(best, -found.fun)
    return best, best - finite.min()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--posteriors", type=int, default=200)
    arguments = parser.parse_args()
    reached = {}
    for number in range(arguments.posteriors):
        gp, coordinates, mixed, d = posterior(number)
        kind, acquisition = acquisition_of(gp, number)
        best, scale = dense(acquisition, gp, d, mixed, number)
        _, _, value = acquisition.maximize(Domain.box(json.dumps(coordinates)), number)
        good = value >= best - 0.01 * scale
        for group in (kind, f"d = {d}", "mixed" if mixed else "continuous", "all"):
            reached.setdefault(group, []).append(good)
    for group, good in sorted(reached.items()):
        print(f"{group:12} {sum(good):4} of {len(good):4}   {100 * np.mean(good):5.1f} %")


if __name__ == "__main__":
    main()
