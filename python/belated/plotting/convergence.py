"""Plot of the observed values over time, with the best value so far."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from belated.optimizers.read_access import ReadAccess
from belated.optimizers.trial import Trial
from belated.plotting.figures import BLUE, ORANGE, Axes, axes_for, checked_search, finished, time_label, value_label

# Fidelities that differ by at most this number count as equal, as in the core.
_SAME_FIDELITY = 1e-3


def plot_convergence(search: ReadAccess, ax: Axes | None = None) -> Axes:
    """Plot observed values against the time of their observation, and the best value so far.

    If a fidelity was declared, the best value is taken over the trials at the highest fidelity observed so far.

    Parameters
    ----------
    search : Result, Study or Optimizer
        The search whose trials are drawn. If a result is given, the trials of its run are drawn.
    ax : matplotlib Axes, optional
        The axes to draw on. Default None: the axes of a new figure.

    Returns
    -------
    Axes
        The axes of the plot. Times are in suggestions started, or in seconds since the first trial.

    Raises
    ------
    InvalidSetting
        `search` is not a result, study or optimizer.
    """
    checked_search(search, "plot_convergence")
    ax = axes_for(ax)
    observed = sorted((t for t in search.trials if t.value is not None), key=lambda t: (t.observed_at, t.number))
    at = np.array([t.observed_at for t in observed], dtype=float)
    if search.clock == "seconds":
        at -= min((trial.suggested_at for trial in search.trials), default=0.0)
    values = np.array([t.value for t in observed], dtype=float)
    ax.plot(at, values, "o", color=BLUE, markersize=4, alpha=0.5, label="observed")
    ax.step(at, _best_so_far(search, observed, values.tolist()), where="post", color=ORANGE, label="best so far")
    return finished(ax, xlabel=time_label(search.clock), ylabel=value_label(search))


def _best_so_far(search: ReadAccess, observed: Sequence[Trial], values: Sequence[float]) -> list[float]:
    """Return an array with the best value, after each of these trials, at the highest fidelity observed so far."""
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
