"""Acquisitions compared with quadrature, closed forms and draws."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import erfcx

from belated._core import Acquisition, GaussianProcess
from tests.unit.gp.problems import FULL, close, fitted

pytestmark = pytest.mark.usefixtures("one_thread")


def quadrature(u):
    """log E max(0, u + N(0, 1)) = log φ(u) + log ∫ t exp(ut − t²/2) dt over t > 0, a form without cancellation."""
    integral, _ = quad(lambda t: t * np.exp(u * t - t * t / 2), 0, np.inf, epsabs=0, epsrel=1e-13, limit=500)
    return -0.5 * u * u - 0.5 * np.log(2 * np.pi) + np.log(integral)


def closed_form(u):
    """Compute log(φ(u) + u Φ(u)) for u < 0 by the scaled complementary error function."""
    ratio = np.sqrt(np.pi / 2) * erfcx(-u / np.sqrt(2))
    return -0.5 * u * u - 0.5 * np.log(2 * np.pi) + np.log1p(u * ratio)


def log_improvement(u):
    """Return the acquisition as a function of u, at a point far from the data, where mean and std equal the prior's."""
    gp = GaussianProcess("squared_exponential", 0.01, 1.0, 0.1)
    gp.fit(np.array([[0.0]]), np.array([1.0]))
    far = np.array([[1.0]])
    assert np.ravel(gp.predict(far)).tolist() == [0.0, 1.0]
    return Acquisition.log_expected_improvement(gp, -u)(far)[0]


@settings(max_examples=2000 if FULL else 200)
@given(u=st.floats(-38, 5))
@example(u=-38.0)
@example(u=-1.0)
@example(u=0.0)
def test_log_expected_improvement(u):
    value = log_improvement(u)
    assert abs(value - quadrature(u)) <= 1e-11 * max(1, abs(value))
    if u < -0.1:
        assert abs(value - closed_form(u)) <= 1e-11 * max(1, abs(value))


def test_log_expected_improvement_far_out():
    # h(u) → φ(u)/u² (1 − 3/u²) for u → −∞, and h(u) → u for u → ∞.
    for u in (-1e2, -1e3, -1e6):
        expected = -0.5 * u * u - 0.5 * np.log(2 * np.pi) - 2 * np.log(-u) + np.log1p(-3 / u**2)
        assert log_improvement(u) == pytest.approx(expected, rel=1e-9)
    assert log_improvement(1e6) == pytest.approx(np.log(1e6), rel=1e-12)
    for u in (-40.0, -1.0):  # the implementation changes its formula at these points
        a, b = log_improvement(np.nextafter(u, -np.inf)), log_improvement(np.nextafter(u, np.inf))
        assert abs(a - b) <= 1e-10 * abs(a)


def test_expected_improvement_equals_the_mean_over_draws():
    gp = fitted(n=6)
    z = np.random.default_rng(1).random((3, 2))
    draws = gp.sample(z, 200_000, 0)
    for incumbent in (-1.0, 0.5, 1.0):
        improvement = np.maximum(draws - incumbent, 0)
        error = improvement.std(axis=0) / np.sqrt(len(draws))
        value = np.exp(Acquisition.log_expected_improvement(gp, incumbent)(z))
        assert (np.abs(value - improvement.mean(axis=0)) <= 5 * error + 1e-6).all()


def test_upper_confidence_bound_is_mean_plus_multiple_of_std():
    gp, z = fitted(), np.random.default_rng(1).random((300, 2))
    mean, std = gp.predict(z)
    assert close(Acquisition.upper_confidence_bound(gp, 2.5)(z), mean + 2.5 * std, 1e-12)
