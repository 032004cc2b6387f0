"""Forecasts of the declared value of a curve, given its first third: a comparison of models on the open families.

    python benchmarks/curve_forecasts.py run forecasts.jsonl --ended 10 30 100 --repeats 3
    python benchmarks/curve_forecasts.py table forecasts.jsonl

The option --fraction sets another known part of the curves; use another file for its results. The command ``early``
examines ``BayesOpt.predict_final`` on the reported values, without the limit below, after 10 and 30 % of the curves:

    python benchmarks/curve_forecasts.py early --ended 10 30 --repeats 3 --missing 0.3

It prints the median over the families of the ratio of the forecast's standard deviation to the root mean square error
among the test curves whose last values are in the best quarter, the fraction of the central 80 % intervals that contain
the value, the mean log density, and the root mean square of the standardised errors. ``--missing`` is the share of the
reports that are missing.

In each repeat, N random configurations have complete curves, each from one training seed. The forecasts are for
`N_TEST` other configurations, of which the first ceil(T/3) values are known. If the declared value is the highest
value, the curves are running maxima. Failed curves are left out. All values are in units of the
interquartile range (IQR) of the family's declared values (see curves.py). Values below their lower quartile minus 3 IQR
are raised to this limit.

A forecast is a normal distribution. The table shows the mean log predictive density (higher is better), and the
fraction of the central 80 % intervals that contain the value. Log densities below −10 count as −10.

The models with the name ``curves`` are, on a subset of the steps with logarithmic spacing,

    y_i(t) = c(t)·h_i + m(t) + g_i(t) + ε_i(t),    h_i = f(x_i) + u_i,

with a Gaussian process f over the configuration, independent u_i ~ N(0, λ) and ε ~ N(0, σ²), m(T) = 0, c(T) = 1 and
g_i(T) = 0. m is the mean over the complete curves. g is a Gaussian process with the covariance k_T(s, t) = k(s, t) −
k(s, T)·k(t, T)/k(T, T), where k(s, t) = a·β^α/(s + t + β)^α (Swersky, Snoek, Adams 2014, arXiv 1406.3896). With K = k_T
+ σ²·1 and r = y − m, a curve is equivalent to an observation of h with mean cᵀK⁻¹r/p and variance 1/p, p = cᵀK⁻¹c. The
hyperparameters maximise the evidence of the complete curves. The options are in `OPTIONS`. With the option ``core``,
the mean and 1/p are the pseudo-observations of belated's model of curves, which has the form "empirical" with its own
choices.

The forecasts with the name ``BayesOpt`` come from ``BayesOpt.predict_final``, which uses belated's own model of f.
"""

import argparse
import json
import math
import os
import sys
from itertools import product
from pathlib import Path

if __name__ == "__main__":
    for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BELATED_NUM_THREADS"):
        os.environ.setdefault(_name, "1")

import numpy as np
from curves import GROUPS, family
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import least_squares, minimize

import belated as bl
from belated._core import CurveModel

N_TEST = 40
LOWEST_DENSITY = -10.0
Z80 = 1.2815515655446004


def encoded(of):
    """Return the configurations as points: ordered levels are equally spaced in [0, 1], choices are unit vectors."""
    columns = []
    for j, dimension in enumerate(of.grid.dimensions):
        level = of.grid.rows[:, j]
        if hasattr(dimension, "choices"):
            columns += list(np.eye(of.grid.sizes[j])[level].T / math.sqrt(2))
        else:
            columns.append(level / (of.grid.sizes[j] - 1))
    return np.column_stack(columns)


def dataset(of):
    """Return the reported curves (n, r, T) in the units of the study."""
    values = of.reported(of.values)
    finals = of.finals[np.isfinite(of.finals)]
    low, high = np.quantile(finals, [0.25, 0.75])
    return np.maximum((values - high) / (high - low), -4.0)  # the bound is low − 3·(high − low)


def grid_steps(n_steps, known, n=10):
    """Return the indices of about n steps with logarithmic spacing, which contain the last known step and T."""
    steps = np.unique(np.round(np.geomspace(1, n_steps, n)).astype(int))
    return np.union1d(steps, [known, n_steps]) - 1


# Simple forecasts. Each function returns means and standard deviations for the test curves.


def last_value(curves, known, tests):
    change = curves[:, -1] - curves[:, known - 1]
    return tests[:, known - 1], math.sqrt(np.mean(change**2))


