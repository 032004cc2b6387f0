"""Until the next fit, the model stays good after outliers, corrected values and many trials close together."""

import numpy as np
import pytest

import belated as bl

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
OPTIMUM = np.array([(np.pi + 5) / 15, 2.275 / 15])
RANGE = 308.0


def branin(x, y):
    """A function on the unit square whose maximum is 0."""
    x, y = 15 * x - 5, 15 * y
    bowl = (y - 5.1 / (4 * np.pi**2) * x * x + 5 / np.pi * x - 6) ** 2
    return -(bowl + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10) + 0.39788735772973816


def bowl(x, y):
    return -((x - 0.3) ** 2) - (y - 0.7) ** 2


def six_hump(x, y):
    x, y = 4 * x - 2, 2 * y - 1
    return -((4 - 2.1 * x * x + x**4 / 3) * x * x + x * y + (-4 + 4 * y * y) * y * y)


def spread(n, seed):
    rng = np.random.default_rng(seed)
    points = [{"x": x, "y": y} for x, y in rng.random((n, 2))]
    return points, [branin(**point) for point in points]


def added(points, values, seed):
    opt = bl.BayesOpt(SPACE, seed=seed)
    opt.add(points, values)
    return opt


def regret(opt):
    return -branin(**opt.recommend())


def allowed(points, values, seed):
    """Return the allowed regret: ten times the regret of an optimizer without the outlier, but at least a millionth of
    the range."""
    return max(10 * regret(added(points, values, seed)), 1e-6 * RANGE)


@pytest.mark.parametrize(("n", "value"), [(50, -1e8), (100, -1e3), (100, 1e4), (200, -1e6)])
def test_an_outlier_between_fits_does_not_spoil_recommendations(n, value):
    points, values = spread(n, 0)
    opt = added(points, values, 0)
    trial = opt.suggest()
    trial.observe(branin(**trial.params))
    outlier = {"x": 0.01, "y": 0.01}
    opt.add(outlier, value)
    points, values = [*points, trial.params, outlier], [*values, branin(**trial.params), value]
    assert regret(opt) <= allowed(points, values, 0)


@pytest.mark.parametrize(("n", "factor"), [(30, 10.0), (60, 100.0), (120, -1e4)])
def test_a_corrected_value_counts_like_a_correct_one(n, factor):
    points, values = spread(n, 2)
    opt = added(points[:-1], values[:-1], 2)
    wrong = opt.add(points[-1], factor * values[-1])
    trial = opt.suggest()
    trial.observe(branin(**trial.params))
    wrong.observe(values[-1], amend=True)
    assert regret(opt) <= allowed([*points, trial.params], [*values, branin(**trial.params)], 2)


@pytest.mark.parametrize("h", [1e-3, 1e-4])
def test_values_stay_distinct_if_most_trials_are_near_the_optimum(h):
    rng = np.random.default_rng(0)
    points = np.clip(np.vstack([rng.random((40, 2)), OPTIMUM + h * rng.standard_normal((45, 2))]), 0, 1)
    values = np.array([branin(*point) for point in points])
    opt = added([{"x": x, "y": y} for x, y in points], list(values), 0)
    error = np.abs(opt.predict(points)[0] - values)
    assert error.max() < 0.01 * np.ptp(values)


def test_predictions_elsewhere_stay_calibrated_if_trials_crowd_near_the_optimum():
    """Without noise, the 95 % intervals contain f at 90 % or more of random points, on average over functions and
    designs."""
    points = np.random.default_rng(99).random((200, 2))
    covered = []
    for f, best in ((branin, (0.9617, 0.15)), (bowl, (0.3, 0.7)), (six_hump, (0.5225, 0.1437))):
        truth = np.array([f(*point) for point in points])
        for seed in range(6):
            rng = np.random.default_rng(seed)
            near = [np.array(best) + distance * rng.standard_normal((15, 2)) for distance in (0.01, 0.001)]
            rows = np.clip(np.vstack([rng.random((15, 2)), *near]), 0.0, 1.0)
            opt = bl.BayesOpt(SPACE, seed=seed)
            opt.add([{"x": x, "y": y} for x, y in rows], [f(x, y) for x, y in rows])
            mean, std = opt.predict(points)
            covered.append(np.mean(np.abs(mean - truth) < 1.96 * std))
    assert np.mean(covered) >= 0.9


def test_a_value_of_pure_noise_does_not_determine_the_scale():
    x = np.random.default_rng(0).random(25)
    f = np.sin(6 * x) + 0.3 * x
    grid = np.linspace(0, 1, 101)[:, None]
    means = []
    for extra in (False, True):
        opt = bl.BayesOpt({"x": (0.0, 1.0)}, seed=0)
        opt.add([{"x": v} for v in x], list(f))
        if extra:
            opt.add({"x": 0.9}, 1e4, std=1e4)
        means.append(opt.predict(grid)[0])
    np.testing.assert_allclose(*means, atol=0.02)
