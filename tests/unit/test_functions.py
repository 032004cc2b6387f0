"""Benchmark functions agree with published values, and their maxima agree with searches from many starts."""

import math

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

# Each of these functions applies a summand to consecutive groups of coordinates and adds the results (Kandasamy et al.
# 2017, appendix C.2).
SUMS = [
    (functions.PARK2_16, functions.PARK2, 4),
    (functions.HARTMANN12, functions.HARTMANN6, 2),
    (functions.CURRIN_EXPONENTIAL_14, functions.CURRIN_EXPONENTIAL, 7),
    (functions.HARTMANN18, functions.HARTMANN6, 3),
]
EVERY = ALL + [function for function, _, _ in SUMS]
every_function = pytest.mark.parametrize("function", EVERY, ids=lambda function: function.name)


def at(function, *x):
    return function(dict(zip(function.space, x, strict=True)))


@pytest.mark.parametrize("function", ALL, ids=names)
def test_the_optimum_is_the_best_that_searches_find(function):
    bounds = [(dimension.low, dimension.high) for dimension in function.space.values()]

    def loss(x):
        return -at(function, *x)

    def losses(columns):
        return -function(columns.T)

    best = -math.inf
    for seed in range(3):
        wide = optimize.differential_evolution(
            losses, bounds, seed=seed, popsize=20, tol=1e-10, vectorized=True, updating="deferred", polish=False
        )
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
def test_values_equal_the_published_values(function, x, value):
    assert at(function, *x) == pytest.approx(value, rel=1e-4 if function.name.startswith("currin") else 5e-6)


@pytest.mark.parametrize("x", np.random.default_rng(0).uniform(0.05, 1, (5, 4)).tolist())
def test_park_equals_the_printed_formula(x):
    x1, x2, x3, x4 = x
    first = x1 / 2 * (math.sqrt(1 + (x2 + x3**2) * x4 / x1**2) - 1) + (x1 + 3 * x4) * math.exp(1 + math.sin(x3))
    assert at(functions.PARK1, *x) == pytest.approx(first)
    assert at(functions.PARK2, *x) == pytest.approx(2 / 3 * math.exp(x1 + x2) - x4 * math.sin(x3) + x3)


@every_function
def test_the_edges_of_the_box_have_values_that_continue_the_inside(function):
    for corner in ("low", "high"):
        x = np.array([getattr(dimension, corner) for dimension in function.space.values()])
        inward = np.array([1e-9 * (dimension.high - dimension.low) for dimension in function.space.values()])
        nearby = x + inward if corner == "low" else x - inward
        assert at(function, *x) == pytest.approx(at(function, *nearby), rel=1e-4, abs=1e-4)


@every_function
def test_an_optimizer_accepts_the_space(function):
    params = bl.RandomSearch(function.space, seed=0).suggest().params
    assert function(params) < function.optimum


def uniform(function, n, seed=0):
    low, high = np.array([(each.low, each.high) for each in function.space.values()]).T
    return low + (high - low) * np.random.default_rng(seed).random((n, len(low)))


@pytest.mark.parametrize(("function", "part", "count"), SUMS, ids=[function.name for function, _, _ in SUMS])
def test_sums_add_up_groups_of_coordinates(function, part, count):
    width = len(part.space)
    assert list(function.space) == [f"x{j + 1}" for j in range(count * width)]
    assert [(each.low, each.high) for each in function.space.values()] == count * [
        (each.low, each.high) for each in part.space.values()
    ]
    points = uniform(function, 50)
    groups = [part(points[:, k * width : (k + 1) * width]) for k in range(count)]
    np.testing.assert_allclose(function(points), np.sum(groups, axis=0), rtol=1e-14)


@pytest.mark.parametrize(("function", "part", "count"), SUMS, ids=[function.name for function, _, _ in SUMS])
def test_searches_of_a_sum_end_at_its_optimum(function, part, count):
    """The searches start from random points, and from the point whose coordinates maximise the summand in every
    group."""
    bounds = [(dimension.low, dimension.high) for dimension in function.space.values()]
    width = len(part.space)

    def loss_of_part(x):
        return -part(x[None])[0]

    def loss(x):
        return -function(x[None])[0]

    # Hartmann6 has two further peaks that are nearly as high as the maximum.
    found = [optimize.differential_evolution(loss_of_part, bounds[:width], seed=seed, popsize=10) for seed in range(4)]
    peak = min(found, key=lambda each: each.fun).x

    starts = [np.tile(peak, count), *uniform(function, 3)]
    best = [-optimize.minimize(loss, x, bounds=bounds, method="L-BFGS-B", options={"maxiter": 50}).fun for x in starts]
    assert best[0] == pytest.approx(function.optimum, rel=1e-7) and max(best) <= function.optimum + 1e-9
    assert function(uniform(function, 2000)).max() < function.optimum


@every_function
def test_rows_of_an_array_have_the_values_of_the_parameters(function):
    points = uniform(function, 7)
    values = function(points)
    assert values.shape == (7,) and values.dtype == float
    assert values.tolist() == [at(function, *point) for point in points]
    assert function(points.tolist()).tolist() == values.tolist()
    assert function(np.empty((0, len(function.space)))).shape == (0,)


@pytest.mark.parametrize("points", [[0.5, 0.5], [[0.5]], [[[0.5, 0.5]]], 0.5])
def test_arrays_of_another_shape_are_refused(points):
    with pytest.raises(
        bl.errors.InvalidSetting, match=r"branin takes parameters by name, or an array of shape \(n, 2\)"
    ):
        functions.BRANIN(points)


def test_the_noise_equals_the_noise_of_the_paper():
    assert {function.name: function.noise_std for function in EVERY if function.noise_std != 0.2} == {
        function.name: 1.0 for function, _, _ in SUMS
    }
