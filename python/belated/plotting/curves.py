"""Plot of mean curves with bands of one standard error."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from belated.plotting.figures import DASHES, PALETTE, Axes, axes_for, finished


def plot_curves(
    curves: Sequence[tuple[str, ArrayLike, ArrayLike]],
    ax: Axes | None = None,
    *,
    x: ArrayLike | None = None,
    title: str = "",
    xlabel: str = "Iterations",
    ylabel: str = "",
    log: bool = False,
    bands: bool = True,
    dashes: Sequence[Any] = DASHES,
) -> Axes:
    """Draw mean curves with bands of one standard error.

    Parameters
    ----------
    curves : sequence of (label, mean, stderr)
        The label of each curve, and arrays over x. Positions at which the mean is NaN are left blank.
    ax : matplotlib Axes, optional
        The axes to draw on. Default None: the axes of a new figure.
    x : array, optional
        The horizontal positions. Default None: 0, 1, 2, ….
    log : bool
        Whether the vertical axis is logarithmic.
    bands : bool
        Whether to draw the standard errors.
    dashes : sequence
        Line styles, which the curves use in turn. Each call begins with the first colour, so a second call with other
        dashes draws curves in the same colours.
    """
    is_given, ax = ax is not None, axes_for(ax)
    ax.set_prop_cycle(color=PALETTE)
    for (label, mean, stderr), dash in zip(curves, cycle(dashes)):
        mean, stderr = np.asarray(mean, dtype=float), np.asarray(stderr, dtype=float)
        at = np.arange(len(mean)) if x is None else np.asarray(x)
        (line,) = ax.plot(at, mean, linestyle=dash, label=label)
        if bands:
            ax.fill_between(at, mean - stderr, mean + stderr, color=line.get_color(), alpha=0.2, linewidth=0)
    if log:
        ax.set_yscale("log")
    has_labels = bool(ax.get_legend_handles_labels()[1])
    if has_labels and is_given:
        # A legend beside the data would leave little space for the data of a narrow panel.
        ax.legend(fontsize="small")
    return finished(ax, legend=has_labels and not is_given, title=title, xlabel=xlabel, ylabel=ylabel)
