"""The priors of the hyperparameters, tested with data that do not determine the hyperparameters."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import lognorm

import belated as bl
from belated._core import GaussianProcess

dimensions = pytest.mark.parametrize("d", [1, 4, 16])


def mode(d):
    """The mode of the lengthscale's prior, LogNormal(√2 + ½ log d, √3) (Hvarfner et al. 2024)."""
    prior = lognorm(s=np.sqrt(3), scale=np.exp(np.sqrt(2)) * np.sqrt(d))
    return minimize_scalar(lambda x: -prior.logpdf(x), bounds=(1e-3, 10), method="bounded").x


def optimizer(d):
    """Return an optimizer without an initial design: it uses the model from the first value on."""
    return bl.BayesOpt({f"x{k}": (0.0, 1.0) for k in range(d)}, initial=1, seed=0)


@dimensions
def test_without_information_the_lengthscales_are_at_the_mode_of_their_prior(d):
    gp = GaussianProcess(lengthscale=np.full(d, 1.5), noise=0.1)
    # The evidence of a single row does not depend on the lengthscales, so the prior determines the fitted lengthscales.
    gp.fit(np.full((1, d), 0.3), np.zeros(1))
    gp.optimize(priors=True)
    assert gp.lengthscale == pytest.approx(np.full(d, mode(d)), rel=0.02)


@dimensions
def test_an_optimizer_s_first_lengthscales_are_at_the_mode_of_their_prior(d):
    opt = optimizer(d)
    opt.suggest().observe(3.0)
    opt.suggest()
    model, *_ = opt._log.surrogate(None, False)
    assert model.lengthscale == pytest.approx(np.full(d, mode(d)), rel=0.02)
