"""Plot of the learning curves of trials."""

from __future__ import annotations

import numpy as np

from belated.errors import InvalidSetting, NotFitted
from belated.optimizers.trials import Reading
from belated.plotting import figures
from belated.plotting.figures import LOOKS, Axes

_STATES = (
    "abandoned",
    "failed",
    "stopped",
    "pending",
    "observed",
)  # the last ones are on top


def plot_learning_curves(search: Reading, ax: Axes | None = None, *, log: bool = False) -> Axes:
    """Plot the reported value of each step against the step, one line for each trial.

    A marker at the last step shows that a trial is running or has ended without a value. The curve of the best trial is
    wide. A dashed line leads from a running trial to its forecast (`predict_final`) at the last step, which has a 95 %
    interval.

    Parameters
    ----------
    search : Result, Study or Optimizer
        The search whose trials are drawn. If a result is given, the trials of its run are drawn.
    ax : matplotlib Axes, optional
        The axes to draw on. Default None: the axes of a new figure.
    log : bool, default False
        Whether the axis of values is logarithmic. All values must be positive.

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
    reported = np.array([value for curve in curves.values() for value in curve.values()])
    scale = figures.value_scale(log, reported[~np.isnan(reported)])
    ax, best = figures.axes_for(ax), search.best_trial_
    for state in _STATES:
        label: str | None = state
        colour, marker = LOOKS[state]
        for trial, curve in curves.items():
            if trial.state != state or not curve:
                continue
            steps, values = np.array(list(curve)), np.array(list(curve.values()))
            known = ~np.isnan(values)
            marked = [int(known.sum()) - 1] if known.any() else []
            [line] = ax.plot(steps[known], values[known], color=colour, label=label, alpha=0.6, linewidth=1.0)
            if trial == best:
                line.set(alpha=1.0, linewidth=2.5)
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
