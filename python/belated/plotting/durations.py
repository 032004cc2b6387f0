"""Plot of predicted durations against the durations of trials."""

from __future__ import annotations

import numpy as np

from belated.errors import NotFitted
from belated.optimizers.trials import Reading
from belated.plotting.figures import Axes, axes_for, checked_search, draw_intervals, finished_predictions, time_scale


def plot_durations(search: Reading, ax: Axes | None = None) -> Axes:
    """Plot cross-validated predictions of durations against the durations of trials, on logarithmic axes.

    The trials are split into at most ten parts, and the model of `durations_` predicts each part from the other parts.
    The hyperparameters of the Gaussian process were fitted to all trials and are not fitted again. Lines are 80 %
    intervals; the lines of durations outside their interval are black. If the model is right, about 80 % of the lines
    cross the diagonal. If all predictions are about equal,
    durations do not depend on the params, or the model has not learned how.

    Parameters
    ----------
    search : Result, Study or Optimizer
        A search with a model. All observed, failed and withdrawn trials whose duration is known are drawn. A duration
        of 0 is drawn at a tenth of the smallest positive duration.
    ax : matplotlib Axes, optional
        The axes to draw on. Default None: the axes of a new figure.

    Returns
    -------
    Axes
        The axes of the plot.

    Raises
    ------
    InvalidSetting
        `search` is not a result, study or optimizer, or does not have a model.
    NotFitted
        Fewer than two positive durations are known.
    """
    durations = checked_search(search, "plot_durations").durations_
    found = durations._left_out()
    if found is None:
        raise NotFitted(f"plot_durations needs durations: {durations.unknown}")
    numbers, known, predicted = found
    ax = axes_for(ax)
    unit, xlabel = time_scale("seconds", known.max(), "Duration")
    low, median, high, known = (each / unit for each in (predicted.low, predicted.median, predicted.high, known))
    trials = search.trials
    states = np.array([trials[number].state for number in numbers])
    for name in ("observed", "failed", "withdrawn"):
        chosen = states == name
        if chosen.any():
            draw_intervals(ax, known[chosen], low[chosen], median[chosen], high[chosen], name, name)
    is_within, several = (low <= known) & (known <= high), bool((states != "observed").any())
    return finished_predictions(
        ax,
        known,
        median,
        is_within,
        80,
        "durations",
        scale="log",
        legend=several,
        xlabel=xlabel,
    )
