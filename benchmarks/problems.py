"""Settings for comparing optimizers. A setting consists of a problem, the noise of the values, and the delays of the
results."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from belated import functions
from belated.functions import Function, box
from belated.replays import sdf_synthetic
from belated.simulate import DelayDistribution, Exponential, HalfNormal, Pareto, Poisson, Uniform
from belated.space.dimensions import Categorical, Integer


@dataclass(frozen=True)
class Noise:
    """The noise of a value: (sd + growth·max(value, 0)) times a normal or Student's t variate."""

    sd: float
    growth: float = 0.0
    degrees: float = math.inf  # degrees of freedom of Student's t; with 2 degrees of freedom, the variance is infinite

    def sample(self, rng, size):
        """Return the random variates of the noise at scale 1; the variates do not depend on the values."""
        return rng.standard_normal(size) if math.isinf(self.degrees) else rng.standard_t(self.degrees, size)

    def scale(self, value):
        """Return the factors by which the variates are multiplied."""
        return self.sd + self.growth * max(value, 0.0)


@dataclass(frozen=True)
class Setting:
    """A problem, the noise of its values, and the delays of its results.

    In a setting without workers, a run makes n_evaluations suggestions, and delays are counted in suggestions, as in
    `belated.simulate.simulate`. In a setting with workers, delays are evaluation times: a free worker gets a new trial
    at once, and the run ends when n_evaluations have been completed.
    """

    problem: Callable[[int], Function]  # function that takes the seed of the run
    law: DelayDistribution
    n_evaluations: int
    workers: int = 0
    noise: Noise = Noise(0.2)
    smallest: float = 1e-6  # all regrets below this value are treated as equal

    horizon = None  # simulated time does not end a run

    def outcomes(self, function, rng, n):
        """Return a function that gives the observed value of an evaluation. The arguments of the function are the
        number k of the evaluation, the point, and f at the point."""
        errors = self.noise.sample(rng, n)
        return lambda k, params, value: value + self.noise.scale(value) * errors[k]

    def regret(self, function, distance):
        """Return the regret of a value with this distance from the optimum."""
        return distance


def always(function):
    """Return a function that takes a seed and always returns the given problem."""
    return partial(_first, function)


def _first(function, seed):
    return function


def gp_sample(seed):
    """Return a random function on [0, 1]: a spline through a draw of a Gaussian process on a grid, scaled to values in
    [0, 1]."""
    from scipy.interpolate import CubicSpline

    spline = CubicSpline(sdf_synthetic.grid(), sdf_synthetic.sample(seed))
    peaks = np.concatenate([[0.0, 1.0], spline.derivative().roots(extrapolate=False)])
    return Function("gp1d", box((0.0, 1.0)), float(spline(peaks).max()), lambda x: float(spline(x[0])))


def _levy(x):
    w = 1 + (np.asarray(x) - 1) / 4
    inner = (w[:-1] - 1) ** 2 * (1 + 10 * np.sin(math.pi * w[:-1] + 1) ** 2)
    return -(math.sin(math.pi * w[0]) ** 2 + inner.sum() + (w[-1] - 1) ** 2 * (1 + math.sin(2 * math.pi * w[-1]) ** 2))


def _styblinski_tang(x):
    x = np.asarray(x)
    return -0.5 * float(np.sum(x**4 - 16 * x**2 + 5 * x))


def _hartmann3_of_some(x):
    """Return Hartmann3 of three of 12 coordinates (2, 7 and 11); the function ignores the remaining nine
    coordinates."""
    return functions.HARTMANN3.formula([x[1], x[6], x[10]])


def _mixed(values):
    """Return a function that has one peak in (u, v, w). The position, height and width of the peak depend on the
    choices and the count. The maximum is 1 at material b, shape disc and count 7."""
    material, shape, count, u, v, w = values
    height = {"a": 0.6, "b": 1.0, "c": 0.8, "d": 0.3}[material] * {"disc": 1.0, "rod": 0.85, "cube": 0.7}[shape]
    centre = {"disc": (0.3, 0.7), "rod": (0.6, 0.4), "cube": (0.8, 0.2)}[shape]
    width = {"a": 0.5, "b": 0.3, "c": 0.4, "d": 0.7}[material]
    distance = (u - centre[0]) ** 2 + (v - centre[1]) ** 2 + 0.5 * (w - 0.1 * count) ** 2 + 0.02 * (count - 7) ** 2
    return height * math.exp(-distance / (2 * width**2))


def _camel(x):
    """Return the negated six-hump camel function."""
    a, b = x
    return -((4 - 2.1 * a**2 + a**4 / 3) * a**2 + a * b + (4 * b**2 - 4) * b**2)


