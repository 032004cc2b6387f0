"""Bayesian optimisation, without and with fidelities: GP-UCB, GP-EI, MF-GP-UCB, BOCA, MF-SKO.

Notation: x is in the unit cube of d dimensions, and z is a fidelity with cost λ(z). m and l number the fidelities in
increasing order. μ and σ are a posterior's mean and standard deviation, and β multiplies the variance.
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

import belated as bl
from belated._core import GaussianProcess
from belated.functions import box
from belated.replays.report import Array
from belated.replays.rivals import WaitAndAct

Rng = np.random.Generator
Cost = Callable[[float], float]
#: The fidelities of MF-GP-UCB and MF-SKO.
FIDELITIES = (0.333, 0.667, 1.0)

# : Numbers of points that are scored to maximise an acquisition: uniform points, and Gaussian steps from the best
# point.
N_UNIFORM, N_NEAR = 2000, 500
#: Hyperparameters are fitted again after this many values.
REFIT_EVERY = 10


def suggest_and_observe(evaluate: WaitAndAct, d: int, rng: Rng, name: str) -> None:
    """Run an algorithm from `belated.algorithm`."""
    optimizer = bl.algorithm(name, box(*[(0.0, 1.0)] * d), seed=int(rng.integers(2**31)))
    while True:
        trial = optimizer.suggest()
        optimizer.observe(trial, evaluate(np.array([trial.params[f"x{j + 1}"] for j in range(d)])))


#: Srinivas et al. 2010, and expected improvement (Jones et al. 1998).
gp_ucb, gp_ei = (partial(suggest_and_observe, name=name) for name in ("GP-UCB", "GP-EI"))


class Posterior:
    """A Gaussian process on standardised values, refitted at intervals."""

    def __init__(self, rng: Rng) -> None:
        self.gp = GaussianProcess("squared_exponential")
        self.x: list[Array] = []
        self.y: list[float] = []
        self.rng, self.fitted_to = rng, -REFIT_EVERY
        self.mean, self.scale = 0.0, 1.0

    def add(self, x: Array, y: float) -> None:
        """Add a value. At intervals, fit the hyperparameters by maximising the evidence times belated's priors."""
        self.x.append(np.asarray(x, dtype=float))
        self.y.append(y)
        self.mean, self.scale = float(np.mean(self.y)), float(np.std(self.y)) or 1.0
        is_due = len(self.y) >= self.fitted_to + REFIT_EVERY
        if is_due:
            self.fitted_to = len(self.y)
            self.gp = GaussianProcess("squared_exponential", np.full(len(x), 0.3), 1.0, 1e-2)
        self.gp.fit(np.array(self.x), (np.array(self.y) - self.mean) / self.scale)
        if is_due and len(self.y) > 2:
            self.gp.optimize(n_restarts=2, seed=int(self.rng.integers(2**31)))

    def at(self, points: Array) -> tuple[Array, Array]:
        """Return μ and σ of the posterior, or of the prior before the first value."""
        if not self.y:
            return np.zeros(len(points)), np.ones(len(points))
        mean, std = self.gp.predict(np.ascontiguousarray(points))
        return self.mean + self.scale * mean, self.scale * std


def best_point(score: Callable[[Array], Array], d: int, rng: Rng) -> Array:
    """Return the best of random points, and of steps from the best random point."""
    points = rng.random((N_UNIFORM, d))
    best = points[np.argmax(score(points))]
    near = np.clip(best + 0.05 * rng.standard_normal((N_NEAR, d)), 0.0, 1.0)
    both = np.vstack([best, near])
    return np.asarray(both[np.argmax(score(both))], dtype=float)


def mf_gp_ucb(evaluate: WaitAndAct, d: int, rng: Rng, cost: Cost) -> None:
    """MF-GP-UCB (Kandasamy et al. 2016, Algorithm 1 and section 5), which has one Gaussian process per fidelity.

    ζ and γ start at 1 % of the range of the initial values. Section 5 of the paper states when ζ and γ are doubled.
    There are 2d initial points at the lowest fidelity and d initial points at each higher fidelity.
    """
    last = len(FIDELITIES) - 1
    models = [Posterior(rng) for _ in FIDELITIES]

    def ask(m: int, x: Array) -> float:
        value = evaluate(x, FIDELITIES[m])
        models[m].add(x, value)
        return value

    values = [ask(m, rng.random(d)) for m in range(last + 1) for _ in range(2 * d if m == 0 else d)]
    spread = float(np.ptp(values)) or 1.0
    zeta, gamma = 0.01 * spread, [0.01 * spread] * last
    in_a_row = [0] * last
    t = len(values)
    while True:
        asked = np.array(evaluate.points)
        evaluate.recommend(asked[np.argmax(models[last].at(asked)[0])])
        t += 1
        root_beta = math.sqrt(0.2 * d * math.log(2 * t))  # section 5: β_t = 0.2·d·log 2t

        def upper(points: Array, root_beta: float = root_beta, zeta: float = zeta) -> Array:
            # φ_t(x) = min_m μ^(m) + β^(1/2)·σ^(m) + ζ^(m), ζ^(m) = (M − m)·ζ
            found = [model.at(points) for model in models]
            bounds = [mean + root_beta * std + (last - m) * zeta for m, (mean, std) in enumerate(found)]
            return np.asarray(np.min(bounds, axis=0))

        x = best_point(upper, d, rng)
        # m_t = min{m: β^(1/2)·σ^(m)(x_t) ≥ γ^(m), or m = M}
        enough = (m for m in range(last) if root_beta * models[m].at(x[None])[1][0] >= gamma[m])
        m = next(enough, last)
        value = ask(m, x)
        if m > 0 and abs(value - models[m - 1].at(x[None])[0][0]) > zeta:
            violation = abs(value - ask(m - 1, x))
            if violation > zeta:
                zeta = 2 * violation
        for k in range(last):
            in_a_row[k] = 0 if m > k else in_a_row[k] + 1
            if in_a_row[k] > cost(FIDELITIES[k + 1]) / cost(FIDELITIES[k]):
                gamma[k], in_a_row[k] = 2 * gamma[k], 0


