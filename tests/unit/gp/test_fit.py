"""Fits of the hyperparameters reach the evidence of scikit-learn's fits, and a fit never lowers the evidence."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel

from belated._core import GaussianProcess
from tests.unit.gp.problems import FULL, KERNELS, both, close, shape

pytestmark = pytest.mark.usefixtures("one_thread")


def data_sets():
    """Each data set has a name, n, d, f and the standard deviation of the noise. No data set is pure noise, because its
    evidence has dozens of equal maxima, and each library may find a different maximum.
    """
    sets = [
        ("smooth", 40, 2, lambda x: np.sin(3 * x.sum(axis=1)), 0.05),
        ("rough", 60, 1, lambda x: np.sin(25 * x[:, 0]) + x[:, 0], 0.2),
        ("one column matters", 50, 5, lambda x: np.exp(x[:, 2]) * np.sin(6 * x[:, 2]), 0.1),
        ("much noise", 80, 3, lambda x: np.sin(4 * x).sum(axis=1), 1.0),
        ("without noise", 35, 2, lambda x: np.cos(4 * x[:, 0]) * x[:, 1], 0.0),
        ("of many rows", 260, 3, lambda x: np.sin(4 * x).sum(axis=1), 0.3),
    ]
    return [pytest.param(*rest, id=name) for name, *rest in sets]


@both
@pytest.mark.parametrize("n, d, f, noise", data_sets())
def test_optimize_reaches_the_evidence_of_scikit_learn(kernel, n, d, f, noise):
    for seed in range(5 if FULL else 1):
        rng = np.random.default_rng(seed)
        x = rng.random((n, d))
        y = f(x) + noise * rng.normal(size=n)
        y = (y - y.mean()) / y.std()
        # scikit-learn searches within belated's bounds.
        reference = GaussianProcessRegressor(
            ConstantKernel(1.0, (1e-6, 1e6)) * shape(kernel, np.ones(d), (1e-3, 1e6)) + WhiteKernel(0.1, (1e-8, 1e4)),
            alpha=0.0,
            n_restarts_optimizer=10 if FULL else 1,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            best = reference.fit(x, y).log_marginal_likelihood_value_
        gp = GaussianProcess(kernel, np.ones(d), 1.0, 0.1)
        gp.fit(x, y)
        before = gp.log_marginal_likelihood()
        gp.optimize(n_restarts=10, seed=seed, priors=False)
        after = gp.log_marginal_likelihood()
        assert after >= before and after >= best - 0.5
        assert np.array_equal(gp.x, x) and close(gp.y, y, 1e-7)


@pytest.mark.parametrize("seed", range(150) if FULL else [1, 36, 86, 88, 101, 102])
def test_optimize_never_lowers_the_evidence(seed):
    rng = np.random.default_rng(seed)
    # With many rows a fit starts with a subset of the rows, but must not lower the evidence of all rows.
    n, d = int(rng.integers(152, 420) if seed < 100 else rng.integers(1, 152)), int(rng.integers(1, 7))
    x = rng.random((n, d))
    y = np.sin(x @ rng.normal(size=d) * rng.choice([1, 5, 15])) + rng.choice([0.01, 0.1, 0.5, 2.0]) * rng.normal(size=n)
    y = (y - y.mean()) / (y.std() or 1.0)
    gp = GaussianProcess(KERNELS[seed % 2], np.full(d, 0.5), 1.0, 0.1)
    gp.fit(x, y)
    for restarts in (8, 1, 4):
        for again in range(2):
            before = gp.log_marginal_likelihood()
            gp.optimize(restarts, seed + again, priors=False)
            assert gp.log_marginal_likelihood() >= before - 1e-6


def test_priors_bound_theta_if_the_data_are_uninformative():
    rng = np.random.default_rng(0)
    gp = GaussianProcess(noise=0.1)
    x = rng.random((4, 3))
    gp.fit(x, rng.normal(size=4))
    gp.optimize(priors=True)
    assert (gp.lengthscale > 1e-2).all() and 1e-2 < gp.variance < 1e2 and 1e-6 < gp.noise < 1


@pytest.mark.parametrize("priors", [True, False])
def test_irrelevant_columns_get_long_lengthscales(priors):
    """The relevant column explains f to a thousandth of its range, so the irrelevant column must have a smaller
    effect."""
    x = np.random.default_rng(0).random((60, 2))
    y = np.sin(5 * x[:, 0])
    gp = GaussianProcess("matern52", [0.5, 0.5], 1.0, 1e-4)
    gp.fit(x, (y - y.mean()) / y.std())
    gp.optimize(seed=0, priors=priors)
    assert gp.lengthscale[1] > 2000 and gp.lengthscale[0] < 5
