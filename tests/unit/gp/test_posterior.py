"""Posterior and evidence compared with scikit-learn."""

import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel

from belated._core import GaussianProcess
from tests.unit.gp.problems import FULL, both, close, fitted, problems, shape, wave

pytestmark = pytest.mark.usefixtures("one_thread")


def extreme(kernel):
    """A problem of the largest supported size, with nearly the largest condition number."""
    rng = np.random.default_rng(1)
    x = rng.random((500, 10))
    return kernel, np.full(10, 3.0), 2.0, 2e-3, x, wave(x, rng), rng.random((30, 10))


@settings(max_examples=300 if FULL else 30)
@given(problem=problems())
@example(problem=extreme("squared_exponential"))
@example(problem=extreme("matern52"))
def test_posterior_and_evidence_agree_with_scikit_learn(problem):
    kernel, lengthscale, variance, noise, x, y, z = problem
    gp = GaussianProcess(kernel, lengthscale, variance, noise)
    gp.fit(x, y)
    base = ConstantKernel(variance) * shape(kernel, lengthscale)
    mean, std = gp.predict(z)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        reference = GaussianProcessRegressor(base, alpha=noise, optimizer=None).fit(x, y)
        reference_mean, reference_std = reference.predict(z, return_std=True)
        evidence = reference.log_marginal_likelihood(reference.kernel_.theta)
    assert close(mean, reference_mean, 1e-8)
    np.testing.assert_allclose(std, reference_std, rtol=1e-8)
    # The tolerance is relative to n, because the evidence is a sum of two terms of size n that may cancel.
    assert abs(gp.log_marginal_likelihood() - evidence) <= 1e-8 * max(abs(evidence), len(y))
    assert gp.n_observed == len(y)
    assert close(gp.y, y, 1e-10) and np.array_equal(gp.x, x)


@both
def test_posterior_without_data_is_the_prior(kernel):
    z = np.random.default_rng(0).random((4, 3))
    for prior in (GaussianProcess(kernel, 0.5, 2.0, 0.1), GaussianProcess(kernel, [0.5] * 3, 2.0, 0.1)):
        mean, std = prior.predict(z)
        assert (mean == 0).all() and (std == np.sqrt(2.0)).all()
        prior.fit(np.empty((0, 3)), np.empty(0))
        assert prior.n_observed == 0 and prior.log_marginal_likelihood() == 0
        assert np.array_equal(prior.predict(z), (mean, std))
    assert [a.shape for a in fitted().predict(np.empty((0, 2)))] == [(0,), (0,)]


def test_arrays_of_any_layout():
    rng = np.random.default_rng(0)
    x, z = rng.random((24, 4)), rng.random((9, 4))
    y = wave(x, rng)
    gp, same = GaussianProcess(noise=0.1), GaussianProcess(noise=0.1)
    gp.fit(x[::-2, 1:3], y[::-2])
    same.fit(x[::-2, 1:3].copy(), y[::-2].copy())
    for view in (z[::3, 1:3], z.T[1:3, :].T, z[::-1, 2:0:-1], np.broadcast_to(z[0, :2], (5, 2))):
        assert np.array_equal(gp.predict(view), same.predict(view.copy()))
