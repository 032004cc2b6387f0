"""Plot of the trials over time, with a bar for each trial from its suggestion to its end."""

from __future__ import annotations

from collections.abc import Iterable

from belated.optimizers.read_access import ReadAccess
from belated.optimizers.trial import Trial
from belated.plotting import figures
from belated.plotting.figures import LOOKS, Axes


def plot_trials(search: ReadAccess, ax: Axes | None = None, *, clock: str = "seconds") -> Axes:
    """Plot each trial as a horizontal bar from its suggestion to its end.

    Bars of concurrent trials are in different lanes, and each bar is in the lowest free lane. The number of lanes is
    therefore the maximum number of concurrent trials. Bars of trials without a value are hatched. *late* means that a
    value was reported after the end of the trial's window or lease. *expired* means that the window or lease of a
    pending trial has ended.

    Parameters
    ----------
    search : Result, Study or Optimizer
        The search whose trials are drawn. If a result is given, the trials of its run are drawn.
    ax : matplotlib Axes, optional
        The axes to draw on. Default None: the axes of a new figure.
    clock : {"seconds", "iterations"}, default "seconds"
        The clock of the time axis. "seconds": wall-clock time; trials whose times are unknown are left out.
        "iterations": suggestions started, if the search counts them.

    Returns
    -------
    Axes
        The axes of the plot. Wall-clock times are counted from the first trial; the unit is chosen by their range.

    Raises
    ------
    InvalidSetting
        `search` is not a result, study or optimizer, or `clock` is not a clock of the search.
    """
    figures.checked_search(search, "plot_trials")
    clock = figures.checked_clock(search, clock)
    ax = figures.axes_for(ax)
    now = figures.now_of(search, search.clock)
    drawn = figures.spans_of(search, clock)
    unit, xlabel = figures.time_scale(clock, max((end for _, _, end in drawn), default=0.0))
    spans = [(start / unit, end / unit) for _, start, end in drawn]
    lanes = lanes_of(spans)
    fates = [fate_of(search, trial, now) for trial, _, _ in drawn]
    for fate, (colour, marker) in LOOKS.items():
        chosen = [i for i, each in enumerate(fates) if each == fate]
        if chosen:
            lows, highs = [spans[i][0] for i in chosen], [spans[i][1] for i in chosen]
            at = [lanes[i] for i in chosen]
            widths = [high - low for low, high in zip(lows, highs, strict=True)]
            hatch = None if fate in ("observed", "late") else "///"
            ax.barh(at, widths, left=lows, height=0.7, color=colour, alpha=0.4, edgecolor="white", hatch=hatch)
            ax.plot(highs, at, marker, color=colour, markersize=5, linestyle="none", label=fate)
    ax.set_ylim(0.4, max(lanes, default=1) + 0.6)
    figures.integer_ticks(ax.yaxis)
    return figures.finished(ax, axis="x", xlabel=xlabel, ylabel="Trials in flight")


def lanes_of(spans: Iterable[tuple[float, float]]) -> list[int]:
    """Return the lowest free lane of each span (start, end), counted from 1; spans must be ordered by their starts."""
    ends: list[float] = []
    lanes = []
    for start, end in spans:
        free = next((i for i, taken_until in enumerate(ends) if taken_until <= start), len(ends))
        ends[free : free + 1] = [end]
        lanes.append(free + 1)
    return lanes


def fate_of(search: ReadAccess, trial: Trial, now: float) -> str:
    """Return the category of a trial, a key of `LOOKS`.

    Windows and leases end by the rule of `is_arriving` in src/strategy/bayes/model/expiry.rs. Here the rule also
    applies to trials that have ended.
    """
    state = trial.state
    if state not in ("observed", "pending"):
        return state
    end = now if trial.ended_at is None else trial.ended_at
    window = figures.window_of(search)
    passed = window is not None and end - trial.suggested_at > window
    # A lease ends at a wall-clock time, which cannot be compared with times that count iterations.
    if trial.expires_at is not None:
        wall_time = search._source._problem.wall_time()
        if state == "pending":
            passed |= wall_time > trial.expires_at
        elif search.clock == "seconds":
            passed |= end > trial.expires_at
    if not passed:
        return state
    return "late" if state == "observed" else "expired"
