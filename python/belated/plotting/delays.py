"""Plot of the distribution of delays. Trials in flight are treated as censored observations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from belated.optimizers.trials import Reading
from belated.plotting import figures
from belated.plotting.figures import Axes

Array = NDArray[np.float64]


def plot_delays(search: Reading, ax: Axes | None = None, *, clock: str = "seconds") -> Axes:
    """Plot, against the delay, the share of trials that ended within this delay, with a band of one standard error.

    The delay of a trial is known if it ended with a value or a failure. The delay of a trial in flight is *censored*:
    it is longer than the current age of the trial. A cross marks this age. If the oldest trial in flight is older than
    three times the longest known delay, the axis ends at one and a half times this delay (or at the window, if that is
    longer), and arrows at its end mark the trials that are older. An abandoned trial is censored at the time
    when it was abandoned. The step curve is 1 - S(t) with the estimator of Kaplan and Meier (1958), S(t) = Π (1 -
    d_i/n_i) over the delays t_i <= t. Here d_i trials had the delay t_i, and n_i trials were in flight for at least
    t_i. The standard error follows from Greenwood's formula, Var S(t) = S(t)² Σ d_i / (n_i (n_i - d_i)). A vertical
    line shows the window of the optimizer, if the window has the same unit as the axis. If the axis has the optimizer's
    clock, a smooth curve shows the fitted distribution of `delays_`.

    Parameters
    ----------
    search : Result, Study or Optimizer
        The search whose trials are used. If a result is given, the trials of its run are used. Trials that were added
        with a value are left out.
    ax : matplotlib Axes, optional
        The axes to draw on. Default None: the axes of a new figure.
    clock : {"seconds", "iterations"}, default "seconds"
        The clock of the time axis. "seconds": wall-clock time, in a unit chosen by its range; trials whose times are
        unknown are left out.
        "iterations": suggestions started, if the search counts them.

    Returns
    -------
    Axes
        The axes of the plot.

    Raises
    ------
    InvalidSetting
        `search` is not a result, study or optimizer, or `clock` is not a clock of the search.
    """
    known: list[float] = []
    ages: list[float] = []
    for trial, start, end in figures.spans_of(search, clock, "plot_delays"):
        if trial.state in ("pending", "abandoned"):
            ages.append(end - start)
        elif end > start:
            known.append(end - start)
    ax = figures.axes_for(ax)
    window = search.window_ if clock == search.clock else None
    end = _end_of_axis(known, ages, window)
    unit, xlabel = figures.time_scale(clock, end, "Delay")
    at, arrived, error = arrived_within(known, ages)
    if known:
        ax.step(at / unit, arrived, where="post", color=figures.BLUE, label=f"ended ({len(known)})")
        low, high = np.clip(arrived - error, 0, 1), np.clip(arrived + error, 0, 1)
        ax.fill_between(at / unit, low, high, step="post", color=figures.BLUE, alpha=0.2, linewidth=0)
    elif ages:
        figures.add_note(ax, "no trial has ended")
    share = fitted_share(search, min(at[-1], end)) if clock == search.clock else None
    if share is not None:
        ax.plot(share[0] / unit, share[1], "--", color=figures.RED, label="fitted")
    older = [age for age in ages if age > end]
    ages = [age for age in ages if age <= end]
    look: Any = {"color": figures.ink(ax), "markersize": 8}
    if ages:
        heights = arrived[np.searchsorted(at, ages, side="right") - 1]
        ax.plot(np.array(ages) / unit, heights, "+", label=f"in flight ({len(ages)})", **look)
    if older:
        own_unit, name = figures.time_unit(clock, max(older))
        label = f"in flight, older ({len(older)}): up to\n{max(older) / own_unit:.3g} {name}"
        # A line of one point has one arrow, also if several trials are older.
        ax.plot([end / unit], [arrived[-1]], ">", clip_on=False, zorder=3, label=label, **look)
    if window is not None:
        ax.axvline(window / unit, color=figures.GREY, linestyle=":", label="window")
    ax.set_xlim(0, end / unit if older else None)
    return figures.finished(ax, legend="inside", xlabel=xlabel, ylabel="Share of trials ended", ylim=(-0.03, 1.05))


def _end_of_axis(known: list[float], ages: list[float], window: float | None) -> float:
    """Return the largest delay to show: the maximum, unless trials in flight are much older than all known delays."""
    longest = max(known + ages, default=0.0)
    usual = max([*known, window or 0.0], default=0.0)
    return 1.5 * usual if known and longest > 3 * usual else longest


def fitted_share(search: Reading, last: float) -> tuple[Array, Array] | None:
    """Return delays up to `last`, and the probability that a trial ends within each delay; None if it is unknown."""
    law = search.delays_._distribution
    if search.clock == "iterations":
        # Delays are at least 1, so a trial of age 1 may still have any delay.
        start, at = 1.0, np.arange(0.0, last + 1, max(1.0, last // 100))
    else:
        start, at = 0.0, np.linspace(0.0, last, 101)
    found = [(law.arrival_probability(start, t), law.failure_probability(start, t)) for t in at]
    shares = [arrives[0] + fails[0] for arrives, fails in found if arrives is not None and fails is not None]
    return (at, np.array(shares)) if shares else None


def arrived_within(known: ArrayLike, censored: ArrayLike) -> tuple[Array, Array, Array]:
    """Return t, 1 - S(t) and its standard error.

    The times t are 0, the distinct known delays, and the maximum of all delays and ages.
    """
    delays, ages = np.asarray(known, dtype=float), np.asarray(censored, dtype=float)
    everything = np.concatenate([delays, ages])
    at, ended = np.unique(delays, return_counts=True)
    out = np.array([(everything >= t).sum() for t in at], dtype=float)
    survival = np.cumprod(1 - ended / out)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = survival * np.sqrt(np.cumsum(ended / (out * (out - ended))))
    # If all trials have ended, S is 0, and its error is also 0.
    error = np.where(survival > 0, error, 0.0)
    last = everything.max(initial=0.0)
    arrived = np.concatenate([[0.0], 1 - survival])
    error = np.concatenate([[0.0], error])
    times = np.concatenate([[0.0], at, [last]])
    return times, np.append(arrived, arrived[-1]), np.append(error, error[-1])
