"""Pending policies: the expected improvement agrees with joint draws of the pending values, and the constant liar is
right.

Notation: f is drawn at the points D: observed points in the query's context c, and pending points in their own
contexts. The acquisition at x is log E max(0, f(x, c) − f*). The incumbent f* is the largest of E[f(x_D, c) | f(D)]
over D (Letham et al. 2019 and Balandat et al. 2020). If there is only one context, f* is the largest f(D).
"""

import numpy as np
import pytest
from scipy.stats import norm, qmc

import belated as bl
from tests.unit.optimizers.dense_posterior import DensePosterior
from tests.unit.optimizers.problem import raw_gp

VARIANCE = 1.0
LENGTHSCALE = np.array([0.3, 0.3, 0.8])  # two columns of x, and the context
N_OBSERVED, N_PENDING = 6, 3


def optimizer(candidates, noise, n):
    """Noisy expected improvement with n fantasies, a given kernel and raw targets; `noise` is a variance."""
    return bl.BayesOpt(
        candidates=candidates,
        context={"c": (0.0, 1.0)},
        acquisition="log_ei",
        pending=bl.Integrate(n),
        surrogate=raw_gp(LENGTHSCALE, VARIANCE, noise),
        initial=0,
        seed=0,
    )


def liar(lie, direction="maximize"):
    """Settings of a model whose prior mean is estimated and whose predictions equal the observed values."""
    return bl.BayesOpt(
        {"x": (0.0, 1.0)},
        acquisition="ucb",
        pending=bl.Liar(lie),
        surrogate=bl.GP(kernel="matern52", lengthscale=0.2, signal_std=1.0, noise_std=1e-4, mean="estimated"),
        initial=0,
        direction=direction,
        seed=0,
    )


def in_context(rows, c):
    return np.column_stack([rows, np.broadcast_to(c, len(rows))])


def log_values(dense, observed, contexts, pending, candidates, c):
    """Return the log expected improvement of each candidate, computed from 2¹² draws of f at the points D; the rows
    `pending` include their contexts.

    D has the points observed in context c and the rows `pending`. A point of another context counts with its lower
    bound given the draws.
    """
    drawn = np.vstack([in_context(observed[contexts == c], c), pending])
    here = in_context(np.vstack([observed, pending[:, :2]]), c)
    z = norm.ppf(np.clip(qmc.Sobol(len(drawn), seed=3).random_base2(12), 1e-12, 1 - 1e-12))
    covariance = dense.covariance(drawn, drawn)
    f = dense.mean(drawn) + z @ np.linalg.cholesky(covariance + 1e-10 * np.eye(len(drawn))).T

    def given_draws(points):
        """Return E[f(points) | f(D)], with a row for each draw, and the remaining variances."""
        cross = dense.covariance(points, drawn)
        weights = np.linalg.solve(covariance + 1e-10 * np.eye(len(drawn)), cross.T)
        left = dense.variances(points) - (cross * weights.T).sum(axis=1)
        return dense.mean(points) + (f - dense.mean(drawn)) @ weights, np.maximum(left, 1e-24)

    means, left = given_draws(here)
    best = (means - 2 * np.sqrt(left)).max(axis=1)
    mean, variance = given_draws(in_context(candidates, c))
    sigma = np.sqrt(variance)
    u = (mean - best[:, None]) / sigma
    return np.log((sigma * (norm.pdf(u) + u * norm.cdf(u))).mean(axis=0))


def shortfall(seed, noise, context_of_pending):
    """Suggest a candidate in context 0; return how much worse the suggestion is than the best candidate that is not in
    flight."""
    rng = np.random.default_rng(seed)
    candidates = rng.random((50, 2))
    candidates[:2] = [[0.0, 0.0], [1.0, 1.0]]  # encoded and plain coordinates are then equal
    order = rng.permutation(np.arange(2, 50))
    tried, waiting = order[:N_OBSERVED], order[N_OBSERVED : N_OBSERVED + N_PENDING]
    contexts = rng.choice([0.0, 1.0], size=N_OBSERVED)
    # f is far larger in context 1, so every point in context 1 improves on every point in context 0.
    values = 2.0 * contexts - 1.0 + np.sqrt(noise) * rng.normal(size=N_OBSERVED)
    opt = optimizer(candidates, noise, 1024)
    for i, c, y in zip(tried, contexts, values, strict=True):
        opt.add(int(i), y, context={"c": c})
    for i in waiting:
        opt.add(int(i), context={"c": context_of_pending})
    chosen = opt.suggest(context={"c": 0.0}).index

    observed = candidates[tried]
    dense = DensePosterior(np.column_stack([observed, contexts]), values, LENGTHSCALE, VARIANCE, noise)
    # The optimizer draws f at the points observed in this context that may be the best point: here, all of them.
    here = in_context(observed[contexts == 0.0], 0.0)
    mean, sigma = dense.mean(here), np.sqrt(dense.variances(here))
    if (mean + 2 * sigma).min() < mean.max() - 2 * sigma[mean.argmax()]:
        return None
    value = log_values(dense, observed, contexts, in_context(candidates[waiting], context_of_pending), candidates, 0.0)
    free = np.setdiff1d(np.arange(50), np.append(tried, waiting))
    return value[free].max() - value[chosen]


@pytest.mark.parametrize("noise", [0.3, 2.0])
@pytest.mark.parametrize("context_of_pending", [0.0, 1.0])
def test_noisy_expected_improvement_averages_joint_draws_in_the_querys_context(noise, context_of_pending):
    found = [shortfall(seed, noise, context_of_pending) for seed in range(10, 20)]
    found = [value for value in found if value is not None]
    assert len(found) >= 8 and max(found) <= 0.02


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize(("lie", "truth"), [("min", np.min), ("mean", np.mean), ("max", np.max), (4.5, lambda y: 4.5)])
def test_the_constant_liar_keeps_its_value_if_the_prior_mean_is_estimated(direction, lie, truth):
    """Ten equal points have little more weight than one, so the estimated prior mean is far from the mean of the
    values."""
    opt = liar(lie, direction)
    x = np.append(np.linspace(0.1, 0.12, 10), 0.9)
    y = np.append(np.full(10, 7.0) + np.linspace(0, 0.1, 10), 1.0)
    opt.add([{"x": v} for v in x], y)
    waiting = opt.add({"x": 0.5})
    opt.suggest().abandon()
    _, center, scale, _ = opt._log.surrogate(None, False)
    assert abs(abs(center) - y.mean()) > 0.2 * scale
    assert opt.predict([waiting.params], pending=True)[0] == pytest.approx(truth(y), abs=1e-3)
