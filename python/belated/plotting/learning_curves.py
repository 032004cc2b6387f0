"""Plot of the learning curves of trials."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from belated.errors import InvalidSetting, NotFitted
from belated.optimizers.trials import Reading
from belated.plotting import figures
from belated.plotting.figures import LOOKS, Axes

Array = NDArray[np.float64]

_STATES = ("abandoned", "observed", "stopped", "failed", "pending")  # the last ones are on top


def plot_learning_curves(search: Reading, ax: Axes | None = None, *, log: bool = False) -> Axes:
    """Plot the reported value of each step against the step, one line for each trial.

    A marker at the last step shows that a trial is running or has ended without a value. The curve of the best trial is
    wide. A dashed line leads from a running trial to its forecast (`predict_final`) at the last step, which has a 95 %
    interval. The curve of a failed trial may have diverged, so the axis of values has the range of the other curves,
    extended at both ends by at most this range; a failed curve that leaves the axis ends at its edge.

    Parameters
    ----------
    search : Result, Study or Optimizer
        The search whose trials are drawn. If a result is given, the trials of its run are drawn.
    ax : matplotlib Axes, optional
        The axes to draw on. Default None: the axes of a new figure.
    log : bool, default False
        Whether the axis of values is logarithmic. All values of trials that did not fail must be positive.

    Returns
    -------
    Axes
        The axes of the plot.

    Raises
    ------
    InvalidSetting
        `search` is not a result, study or optimizer, or a curve was not declared; or `log` is True and a value is not
        positive.
    NotFitted
        No trial has reported a step.
    """
    trials = figures.checked_search(search, "plot_learning_curves").trials
    declared, has_model = search._source._problem.curve, search._source._has_model
    if declared is None:
        raise InvalidSetting("plot_learning_curves needs a search with curve=bl.Curve(steps)")
    # The curves of withdrawn trials are not drawn.
    curves = {trial: trial.curve for trial in trials if trial.state in _STATES}
    if not any(curves.values()):
        raise NotFitted("plot_learning_curves needs reports: no trial has reported a step")
    usual = _finite(curve for trial, curve in curves.items() if trial.state != "failed")
    scale = figures.value_scale(log, usual)
    low, high = _limits(usual, _finite(curves.values()), log)
    ax, best = figures.axes_for(ax), search._best_trials()
    for state in _STATES:
        label: str | None = state
        colour, marker = LOOKS[state]
        for trial, curve in curves.items():
            if trial.state != state or not curve:
                continue
            steps, values = np.array(list(curve)), np.array(list(curve.values()))
            known = ~np.isnan(values)
            if state == "failed":
                beyond = np.flatnonzero((values < low) | (values > high))
                known &= np.arange(len(values)) <= min(beyond, default=len(values))
                values = np.clip(values, low, high)
            marked = [int(known.sum()) - 1] if known.any() else []
            look: Any = {"alpha": 0.5 if state == "observed" else 0.9, "linewidth": 1.0, "clip_on": state != "failed"}
            [line] = ax.plot(steps[known], values[known], color=colour, label=label, **look)
            if trial in best:
                line.set(alpha=1.0, linewidth=2.5, zorder=3)
            if state != "observed":
                line.set(marker=marker, markersize=5, markevery=marked)
            if state == "pending" and has_model and known.any():
                forecast = search.predict_final(trial)
                if forecast is not None:
                    mean, std = forecast
                    ends = [steps[known][-1], declared.steps], [values[known][-1], mean]
                    ax.plot(*ends, color=colour, linestyle="--", linewidth=1.0)
                    ax.errorbar(declared.steps, mean, 1.96 * std, color=colour, capsize=3, linewidth=1.0)
            label = None
    ax.set_xlim(left=0)
    figures.integer_ticks(ax.xaxis)
    return figures.finished(ax, xlabel="Step", ylabel=figures.value_label(search), yscale=scale)


def _finite(curves: Iterable[Mapping[int, float]]) -> Array:
    """Return all finite values of curves."""
    values: Array = np.array([value for curve in curves for value in curve.values() if np.isfinite(value)], dtype=float)
    return values


def _limits(usual: Array, values: Array, log: bool) -> tuple[float, float]:
    """Return the range of those values that are beyond the range of the usual values by at most its length."""
    if log:
        low, high = _limits(np.log(usual), np.log(values[values > 0]), False)
        return float(np.exp(low)), float(np.exp(high))
    if not values.size:
        return -np.inf, np.inf
    # If all trials failed, half of the values are usual.
    low, high = (usual.min(), usual.max()) if usual.size else np.quantile(values, [0.25, 0.75])
    shown = values[(values >= 2 * low - high) & (values <= 2 * high - low)]
    return float(shown.min()), float(shown.max())
