"""Benchmark functions with known maxima, to compare optimizers on; all of them are to be maximised.

Notation: x_1 … x_d are the coordinates in the order of the space. Definitions are the customary ones (Kandasamy et al.
2017, section 4, name them); Branin, usually minimised, is negated. The sums apply one function to consecutive groups
of coordinates (their appendix C.2). Standard deviations of the noise are theirs, too: 0.2, and 1 for the sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from belated._core import InvalidSetting
from belated.space.dimensions import Real

__all__ = [
    "BRANIN",
    "CURRIN_EXPONENTIAL",
    "CURRIN_EXPONENTIAL_14",
    "HARTMANN3",
    "HARTMANN6",
    "HARTMANN12",
    "HARTMANN18",
    "PARK1",
    "PARK2",
    "PARK2_16",
    "Function",
    "box",
    "sum_over_groups",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Function:
    """A function of the parameters of a space, and its maximum.

    It is called with parameters by name, which gives a number, or with points as the rows of an array of shape (n, d),
    columns in the order of the space, which gives an array of shape (n,).

    Parameters
    ----------
    name : str
    space : mapping
        Name → dimension, as `BayesOpt` takes it.
    optimum : float
        The maximum over the space.
    formula : callable
        Takes the values of the parameters, in the order of the space.
    noise_std : float, default 0.0
        Standard deviation of the noise that experiments add to the values.

    Raises
    ------
    InvalidSetting
        Called with an array that has not one column for each parameter.

    Examples
    --------
    >>> from belated.functions import BRANIN
    >>> round(BRANIN({"x1": 3.1415927, "x2": 2.275}), 6), round(BRANIN.optimum, 6)
    (-0.397887, -0.397887)
    >>> BRANIN([[3.1415927, 2.275], [0.0, 0.0]]).round(6)
    array([ -0.397887, -55.602113])
    """

    name: str
    space: Mapping[str, Any]
    optimum: float
    formula: Callable[[Sequence[Any]], float]
    noise_std: float = 0.0

    @overload
    def __call__(self, params: Mapping[str, Any]) -> float: ...
    @overload
    def __call__(self, params: ArrayLike) -> Array: ...
    def __call__(self, params: Mapping[str, Any] | ArrayLike) -> float | Array:
        if isinstance(params, Mapping):
            return float(self.formula([params[name] for name in self.space]))
        points = np.asarray(params)
        if points.ndim != 2 or points.shape[1] != len(self.space):
            raise InvalidSetting(
                f"points of shape {points.shape} are not usable: {self.name} takes parameters by name, "
                f"or an array of shape (n, {len(self.space)})"
            )
        return np.array([self.formula(point) for point in points.tolist()], dtype=float)


def box(*bounds: tuple[float, float]) -> dict[str, Real]:
    """The space of x1, x2, … within the given bounds.

    Examples
    --------
    >>> from belated.functions import box
    >>> box((0.0, 1.0), (-5.0, 5.0))
    {'x1': Real(0.0, 1.0), 'x2': Real(-5.0, 5.0)}
    """
    return {f"x{j}": Real(low, high) for j, (low, high) in enumerate(bounds, start=1)}


def sum_over_groups(name: str, function: Function, count: int, noise_std: float) -> Function:
    """The sum of one function over consecutive groups of coordinates; its maximum is as many times as large.

    Examples
    --------
    >>> from belated.functions import HARTMANN3, sum_over_groups
    >>> hartmann9 = sum_over_groups("hartmann9", HARTMANN3, 3, noise_std=1.0)
    >>> len(hartmann9.space), round(hartmann9.optimum, 3)
    (9, 11.588)
    """
    bounds = [(dimension.low, dimension.high) for dimension in function.space.values()]
    formula = partial(_sum_over_groups, formula=function.formula, size=len(bounds))
    return Function(name, box(*bounds * count), count * function.optimum, formula, noise_std)


def _sum_over_groups(x: Sequence[float], formula: Callable[[Sequence[float]], float], size: int) -> float:
    """Σ_k g(x_{k·size + 1}, …, x_{(k + 1)·size})."""
    return math.fsum(formula(x[first : first + size]) for first in range(0, len(x), size))


def _branin(x: Sequence[float]) -> float:
    """−[(x2 − b·x1² + c·x1 − 6)² + 10·(1 − t)·cos x1 + 10]."""
    x1, x2 = x
    b, c, t = 5.1 / (4 * math.pi**2), 5 / math.pi, 1 / (8 * math.pi)
    return -((x2 - b * x1**2 + c * x1 - 6) ** 2 + 10 * (1 - t) * math.cos(x1) + 10)


def _currin(x: Sequence[float]) -> float:
    """(1 − exp(−1/(2·x2))) times a ratio of cubics in x1; at x2 = 0 the exponential is its limit, 0."""
    x1, x2 = x
    decay = math.exp(-1 / (2 * x2)) if x2 > 0 else 0.0
    return (1 - decay) * (2300 * x1**3 + 1900 * x1**2 + 2092 * x1 + 60) / (100 * x1**3 + 500 * x1**2 + 4 * x1 + 20)


def _park1(x: Sequence[float]) -> float:
    """x1/2·(sqrt(1 + (x2 + x3²)·x4/x1²) − 1) + (x1 + 3·x4)·exp(1 + sin x3), with x1 multiplied in: no division by 0."""
    x1, x2, x3, x4 = x
    return 0.5 * (math.sqrt(x1**2 + (x2 + x3**2) * x4) - x1) + (x1 + 3 * x4) * math.exp(1 + math.sin(x3))


def _park2(x: Sequence[float]) -> float:
    """2/3·exp(x1 + x2) − x4·sin x3 + x3."""
    x1, x2, x3, x4 = x
    return 2 / 3 * math.exp(x1 + x2) - x4 * math.sin(x3) + x3


_HEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])  # α
_STEEPNESS3 = np.array([[3.0, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])  # A
_PEAKS3 = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]])  # P
_STEEPNESS6 = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_PEAKS6 = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def _hartmann(x: Sequence[float], steepness: Array, peaks: Array) -> float:
    """Σ_i α_i·exp(−Σ_j A_ij·(x_j − P_ij)²)."""
    return float(_HEIGHTS @ np.exp(-np.sum(steepness * (np.asarray(x) - peaks) ** 2, axis=1)))


def _hartmann3(x: Sequence[float]) -> float:
    return _hartmann(x, _STEEPNESS3, _PEAKS3)


def _hartmann6(x: Sequence[float]) -> float:
    return _hartmann(x, _STEEPNESS6, _PEAKS6)


_UNIT = (0.0, 1.0)
_NOISE = 0.2
_NOISE_OF_SUMS = 1.0

#: Three equal maxima.
BRANIN = Function("branin", box((-5.0, 10.0), (0.0, 15.0)), -10 / (8 * math.pi), _branin, _NOISE)
#: Maximum on the edge x2 = 0, where the function is steep.
CURRIN_EXPONENTIAL = Function("currin-exponential", box(_UNIT, _UNIT), 13.798722044728434, _currin, _NOISE)
HARTMANN3 = Function("hartmann3", box(*[_UNIT] * 3), 3.8627797873326, _hartmann3, _NOISE)
#: A second, lower peak of height 3.20 lies far from the maximum.
HARTMANN6 = Function("hartmann6", box(*[_UNIT] * 6), 3.3223680114155, _hartmann6, _NOISE)
#: Maximum in the corner (1, 1, 1, 1).
PARK1 = Function("park1", box(*[_UNIT] * 4), 0.5 * (math.sqrt(3) - 1) + 4 * math.exp(1 + math.sin(1)), _park1, _NOISE)
#: Maximum in the corner (1, 1, 1, 0). The paper lists it under both standard deviations of the noise; here 0.2.
PARK2 = Function("park2", box(*[_UNIT] * 4), 2 / 3 * math.exp(2) + 1, _park2, _NOISE)

PARK2_16 = sum_over_groups("park2-16", PARK2, 4, _NOISE_OF_SUMS)
HARTMANN12 = sum_over_groups("hartmann12", HARTMANN6, 2, _NOISE_OF_SUMS)
CURRIN_EXPONENTIAL_14 = sum_over_groups("currin-exponential-14", CURRIN_EXPONENTIAL, 7, _NOISE_OF_SUMS)
HARTMANN18 = sum_over_groups("hartmann18", HARTMANN6, 3, _NOISE_OF_SUMS)
