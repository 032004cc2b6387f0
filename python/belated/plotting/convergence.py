"""Observed values over time, and the best so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from belated.optimizers.read_access import ReadAccess
from belated.plotting.figures import BLUE, ORANGE, axes_for, checked_search, start_of, time_label, value_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_convergence(search: ReadAccess, ax: Axes | None = None) -> Axes:
    """Plot observed values against the time of their observation, and the best value so far.

    Parameters
    ----------
    search : Result, Study or Optimizer
        The trials of one run, or all of a study or an optimizer.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        Times in suggestions started, or in seconds since the first trial.

    Raises
    ------
    InvalidSetting
        `search` is none of the three.
    """
    checked_search(search, "plot_convergence")
    ax = axes_for(ax)
    observed = sorted((t for t in search.trials if t.value is not None), key=lambda t: (t.observed_at, t.number))
    at = np.array([t.observed_at for t in observed], dtype=float) - start_of(search)
    values = np.array([t.value for t in observed], dtype=float)
    best_of = np.minimum if search.direction == "minimize" else np.maximum
    ax.plot(at, values, "o", color=BLUE, markersize=4, alpha=0.5, label="observed")
    ax.step(at, best_of.accumulate(values), where="post", color=ORANGE, label="best so far")
    ax.set(xlabel=time_label(search), ylabel=value_label(search))
    ax.grid(alpha=0.3)
    ax.legend(fontsize="small")
    return ax
