"""An independent implementation of BPE-Delay in numpy, written from the paper, and test problems.

q_r, t_r, T and δ are as in Vakili et al. 2023. The paper's λ is the standard deviation of the noise.
"""

import math

import numpy as np
from numpy.testing import assert_allclose

import belated as bl

X = np.linspace(0, 1, 60).reshape(-1, 1)
SE = "squared_exponential"
KERNEL = {"lengthscale": 0.15, "noise_std": 0.05, "kernel": SE}


def kernel(name, lengthscale, variance, a, b):
    a, b = np.atleast_2d(a) / lengthscale, np.atleast_2d(b) / lengthscale
    r = np.sqrt(((a[:, None] - b[None]) ** 2).sum(axis=2))
    return (
        variance
        * {
            "squared_exponential": np.exp(-(r**2) / 2),
            "matern52": (1 + np.sqrt(5) * r + 5 / 3 * r**2) * np.exp(-np.sqrt(5) * r),
            "matern32": (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r),
        }[name]
    )


def explored(horizon, rounds):
    """q_1 … q_R."""
    q = [1]
    for _ in range(rounds):
        q.append(math.ceil(math.sqrt(horizon * q[-1])))
    return q[1:]


def lengths(horizon, delta, mean=0.0, xi=0.0, b=0.0, tail="max", code=False):
    """Return t_1 … t_R, either as in Algorithm 1, with the last round truncated at the horizon, or as in the authors'
    code."""
    found, q_sum = [], 0
    for q in explored(horizon, 30):
        before = sum(found)
        if (q_sum if code else before) >= horizon:
            break
        if code:
            t = math.floor(q + mean + 2 * b * math.log(3 * (before + q) / (2 * delta)))
        else:
            log = math.log(3 * horizon / (2 * (delta / 2)))
            psi = {"max": max, "min": min}[tail](math.sqrt(2 * xi**2 * log), 2 * b * log)
            t = min(math.ceil(q + mean + psi), horizon - before)
        found.append(t)
        q_sum += q
    return found


class DenseBPE:
    """Computes the steps that an optimizer must make on the candidates `x` in [0, 1]^d."""

    def __init__(self, x, lengths, theta, multiplier, mean=0.0, keep=False):
        self.x, self.lengths, self.mean, self.keep = x, list(lengths), mean, keep
        self.name, self.lengthscale, self.variance, self.noise = theta
        self.multiplier = multiplier
        self.round, self.steps = 0, 0
        self.surviving = np.arange(len(x))
        self.points, self.arrived = [], {}
        self.covered = []

    def k(self, a, b):
        return kernel(self.name, self.lengthscale, self.variance, a, b)

    def posterior(self, rows, y, noise, at):
        """Compute the posterior mean and variance by one dense solve."""
        prior = np.full(len(at), self.variance)
        if not len(rows):
            return np.zeros(len(at)), prior
        a = self.k(rows, rows) + np.diag(noise)
        k = self.k(at, rows)
        return k @ np.linalg.solve(a, y), prior - (k * np.linalg.solve(a, k.T).T).sum(axis=1)

    def bounds(self):
        """Compute the bounds L and U at all candidates from the results that have arrived."""
        data = list(self.arrived.values())
        rows = np.array([row for row, _, _ in data]).reshape(-1, self.x.shape[1])
        y = np.array([value for _, value, _ in data]) - self.mean
        noise = np.array([self.noise if std is None else std**2 for _, _, std in data])
        mean, variance = self.posterior(rows, y, noise, self.x)
        half = self.multiplier * np.sqrt(np.maximum(variance, 0))
        return self.mean + mean - half, self.mean + mean + half

    def before_step(self, f=None):
        """Begin the next round if the current round is over. If f is given, record whether the bounds cover f."""
        if self.steps < self.lengths[self.round]:
            return
        lower, upper = self.bounds()
        if f is not None:
            self.covered.append(bool(np.all((lower <= f) & (f <= upper))))
        lower, upper = lower[self.surviving], upper[self.surviving]
        # The comparison requires that all candidates differ from the limit by more than the rounding error.
        assert np.min(np.abs(upper - lower.max())) > 1e-9
        self.surviving = self.surviving[upper >= lower.max()]
        self.round, self.steps = self.round + 1, 0
        if not self.keep:
            self.points, self.arrived = [], {}

    def step(self, index):
        """Record a suggestion, and check that no remaining candidate has a larger variance."""
        rows = np.array(self.points).reshape(-1, self.x.shape[1])
        at = self.x[self.surviving]
        _, variance = self.posterior(rows, None if not len(rows) else np.zeros(len(rows)), self.noises(rows), at)
        assert index in self.surviving
        assert_allclose(variance[list(self.surviving).index(index)], variance.max(), rtol=0, atol=1e-9 * self.variance)
        self.points.append(self.x[index])
        self.steps += 1

    def noises(self, rows):
        return np.full(len(rows), self.noise)

    def observe(self, number, row, value, std=None):
        """Record the value of a trial. Without `keep`, the trial must belong to the current round."""
        self.arrived[number] = (row, value, std)


def rkhs_function(rng, x=X, lengthscale=0.15, n=8):
    """Return f = Σ α_i k(·, x_i) at the rows of x, and the norm of f."""
    centres, alpha = rng.random((n, x.shape[1])), rng.normal(size=n)
    k = kernel(SE, lengthscale, 1.0, centres, centres)
    return kernel(SE, lengthscale, 1.0, x, centres) @ alpha, math.sqrt(alpha @ k @ alpha)


def make(horizon=60, x=X, **arguments):
    return bl.BPEDelay(candidates=x, horizon=horizon, seed=0, **(KERNEL | {"delay": "none"} | arguments))


def play(opt, n, f, late=0, seed=0):
    """Make n suggestions; observe each of them after `late` further suggestions."""
    rng = np.random.default_rng(seed)
    trials = []
    for _ in range(n):
        trials.append(opt.suggest())
        if len(trials) > late:
            trial = trials[len(trials) - 1 - late]
            trial.observe(f[trial.index] + 0.05 * rng.normal())
    return trials
