"""Plot of the importance of each parameter according to the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from belated.optimizers.trials import Reading
from belated.plotting import figures
from belated.plotting.figures import BLUE, Axes, axes_for, checked_search, finished, ink, shortened


def plot_importance(
    search: Reading,
    ax: Axes | None = None,
    *,
    context: Mapping[str, Any] | None = None,
    outcome: str | None = None,
) -> Axes:
    """Plot the importance of each parameter: its total effect on the variance of f over the space.

    The total effect of parameter i is T_i = E[Var(f | all other parameters)] / Var(f), where params are drawn uniformly
    from the space (on the scales of the parameters). T_i is 0 if f does not depend on the parameter. The sum of the
    effects exceeds 1 if parameters interact. The estimator of the numerator is W_i = mean (f(a) - f(a with parameter i
    of b))² / 2 over evenly spread points a and b (Jansen 1999; Saltelli et al. 2010, table 2f). The denominator is the
    variance of f at all of these points, or the largest W_i if this is larger, because no part of a variance exceeds
    the variance. T_i is computed for each of 100 draws of f from the posterior (Le Gratiet, Cannamela and Iooss 2014).
    A bar and a number show the median of T_i over the draws, and a line shows the interval from the 5 % to the 95 %
    quantile of T_i. A long line means that the model is too uncertain to show the importance. The line begins at 0 if
    the parameter is without effect with a probability of 5 % or more: if the evidence of the model is at most 19 times
    the evidence without the parameter, or if there are at most as many values as parameters. If this holds for all
    parameters, the title says so. With more than 1000 values, evidences are not compared. A parameter does not have an
    effect at points where it is inactive.

    Parameters
    ----------
    search : Result, Study or Optimizer
        A search in a space, with a model.
    ax : matplotlib Axes, optional
        The axes to draw on. Default None: the axes of a new figure.
    context : mapping, optional
        The context at which the model is used, if a context was declared.
    outcome : str, optional
        The name of a declared outcome. Default None: the objective.

    Returns
    -------
    Axes

    Raises
    ------
    InvalidSetting
        `search` is not a result, study or optimizer, has candidates without names, or does not have a model.
    NotFitted
        No trial has been observed yet.
    InvalidContext
        The context is missing, was not declared, or is out of its space.
    InvalidValue
        The outcome was not declared.
    """
    found = checked_search(search, "plot_importance")._effect_intervals(context, "plot_importance", outcome)
    names, (low, middle, high) = found
    # Draw the most important parameter on top.
    order = np.argsort(middle, kind="stable")
    ax = axes_for(ax, len(order))
    error = np.array([middle - low, high - middle])[:, order]
    ax.barh(range(len(order)), middle[order], xerr=error, color=BLUE, ecolor=ink(ax), capsize=3, height=0.6)
    ax.set_yticks(range(len(order)), [shortened(names[i], 28) for i in order])
    for y, i in enumerate(order):
        ax.annotate(f"{middle[i]:.2f}", (high[i], y), (5, 0), textcoords="offset points", va="center", fontsize="small")
    label = f"Share of the variance of {shortened(outcome or search._source._problem.objective or 'f')} (total effect)"
    title = f"The {len(figures.values(search, outcome))} values do not show that a parameter has an effect"
    ax.set_title("" if low.any() else title, fontsize="small")
    # The figure at the end of the longest line needs space to its right.
    return finished(ax, legend=False, axis="x", xlabel=label, xlim=(0, max(0.01, 1.15 * high.max())))
