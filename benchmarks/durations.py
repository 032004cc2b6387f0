"""Settings with simulated durations, in which every optimizer gets the same simulated time.

There are eight workers, and the horizon is 12.5 times the mean duration of uniformly random points. The problems are
Branin, Hartmann3 and Hartmann6. Durations depend on the point in different ways:

* *independent*: exponential, and independent of the value of f
* *quality*: better points are slower; the best point takes 10 times as long as a bad point
* *slow-workers*: three times longer with probability 1/3
* *change*: at first 10^u, and from half of the horizon on 10^(1-u), where u is the first parameter in units of the box
* *crashes*: as *independent*, but in a tenth of the box evaluations fail after a hundredth of the mean duration

Compare the default with an optimizer that does not use durations:

    python benchmarks/compare.py run --settings durations --seeds 0:20 --out results.jsonl --optimizers \\
        'time=belated:{"clock": "seconds", "acquisition__per": "time"}' \\
        'trial=belated:{"clock": "seconds", "acquisition__per": "trial"}'
    python benchmarks/compare.py table results.jsonl --settings durations --against trial
"""

import functools
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from belated import functions

MEAN_DURATIONS = 12.5


@dataclass(frozen=True)
class DurationSetting:
    """A problem and the duration of an evaluation as a function of the problem and the point."""

    function: functions.Function
    duration: Callable
    crashes: bool = False
    duration_later: Callable | None = None
    n_evaluations: int = 500
    workers: int = 8
    smallest: float = 1e-6
    noise: float = 0.2

    def problem(self, seed):
        """Return the problem, which does not depend on the seed."""
        return self.function

    def law(self, params):
        """Return the duration of an evaluation that starts at time 0."""
        if self.crashes and fails(self.function, params):
            return 0.01
        return self.duration(self.function, params)

    def law_at(self, params, start):
        """Return the duration of an evaluation that starts at this time."""
        if self.duration_later is None or start < self.horizon / 2:
            return self.law(params)
        return self.duration_later(self.function, params)

    @property
    def horizon(self):
        """Return the simulated time at which a run ends."""
        return MEAN_DURATIONS * _mean(self)

    def outcomes(self, function, rng, n):
        """Return a function that gives the observed value of the k-th evaluation; NaN is a failure."""
        errors = self.noise * rng.standard_normal(n)
        lost = self.crashes
        return lambda k, params, value: math.nan if lost and fails(function, params) else value + errors[k]

    def regret(self, function, distance):
        """Return the regret of a value with this distance from the optimum."""
        return distance


def unit(function, params):
    """Return a point in units of the box."""
    return np.array([(params[name] - d.low) / (d.high - d.low) for name, d in function.space.items()])


def number(params):
    """Return a number in (0, 1) that depends on the point like a random number."""
    return (zlib.crc32(repr(sorted(params.items())).encode()) + 0.5) / 2**32


def fails(function, params):
    """Return whether an evaluation fails: in the tenth of the box where the last parameter is smallest."""
    return unit(function, params)[-1] < 0.1


def independent(function, params):
    return -math.log(number(params))


def quality(function, params):
    worst, best = _range(function)
    return 10.0 ** min(max((function(params) - worst) / (best - worst), 0.0), 1.0)


def slow_workers(function, params):
    return 3.0 if number(params) < 1 / 3 else 1.0


def slow_above(function, params):
    return 10.0 ** unit(function, params)[0]


def slow_below(function, params):
    return 10.0 ** (1.0 - unit(function, params)[0])


@functools.cache
def _points(function):
    rng = np.random.default_rng(0)
    bounds = [(d.low, d.high) for d in function.space.values()]
    rows = rng.random((2000, len(bounds)))
    return [
        dict(zip(function.space, (a + u * (b - a) for u, (a, b) in zip(row, bounds, strict=True)), strict=True))
        for row in rows
    ]


@functools.cache
def _range(function):
    """Return a low value of f (the first percentile of random points), and the largest value."""
    return float(np.quantile([function(p) for p in _points(function)], 0.01)), function.optimum


@functools.cache
def _mean(setting):
    return float(np.mean([setting.law(p) for p in _points(setting.function)]))


_FUNCTIONS = {"branin": functions.BRANIN, "hartmann3": functions.HARTMANN3, "hartmann6": functions.HARTMANN6}
_DURATIONS = {
    "independent": (independent, False),
    "quality": (quality, False),
    "slow-workers": (slow_workers, False),
    "crashes": (independent, True),
    "change": (slow_above, False, slow_below),
}
SETTINGS = {
    f"{name}-{kind}": DurationSetting(function, *arguments)
    for name, function in _FUNCTIONS.items()
    for kind, arguments in _DURATIONS.items()
}
GROUPS = {"durations": SETTINGS}
