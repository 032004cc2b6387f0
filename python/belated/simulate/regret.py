"""Regret of simulated runs: from converted results, or of all trials.

*Converted*: the result has arrived. Curves have one entry per time on the clock, by default t = 0 … T of the iteration
clock: what is known after t trials were started.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from belated.simulate.iteration_clock import History

Array = NDArray[np.float64]


def best_converted(
    history: History, *, at: ArrayLike | None = None, before: float = math.nan, longest: float = math.inf
) -> Array:
    """The best value among the results that have arrived, at each time on the clock.

    Parameters
    ----------
    at : array, optional
        Times on the clock; by default t = 0 … T of the iteration clock.
    before : float
        The value before the first result.
    longest : float
        Results with a longer delay never count: the window of an algorithm that discards them.
    """
    at = np.arange(len(history) + 1) if at is None else np.asarray(at, dtype=float)
    sign = 1.0 if history.direction == "maximize" else -1.0
    counted = np.flatnonzero(history.delays <= longest)
    order = counted[np.argsort(history.arrivals[counted], kind="stable")]
    running = np.maximum.accumulate(sign * history.values[order])
    n_in = np.searchsorted(history.arrivals[order], at, side="right")
    return np.asarray(np.concatenate([[before], sign * running])[n_in])


def simple_regret(
    history: History,
    optimum: float,
    *,
    at: ArrayLike | None = None,
    before: float = math.nan,
    longest: float = math.inf,
) -> Array:
    """Distance of the best converted value from the optimum, at each time on the clock.

    ``before`` is the regret before the first result: Kandasamy et al. 2017 (Eq. 3) take max_x |f* − f(x)|.
    """
    best = best_converted(history, at=at, longest=longest)
    regret = optimum - best if history.direction == "maximize" else best - optimum
    return np.where(np.isnan(best), before, regret)


def cumulative_regret(history: History, optimum: ArrayLike) -> Array:
    """Sum of the regrets of the first t trials, t = 0 … T: a trial counts from its start, not from its arrival.

    ``optimum`` is one for all trials or, where it depends on their contexts, one for each, shape (T,).
    """
    optimum = np.asarray(optimum, dtype=float)
    regret = optimum - history.values if history.direction == "maximize" else history.values - optimum
    return np.concatenate([[0.0], np.cumsum(regret)])