def boca(evaluate: WaitAndAct, d: int, rng: Rng, cost: Cost) -> None:
    """BOCA (Kandasamy et al. 2017, Algorithm 1): one Gaussian process whose inputs are the columns (z, x)."""
    model = Posterior(rng)
    for _ in range(2 * d):
        z, x = float(rng.random()), rng.random(d)
        model.add(np.array([z, *x]), evaluate(x, z))
    levels = np.linspace(0.0, 1.0, 101)[:-1]
    costs = np.array([cost(z) for z in levels])
    exponent = 1 / (1 + d + 2)  # q = 1/(p + d + 2), p = 1 fidelity
    t = 2 * d
    while True:
        asked = np.array(evaluate.points)
        evaluate.recommend(asked[np.argmax(model.at(np.column_stack([np.ones(len(asked)), asked]))[0])])
        t += 1
        root_beta = math.sqrt(0.5 * d * math.log(2 * t + 1))

        def upper(points: Array, root_beta: float = root_beta) -> Array:
            mean, std = model.at(np.column_stack([np.ones(len(points)), points]))
            return np.asarray(mean + root_beta * std)  # φ_t(x) at z• = 1

        x = best_point(upper, d, rng)
        # ξ(z) = sqrt(1 − φ(|z − 1|)²); γ(z) = κ^(1/2)·ξ(z)·(λ(z)/λ(1))^q
        lengthscale = float(model.gp.lengthscale[0])
        xi = np.sqrt(1 - np.exp(-(((levels - 1) / lengthscale) ** 2)))
        xi_max = math.sqrt(1 - math.exp(-(lengthscale**-2)))
        gamma = model.scale * math.sqrt(model.gp.variance) * xi * (costs / cost(1.0)) ** exponent
        _, std = model.at(np.column_stack([levels, np.tile(x, (len(levels), 1))]))
        # The cheapest of {z: λ(z) < λ(1), σ(z, x_t) > γ(z), ξ(z) > ‖ξ‖/β^(1/2)} ∪ {1}
        good = (costs < cost(1.0)) & (std > gamma) & (xi > xi_max / root_beta)
        z = float(levels[good][np.argmin(costs[good])]) if good.any() else 1.0
        model.add(np.array([z, *x]), evaluate(x, z))


