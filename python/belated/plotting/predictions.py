"""Plot of leave-one-out predictions, which shows whether the predictions of the model are reliable."""

from __future__ import annotations

import numpy as np

from belated.optimizers.trials import Reading
from belated.plotting import figures
from belated.plotting.figures import Axes

_Z = 1.96  # a normal variable is within this number of standard deviations of its mean with probability 0.95


def plot_predictions(search: Reading, ax: Axes | None = None, *, log: bool = False, outcome: str | None = None) -> Axes:
    """Plot leave-one-out predictions against the observed values.

    The Gaussian process predicts each value from all other values, with unchanged hyperparameters. The prediction has
    the mean y_i - [K⁻¹y]_i / [K⁻¹]_ii and the variance 1 / [K⁻¹]_ii, which includes the noise (Rasmussen and Williams
    2006, eq. 5.12). Lines are 95 % intervals; the lines of values outside their interval are black. If the predictions
    are reliable, about 95 % of the lines cross the diagonal. If every line spans the range of the values, the model has
    found no dependence on the params.

    Parameters
    ----------
    search : Result, Study or Optimizer
        A search with a model. All values that the model was fitted to are drawn; failed trials are left out.
    ax : matplotlib Axes, optional
        The axes to draw on. Default None: the axes of a new figure.
    log : bool, default False
        Whether both axes are logarithmic. All observed values must be positive. The vertical axis begins at half of the
        lowest observed value.
    outcome : str, optional
        The name of a declared outcome. Default None: the objective.

    Returns
    -------
    Axes

    Raises
    ------
    InvalidSetting
        `search` is not a result, study or optimizer, or does not have a model; or `log` is True and a value is not
        positive.
    NotFitted
        No trial has been observed yet.
    InvalidValue
        The outcome was not declared.
    """
    figures.checked_search(search, "plot_predictions")
    numbers, mean, std = search._leave_one_out(outcome, "plot_predictions")
    trials = search.trials
    found = [trials[i].value if outcome is None else trials[i].values.get(outcome) for i in numbers]
    values = np.array(found, dtype=float)  # None becomes NaN
    known = ~np.isnan(values)
    observed, mean, std = values[known], mean[known], std[known]
    figures.check_values(observed, "plot_predictions")
    scale = figures.value_scale(log, observed)
    ax = figures.axes_for(ax)
    figures.draw_intervals(ax, observed, mean - _Z * std, mean, mean + _Z * std, None, "observed")
    is_within = np.abs(observed - mean) <= _Z * std
    limits = (0.5 * observed.min() if log else None, None)
    xlabel = f"Observed: {figures.value_label(search, outcome).lower()}"
    return figures.finished_predictions(
        ax, observed, mean, is_within, 95, "values", scale=scale, legend=False, ylim=limits, xlabel=xlabel
    )
