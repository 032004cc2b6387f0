"""How often the search for the largest acquisition in a box reaches the value that a slow, dense search finds.

There are 200 posteriors over boxes of 1 to 10 dimensions. The dense search scores 20,000 random points and random steps
around the incumbents, and starts local searches from the best 64 of all these points. The search has *reached* the
value of the dense search if the value that it finds is smaller by at most 1 % of the acquisition's range over the box.
The search is *beaten* if the best of 300 random points is better. With ``--spaces mixed``, the spaces have up to 20
dimensions, of which 0 to 10 are discrete. The dense search of mixed spaces is in `mixed_posteriors`, and each mixed
space is searched with several seeds.
"""

import argparse

import numpy as np
from mixed_posteriors import DenseSearch, levels_of
from mixed_posteriors import members as mixed_members
from mixed_posteriors import posterior as mixed_posterior
from scipy.optimize import minimize

import belated as bl
from belated._core import Acquisition, GaussianProcess

LEVELS = 5


def posterior(number):
    """Return a model fitted to 10 d to 30 d rows, and whether the last columns encode integers and a choice."""
    rng = np.random.default_rng(number)
    d, mixed = number % 10 + 1, number % 4 == 3 and number % 10 >= 2
    parameters = {f"x{k}": (0.0, 1.0) for k in range(d)}
    if mixed:
        parameters |= {f"x{d - 2}": bl.Integer(0, LEVELS - 1), f"x{d - 1}": ["a", "b", "c"]}
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
    return gp, bl.Space(parameters), mixed, d


def acquisition_of(gp, number):
    incumbent = float(gp.predict(gp.x)[0].max())
    kinds = [
        lambda: Acquisition.log_expected_improvement(gp, incumbent),
        lambda: Acquisition.upper_confidence_bound(gp, 2.0),
        lambda: Acquisition.thompson(gp, nu=1.0, n_features=1024, seed=number),
    ]
    return ["log_ei", "ucb", "thompson"][number % 3], kinds[number % 3]()


def members(rng, n, d, mixed):
    """Return random points of the box."""
    if not mixed:
        return rng.random((n, d))
    steps = rng.integers(LEVELS, size=(n, 1)) / (LEVELS - 1)
    return np.hstack([rng.random((n, d - 2)), steps, np.eye(3)[rng.integers(3, size=n)]])


def dense(acquisition, gp, d, mixed, number):
    """Return the best of 64 local searches over the continuous columns, and the range of the acquisition."""
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


def suggestion(number):
    """Return the groups to which a posterior belongs, whether the search reached the value of the dense search, and
    whether random points beat the search."""
    gp, space, mixed, d = posterior(number)
    kind, acquisition = acquisition_of(gp, number)
    best, scale = dense(acquisition, gp, d, mixed, number)
    _, _, value = acquisition.maximize(space.core.domain(), number)
    rivals = acquisition(members(np.random.default_rng(20_000 + number), 300, d, mixed))
    groups = (kind, f"d = {d}", "mixed" if mixed else "continuous", "all")
    return [(groups, value >= best - 0.01 * scale, rivals.max() > value)]


def mixed_suggestions(number, seeds):
    """Return the result of `suggestion` for a posterior over a mixed space, once for every seed."""
    gp, space, n_discrete = mixed_posterior(number)
    kind, acquisition = acquisition_of(gp, number)
    levels = levels_of(space)
    best, scale = DenseSearch(acquisition, levels).run(gp, np.random.default_rng(90_000 + number))
    found = []
    for seed in range(seeds):
        _, _, value = acquisition.maximize(space.core.domain(), 1000 * number + seed)
        rivals = acquisition(mixed_members(np.random.default_rng(1000 * number + seed), 300, levels))
        groups = (kind, f"{n_discrete:2} discrete", f"{kind}, {n_discrete:2} discrete", "all")
        found.append((groups, value >= best - 0.01 * scale, rivals.max() > value))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spaces", choices=["small", "mixed"], default="small")
    parser.add_argument("--posteriors", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="number of the first posterior")
    parser.add_argument("--seeds", type=int, default=3, help="searches of each posterior over a mixed space")
    arguments = parser.parse_args()
    results = {}
    for number in range(arguments.first, arguments.first + arguments.posteriors):
        small = arguments.spaces == "small"
        for groups, reached, beaten in suggestion(number) if small else mixed_suggestions(number, arguments.seeds):
            for group in groups:
                results.setdefault(group, []).append((reached, beaten))
    for group, found in sorted(results.items()):
        reached, beaten = np.sum(found, axis=0)
        share = 100 * reached / len(found)
        print(f"{group:22} {reached:4} of {len(found):4} reached   {share:5.1f} %   {beaten} beaten")


if __name__ == "__main__":
    main()
