"""Kernels, data, posteriors and acquisitions for the tests of the Gaussian process."""

import os

import numpy as np
import pytest
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, Matern

import belated as bl
from belated._core import Acquisition, GaussianProcess

FULL = os.environ.get("BELATED_FULL") == "1"
NU = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}
KERNELS = ["squared_exponential", *NU]
both = pytest.mark.parametrize("kernel", KERNELS)
# The roughest kernel is left out, because its means and draws have kinks.
SMOOTH = [kernel for kernel in KERNELS if kernel != "matern12"]
smooth = pytest.mark.parametrize("kernel", SMOOTH)


def shape(kernel, lengthscale, bounds=(1e-5, 1e5)):
    """Return scikit-learn's kernel with the same name, with variance 1."""
    if kernel == "squared_exponential":
        return RBF(lengthscale, length_scale_bounds=bounds)
    return Matern(lengthscale, nu=NU[kernel], length_scale_bounds=bounds)


def wave(x, rng, noise=0.1):
    """Return random points of the unit cube, and noisy targets of order one."""
    return np.sin(3 * x.sum(axis=1)) + x[:, 0] + noise * rng.normal(size=len(x))


def fitted(kernel="matern52", n=20, d=2, noise=1e-2, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    gp = GaussianProcess(kernel, np.linspace(0.3, 0.6, d), 1.3, noise)
    gp.fit(x, wave(x, rng))
    return gp


def close(a, b, tolerance):
    """Return whether two arrays are equal up to `tolerance` times the largest entry."""
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and np.all(np.abs(a - b) <= tolerance * max(np.abs(b).max(initial=0), 1e-300))


@st.composite
def problems(draw):
    """Draw a kernel, θ, data and test points. θ covers several decades. The noise variance is at least a thousandth of
    the signal variance, so the condition number of the covariance is at most n·1000, which bounds the difference
    between two correct computations.
    """
    n, d = draw(st.integers(1, 500 if FULL else 60)), draw(st.integers(1, 10))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    lengthscale = 10 ** rng.uniform(-1, 1, size=d)
    variance = 10 ** rng.uniform(-2, 2)
    noise = variance * 10 ** rng.uniform(-3, 0)
    x = rng.random((n, d))
    y = np.sqrt(variance) * wave(x, rng)
    return draw(st.sampled_from(KERNELS)), lengthscale, variance, noise, x, y, rng.random((30, d))


def acquisitions(gp, seed=0):
    return [
        Acquisition.upper_confidence_bound(gp, 1.7),
        Acquisition.upper_confidence_bound(gp, 0.0),
        Acquisition.log_expected_improvement(gp, 0.5),
        Acquisition.log_expected_improvement(gp, 30.0),
        Acquisition.log_expected_improvement(gp, -30.0),
        Acquisition.thompson(gp, nu=1.5, n_features=64, seed=seed),
    ]


def farthest(points, x):
    """Return the point that is farthest from the rows, because rough kernels have kinks at the rows."""
    distance = np.linalg.norm(points[:, None] - x[None], axis=2).min(axis=1)
    return points[distance.argmax()]


def cube(d):
    return bl.Space({f"x{k}": (0.0, 1.0) for k in range(d)}).core.domain()
