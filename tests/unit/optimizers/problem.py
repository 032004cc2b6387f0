"""For tests of optimizers: a box, candidates, a given model, an objective, and a run with late results."""

import numpy as np
import pytest

import belated as bl

BOX = {"x": (-1.0, 1.0), "n": (1, 8)}
ROWS = np.array([[i, i % 3] for i in range(12)], dtype=float)
KINDS = [bl.RandomSearch, bl.BayesOpt]
both = pytest.mark.parametrize("kind", KINDS)


def raw_gp(lengthscale, variance, noise):
    """Return a model with a given Matérn 5/2 kernel, whose targets are not standardised; `noise` is a variance."""
    theta = {"lengthscale": lengthscale, "signal_std": np.sqrt(variance), "noise_std": np.sqrt(noise)}
    return bl.GP(kernel="matern52", targets="raw", mean="zero", **theta)


def unit_square(seed, n=200):
    """Return points that span the unit square, so encoded and plain coordinates are equal."""
    rows = np.random.default_rng(seed).random((n, 2))
    rows[:2] = [[0.0, 0.0], [1.0, 1.0]]
    return rows


def objective(params):
    return -((params["x"] - 0.3) ** 2) - 0.01 * params["n"]


def run(opt, n, sign=1.0, lag=3):
    """Suggest n trials and observe each of them `lag` suggestions later; return the suggested params."""
    suggested = []
    for _ in range(n):
        suggested.append(opt.suggest())
        if len(suggested) > lag:
            trial = suggested[-1 - lag]
            trial.observe(sign * objective(trial.params))
    return [trial.params for trial in suggested]
