"""Observed values over time, and the best so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from belated.optimizers.read_access import ReadAccess
from belated.optimizers.trial import Trial
from belated.plotting.figures import BLUE, ORANGE, axes_for, checked_search, start_of, time_label, value_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Fidelities that differ by no more than this count as the same, as in the core.
_SAME_FIDELITY = 1e-3


def plot_convergence(search: ReadAccess, ax: Axes | None = None) -> Axes:
    """Plot observed values against the time of their observation, and the best value so far.

    If a fidelity was declared, the best value is at the highest fidelity observed so far, as `best_value_` at that
    time.

    Parameters
    ----------
    search : Result, Study or Optimizer
        A run with its trials, or a study or an optimizer with all trials.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        Times in suggestions started, or in seconds since the first trial.

    Raises
    ------
    InvalidSetting
        `search` is not one of the three.
    """
    checked_search(search, "plot_convergence")
    ax = axes_for(ax)
    observed = sorted((t for t in search.trials if t.value is not None), key=lambda t: (t.observed_at, t.number))
    at = np.array([t.observed_at for t in observed], dtype=float) - start_of(search)
    values = np.array([t.value for t in observed], dtype=float)
    ax.plot(at, values, "o", color=BLUE, markersize=4, alpha=0.5, label="observed")
    ax.step(at, _best_so_far(search, observed, values.tolist()), where="post", color=ORANGE, label="best so far")
    ax.set(xlabel=time_label(search), ylabel=value_label(search))
    ax.grid(alpha=0.3)
    ax.legend(fontsize="small")
    return ax


def _best_so_far(search: ReadAccess, observed: Sequence[Trial], values: Sequence[float]) -> list[float]:
    """Return the best value at the highest fidelity observed, after each of these trials."""
    fidelity = search._source._problem.fidelity
    shares = [1.0 if fidelity is None else fidelity.encode(trial.fidelity) for trial in observed]
    better = min if search.direction == "minimize" else max
    best: list[float] = []
    highest = -1.0
    for i, (z, value) in enumerate(zip(shares, values, strict=True)):
        if z > highest:
            highest = z
            known = zip(shares[: i + 1], values, strict=False)
            best.append(better(each for share, each in known if share >= highest - _SAME_FIDELITY))
        else:
            best.append(better(best[-1], value) if z >= highest - _SAME_FIDELITY else best[-1])
    return best
