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


def _michalewicz(x):
    """Return the Michalewicz function with steepness 10, as a function to be maximised."""
    x = np.asarray(x)
    return float(np.sum(np.sin(x) * np.sin(np.arange(1, len(x) + 1) * x**2 / math.pi) ** 20))


def _rosenbrock(x):
    x = np.asarray(x)
    return -float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


def _griewank(x):
    x = np.asarray(x)
    return float(np.prod(np.cos(x / np.sqrt(np.arange(1, len(x) + 1)))) - np.sum(x**2) / 4000 - 1)


def _goldstein_price(x):
    """Return −log10 of the Goldstein–Price function; its minimum is 3, at (0, −1)."""
    a, b = x
    first = 1 + (a + b + 1) ** 2 * (19 - 14 * a + 3 * a**2 - 14 * b + 6 * a * b + 3 * b**2)
    second = 30 + (2 * a - 3 * b) ** 2 * (18 - 32 * a + 12 * a**2 + 48 * b - 36 * a * b + 27 * b**2)
    return -math.log10(first * second)


def _otl_circuit(x):
    """Return the midpoint voltage of an output transformerless push-pull circuit (Ben-Ari and Steinberg 2007)."""
    b1, b2, f, c1, c2, beta = x
    base = 12 * b2 / (b1 + b2)
    gain = beta * (c2 + 9)
    return (base + 0.74) * gain / (gain + f) + 11.35 * f / (gain + f) + 0.74 * f * gain / ((gain + f) * c1)


def _wing(x):
    """Return the negated weight of a light aircraft's wing in pounds (Forrester, Sóbester and Keane 2008)."""
    area, fuel, aspect, sweep, pressure, taper, thickness, load, weight, paint = x
    cosine = math.cos(math.radians(sweep))
    shape = (aspect / cosine**2) ** 0.6 * (100 * thickness / cosine) ** -0.3 * taper**0.04
    return -(0.036 * area**0.758 * fuel**0.0035 * shape * pressure**0.006 * (load * weight) ** 0.49 + area * paint)


def _steps(x):
    """Return Hartmann3 of three of four coordinates, rounded down to multiples of 1/20."""
    return math.floor(20 * functions.HARTMANN3.formula([x[0], x[1], x[3]])) / 20


def _recipe(values):
    """Return the yield of a recipe: additives shift the best temperature, and one of them works only with few steps."""
    solvent, additive, n_steps, temperature, log_time, dose = values
    base = {"water": 0.7, "ethanol": 0.9, "toluene": 0.6, "acetone": 0.8, "hexane": 0.5}[solvent]
    shift = {"none": 0.0, "salt": 25.0, "acid": -30.0}[additive]
    bonus = 0.25 if additive == "acid" and n_steps <= 2 else 0.0
    best = 80.0 + shift + (20.0 if solvent == "toluene" else 0.0)
    loss = ((temperature - best) / 30.0) ** 2 + (log_time - 0.5 + 0.1 * n_steps) ** 2 + 2 * (dose - 0.35) ** 2
    return (base + bonus) * math.exp(-loss) - 0.02 * n_steps


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

MICHALEWICZ5 = Function("michalewicz5", box(*[(0.0, math.pi)] * 5), 4.687658179088148, _michalewicz)
ROSENBROCK4 = Function("rosenbrock4", box(*[(-2.048, 2.048)] * 4), 0.0, _rosenbrock)
GRIEWANK3 = Function("griewank3", box(*[(-12.0, 8.0)] * 3), 0.0, _griewank)
GOLDSTEIN_PRICE = Function("goldstein-price", box(*[(-2.0, 2.0)] * 2), -math.log10(3.0), _goldstein_price)
OTL_CIRCUIT = Function(
    "otl-circuit",
    box((50.0, 150.0), (25.0, 70.0), (0.5, 3.0), (1.2, 2.5), (0.25, 1.2), (50.0, 300.0)),
    _otl_circuit([50.0, 70.0, 3.0, 1.2, 0.25, 50.0]),
    _otl_circuit,
)
WING = Function(
    "wing",
    box(
        (150.0, 200.0), (220.0, 300.0), (6.0, 10.0), (-10.0, 10.0), (16.0, 45.0),
        (0.5, 1.0), (0.08, 0.18), (2.5, 6.0), (1700.0, 2500.0), (0.025, 0.08),
    ),
    _wing([150.0, 220.0, 6.0, 0.0, 16.0, 0.5, 0.18, 2.5, 1700.0, 0.025]),
    _wing,
)  # fmt: skip
STEPS4 = Function("steps4", box(*[(0.0, 1.0)] * 4), 3.85, _steps)
RECIPE = Function(
    "recipe",
    {
        "solvent": Categorical(["water", "ethanol", "toluene", "acetone", "hexane"]),
        "additive": Categorical(["none", "salt", "acid"]),
        "n_steps": Integer(1, 6),
        "temperature": functions.Real(20.0, 140.0),
        "log_time": functions.Real(-1.0, 1.0),
        "dose": functions.Real(0.0, 1.0),
    },
    1.15 - 0.02,
    _recipe,
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

#: Settings on which no optimizer had been run before the defaults of commit 0b9dd080.
UNSEEN = {
    "michalewicz5-uniform": Setting(always(MICHALEWICZ5), Uniform(), 100, workers=6, noise=Noise(0.05)),
    "rosenbrock4-halfnormal": Setting(always(ROSENBROCK4), HalfNormal(), 80, workers=4, noise=Noise(1.0)),
    "griewank3-poisson10": Setting(always(GRIEWANK3), Poisson(10), 80, noise=Noise(0.05)),
    "goldstein-uniform": Setting(always(GOLDSTEIN_PRICE), Uniform(), 60, workers=4, noise=Noise(0.1)),
    "otl-exponential": Setting(always(OTL_CIRCUIT), Exponential(), 80, workers=6, noise=Noise(0.1)),
    "wing-pareto": Setting(always(WING), Pareto(), 100, workers=8, noise=Noise(5.0, 0.0, 3.0)),
    "steps4-exponential": Setting(always(STEPS4), Exponential(), 100, workers=6, noise=Noise(0.05)),
    "recipe-uniform": Setting(always(RECIPE), Uniform(), 80, workers=4, noise=Noise(0.03)),
}

SETTINGS = LISTED | HELD_OUT | ASIDE | UNSEEN