def trend(curves, known, tests):
    change = curves[:, -1] - curves[:, known - 1]
    return tests[:, known - 1] + change.mean(), change.std(ddof=1) * math.sqrt(1 + 1 / len(change))


def regression(curves, known, tests):
    """Linear regression of the last value on the last known value."""
    x, y = curves[:, known - 1], curves[:, -1]
    x0, y0 = x.mean(), y.mean()
    spread = np.sum((x - x0) ** 2) + 1e-9
    slope = np.sum((x - x0) * (y - y0)) / spread
    residual = math.sqrt(np.sum((y - y0 - slope * (x - x0)) ** 2) / (len(x) - 2))
    z = tests[:, known - 1] - x0
    return y0 + slope * z, residual * np.sqrt(1 + 1 / len(x) + z**2 / spread)


def power_law_end(curve, n_steps):
    """Return the value at step T of a − b·t^−c, fitted by least squares."""
    t = np.arange(1, len(curve) + 1)

    def residuals(p):
        return p[0] - p[1] * t ** -math.exp(p[2]) - curve

    start = [curve[-1], curve[-1] - curve[0], 0.0]
    a, b, c = least_squares(residuals, start, bounds=([-20, -20, -3], [20, 20, 1.5]), max_nfev=100).x
    return a - b * n_steps ** -math.exp(c)


def power_law(curves, known, tests):
    n_steps = curves.shape[1]
    error = np.array([curve[-1] - power_law_end(np.clip(curve[:known], -19, 19), n_steps) for curve in curves])
    ends = [power_law_end(np.clip(curve[:known], -19, 19), n_steps) for curve in tests]
    return np.array(ends), math.sqrt(np.mean(error**2))


SIMPLE = {"last": last_value, "trend": trend, "regression": regression, "power law": power_law}


# The model of curves.


def matern52(x, z, lengths):
    r = np.sqrt(5 * np.maximum(0, (((x[:, None] - z) / lengths) ** 2).sum(axis=-1)))
    return (1 + r + r**2 / 3) * np.exp(-r)


def freeze_thaw(t, alpha, beta):
    """Return the covariance of g at the steps t, the last of which is T."""
    k = (beta / (t[:, None] + t + beta)) ** alpha
    return k - np.outer(k[:, -1], k[-1]) / k[-1, -1]


