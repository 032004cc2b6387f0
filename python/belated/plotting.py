"""Plots: mean curves with standard-error bands, and the convergence of an optimizer, a study or a run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from belated.optimizers.optimizer import Optimizer
from belated.run.result import Result
from belated.study.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["grid", "plot_convergence", "plot_curves", "save"]

MILLIMETRES_PER_PANEL = (92, 74)  # width, height
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))  # to distinguish curves without colour


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
        Arrays over x; where the mean is NaN nothing is drawn.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.
    x : array, optional
        By default 0, 1, 2, ….
    log : bool
        Logarithmic vertical axis.
    bands : bool
        Whether to draw the standard errors.
    dashes : sequence
        Line styles, used in turn. Each call begins with the first colour, so that curves drawn in a second call with
        other dashes have the colours of the first.
    """
    ax = _axes(ax)
    ax.set_prop_cycle(None)
    for (label, mean, stderr), dash in zip(curves, cycle(dashes)):
        mean, stderr = np.asarray(mean, dtype=float), np.asarray(stderr, dtype=float)
        at = np.arange(len(mean)) if x is None else np.asarray(x)
        (line,) = ax.plot(at, mean, linestyle=dash, label=label)
        if bands:
            ax.fill_between(at, mean - stderr, mean + stderr, color=line.get_color(), alpha=0.2, linewidth=0)
    if log:
        ax.set_yscale("log")
    ax.set(title=title, xlabel=xlabel, ylabel=ylabel)
    ax.grid(alpha=0.3)
    if ax.get_legend_handles_labels()[1]:
        ax.legend(fontsize="small")
    return ax


def plot_convergence(search: Optimizer | Study | Result, ax: Axes | None = None) -> Axes:
    """Plot the observed values of a search against the time of their observation, and the best value so far.

    Parameters
    ----------
    search : Optimizer, Study or Result
        All trials of an optimizer or a study, or those of one run.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.
    """
    ax = _axes(ax)
    settings = (search.optimizer if isinstance(search, Result) else search).get_params()
    observed = sorted((t for t in search.trials if t.value is not None), key=lambda t: (t.observed_at, t.number))
    at = np.array([t.observed_at for t in observed], dtype=float)
    values = np.array([t.value for t in observed], dtype=float)
    best_of = np.minimum if settings["direction"] == "minimize" else np.maximum
    ax.plot(at, values, "o", markersize=4, alpha=0.5, label="observed")
    ax.step(at, best_of.accumulate(values), where="post", label="best so far")
    ax.set(xlabel="Seconds" if settings["clock"] == "seconds" else "Iterations", ylabel="Value")
    ax.grid(alpha=0.3)
    ax.legend(fontsize="small")
    return ax


def grid(n_rows: int, n_columns: int) -> tuple[Figure, list[Axes]]:
    """A figure of equal panels, row by row, that needs no display and no pyplot."""
    from matplotlib.figure import Figure

    width, height = (side / 25.4 for side in MILLIMETRES_PER_PANEL)
    figure = Figure(figsize=(width * n_columns, height * n_rows), layout="constrained")
    return figure, list(figure.subplots(n_rows, n_columns, squeeze=False).flat)


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure to a file; its name's ending chooses the format."""
    figure.savefig(path, dpi=150)


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]
