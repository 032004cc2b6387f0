"""Benchmark functions with known maxima, for comparing optimizers. The optimizers maximise these functions.

Notation: x_1 … x_d are the coordinates in the order of the space. Except SCHWEFEL20 and ACKLEY10, the functions without
a fidelity are from section 4 of Kandasamy et al. 2017. These functions have their standard definitions, except that
Branin is negated because it is usually minimised. A sum applies the same function to consecutive groups of coordinates
(appendix C.2 of Kandasamy et al.). The noise has the standard deviation that Kandasamy et al. use: 1 for sums, and 0.2
for other functions.

Functions with a fidelity z in [0, 1] come from Wang et al. 2022, appendix D.2. z = 1 is the full function, and λ(z) is
the cost of an evaluation. If a formula of Wang et al. differs from the standard definition at z = 1, the standard
definition is used here.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from belated._core import InvalidSetting
from belated.space.dimensions import Real

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Function:
    """A function of the parameters of a space, and its maximum.

    A call with a dict of parameters returns a number. A call with an array of shape (n, d) returns an array of shape
    (n,): rows are points, and columns are parameters in the order of the space.

    Parameters
    ----------
    name : str
    space : mapping
        Name → dimension, a space for `BayesOpt`.
    optimum : float
        The maximum over the space.
    formula : callable
        A function of the list of parameter values, in the order of the space.
    noise_std : float, default 0.0
        Standard deviation of the noise that experiments add to the values.

    Raises
    ------
    InvalidSetting
        The function is called with an array that does not have one column for each parameter.

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
        return np.array([self.formula(point) for point in _rows(params, self.name, self.space)], dtype=float)


@dataclass(frozen=True, eq=False)
class MultiFidelityFunction:
    """A function of the parameters of a space and of a fidelity z in [0, 1]; z = 1 is the full function.

    Like a `Function`, it is called with a dict of parameters, or with an array of shape (n, d) whose rows are points.
    The fidelity is one number for all points, or an array of shape (n,) with one number for each point.

    Parameters
    ----------
    name : str
    space : mapping
        Name → dimension, a space for `BayesOpt`.
    optimum : float
        The maximum over the space at z = 1.
    formula : callable
        A function of two arguments: the list of parameter values, in the order of the space, and z.
    cost : callable
        λ(z), the cost of an evaluation at z.
    noise_std : float, default 0.0
        Standard deviation of the noise that experiments add to the values.

    Raises
    ------
    InvalidSetting
        The function is called with a fidelity outside [0, 1], or with arrays of wrong shapes.

    Examples
    --------
    >>> from belated.functions import BRANIN_MF
    >>> best = {"x1": 3.1415927, "x2": 2.275}
    >>> round(BRANIN_MF(best), 6), round(BRANIN_MF(best, 0.5), 6)
    (-0.397887, -0.659493)
    >>> BRANIN_MF([[3.1415927, 2.275], [0.0, 0.0]], [1.0, 0.5]).round(6)
    array([ -0.397887, -55.352113])
    >>> BRANIN_MF.cost(0.5), BRANIN_MF.cost(1.0)
    (0.175, 1.05)
    """

    name: str
    space: Mapping[str, Any]
    optimum: float
    formula: Callable[[Sequence[Any], float], float]
    cost: Callable[[float], float]
    noise_std: float = 0.0

    @overload
    def __call__(self, params: Mapping[str, Any], z: float = 1.0) -> float: ...
    @overload
    def __call__(self, params: ArrayLike, z: ArrayLike = 1.0) -> Array: ...
    def __call__(self, params: Mapping[str, Any] | ArrayLike, z: ArrayLike = 1.0) -> float | Array:
        fidelities = np.asarray(z, dtype=float)
        if not np.all((fidelities >= 0.0) & (fidelities <= 1.0)):
            raise InvalidSetting(
                f"the fidelity of {self.name} is from 0 to 1, got {z!r}: pass z=1 for the full function"
            )
        if isinstance(params, Mapping):
            if fidelities.ndim:
                raise InvalidSetting(
                    f"parameters by name take one fidelity, got shape {fidelities.shape}: pass a number"
                )
            return float(self.formula([params[name] for name in self.space], float(fidelities)))
        points = _rows(params, self.name, self.space)
        if fidelities.ndim and fidelities.shape != (len(points),):
            raise InvalidSetting(
                f"fidelities of shape {fidelities.shape} do not fit {len(points)} points: pass one number, "
                f"or an array of shape ({len(points)},)"
            )
        each = np.broadcast_to(fidelities, len(points)).tolist()
        return np.array([self.formula(point, level) for point, level in zip(points, each, strict=True)], dtype=float)