class Curves:
    """The model of the module's docstring.

    Parameters
    ----------
    n_known : int
        The number of known steps of the test curves, for ``calibrate``.
    slope : bool
        Whether c(t) is the slope of y(t) as a function of y(T), shrunk towards 1; otherwise c = 1.
    scale : bool
        Whether curves have random sizes: m is replaced by m·(1 + v_i), v_i ~ N(0, ω²).
    shape : {"freeze-thaw", "walk", "empirical"}
        The covariance of g: as above; independent increments with the variances of the complete curves; or the
        covariance of the complete curves, shrunk towards freeze-thaw.
    weight : float
        The weight of the freeze-thaw covariance in the empirical covariance, as a number of curves.
    student : float
        If positive, the covariance of a curve is uncertain by a factor with an inverse chi-squared prior with this
        number of degrees of freedom.
    calibrate : bool
        Whether the standard deviations are multiplied by the root mean square of the standardised errors of
        leave-one-out forecasts of the complete curves.
    inflate : float
        The standard deviations are multiplied by √(1 + inflate/n), because the hyperparameters are uncertain.
    use_x : bool
        Whether f depends on the configuration.
    """

    def __init__(
        self,
        n_known,
        slope=False,
        scale=False,
        shape="freeze-thaw",
        weight=20,
        student=0,
        calibrate=False,
        inflate=0,
        use_x=True,
    ):
        self.n_known, self.slope, self.scale, self.shape, self.weight = n_known, slope, scale, shape, weight
        self.student, self.calibrate, self.inflate, self.use_x = student, calibrate, inflate, use_x

    def fit(self, x, y, t):
        """Fit to points x (n, d) and complete curves y (n, k) at the steps t."""
        self.x, self.t, n, d = x, t.astype(float), len(x), x.shape[1]
        end = y[:, -1] - y[:, -1].mean()
        difference = y - y[:, -1:]
        if self.slope:
            self.c = 1 + end @ difference / (end @ end + 3 * end.var() + 1e-9)
        else:
            self.c = np.ones(y.shape[1])
        # m is the mean of y − c·y(T); the constant is part of f.
        self.centre = y[:, -1].mean()
        self.m = difference.mean(axis=0)
        self.r = y - self.centre - self.m
        g = self.r - self.c * end[:, None]
        self.moments = g.T @ g / n
        a = max(self.moments.diagonal().max(), 1e-4)
        # log of: amplitude a, α, β, σ, ω, signal of f, λ, lengthscales
        start = np.log([a, 1.0, 3.0, 0.1 * math.sqrt(a), 0.3, end.var() + 1e-3, 0.1 * end.var() + 1e-3])
        start = np.concatenate([start, np.full(d, math.log(0.5 * math.sqrt(d)))])
        self.start = start
        # The prior of each logarithm is normal, with mean `start`.
        self.prior = np.concatenate([[np.inf, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0], np.full(d, 0.7)])

        def loss(p):
            return -self.evidence(p)

        bounds = [(s - 7, s + 5) for s in start[:1]] + [(-3, 2), (-3, 6), (-7, 2), (-4, 1), (-8, 4), (-10, 3)]
        bounds += [(-3, 4)] * d
        start = np.clip(start, [b[0] for b in bounds], [b[1] for b in bounds])
        self.fitted = False
        found = minimize(loss, start, method="L-BFGS-B", bounds=bounds, options={"maxiter": 60})
        self.fitted = True
        self.evidence(found.x)
        self.factor = math.sqrt((len(x) + self.inflate) / len(x))
        if self.calibrate:
            self.factor *= self.leave_one_out(y)
        return self

    def covariance(self, p):
        """Return K at the steps t."""
        a, alpha, beta, sigma, omega = np.exp(p[:5])
        if self.shape == "walk":
            v = np.minimum.accumulate(self.moments.diagonal()) * math.exp(p[0] - self.start[0])
            k = v[np.maximum.outer(np.arange(len(v)), np.arange(len(v)))]
        else:
            k = a * freeze_thaw(self.t, alpha, beta)
            if self.shape == "empirical" and self.fitted:
                n, weight = len(self.x), self.weight
                k = (n * self.moments + weight * (k + sigma**2 * np.eye(len(k)))) / (n + weight)
                return k + 1e-6 * np.eye(len(k))
        if self.scale:
            k = k + omega**2 * np.outer(self.m, self.m)
        return k + sigma**2 * np.eye(len(k))

    def evidence(self, p):
        """Return the log evidence of the complete curves plus the log prior of the hyperparameters, and keep the
        factors."""
        n, steps = self.r.shape
        k = self.covariance(p)
        try:
            factor = cho_factor(k, lower=True)
            weights = cho_solve(factor, self.c)
            precision = self.c @ weights
            statements = self.r @ weights / precision
            squares = np.einsum("ik,ik->", self.r, cho_solve(factor, self.r.T).T)
            total = -0.5 * (squares - precision * statements @ statements) - n * np.log(np.diag(factor[0])).sum()
            total -= 0.5 * n * (math.log(precision) + (steps - 1) * math.log(2 * math.pi))
            signal, between = np.exp(p[5:7])
            lengths = np.exp(p[7:])
            prior = signal * matern52(self.x, self.x, lengths) if self.use_x else np.zeros((n, n))
            between = between if self.use_x else between + signal
            full = prior + (between + 1 / precision) * np.eye(n)
            f = cho_factor(full + 1e-9 * np.eye(n), lower=True)
        except (np.linalg.LinAlgError, ValueError):
            return -1e10
        ones = cho_solve(f, np.ones(n))
        self.mean = ones @ statements / ones.sum()
        centred = cho_solve(f, statements - self.mean)
        total -= 0.5 * ((statements - self.mean) @ centred + n * math.log(2 * math.pi)) + np.log(np.diag(f[0])).sum()
        total -= 0.5 * np.sum((p[1:] - self.start[1:]) ** 2 / self.prior[1:] ** 2)
        self.k, self.precision, self.statements, self.solved, self.f = k, precision, statements, centred, f
        self.signal, self.between, self.lengths, self.noise = signal, between, lengths, math.exp(2 * p[3])
        self.ones = ones
        return total

    def prior_of_h(self, x):
        """Return means and variances of f(x) + u at new points, given the complete curves."""
        if not self.use_x:
            return np.full(len(x), self.mean), np.full(len(x), self.between) + 1 / self.ones.sum()
        k = self.signal * matern52(x, self.x, self.lengths)
        solved = cho_solve(self.f, k.T)
        variance = self.signal - np.einsum("ij,ji->i", k, solved) + (1 - solved.sum(axis=0)) ** 2 / self.ones.sum()
        return self.mean + k @ self.solved, np.maximum(variance, 0) + self.between

    def combine(self, mean, variance, y):
        """Return means and standard deviations of the last values, given a prior of h and the first values y."""
        known = y.shape[1]
        if known:
            # The uncertainty of m is 1/n of the covariance of g.
            factor = cho_factor(self.k[:known, :known] * (1 + 1 / len(self.x)), lower=True)
            weights = cho_solve(factor, self.c[:known])
            precision = self.c[:known] @ weights
            r = y - self.centre - self.m[:known]
            statement = r @ weights / precision
            if self.student:
                squares = np.einsum("ik,ik->i", r, cho_solve(factor, r.T).T) - precision * statement**2
                precision = precision * (self.student + known - 1) / (self.student + squares)
            mean = (mean / variance + statement * precision) / (1 / variance + precision)
            variance = 1 / (1 / variance + precision)
        return mean + self.centre, np.sqrt(variance + self.noise) * self.factor

    def forecast(self, x, y):
        return self.combine(*self.prior_of_h(x), y)

    def forecast_with_core(self, x, ended, y):
        """Return a forecast from this model's prior of h and the pseudo-observations of belated's model of curves.

        The complete curves (n, T) and the test curves (r, T), with NaN at unknown steps, have all steps. The prior of
        y(T) is unchanged if the two models have different noise variances."""
        model = CurveModel(list(range(1, ended.shape[1] + 1)), ended)
        mean, variance = self.prior_of_h(x)
        variance = np.maximum(variance + self.noise - model.noise, 0.1 * variance)
        statements, errors = np.array([model.pseudo_observation(curve) for curve in y]).T
        precision = 1 / variance + 1 / errors
        mean = ((mean + self.centre) / variance + statements / errors) / precision
        return mean, np.sqrt(1 / precision + model.noise)

    def leave_one_out(self, y):
        """Return the root mean square of the standardised errors of leave-one-out forecasts of the complete curves."""
        n = len(self.x)
        inverse = cho_solve(self.f, np.eye(n))
        inverse = inverse - np.outer(self.ones, self.ones) / self.ones.sum()
        variance = 1 / inverse.diagonal()
        mean = self.statements - self.solved * variance
        variance = np.maximum(variance - 1 / self.precision, 1e-9)
        m, s = self.combine(mean, variance, y[:, : self.n_known])
        z = (y[:, -1] - m) / s
        # Shrink the factor towards 1 with the weight of five curves.
        return math.sqrt((z @ z + 5) / (n + 5))