class CoKriging:
    """f_l = f_(l−1) + δ_l, independent processes (Huang et al. 2006, section 3): cov(f_l, f_k) = Σ_(i ≤ min) σ_i²·R."""

    def __init__(self, levels: int) -> None:
        self.levels = levels
        self.x: list[Array] = []
        self.level: list[int] = []
        self.y: list[float] = []
        self.theta = np.log(np.array([0.3, *([1.0] + [0.1] * (levels - 1)), 1e-2]))  # lengthscale, σ_i², noise variance
        self.fitted_to = 0

    def covariance(self, x: Array, level: Array, other: Array, other_level: Array) -> Array:
        """Return the covariance between values at given levels, shape (n, m)."""
        squares = np.sum(x**2, axis=1)[:, None] + np.sum(other**2, axis=1) - 2 * x @ other.T
        correlation = np.exp(-0.5 * np.maximum(squares, 0.0) / math.exp(2 * self.theta[0]))
        up_to = np.cumsum(np.exp(self.theta[1:-1]))
        return np.asarray(up_to[np.minimum(level[:, None], other_level)] * correlation)

    def _factor(self, theta: Array) -> Array:
        self.theta = theta
        x, level = np.array(self.x), np.array(self.level)
        k = self.covariance(x, level, x, level)
        return np.asarray(np.linalg.cholesky(k + (math.exp(theta[-1]) + 1e-8) * np.eye(len(x))), dtype=float)

    def add(self, x: Array, level: int, y: float) -> None:
        """Add a value; hyperparameters are refitted by maximum likelihood at intervals."""
        self.x.append(x)
        self.level.append(level)
        self.y.append(y)
        self.mean, self.scale = float(np.mean(self.y)), float(np.std(self.y)) or 1.0
        targets = (np.array(self.y) - self.mean) / self.scale
        if len(self.y) >= max(4, self.fitted_to + REFIT_EVERY):
            self._fit(targets)
        self.inverse = np.linalg.inv(self._factor(self.theta))
        self.weights = self.inverse.T @ (self.inverse @ targets)

    def _fit(self, targets: Array) -> None:
        from scipy.optimize import minimize

        bounds = [(math.log(0.05), math.log(3.0)), *[(-8.0, 3.0)] * self.levels, (-12.0, 0.0)]

        def loss(theta: Array) -> float:
            try:
                factor = self._factor(theta)
            except np.linalg.LinAlgError:
                return 1e10
            half = np.linalg.solve(factor, targets)
            return float(0.5 * half @ half + np.log(np.diag(factor)).sum())

        found = minimize(loss, self.theta, method="L-BFGS-B", bounds=bounds, options={"maxiter": 20})
        self.theta = np.asarray(found.x, dtype=float)
        self.fitted_to = len(self.y)

    def at(self, points: Array, level: int) -> tuple[Array, Array]:
        """Return μ and σ of f at a level."""
        levels = np.full(len(points), level)
        k = self.covariance(np.array(self.x), np.array(self.level), points, levels)
        half = self.inverse @ k
        prior = float(np.exp(self.theta[1:-1])[: level + 1].sum())
        std = np.sqrt(np.maximum(prior - np.sum(half**2, axis=0), 1e-12))
        return self.mean + self.scale * (k.T @ self.weights), self.scale * std

    def correlation(self, points: Array, level: int) -> Array:
        """Return α_1: the posterior correlation between values at a level and f at the highest level."""
        rows, row_levels = np.array(self.x), np.array(self.level)
        levels, tops = np.full(len(points), level), np.full(len(points), self.levels - 1)
        low = self.inverse @ self.covariance(rows, row_levels, points, levels)
        top = self.inverse @ self.covariance(rows, row_levels, points, tops)
        up_to = np.cumsum(np.exp(self.theta[1:-1]))
        shared = up_to[level] - np.sum(low * top, axis=0)
        variance = up_to[level] - np.sum(low**2, axis=0) + math.exp(self.theta[-1])
        return np.asarray(shared / np.sqrt(np.maximum(variance * (up_to[-1] - np.sum(top**2, axis=0)), 1e-18)))


def mf_sko(evaluate: WaitAndAct, d: int, rng: Rng, cost: Cost) -> None:
    """MF-SKO (Huang et al. 2006, section 4): augmented expected improvement over points and fidelities.

    The acquisition is the product of four factors: α_1, α_2, α_3, and the expected improvement at the highest fidelity,
    measured from the effective best point. α_1 is the correlation of the highest fidelity with the evaluated fidelity.
    α_2 is smaller for noisier values, and α_3 is the ratio of costs.
    """
    top = len(FIDELITIES) - 1
    model = CoKriging(top + 1)
    for m in range(top + 1):
        for x in (rng.random(d) for _ in range(2 * d if m == 0 else d)):
            model.add(x, m, evaluate(x, FIDELITIES[m]))
    while True:
        mean, std = model.at(np.array(model.x), top)
        effective = int(np.argmax(mean - std))  # argmax μ − c·σ, c = 1
        incumbent = float(mean[effective])
        evaluate.recommend(model.x[effective])

        def improvement(points: Array, m: int, incumbent: float = incumbent) -> Array:
            mean, std = model.at(points, top)
            noise = model.scale * math.exp(0.5 * model.theta[-1])
            alpha_1 = np.maximum(model.correlation(points, m), 0.0)
            alpha_2 = 1 - noise / np.sqrt(model.at(points, m)[1] ** 2 + noise**2)
            alpha_3 = cost(FIDELITIES[top]) / cost(FIDELITIES[m])
            return expected_improvement(mean, std, incumbent) * alpha_1 * alpha_2 * alpha_3

        found = []
        for m in range(top + 1):
            x = best_point(lambda points, m=m: improvement(points, m), d, rng)  # type: ignore[misc]
            found.append((float(improvement(x[None], m)[0]), m, x))
        _, m, x = max(found, key=lambda each: each[0])
        model.add(x, m, evaluate(x, FIDELITIES[m]))


def expected_improvement(mean: Array, std: Array, incumbent: float) -> Array:
    """E max(f − incumbent, 0)."""
    u = (mean - incumbent) / std
    cumulative = 0.5 * (1 + np.array([math.erf(each / math.sqrt(2)) for each in u]))
    return np.asarray(std * (u * cumulative + np.exp(-0.5 * u**2) / math.sqrt(2 * math.pi)))
