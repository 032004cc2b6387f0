"""Bounds that the theorems of papers give before a run."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from belated._core import InvalidSetting
from belated.optimizers.settings import Theory
from belated.short_repr import short_repr
from belated.space.arguments import finite


def _number(name: str, given: object, least: float, largest: float = math.inf, *, or_least: bool = False) -> float:
    """Return a finite number above `least` (or equal to it, with `or_least`) and up to `largest`."""
    number = finite(given)
    if number is None or not (least <= number if or_least else least < number) or number > largest:
        least_number = f"{least:g} or above" if or_least else f"above {least:g}"
        up_to = "" if largest == math.inf else f", at most {largest:g}"
        raise InvalidSetting(f"{name}={short_repr(given)} is not usable: pass a finite number {least_number}{up_to}")
    return number


def regret_bound(
    n_trials: int,
    information: float,
    *,
    theory: Theory,
    noise_std: float,
    window: float,
    arrival: float = 1.0,
    signal_std: float = 1.0,
) -> float:
    """Return the bound on the cumulative regret of GP-UCB-SDF (Verma et al. 2022, theorem 2).

    With probability 1 - ``theory.delta``, the sum of f(x*) - f(x_t) over the first T trials of `BayesOpt` with
    ``UCB("theory")`` and `Censor` is at most 2/arrival (C beta sqrt(T gamma) + window C² gamma B_y/lambda), where
    lambda is ``noise_std**2``, beta = B_f + (R + B_y) sqrt(2 (gamma + log(2/delta))/lambda), C² = 2 signal_std²/log(1 +
    signal_std²/lambda), and gamma is the information. The paper prints the bound for lambda > 1 and signal_std = 1,
    with 1 in place of the divisors lambda. The cumulative regret divided by T bounds the simple regret.

    Parameters
    ----------
    n_trials : int
        T, the number of trials.
    information : float
        An upper bound on the maximum information gain of T points: the largest 1/2 log det(1 + K/lambda) for the kernel
        matrix K of T points.
    theory : Theory
        ``rkhs_bound`` (B_f), ``noise_bound`` (R), ``value_bound`` (B_y) and delta, all required.
    noise_std : float
        The standard deviation of the noise in the model.
    window : float
        The window m, the number of suggestions within which a result counts.
    arrival : float, default 1.0
        The probability that a result arrives within the window.
    signal_std : float, default 1.0
        The standard deviation of f in the model, or the largest one if it differs between points.

    Returns
    -------
    float
        The bound, in units of f.

    Raises
    ------
    InvalidSetting
        A number is out of its range, or a constant of `theory` is missing.

    Examples
    --------
    >>> import belated as bl
    >>> theory = bl.papers.Theory(rkhs_bound=1.0, noise_bound=0.1, value_bound=1.0)
    >>> bound = bl.papers.regret_bound(100, 8.0, theory=theory, noise_std=0.5, window=10, arrival=0.9)
    >>> round(bound)
    1677
    """
    given = (theory.rkhs_bound, theory.noise_bound, theory.value_bound)
    names = ("rkhs_bound", "noise_bound", "value_bound")
    b_f, r, b_y = (_number(f"theory.{name}", x, 0.0, or_least=True) for name, x in zip(names, given, strict=True))
    delta = _number("theory.delta", theory.delta, 0.0, 1.0)
    t = _number("n_trials", n_trials, 1.0, or_least=True)
    gamma = _number("information", information, 0.0, or_least=True)
    lambda_ = _number("noise_std", noise_std, 0.0) ** 2
    m = _number("window", window, 0.0, or_least=True)
    rho = _number("arrival", arrival, 0.0, 1.0)
    variance = _number("signal_std", signal_std, 0.0) ** 2
    c_squared = 2.0 * variance / math.log1p(variance / lambda_)
    beta = b_f + (r + b_y) * math.sqrt(2.0 * (gamma + math.log(2.0 / delta)) / lambda_)
    return 2.0 / rho * (math.sqrt(c_squared * t * gamma) * beta + m * c_squared * gamma * b_y / lambda_)


# The number of levels after which `levels_within` gives up.
_MOST_LEVELS = 10_000_000


def levels_within(budget: float, cost: Callable[[Any], Any], *, full_cost: float = 1.0) -> int:
    """Return H of Wang et al. (2022), Table 3: the number of levels of a tree whose evaluations fit into a budget.

    H is the largest number for which the costs of the levels h = 1, …, H, min(cost(h), full_cost), add up to at most
    the budget. A tree search with a fidelity makes at least H + 1 evaluations with this budget (Lemma 2 of the paper),
    so H takes the place of the number of evaluations in the bounds on its regret. The closed forms of the paper's table
    bound the minimum by the mean of its arguments, and are not used.

    Parameters
    ----------
    budget : float
        The total cost, in the unit of the costs.
    cost : callable
        Returns the costs of an array of levels. The models of the table are ``lambda h: beta * h`` (linear),
        ``lambda h: beta + 0 * h`` (constant), ``lambda h: h**-beta`` (polynomial) and ``lambda h: beta**-h``
        (exponential).
    full_cost : float, default 1.0
        The cost of an evaluation at the highest fidelity.

    Returns
    -------
    int
        The number of levels.

    Raises
    ------
    InvalidSetting
        A number is out of its range, a cost is negative or NaN, or 10,000,000 levels fit into the budget.

    Examples
    --------
    >>> from belated.papers import levels_within
    >>> levels_within(6.0, lambda h: 0.1 * h)  # 0.1 + 0.2 + … + 1 = 5.5, and deeper levels cost 1
    10
    """
    left = _number("budget", budget, 0.0, or_least=True)
    full = _number("full_cost", full_cost, 0.0)
    slack = 1e-9 * left  # so that rounding errors of the sum do not remove the last level
    start = 1
    while start <= _MOST_LEVELS:
        # The levels from `start` to twice `start`, but at least a thousand.
        h = np.arange(start, start + max(start, 1000), dtype=float)
        with np.errstate(over="ignore"):
            costs = np.broadcast_to(np.asarray(cost(h), dtype=float), h.shape)
        if not (costs >= 0).all():
            raise InvalidSetting(f"cost={short_repr(cost)} is not usable: pass a function whose values are numbers ≥ 0")
        total = np.cumsum(np.minimum(costs, full))
        if total[-1] > left + slack:
            return start - 1 + int(np.searchsorted(total, left + slack, side="right"))
        left -= float(total[-1])
        start += len(h)
    raise InvalidSetting(
        f"budget={short_repr(budget)} is not usable: {_MOST_LEVELS:,} levels fit into it; pass a smaller budget"
    )