#: The options of the model, which are joined by "+": "curves+empirical+inflated".
OPTIONS = {
    "constant": {"use_x": False},
    "slope": {"slope": True},
    "scale": {"scale": True},
    "walk": {"shape": "walk"},
    "empirical": {"shape": "empirical"},
    "weight5": {"weight": 5},
    "weight60": {"weight": 60},
    "student": {"student": 4},
    "calibrated": {"calibrate": True},
    "inflated": {"inflate": 5},
    "inflated10": {"inflate": 10},
    "warped": {"warp": True},
    "unseen": {"unseen": True},
    "core": {"core": True},
}
MODELS = [
    *SIMPLE,
    "curves+unseen",
    "curves",
    "curves+inflated",
    "curves+constant+inflated",
    "curves+empirical+inflated",
    "curves+slope+empirical+inflated",
    "curves+empirical+inflated+warped",
    "curves+empirical+core",
    "BayesOpt",
]


def report(trial, values):
    """Report the values of the first steps. NaN stands for a missing report."""
    for step, value in enumerate(values.tolist(), 1):
        if not math.isnan(value):
            trial.report(value, step)


def predictions_of_optimizer(space, points, curves, known, tests):
    """Return the forecasts of `predict_final` for running trials; the first points have the complete curves."""
    optimizer = bl.BayesOpt(space, curve=bl.Curve(curves.shape[1]), stopping=None, seed=0)
    for params, curve in zip(points, curves, strict=False):
        trial = optimizer.add(params)
        report(trial, curve)
        trial.observe(float(curve[-1]))
    found = []
    for params, curve in zip(points[len(curves) :], tests, strict=True):
        trial = optimizer.add(params)
        report(trial, curve[:known])
        found.append(optimizer.predict_final(trial) or (np.nan, np.nan))  # None without a usable report
        trial.abandon()
    return np.array(found).T


