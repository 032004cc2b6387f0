"""Regret of simulated runs, computed from the trials whose results have arrived, or from all trials.

A trial is *converted* if its result has arrived. A curve has one entry for each time on the clock. On the iteration
clock the default times are t = 0 … T; entry t uses the results that are known after t trials were started. For
simulated seconds, the times must be given.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from belated._core import InvalidSetting
from belated.simulate.iteration_clock import History

Array = NDArray[np.float64]


def best_converted(
    history: History, *, at: ArrayLike | None = None, before: float = math.nan, longest: float = math.inf
) -> Array:
    """Return the best value among the results that have arrived, at each time on the clock.

    Parameters
    ----------
    at : array, optional
        Times on the clock, in any order. The default on the iteration clock is t = 0 … T.
    before : float
        The value before the first result.
    longest : float
        Results with a longer delay are ignored. Pass the window of an algorithm that discards late results.

    Raises
    ------
    InvalidSetting
        The history is in simulated seconds, and `at` is missing.
    """
    at = _times(history, at)
    sign = 1.0 if history.direction == "maximize" else -1.0
    counted = np.flatnonzero(history.delays <= longest)
    order = counted[np.argsort(history.arrivals[counted], kind="stable")]
    running = np.maximum.accumulate(sign * history.values[order])
    n_in = np.searchsorted(history.arrivals[order], at, side="right")
    return np.asarray(np.concatenate([[before], sign * running])[n_in])


def n_converted(history: History, *, at: ArrayLike | None = None) -> NDArray[np.int64]:
    """Return how many results have arrived at each time on the clock; Kandasamy et al. 2017 write N(T)."""
    return np.asarray(np.searchsorted(np.sort(history.arrivals), _times(history, at), side="right"))


def simple_regret(
    history: History,
    optimum: float,
    *,
    at: ArrayLike | None = None,
    before: float = math.nan,
    longest: float = math.inf,
) -> Array:
    """Return, at each time on the clock, the distance between the optimum and the best converted value.

    ``before`` is the regret before the first result. Kandasamy et al. 2017 (Eq. 3) use ``max_x |f* − f(x)|``. The other
    arguments are as in `best_converted`.
    """
    best = best_converted(history, at=at, longest=longest)
    regret = optimum - best if history.direction == "maximize" else best - optimum
    return np.where(np.isnan(best), before, regret)


def cumulative_regret(history: History, optimum: ArrayLike) -> Array:
    """Return, for t = 0 … T, the sum of the regrets of the first t trials, including trials in flight.

    ``optimum`` is a single number for all trials. If the optimum depends on the context, pass an array of shape (T,)
    with the optimum of each trial.
    """
    optimum = np.asarray(optimum, dtype=float)
    regret = optimum - history.values if history.direction == "maximize" else history.values - optimum
    return np.concatenate([[0.0], np.cumsum(regret)])


def _times(history: History, at: ArrayLike | None) -> Array:
    """Return the times of a curve: `at`, or the default times."""
    if at is not None:
        return np.asarray(at, dtype=float)
    if history.clock == "seconds":
        raise InvalidSetting("at is missing: pass the simulated times at which to read the history")
    return np.arange(len(history) + 1, dtype=float)