_SHEKEL_CENTRES = np.array([[4, 1, 8, 6, 3, 2, 5], [4, 1, 8, 6, 7, 9, 3], [4, 1, 8, 6, 3, 2, 5], [4, 1, 8, 6, 7, 9, 3]])
_SHEKEL_WIDTHS = np.array([0.1, 0.2, 0.2, 0.4, 0.4, 0.6, 0.3])


def _shekel(x):
    """Return the Shekel function with seven peaks, as a function to be maximised."""
    return float(np.sum(1 / (np.sum((np.asarray(x)[:, None] - _SHEKEL_CENTRES) ** 2, axis=0) + _SHEKEL_WIDTHS)))


def _cosines(x):
    """Return the cosine mixture, whose maximum is in the middle of the box."""
    x = np.asarray(x)
    return float(np.sum(0.1 * np.cos(5 * math.pi * x) - x**2))


CAMEL = Function("camel", box((-3.0, 3.0), (-2.0, 2.0)), 1.0316284534898774, _camel)
SHEKEL = Function("shekel", box(*[(0.0, 10.0)] * 4), 10.402940566818653, _shekel)
COSINES8 = Function("cosines8", box(*[(-1.0, 1.0)] * 8), 0.8, _cosines)
LEVY16 = Function("levy16", box(*[(-10.0, 10.0)] * 16), 0.0, _levy)
STYBLINSKI_TANG5 = Function("styblinski-tang5", box(*[(-5.0, 5.0)] * 5), 5 * 39.16616570377142, _styblinski_tang)
HARTMANN3_OF_12 = Function("hartmann3-of-12", box(*[(0.0, 1.0)] * 12), functions.HARTMANN3.optimum, _hartmann3_of_some)
MIXED = Function(
    "mixed",
    {
        "material": Categorical(["a", "b", "c", "d"]),
        "shape": Categorical(["rod", "cube", "disc"]),
        "count": Integer(1, 12),
        **{name: functions.Real(0.0, 1.0) for name in "uvw"},
    },
    1.0,
    _mixed,
)

BRANIN, CURRIN, HARTMANN3 = map(always, (functions.BRANIN, functions.CURRIN_EXPONENTIAL, functions.HARTMANN3))
HARTMANN6, PARK1, PARK2 = map(always, (functions.HARTMANN6, functions.PARK1, functions.PARK2))

#: Settings for choosing defaults.
LISTED = {
    "branin-uniform": Setting(BRANIN, Uniform(), 60, workers=4),
    "currin-halfnormal": Setting(CURRIN, HalfNormal(), 60, workers=4),
    "hartmann3-exponential": Setting(HARTMANN3, Exponential(), 80, workers=6),
    "park1-pareto": Setting(PARK1, Pareto(), 80, workers=8),
    "hartmann6-uniform": Setting(HARTMANN6, Uniform(), 100, workers=10),
    "hartmann3-poisson10": Setting(HARTMANN3, Poisson(10), 80),
    "gp1d-poisson10": Setting(gp_sample, Poisson(10), 60, noise=Noise(0.02)),
    "hartmann6-pareto": Setting(HARTMANN6, Pareto(), 100, workers=10),
    "hartmann3-poisson30": Setting(HARTMANN3, Poisson(30), 100),
}

#: Settings for checking defaults. The first three supported the choice of the estimated prior mean.
HELD_OUT = {
    "ackley10-uniform": Setting(always(functions.ACKLEY10), Uniform(), 120, workers=8),
    "levy16-uniform": Setting(always(LEVY16), Uniform(), 150, workers=8),
    "styblinski-student": Setting(always(STYBLINSKI_TANG5), Exponential(), 100, workers=4, noise=Noise(5.0, 0.0, 2.0)),
    "hartmann6-growing": Setting(HARTMANN6, Uniform(), 100, workers=6, noise=Noise(0.05, 0.2)),
    "park2-poisson30": Setting(PARK2, Poisson(30), 100),
    "mixed-uniform": Setting(always(MIXED), Uniform(), 80, workers=4, noise=Noise(0.05)),
    "hartmann3of12-exponential": Setting(always(HARTMANN3_OF_12), Exponential(), 100, workers=6),
    "branin-noiseless": Setting(BRANIN, Uniform(), 60, workers=4, noise=Noise(0.0)),
}

#: Settings that were added after all choices of defaults.
ASIDE = {
    "camel-halfnormal": Setting(always(CAMEL), HalfNormal(), 60, workers=4, noise=Noise(0.1)),
    "shekel-exponential": Setting(always(SHEKEL), Exponential(), 100, workers=6, noise=Noise(0.1)),
    "cosines8-uniform": Setting(always(COSINES8), Uniform(), 100, workers=8, noise=Noise(0.05)),
}

SETTINGS = LISTED | HELD_OUT | ASIDE
