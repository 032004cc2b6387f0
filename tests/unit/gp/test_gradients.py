"""Gradients of the posterior and of acquisitions compared with finite differences."""

import numpy as np
import pytest
from hypothesis import given, settings

from belated._core import Acquisition, GaussianProcess
from tests.unit.gp.problems import FULL, acquisitions, close, farthest, fitted, problems, smooth

pytestmark = pytest.mark.usefixtures("one_thread")


def slope(f, x, h=1e-4):
    """Return central differences; extrapolation removes the error term of order h²."""

    def at(h):
        steps = h * np.eye(len(x))
        return np.array([(f(x + step) - f(x - step)) / (2 * h) for step in steps])

    return (4 * at(h / 2) - at(h)) / 3


@settings(max_examples=300 if FULL else 40)
@given(problem=problems())
def test_gradients_of_mean_and_std_are_finite_differences(problem):
    kernel, lengthscale, variance, noise, x, y, z = problem
    gp = GaussianProcess(kernel, lengthscale, variance, noise)
    gp.fit(x, y)
    z = farthest(z, x)
    # An upper confidence bound is the mean plus nu times the std.
    mean, by_mean = Acquisition.upper_confidence_bound(gp, 0.0).gradient(z)
    bound, by_bound = Acquisition.upper_confidence_bound(gp, 1.0).gradient(z)
    by_std = by_bound - by_mean
    assert close([mean, bound - mean], np.ravel(gp.predict(z[None])), 1e-9)
    # The tolerance is the values' rounding error divided by the step.
    scale = np.sqrt(variance) * max(1, 1 / lengthscale.min())
    assert np.allclose(by_mean, slope(lambda p: gp.predict(p[None])[0][0], z), rtol=1e-6, atol=1e-6 * scale)
    assert np.allclose(by_std, slope(lambda p: gp.predict(p[None])[1][0], z), rtol=1e-6, atol=1e-6 * scale)


def test_gradients_are_finite_where_std_is_zero():
    gp = GaussianProcess("squared_exponential", 1.0, 1.0, 0.0)
    gp.fit(np.array([[0.5]]), np.array([2.0]))
    mean, by_mean = Acquisition.upper_confidence_bound(gp, 0.0).gradient(np.array([0.5]))
    assert mean == 2.0 and by_mean == [0.0] and gp.predict(np.array([[0.5]]))[1] == 0.0
    for acquisition in (Acquisition.upper_confidence_bound(gp, 1.0), Acquisition.log_expected_improvement(gp, 1.0)):
        value, gradient = acquisition.gradient(np.array([0.5]))
        assert np.isfinite(value) and np.isfinite(gradient).all()


@smooth
@pytest.mark.parametrize("d", [1, 3, 10])
def test_gradients_of_acquisitions_are_finite_differences(kernel, d):
    for seed in range(40 if FULL else 4):
        gp = fitted(kernel, n=25, d=d, seed=seed)
        rng = np.random.default_rng(seed)
        for point in (farthest(rng.random((20, d)), gp.x) for _ in range(3)):
            for acquisition in acquisitions(gp, seed):
                value, gradient = acquisition.gradient(point)
                expected = slope(lambda p, f=acquisition: f(p[None])[0], point)
                assert close(value, acquisition(point[None])[0], 1e-9)
                assert np.allclose(gradient, expected, rtol=1e-5, atol=1e-6 * max(1, abs(value)))
