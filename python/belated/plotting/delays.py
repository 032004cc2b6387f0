"""The distribution of delays, in which trials in flight count as censored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from belated.optimizers.read_access import ReadAccess
from belated.plotting.figures import BLUE, GREEN, GREY, axes_for, checked_search, now_of, time_label, window_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]


def plot_delays(search: ReadAccess, ax: Axes | None = None) -> Axes:
    """Plot the share of trials that have ended within a delay, with a band of one standard error.

    Trials that ended with a value or a failure count with their delay. Trials in flight are *censored*: their delay is
    only known to be longer than their age, which a cross marks. Abandoned trials are censored at the time when they
    were abandoned. The curve is 1 - S(t) with the estimator of Kaplan and Meier (1958), S(t) = Π (1 - d_i/n_i) over the
    delays t_i <= t, where d_i trials had the delay t_i and n_i trials were in flight for at least t_i; the band is
    Greenwood's, Var S(t) = S(t)² Σ d_i / (n_i (n_i - d_i)). A vertical line is the optimizer's window.

    Parameters
    ----------
    search : Result, Study or Optimizer
        A run with its trials, or a study or an optimizer with all trials; trials that were added with a value do not
        count.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        Delays in suggestions started, or in seconds.

    Raises
    ------
    InvalidSetting
        `search` is not one of the three.
    """
    checked_search(search, "plot_delays")
    ax = axes_for(ax)
    now = now_of(search)
    known: list[float] = []
    ages: list[float] = []
    for trial in search.trials:
        end = now if trial.ended_at is None else trial.ended_at
        if trial.state in ("pending", "abandoned"):
            ages.append(end - trial.suggested_at)
        elif end > trial.suggested_at:
            known.append(end - trial.suggested_at)
    at, arrived, error = arrived_within(known, ages)
    ax.step(at, arrived, where="post", color=BLUE, label=f"ended ({len(known)})")
    low, high = np.clip(arrived - error, 0, 1), np.clip(arrived + error, 0, 1)
    ax.fill_between(at, low, high, step="post", color=BLUE, alpha=0.2, linewidth=0)
    if ages:
        heights = arrived[np.searchsorted(at, ages, side="right") - 1]
        ax.plot(ages, heights, "+", color=GREEN, label=f"in flight ({len(ages)})")
    window = window_of(search)
    if window is not None:
        ax.axvline(window, color=GREY, linestyle="--", label="window")
    ax.set(xlabel=time_label(search, "Delay"), ylabel="Share of trials ended", ylim=(0, 1.05))
    ax.set_xlim(left=0)
    ax.grid(alpha=0.3)
    ax.legend(fontsize="small")
    return ax


def arrived_within(known: ArrayLike, censored: ArrayLike) -> tuple[Array, Array, Array]:
    """Return (t, 1 - S(t), its standard error) at 0, at each different known delay, and at the longest of all."""
    delays, ages = np.asarray(known, dtype=float), np.asarray(censored, dtype=float)
    everything = np.concatenate([delays, ages])
    at, ended = np.unique(delays, return_counts=True)
    out = np.array([(everything >= t).sum() for t in at], dtype=float)
    survival = np.cumprod(1 - ended / out)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = survival * np.sqrt(np.cumsum(ended / (out * (out - ended))))
    # If all trials have ended, S is 0, and so is its error.
    error = np.where(survival > 0, error, 0.0)
    last = everything.max(initial=0.0)
    arrived = np.concatenate([[0.0], 1 - survival])
    error = np.concatenate([[0.0], error])
    times = np.concatenate([[0.0], at, [last]])
    return times, np.append(arrived, arrived[-1]), np.append(error, error[-1])
