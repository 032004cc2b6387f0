"""Suggestions by upper confidence bounds agree with a dense solve. The tests check whether sigma includes the noise,
and which trials contribute to the sum nu_t.

Notation follows Verma, Dai and Low 2022, Algorithm 1: m the window,
nu_t = Σ_{s=max(1,t−m)}^{t−1} sigma_{t−1}(x_s) + beta.
"""

import numpy as np
import pytest

import belated as bl
from tests.unit.optimizers.dense_posterior import DensePosterior
from tests.unit.optimizers.problem import raw_gp, unit_square

LENGTHSCALE, VARIANCE = 0.25, 1.0


def optimizer(candidates, noise, beta, predictive_std=False, **arguments):
    """Return an optimizer on candidates with UCB, a given kernel and targets that are not standardised; `noise` is a
    variance."""
    return bl.BayesOpt(
        candidates=candidates,
        acquisition=bl.UCB(beta, predictive_std=predictive_std),
        surrogate=raw_gp(LENGTHSCALE, VARIANCE, noise),
        initial=0,
        seed=0,
        **arguments,
    )


class Bound:
    """Compute mu + nu_t sigma at the untried candidates from its definition."""

    def __init__(self, rows, tried, y, noise):
        self.rows, self.tried, self.noise = rows, tried, noise
        self.free = np.setdiff1d(np.arange(len(rows)), tried)
        dense = DensePosterior(rows[tried], y, LENGTHSCALE, VARIANCE, noise)
        self.mean, self.variance = dense.mean(rows), dense.variances(rows)

    def values(self, beta, n_recent, in_sigma=False, in_nu=False):
        """Return the bounds, where nu_t is beta plus the sum of sigma over the last trials. The flags add the noise to
        the sigma that nu_t multiplies, and to each sigma in the sum."""
        recent = self.tried[len(self.tried) - n_recent :]
        nu = beta + np.sqrt(self.variance[recent] + self.noise * in_nu).sum()
        return self.mean + nu * np.sqrt(self.variance + self.noise * in_sigma)

    def shortfall(self, values, chosen):
        """Return how much worse the suggested candidate is than the best untried candidate."""
        return values[self.free].max() - values[chosen]

    def best(self, values):
        return self.free[values[self.free].argmax()]


def history(seed, n):
    """Return candidates, the indices of the tried candidates, and their values."""
    rows, rng = unit_square(seed), np.random.default_rng(200 + seed)
    return rows, rng.choice(np.arange(2, len(rows)), size=n, replace=False), rng.normal(size=n)


@pytest.mark.parametrize("predictive", [True, False])
@pytest.mark.parametrize(("pending", "beta"), [("ignore", 4.0), ("censor", 0.25)])
def test_predictive_std_counts_the_noise_in_every_sigma(pending, beta, predictive):
    noise, m, differ = 1.0, 2 * (pending == "censor"), np.zeros(3, dtype=int)
    for seed in range(40):
        rows, tried, y = history(seed, 8)
        censor = {"pending": bl.Censor(-1.0), "window": m} if pending == "censor" else {"pending": pending}
        opt = optimizer(rows, noise, beta, predictive, **censor)
        opt.enqueue(rows[tried])
        for trial, value in zip(opt.suggest(n=8), y, strict=True):
            trial.observe(value)
        bound = Bound(rows, tried, y, noise)
        values = bound.values(beta, m, predictive, predictive)
        assert bound.shortfall(values, opt.suggest().index) <= 1e-9
        wrong = [(not predictive, not predictive), (not predictive, predictive), (predictive, not predictive)]
        differ += [bound.best(bound.values(beta, m, *each)) != bound.best(values) for each in wrong]
    # A wrong sigma would change enough suggestions for the test to detect the error.
    assert (differ[: 3 if m else 2] >= 3).all()


@pytest.mark.parametrize("clock", ["iterations", "seconds"])
@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("arrived", [True, False])
def test_nu_sums_over_exactly_the_last_m_trials(clock, m, arrived):
    """The sum contains trials up to age m, but no older trials. Pending trials are rows whose target is the floor."""
    noise, floor, differ = 1.0, -1.0, np.zeros(2, dtype=int)
    for seed in range(20):
        rows, tried, y = history(seed, 7)
        time = [0.0]
        timed = {"time": lambda time=time: time[0]} if clock == "seconds" else {}
        opt = optimizer(rows, noise, 0.0, pending=bl.Censor(floor), window=m, clock=clock, **timed)
        opt.enqueue(rows[tried])
        for i, value in enumerate(y):
            time[0] = float(i)
            trial = opt.suggest()
            assert trial.index == tried[i]
            if arrived or i < len(y) - m:
                trial.observe(value)
        time[0] = float(len(y))
        known = y if arrived else np.append(y[: len(y) - m], np.full(m, floor))
        bound = Bound(rows, tried, known, noise)
        values = bound.values(0.0, m)
        assert bound.shortfall(values, opt.suggest().index) <= 1e-9
        differ += [bound.best(bound.values(0.0, k)) != bound.best(values) for k in (m - 1, m + 1)]
    # A sum over one trial more or less would change enough suggestions for the test to detect the error.
    assert (differ >= 3).all()