def forecast(model, x, curves, known, x_tests, tests):
    """Return the means and standard deviations of the last values."""
    if model in SIMPLE:
        return SIMPLE[model](curves, known, tests)
    options = {key: value for name in model.split("+")[1:] for key, value in OPTIONS[name].items()}
    steps = grid_steps(curves.shape[1], known)
    core = options.pop("core", False)
    n_known = 0 if options.pop("unseen", False) else int(np.sum(steps < known))
    top = top_of(curves[:, -1], curves[:, :known], tests[:, :known]) if options.pop("warp", False) else None

    def warp(y):
        return y if top is None else -np.log(top - y)

    model = Curves(n_known, **options).fit(x, warp(curves[:, steps]), steps + 1)
    if core:
        return model.forecast_with_core(x_tests, curves, np.where(np.arange(len(curves[0])) < known, tests, np.nan))
    mean, std = model.forecast(x_tests, warp(tests[:, steps[:n_known]]))
    if top is None:
        return mean, std
    # The standard deviation is chosen so that the 80 % interval has the right width.
    low, high = (top - np.exp(-(mean + sign * Z80 * std)) for sign in (-1, 1))
    return top - np.exp(-mean), (high - low) / (2 * Z80)


def normal_density(values):
    """Return the log density of values under the normal distribution that is fitted to them."""
    return -0.5 * len(values) * math.log(values.var() + 1e-6)


def top_of(ends, *prefixes):
    """Return the number ``top`` for which the last values of the complete curves, as −log(top − y), are closest to
    normal, or None if y itself is closer.

    ``top`` is above all known values by a multiple of the standard deviation.
    """
    highest = max(each.max() for each in (ends, *prefixes))
    choices = {None: normal_density(ends)}
    for multiple in (0.1, 0.3, 1.0, 3.0):
        top = highest + multiple * ends.std() + 1e-3
        choices[top] = normal_density(-np.log(top - ends)) - np.sum(np.log(top - ends))
    return max(choices, key=choices.get)


def measure(model, name, n_ended, repeat, fraction=1 / 3):
    """Return the record of the forecasts of one repeat."""
    of = family(name)
    curves, x = dataset(of), encoded(of)
    rng = np.random.default_rng([repeat, n_ended])
    rows = rng.permutation(len(curves))
    curves = curves[rows, rng.integers(of.n_seeds, size=len(rows))]
    there = np.isfinite(curves).all(axis=1)
    rows, curves = rows[there][: n_ended + N_TEST], curves[there][: n_ended + N_TEST]
    x, known = x[rows], math.ceil(of.n_steps * fraction)
    if model == "BayesOpt":
        points = [of.grid.params(row) for row in rows]
        mean, std = predictions_of_optimizer(of.space, points, curves[:n_ended], known, curves[n_ended:])
    else:
        mean, std = forecast(model, x[:n_ended], curves[:n_ended], known, x[n_ended:], curves[n_ended:])
    std = np.maximum(std, 1e-3)
    z = (curves[n_ended:, -1] - mean) / std
    density = np.maximum(-0.5 * z**2 - np.log(std) - 0.5 * math.log(2 * math.pi), LOWEST_DENSITY)
    return {
        "family": name,
        "model": model,
        "ended": n_ended,
        "repeat": repeat,
        "density": round(float(np.mean(density)), 4),
        "coverage": round(float(np.mean(np.abs(z) < Z80)), 4),
        "error": round(float(np.sqrt(np.mean((mean - curves[n_ended:, -1]) ** 2))), 4),
    }


def read(path):
    lines = Path(path).read_text().splitlines() if Path(path).exists() else []
    records = map(json.loads, lines)
    return {(r["family"], r["model"], r["ended"], r["repeat"]): r for r in records}


