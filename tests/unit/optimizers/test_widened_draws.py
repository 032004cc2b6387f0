"""GP-TS-SDF suggests each point with the right frequency: its draws deviate nu_t times as far from the mean as
posterior draws.

Verma, Dai and Low 2022, Algorithm 1: f_t ~ GP(mu, nu_t² Sigma), nu_t = sum of sigma(x_s) over the last m trials + beta.
Three points are so far apart that their values are independent; two of them were observed, with as much noise as
signal.
"""

import numpy as np
import pytest
from scipy.stats import norm

import belated as bl

VALUES = {0: 1.5, 2: 0.0}
BETA = 0.5
N_SEEDS = 400


def chosen(kind, widen, seed):
    """Return which of the three points is suggested."""
    domain = {"candidates": np.array([[0.0], [0.5], [1.0]])} if kind == "candidates" else {"space": {"k": (0, 2)}}
    opt = bl.BayesOpt(
        **domain,
        acquisition=bl.ThompsonSampling(BETA, widen=widen),
        pending=bl.Censor(-1.0),
        window=2,
        surrogate=bl.GP(kernel="matern52", lengthscale=0.01, signal_std=1.0, noise_std=1.0, targets="raw", mean="zero"),
        initial=0,
        seed=seed,
    )
    for k in VALUES:
        opt.enqueue(k if kind == "candidates" else {"k": k})
    for trial, value in zip(opt.suggest(n=2), VALUES.values(), strict=True):
        trial.observe(value)
    trial = opt.suggest()
    return trial.index if kind == "candidates" else trial.params["k"]


def probabilities(scale):
    """Compute the probability that point j has the largest of three independent values, by quadrature."""
    mean = np.array([VALUES[0] / 2, 0.0, VALUES[2] / 2])
    std = scale * np.sqrt([0.5, 1.0, 0.5])
    f = np.linspace(-15.0, 15.0, 20_001)[:, None]
    below, density = norm.cdf(f, mean, std), norm.pdf(f, mean, std)
    others = np.stack([np.delete(below, j, axis=1).prod(axis=1) for j in range(3)], axis=1)
    return (density * others).sum(axis=0) * (f[1, 0] - f[0, 0])


@pytest.mark.parametrize("kind", ["candidates", "box"])
@pytest.mark.parametrize("widen", [True, False])
def test_points_are_chosen_as_often_as_by_widened_draws(kind, widen):
    counts = np.bincount([chosen(kind, widen, seed) for seed in range(N_SEEDS)], minlength=3)
    nu = BETA + 2 * np.sqrt(0.5)
    expected, other = (probabilities(scale) for scale in ((nu, 1.0) if widen else (1.0, nu)))
    error = np.sqrt(expected * (1 - expected) / N_SEEDS)
    assert (abs(counts / N_SEEDS - expected) < 4 * error).all()
    # The test would detect draws that are not widened, or widened by mistake.
    assert (abs(counts / N_SEEDS - other) > 4 * error).any()
