"""Leave-one-out predictions, which show whether the model can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from belated.optimizers.read_access import ReadAccess
from belated.plotting.figures import BLUE, GREY, axes_for, checked_search, value_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_Z = 1.96  # standard deviations on either side, which hold 95 % of a normal distribution


def plot_predictions(search: ReadAccess, ax: Axes | None = None) -> Axes:
    """Plot leave-one-out predictions of the observed values against these values.

    The Gaussian process predicts each value from all the others, with unchanged hyperparameters: mean y_i - [K⁻¹y]_i /
    [K⁻¹]_ii and variance 1 / [K⁻¹]_ii, noise included (Rasmussen and Williams 2006, eq. 5.12). Lines are 95 %
    intervals. If the model can be trusted, the lines cross the diagonal for about 95 % of the values. If all lines are
    as long as the spread of the values, the model has learnt only the mean.

    Parameters
    ----------
    search : Result, Study or Optimizer
        One with a model. All values that the model has learnt from are drawn; failed trials are not.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    InvalidSetting
        `search` is not one of the three, or has no model.
    NotFitted
        Nothing has been observed.
    """
    checked_search(search, "plot_predictions")
    numbers, mean, std = search._leave_one_out()
    ax = axes_for(ax)
    found = [search.trial(number).value for number in numbers]
    known = np.array([value is not None for value in found], dtype=bool)
    observed = np.array([value for value in found if value is not None], dtype=float)
    mean, std = mean[known], std[known]
    within = int((np.abs(observed - mean) <= _Z * std).sum())
    ax.errorbar(observed, mean, yerr=_Z * std, fmt="o", color=BLUE, ecolor=BLUE, markersize=4, elinewidth=1, alpha=0.7)
    ends = [min(observed.min(), mean.min()), max(observed.max(), mean.max())]
    ax.plot(ends, ends, color=GREY, linestyle="--")
    label = value_label(search)
    ax.set(
        xlabel=f"Observed: {label.lower()}",
        ylabel="Predicted from the others, 95 % interval",
        title=f"{within} of {len(observed)} values in their interval",
    )
    ax.grid(alpha=0.3)
    return ax
