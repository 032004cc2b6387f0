"""Functions with a fidelity agree with the published formulas, with the full functions, and with searches for the
maxima."""

import itertools
import math

import numpy as np
import pytest

import belated as bl
from belated import functions
from belated.functions import BOREHOLE_MF, BRANIN_MF, CURRIN_EXPONENTIAL_MF, HARTMANN3_MF, HARTMANN6_MF, SCHWEFEL20

FULL = {
    HARTMANN3_MF: functions.HARTMANN3,
    HARTMANN6_MF: functions.HARTMANN6,
    CURRIN_EXPONENTIAL_MF: functions.CURRIN_EXPONENTIAL,
    BRANIN_MF: functions.BRANIN,
}
EVERY = [*FULL, BOREHOLE_MF]
every_function = pytest.mark.parametrize("function", EVERY, ids=lambda function: function.name)


def bounds(function):
    return [(each.low, each.high) for each in function.space.values()]


def uniform(function, n, seed=0):
    low, high = np.array(bounds(function)).T
    return low + (high - low) * np.random.default_rng(seed).random((n, len(low)))


@pytest.mark.parametrize(("function", "full"), FULL.items(), ids=lambda function: function.name)
def test_full_fidelity_gives_the_full_function(function, full):
    points = uniform(function, 50)
    assert function(points).tolist() == full(points).tolist()
    assert function.optimum == full.optimum and function.space == full.space


def hartmann(steepness, peaks):
    def value(x, z):
        heights = np.array([1.0 - 0.1 * (1 - z), 1.2, 3.0, 3.2])
        return heights @ np.exp(-np.sum(np.array(steepness) * (x - 1e-4 * np.array(peaks)) ** 2, axis=1))

    return value


def currin(x, z):
    ratio = (2300 * x[0] ** 3 + 1900 * x[0] ** 2 + 2092 * x[0] + 60) / (
        100 * x[0] ** 3 + 500 * x[0] ** 2 + 4 * x[0] + 20
    )
    return (1 - (1 - 0.1 * (1 - z)) * math.exp(-1 / (2 * x[1]))) * ratio


def branin(x, z):
    b, c, t = 5.1 / (4 * math.pi**2) - 0.01 * (1 - z), 5 / math.pi - 0.1 * (1 - z), 1 / (8 * math.pi) + 0.05 * (1 - z)
    return -((x[1] - b * x[0] ** 2 + c * x[0] - 6) ** 2) - 10 * (1 - t) * math.cos(x[0]) - 10


def borehole(x, z):
    r_w, r, t_u, h_u, t_l, h_l, length, k_w = x
    ratio = math.log(r / r_w)
    first = ratio * (1 + 2 * length * t_u / (ratio * r_w**2 * k_w) + t_u / t_l)
    second = ratio * (1.5 + 2 * length * t_u / (ratio * r_w**2 * k_w) + t_u / t_l)
    return z * 2 * math.pi * t_u * (h_u - h_l) / first + (1 - z) * 5 * t_u * (h_u - h_l) / second


# The formula in appendix D.2.2 of Wang et al. 2022, corrected so that z = 1 gives the full function.
PRINTED = {
    HARTMANN3_MF: hartmann(
        [[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]],
        [[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]],
    ),
    HARTMANN6_MF: hartmann(
        [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]],
        [
            [1312, 1696, 5569, 124, 8283, 5886],
            [2329, 4135, 8307, 3736, 1004, 9991],
            [2348, 1451, 3522, 2883, 3047, 6650],
            [4047, 8828, 8732, 5743, 1091, 381],
        ],
    ),
    CURRIN_EXPONENTIAL_MF: currin,
    BRANIN_MF: branin,
    BOREHOLE_MF: borehole,
}


