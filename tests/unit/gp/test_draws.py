"""Draws and paths have the mean and covariance of the posterior, computed by one dense solve."""

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve

from belated._core import Acquisition
from tests.unit.gp.problems import FULL, NU, both, fitted

pytestmark = pytest.mark.usefixtures("one_thread")


def covariance(kernel, lengthscale, variance, a, b):
    r = np.sqrt((((a[:, None] - b[None]) / lengthscale) ** 2).sum(axis=-1))
    if kernel == "squared_exponential":
        return variance * np.exp(-(r**2) / 2)
    r *= np.sqrt(2 * NU[kernel])
    return variance * {"matern12": 1, "matern32": 1 + r, "matern52": 1 + r + r**2 / 3}[kernel] * np.exp(-r)


def posterior(gp, z):
    """Compute the posterior mean and covariance by one dense solve."""
    k = [covariance(gp.kernel, gp.lengthscale, gp.variance, a, b) for a, b in ((z, z), (z, gp.x), (gp.x, gp.x))]
    factor = cho_factor(k[2] + gp.noise * np.eye(len(gp.x)))
    return k[1] @ cho_solve(factor, gp.y), k[0] - k[1] @ cho_solve(factor, k[1].T)


def assert_moments(draws, mean, covariance, slack=0.0):
    """Check that the sample means and covariances are within five standard errors of the exact ones."""
    n, sd = len(draws), np.sqrt(np.diag(covariance))
    assert (np.abs(draws.mean(axis=0) - mean) <= 5 * sd / np.sqrt(n) + slack).all()
    centred = draws - mean
    error = np.sqrt((np.outer(sd, sd) ** 2 + covariance**2) / n)
    assert (np.abs(centred.T @ centred / n - covariance) <= 5 * error + slack).all()


@both
def test_draws_have_the_moments_of_the_posterior(kernel):
    rng = np.random.default_rng(3)
    for n in (1, 12):
        gp = fitted(kernel, n=n)
        z = rng.random((6, 2))
        mean, cov = posterior(gp, z)
        draws = gp.sample(z, 200_000 if FULL else 20_000, 5)
        assert_moments(draws, mean, cov, slack=1e-6)
        assert np.array_equal(draws[:7], gp.sample(z, 7, 5)) and not np.array_equal(draws[:7], gp.sample(z, 7, 6))
    twice = gp.sample(np.repeat(z, 2, axis=0), 50, 1)  # the covariance is singular
    assert np.abs(twice[:, ::2] - twice[:, 1::2]).max() < 1e-3


@both
def test_paths_have_the_moments_of_the_posterior(kernel):
    # The spectral features approximate only the prior, so paths must pass through the data.
    gp = fitted(kernel, n=12)
    z = np.random.default_rng(3).random((4, 2))
    mean, cov = posterior(gp, z)
    count = 20_000 if FULL else 3000
    for nu in (1.0, 2.5):
        draws = np.array([Acquisition.thompson(gp, nu, 128, seed)(z) for seed in range(count)])
        assert_moments(draws, mean, nu**2 * cov, slack=0.01 * nu**2 * np.diag(cov).max())