def run(arguments):
    done = read(arguments.results)
    with open(arguments.results, "a") as file:
        for key in product(range(arguments.repeats), arguments.ended, arguments.families, arguments.models):
            repeat, n_ended, name, model = key
            if (name, model, n_ended, repeat) not in done:
                file.write(json.dumps(measure(model, name, n_ended, repeat, arguments.fraction)) + "\n")
                file.flush()


def table(arguments):
    done = read(arguments.results)
    for n_ended in arguments.ended:
        print(f"\n{n_ended} complete curves: log density / coverage")
        print(f"{'':30}{'mean':>12}" + "".join(f"{name[-12:]:>14}" for name in arguments.families))
        for model in arguments.models:
            cells = []
            for name in arguments.families:
                keys = [(name, model, n_ended, repeat) for repeat in range(arguments.repeats)]
                found = [(done[key]["density"], done[key]["coverage"]) for key in keys if key in done]
                cells.append(np.mean(found, axis=0) if found else np.full(2, np.nan))
            cells.insert(0, np.nanmean(cells, axis=0))
            print(f"{model:30}" + "".join(f"{density:9.2f}/{coverage:.2f}" for density, coverage in cells))


def early_forecasts(name, n_ended, fraction, repeats, missing=0.0):
    """Return the ratio of the best quarter, the coverage, the log density and the rms of the standardised errors of the
    forecasts of `BayesOpt` for one family."""
    of = family(name)
    reported, known = of.reported(of.values), math.ceil(of.n_steps * fraction)
    stds, errors, units, best = [], [], [], []
    for repeat in range(repeats):
        rng = np.random.default_rng([repeat, n_ended, 5])
        rows = rng.permutation(len(reported))
        curves = reported[rows, rng.integers(of.n_seeds, size=len(rows))]
        there = np.isfinite(curves).all(axis=1)
        rows, curves = rows[there][: n_ended + N_TEST], curves[there][: n_ended + N_TEST]
        gaps = np.where(rng.random(curves.shape) < missing, np.nan, curves)
        gaps[:n_ended, -1] = curves[:n_ended, -1]
        points = [of.grid.params(row) for row in rows]
        mean, std = predictions_of_optimizer(of.space, points, gaps[:n_ended], known, gaps[n_ended:])
        values = curves[n_ended:, -1]
        unit = np.subtract(*np.quantile(curves[:, -1], [0.75, 0.25]))
        units += [unit] * len(values)
        stds += np.maximum(std, 1e-3 * unit).tolist()
        errors += (values - mean).tolist()
        best += (values >= np.quantile(values, 0.75)).tolist()
    there = np.isfinite(errors)
    stds, errors, units, best = (np.array(each)[there] for each in (stds, errors, units, best))
    z = errors / stds
    density = np.maximum(-0.5 * z**2 - np.log(stds / units) - 0.5 * math.log(2 * math.pi), LOWEST_DENSITY)
    ratio = np.median(stds[best]) / np.sqrt(np.mean(errors[best] ** 2))
    return ratio, np.mean(np.abs(z) < Z80), density.mean(), np.sqrt(np.mean(z**2))


def early(arguments):
    for n_ended, fraction in product(arguments.ended, (0.1, 0.3)):
        found = [
            early_forecasts(name, n_ended, fraction, arguments.repeats, arguments.missing)
            for name in arguments.families
        ]
        ratios, coverage, density, rms = map(np.array, zip(*found, strict=True))
        print(
            f"{n_ended} curves, {fraction:.0%} known: ratio {np.median(ratios):.2f}, coverage {coverage.mean():.3f}, "
            f"density {density.mean():.2f}, median rms z {np.median(rms):.2f}",
            flush=True,
        )


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "table", "early"])
    parser.add_argument("results", nargs="?")
    parser.add_argument("--families", nargs="+", default=["open"], help="names of families or groups")
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--ended", nargs="+", type=int, default=[10, 30, 100])
    parser.add_argument("--fraction", type=float, default=1 / 3, help="the known part of the curves")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--missing", type=float, default=0.0, help="the share of missing reports, for early")
    arguments = parser.parse_args(argv)
    if arguments.command != "early" and arguments.results is None:
        parser.error(f"{arguments.command} needs the file of results")
    arguments.families = [name for each in arguments.families for name in GROUPS.get(each, [each])]
    {"run": run, "table": table, "early": early}[arguments.command](arguments)


if __name__ == "__main__":
    sys.exit(main())