@every_function
def test_lower_fidelities_are_as_printed(function):
    points, fidelities = uniform(function, 40), np.random.default_rng(1).random(40)
    expected = [PRINTED[function](x, z) for x, z in zip(points, fidelities, strict=True)]
    np.testing.assert_allclose(function(points, fidelities), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("function", "nu"),
    [
        (HARTMANN3_MF, 0.006103201358),
        (HARTMANN6_MF, 0.00842254613),
        (CURRIN_EXPONENTIAL_MF, 0.6094708386),
        (BOREHOLE_MF, 20.46960058),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_bias_at_the_centre_gives_the_published_smoothness(function, nu):
    """Tables 5 and 9 contain nu = sqrt(2)·|f(0.8) − f(0.2)|/0.6 at the centre. Branin is left out: in the tables its
    fidelity shifts only b, and here also c and t."""
    centre = np.mean(bounds(function), axis=1)[None]
    slope = abs(function(centre, 0.8)[0] - function(centre, 0.2)[0]) / 0.6
    assert math.sqrt(2) * slope == pytest.approx(nu, rel=1e-9)


@every_function
def test_the_bias_grows_as_fidelity_falls(function):
    points = uniform(function, 30)
    full = function(points)
    distances = [np.abs(function(points, z) - full).max() for z in (1.0, 0.75, 0.5, 0.25, 0.0)]
    assert distances[0] == 0.0 and np.all(np.diff(distances) > 0)


@every_function
def test_costs_rise_with_fidelity(function):
    costs = [function.cost(z) for z in np.linspace(0, 1, 21)]
    assert costs[0] > 0 and np.all(np.diff(costs) > 0)


def test_costs_are_as_printed():
    for z in (0.0, 0.3, 1.0):
        assert HARTMANN3_MF.cost(z) == HARTMANN6_MF.cost(z) == pytest.approx(0.05 + 0.95 * z**3)
        assert CURRIN_EXPONENTIAL_MF.cost(z) == pytest.approx(0.1 + z**2)
        assert BOREHOLE_MF.cost(z) == pytest.approx(0.1 + z**1.5)
        assert BRANIN_MF.cost(z) == pytest.approx(0.05 + z**3)


def test_the_optimum_of_borehole_is_in_a_corner_and_the_best_that_searches_find():
    """The optimum is the value 309.523221 at which the authors' code clips."""
    optimize = pytest.importorskip("scipy.optimize")
    corners = BOREHOLE_MF(list(itertools.product(*bounds(BOREHOLE_MF))))
    assert corners.max() == pytest.approx(BOREHOLE_MF.optimum, rel=1e-12)

    def loss(x):
        return -BOREHOLE_MF(x[None])[0]

    wide = optimize.differential_evolution(loss, bounds(BOREHOLE_MF), seed=0, maxiter=60)
    polished = optimize.minimize(loss, wide.x, bounds=bounds(BOREHOLE_MF), method="L-BFGS-B")
    assert BOREHOLE_MF.optimum - 0.01 < max(-wide.fun, -polished.fun) <= BOREHOLE_MF.optimum
    assert BOREHOLE_MF.optimum - 309.523221 == pytest.approx(0.0524, abs=1e-4)


def test_the_optimum_of_currin_is_above_the_authors_figure():
    optimize = pytest.importorskip("scipy.optimize")
    best = optimize.minimize_scalar(
        lambda x1: -CURRIN_EXPONENTIAL_MF([[x1, 0.0]])[0], bounds=(0, 1), method="bounded", options={"xatol": 1e-10}
    )
    assert -best.fun == pytest.approx(CURRIN_EXPONENTIAL_MF.optimum, rel=1e-12)
    assert CURRIN_EXPONENTIAL_MF.optimum - 13.798685 == pytest.approx(3.7e-5, abs=1e-6)


def test_schwefel_is_optimal_in_each_coordinate():
    optimize = pytest.importorskip("scipy.optimize")

    def loss(x):
        return -SCHWEFEL20([[*[420.9687] * 19, x]])[0]

    starts = np.linspace(0, 500, 41)
    found = [
        optimize.minimize_scalar(loss, bounds=each, method="bounded", options={"xatol": 1e-9})
        for each in itertools.pairwise(starts)
    ]
    best = min(found, key=lambda each: each.fun).x
    assert best == pytest.approx(420.9687, abs=1e-3)
    assert SCHWEFEL20([[best] * 20])[0] == pytest.approx(SCHWEFEL20.optimum, abs=1e-9)
    assert SCHWEFEL20(uniform(SCHWEFEL20, 1000)).max() < SCHWEFEL20.optimum
    assert SCHWEFEL20([[0.0] * 20])[0] == pytest.approx(-20 * 418.9829)


@every_function
def test_rows_of_an_array_have_the_values_of_the_parameters(function):
    points, fidelities = uniform(function, 5), [0.0, 0.25, 0.5, 1.0, 0.9]
    by_name = [
        function(dict(zip(function.space, point, strict=True)), z) for point, z in zip(points, fidelities, strict=True)
    ]
    assert function(points, fidelities).tolist() == by_name
    assert function(points, 0.5).tolist() == [function(point[None], 0.5)[0] for point in points]
    assert function(np.empty((0, len(function.space)))).shape == (0,)


@pytest.mark.parametrize("z", [-0.1, 1.1, math.nan, [0.5, 2.0]])
def test_fidelities_outside_their_range_are_refused(z):
    with pytest.raises(bl.errors.InvalidSetting, match=r"the fidelity of branin-mf is from 0 to 1, got .* pass z=1"):
        BRANIN_MF([[0.0, 0.0], [1.0, 1.0]], z)


def test_fidelities_of_another_shape_are_refused():
    with pytest.raises(bl.errors.InvalidSetting, match=r"shape \(3,\) do not fit 2 points: pass one number"):
        BRANIN_MF([[0.0, 0.0], [1.0, 1.0]], [0.1, 0.2, 0.3])
    with pytest.raises(bl.errors.InvalidSetting, match=r"take one fidelity, got shape \(2,\): pass a number"):
        BRANIN_MF({"x1": 0.0, "x2": 0.0}, [0.1, 0.2])


@pytest.mark.parametrize("points", [[0.5, 0.5], [[0.5]], [[[0.5, 0.5]]], 0.5])
def test_arrays_of_another_shape_are_refused(points):
    with pytest.raises(
        bl.errors.InvalidSetting, match=r"branin-mf takes parameters by name, or an array of shape \(n, 2\)"
    ):
        BRANIN_MF(points)