def _rows(params: ArrayLike, name: str, space: Mapping[str, Any]) -> list[list[Any]]:
    """Return the rows of an array of points, shape (n, d), as lists."""
    points = np.asarray(params)
    if points.ndim != 2 or points.shape[1] != len(space):
        raise InvalidSetting(
            f"points of shape {points.shape} are not usable: {name} takes parameters by name, "
            f"or an array of shape (n, {len(space)})"
        )
    return [point.tolist() for point in points]


def box(*bounds: tuple[float, float]) -> dict[str, Real]:
    """Return the space of x1, x2, … within the given bounds.

    Examples
    --------
    >>> from belated.functions import box
    >>> box((0.0, 1.0), (-5.0, 5.0))
    {'x1': Real(0.0, 1.0), 'x2': Real(-5.0, 5.0)}
    """
    return {f"x{j}": Real(low, high) for j, (low, high) in enumerate(bounds, start=1)}


def sum_over_groups(name: str, function: Function, count: int, noise_std: float) -> Function:
    """Return the sum of a function over `count` consecutive groups of coordinates.

    The maximum of the sum is `count` times the maximum of the function.

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


def _branin(x: Sequence[float], z: float = 1.0) -> float:
    """−[(x2 − b·x1² + c·x1 − 6)² + 10·(1 − t)·cos x1 + 10], where b, c and t depend on z."""
    x1, x2 = x
    b = 5.1 / (4 * math.pi**2) - 0.01 * (1 - z)
    c = 5 / math.pi - 0.1 * (1 - z)
    t = 1 / (8 * math.pi) + 0.05 * (1 - z)
    return -((x2 - b * x1**2 + c * x1 - 6) ** 2 + 10 * (1 - t) * math.cos(x1) + 10)


def _currin(x: Sequence[float], z: float = 1.0) -> float:
    """(1 − a·exp(−1/(2·x2))) times a ratio of cubics in x1, with a = 1 − 0.1·(1 − z).

    At x2 = 0 the exponential is replaced by its limit, 0.
    """
    x1, x2 = x
    decay = (1 - 0.1 * (1 - z)) * math.exp(-1 / (2 * x2)) if x2 > 0 else 0.0
    return (1 - decay) * (2300 * x1**3 + 1900 * x1**2 + 2092 * x1 + 60) / (100 * x1**3 + 500 * x1**2 + 4 * x1 + 20)


def _park1(x: Sequence[float]) -> float:
    """x1/2·(sqrt(1 + (x2 + x3²)·x4/x1²) − 1) + (x1 + 3·x4)·exp(1 + sin x3).

    The factor x1 is moved into the root, to avoid a division by 0.
    """
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


_LOWERED = np.array([0.1, 0.0, 0.0, 0.0])  # α at z = 1 minus α at z = 0


def _hartmann(x: Sequence[float], z: float = 1.0, *, steepness: Array, peaks: Array) -> float:
    """Σ_i α_i·exp(−Σ_j A_ij·(x_j − P_ij)²), where 0.1·(1 − z) is subtracted from α_1."""
    heights = _HEIGHTS - (1 - z) * _LOWERED
    return float(heights @ np.exp(-np.sum(steepness * (np.asarray(x) - peaks) ** 2, axis=1)))


_hartmann3 = partial(_hartmann, steepness=_STEEPNESS3, peaks=_PEAKS3)
_hartmann6 = partial(_hartmann, steepness=_STEEPNESS6, peaks=_PEAKS6)


def _borehole(x: Sequence[float], z: float = 1.0) -> float:
    """z·2π·g(1) + (1 − z)·5·g(1.5), g(s) = T_u·(H_u − H_l)/(ln(r/r_w)·(s + 2·L·T_u/(ln(r/r_w)·r_w²·K_w) + T_u/T_l))."""
    r_w, r, t_u, h_u, t_l, h_l, length, k_w = x
    log_ratio = math.log(r / r_w)
    flow = t_u * (h_u - h_l) / log_ratio
    resistance = 2 * length * t_u / (log_ratio * r_w**2 * k_w) + t_u / t_l
    return z * 2 * math.pi * flow / (1 + resistance) + (1 - z) * 5 * flow / (1.5 + resistance)


def _schwefel(x: Sequence[float]) -> float:
    """−418.9829·d + Σ_j x_j·sin sqrt(|x_j|)."""
    return math.fsum(each * math.sin(math.sqrt(abs(each))) for each in x) - 418.9829 * len(x)


def _power_cost(least: float, factor: float, power: float, z: float) -> float:
    """λ(z) = least + factor·z^power."""
    return least + factor * math.pow(z, power)


def _with_fidelity(
    function: Function, formula: Callable[[Sequence[Any], float], float], cost: Callable[[float], float], noise: float
) -> MultiFidelityFunction:
    """Return a function with fidelities z, which equals `function` at z = 1."""
    return MultiFidelityFunction(f"{function.name}-mf", function.space, function.optimum, formula, cost, noise)


def _ackley(x: Sequence[float]) -> float:
    """20·exp(−0.2·sqrt(Σ_j x_j²/d)) + exp(Σ_j cos(2π·x_j)/d) − 20 − e."""
    point = np.asarray(x)
    rms, waves = math.sqrt(np.mean(point**2)), float(np.mean(np.cos(2 * math.pi * point)))
    return 20 * math.exp(-0.2 * rms) + math.exp(waves) - 20 - math.e


_UNIT = (0.0, 1.0)
_NOISE = 0.2
_NOISE_OF_SUMS = 1.0

#: Branin has three equal maxima.
BRANIN = Function("branin", box((-5.0, 10.0), (0.0, 15.0)), -10 / (8 * math.pi), _branin, _NOISE)
#: The maximum is on the edge x2 = 0, near which the function is steep.
CURRIN_EXPONENTIAL = Function("currin-exponential", box(_UNIT, _UNIT), 13.798722044728434, _currin, _NOISE)
HARTMANN3 = Function("hartmann3", box(*[_UNIT] * 3), 3.8627797873326, _hartmann3, _NOISE)
#: A second peak, of height 3.20, is far from the maximum.
HARTMANN6 = Function("hartmann6", box(*[_UNIT] * 6), 3.3223680114155, _hartmann6, _NOISE)
#: The maximum is in the corner (1, 1, 1, 1).
PARK1 = Function("park1", box(*[_UNIT] * 4), 0.5 * (math.sqrt(3) - 1) + 4 * math.exp(1 + math.sin(1)), _park1, _NOISE)
#: The maximum is in the corner (1, 1, 1, 0). Kandasamy et al. state that the noise is 0.2 in one section, and that it
# is 1 in another section; here the noise is 0.2.
PARK2 = Function("park2", box(*[_UNIT] * 4), 2 / 3 * math.exp(2) + 1, _park2, _NOISE)

PARK2_16 = sum_over_groups("park2-16", PARK2, 4, _NOISE_OF_SUMS)
HARTMANN12 = sum_over_groups("hartmann12", HARTMANN6, 2, _NOISE_OF_SUMS)
CURRIN_EXPONENTIAL_14 = sum_over_groups("currin-exponential-14", CURRIN_EXPONENTIAL, 7, _NOISE_OF_SUMS)
HARTMANN18 = sum_over_groups("hartmann18", HARTMANN6, 3, _NOISE_OF_SUMS)

_BOREHOLE_SPACE = {
    "r_w": Real(0.05, 0.15),
    "r": Real(100.0, 50000.0),
    "T_u": Real(63070.0, 115600.0),
    "H_u": Real(990.0, 1110.0),
    "T_l": Real(63.1, 116.0),
    "H_l": Real(700.0, 820.0),
    "L": Real(1120.0, 1680.0),
    "K_w": Real(9855.0, 12045.0),
}

HARTMANN3_MF = _with_fidelity(HARTMANN3, _hartmann3, partial(_power_cost, 0.05, 0.95, 3), math.sqrt(0.01))
HARTMANN6_MF = _with_fidelity(HARTMANN6, _hartmann6, partial(_power_cost, 0.05, 0.95, 3), math.sqrt(0.05))
#: The paper and the code of Wang et al. give the optimum as 13.798685.
CURRIN_EXPONENTIAL_MF = _with_fidelity(CURRIN_EXPONENTIAL, _currin, partial(_power_cost, 0.1, 1.0, 2), math.sqrt(0.05))
BRANIN_MF = _with_fidelity(BRANIN, _branin, partial(_power_cost, 0.05, 1.0, 3), math.sqrt(0.05))
#: The maximum is in a corner. The paper and the code of Wang et al. give the optimum as 309.523221, and the code clips
# larger values to this optimum.
BOREHOLE_MF = MultiFidelityFunction(
    "borehole-mf", _BOREHOLE_SPACE, 309.5755876604079, _borehole, partial(_power_cost, 0.1, 1.0, 1.5), math.sqrt(0.01)
)
#: This function has many local maxima. The highest maximum is at x_j = 420.9687 for all j. The function does not have a
# fidelity.
SCHWEFEL20 = Function("schwefel20", box(*[(0.0, 500.0)] * 20), -0.0002545513398218, _schwefel, math.sqrt(0.1))
#: The maximum is at 0, among many local maxima.
ACKLEY10 = Function("ackley10", box(*[(-5.0, 10.0)] * 10), 0.0, _ackley)
