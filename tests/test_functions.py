"""The benchmark functions against published points, and their maxima against searches from many sides."""

import math
import pickle

import numpy as np
import pytest

import belated as bl
from belated import functions

optimize = pytest.importorskip("scipy.optimize")

ALL = [
    functions.BRANIN,
    functions.CURRIN_EXPONENTIAL,
    functions.HARTMANN3,
    functions.HARTMANN6,
    functions.PARK1,
    functions.PARK2,
]
names = [function.name for function in ALL]


def at(function, *x):
    return function(dict(zip(function.space, x, strict=True)))


@pytest.mark.parametrize("function", ALL, ids=names)
def test_the_optimum_is_the_best_that_searches_find(function):
    bounds = [(dimension.low, dimension.high) for dimension in function.space.values()]

    def loss(x):
        return -at(function, *x)

    best = -math.inf
    for seed in range(3):
        wide = optimize.differential_evolution(loss, bounds, seed=seed, popsize=20, tol=1e-10)
        polished = optimize.minimize(loss, wide.x, bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-15})
        best = max(best, -wide.fun, -polished.fun)
    assert best == pytest.approx(function.optimum, rel=1e-9)
    assert best <= function.optimum + 1e-9


@pytest.mark.parametrize(
    ("function", "x", "value"),
    [
        (functions.BRANIN, (-math.pi, 12.275), -0.397887),
        (functions.BRANIN, (math.pi, 2.275), -0.397887),
        (functions.BRANIN, (9.42478, 2.475), -0.397887),
        (functions.CURRIN_EXPONENTIAL, (0.216667, 0.0228407), 13.7986),
        (functions.HARTMANN3, (0.114614, 0.555649, 0.852547), 3.86278),
        (functions.HARTMANN6, (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573), 3.32237),
        (functions.PARK1, (1, 1, 1, 1), 25.5893),
        (functions.PARK2, (1, 1, 1, 0), 5.92604),
    ],
)
def test_values_at_published_points(function, x, value):
    assert at(function, *x) == pytest.approx(value, rel=1e-4 if function.name.startswith("currin") else 5e-6)


@pytest.mark.parametrize("x", np.random.default_rng(0).uniform(0.05, 1, (5, 4)).tolist())
def test_park_as_it_is_printed(x):
    x1, x2, x3, x4 = x
    first = x1 / 2 * (math.sqrt(1 + (x2 + x3**2) * x4 / x1**2) - 1) + (x1 + 3 * x4) * math.exp(1 + math.sin(x3))
    assert at(functions.PARK1, *x) == pytest.approx(first)
    assert at(functions.PARK2, *x) == pytest.approx(2 / 3 * math.exp(x1 + x2) - x4 * math.sin(x3) + x3)


@pytest.mark.parametrize("function", ALL, ids=names)
def test_the_edges_of_the_box_have_values_that_continue_the_inside(function):
    for corner in ("low", "high"):
        x = np.array([getattr(dimension, corner) for dimension in function.space.values()])
        inward = np.array([1e-9 * (dimension.high - dimension.low) for dimension in function.space.values()])
        nearby = x + inward if corner == "low" else x - inward
        assert at(function, *x) == pytest.approx(at(function, *nearby), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("function", ALL, ids=names)
def test_an_optimizer_takes_the_space_and_a_process_the_function(function):
    params = bl.RandomSearch(function.space, seed=0).suggest().params
    assert pickle.loads(pickle.dumps(function))(params) == function(params) < function.optimum
