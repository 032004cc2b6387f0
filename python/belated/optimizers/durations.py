"""Predictions of the durations of trials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from belated._core import DurationModel
from belated.optimizers.log import Array, Log
from belated.optimizers.problem import Problem

# The 90 % quantile of a standard normal variable.
_Z = 1.2815515655446004


class PredictedDurations(NamedTuple):
    """Predicted durations in seconds: the median, and the ends of a central 80 % interval.

    Each is an array with an entry for each point, or a float for a single point.
    """

    median: Array | Any
    low: Array | Any
    high: Array | Any


class Durations:
    """The durations of trials as a function of their params; `durations_` of `BayesOpt` and its studies returns it.

    The model, which `LogEI` with ``per="time"`` also uses, is fitted to the durations of observed and failed trials.
    `maximize` measures durations; without it, pass them to `observe`, `fail` and `add`. Trials that are still running
    count with their age as a lower bound, and so do abandoned trials. A duration of 0 counts as a tenth of the smallest
    positive duration. If a curve is declared, the model uses durations of complete evaluations. For a trial that was
    stopped, or that failed after reports, this is the time up to the last report plus the remaining steps at the
    trial's mean time per step.

    Log durations are normal, log d(x) ~ N(m(x), s²(x)). Here m(x) = b + wᵀx + g(x), where g is the posterior mean of a
    Gaussian process that is fitted to the residuals of the linear model; with fewer than 5 durations, g = 0. Let v(x)
    be the variance that the model states for a new duration, and let e_i and v_i be the error and the stated variance
    of log duration i in a cross-validation. Then s²(x) = v(x) + max(0, Σ (e_i² - v_i) / n). If all durations are equal,
    the interval is a single number.

    The object does not change when further trials end. Reading `durations_` does not change suggestions.

    Attributes
    ----------
    unknown : str or None
        The reason for which durations are unknown; None if at least two positive durations are known.
    n_known : int
        Number of trials whose duration is known.
    explained : float or None
        The share of the variance of log durations that the model explains, from 0 to 1. At 0, durations do not depend
        on the params. None if durations are unknown.

    Examples
    --------
    >>> import belated as bl
    >>> optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, seed=0)
    >>> optimizer.durations_.unknown
    'no duration is known: maximize measures durations, and by hand observe(duration=) reports them'
    >>> for k in range(20):
    ...     params = {"x": k / 19}
    ...     trial = optimizer.add(params, value=params["x"], duration=10 ** params["x"])
    >>> durations = optimizer.durations_
    >>> durations
    Durations(20 known, 100 % explained)
    >>> median, low, high = durations.predict([{"x": 0.25}, {"x": 0.75}])
    >>> median.round(1)
    array([1.8, 5.6])
    """

    __slots__ = ("_model", "_problem", "n_known", "unknown")

    def __init__(self, problem: Problem, model: DurationModel | None, n_known: int) -> None:
        self._problem, self._model = problem, model
        self.n_known = n_known
        self.unknown = None if model is not None else _reason(n_known)

    @property
    def explained(self) -> float | None:
        """The share of the variance of log durations that the model explains, from 0 to 1; None if it is unknown."""
        return None if self._model is None else self._model.explained

    def predict(self, params: Any = None, context: Mapping[str, Any] | None = None) -> PredictedDurations | None:
        """Return the predicted duration of a new trial at each point, in seconds.

        Parameters
        ----------
        params, context
            As for `BayesOpt.predict`: one or several points, and a context for all points.

        Returns
        -------
        PredictedDurations or None
            `median` = exp(m(x)), `low` and `high` = exp(m(x) ∓ t s(x)): arrays of shape (n,), or floats for a single
            point. Here t is the 90 % quantile of Student's distribution with n_known - 1 degrees of freedom, so that
            the interval contains a new duration with a probability of about 80 %. None if `unknown` is not None.

        Raises
        ------
        InvalidPoint, InvalidContext
            A point or context does not belong to its space.
        """
        points = self._problem.with_context(self._problem.domain.points(params), context)
        if self._model is None:
            return None
        return PredictedDurations(*self._problem.as_given(params, *self._interval(*self._model.predict(points))))

    def _left_out(self) -> tuple[list[int], Array, PredictedDurations] | None:
        """Return numbers, durations and cross-validated predictions of the trials whose duration is known."""
        if self._model is None:
            return None
        return self._model.numbers, np.exp(self._model.log_durations), self._interval(*self._model.left_out())

    def _interval(self, mean: Array, std: Array) -> PredictedDurations:
        half = _student(self.n_known - 1) * std
        with np.errstate(over="ignore"):
            return PredictedDurations(np.exp(mean), np.exp(mean - half), np.exp(mean + half))

    def __repr__(self) -> str:
        explained = "" if self.explained is None else f", {100 * self.explained:.0f} % explained"
        return f"Durations({self.n_known} known{explained})"


def _student(freedom: int) -> float:
    """Return the 90 % quantile of Student's distribution (Abramowitz and Stegun 1964, 26.7.5, four terms)."""
    z, n = _Z, float(freedom)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / n + second / n**2 + third / n**3


def _reason(n_known: int) -> str:
    if not n_known:
        return "no duration is known: maximize measures durations, and by hand observe(duration=) reports them"
    return f"fewer than two positive durations are known ({n_known} known)"


def durations_of(problem: Problem, log: Log) -> Durations:
    """Return the model of the durations in a log, at the current time."""
    model = log.durations(problem.wall_time())
    if model is not None:
        return Durations(problem, model, len(model.numbers))
    ended = [*log.numbers("observed"), *log.numbers("failed")]
    return Durations(problem, None, sum(log.trial(number).duration is not None for number in ended))
