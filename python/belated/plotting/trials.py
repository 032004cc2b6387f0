"""Plot of the trials over time, with a bar for each trial from its suggestion to its end."""

from __future__ import annotations

from collections.abc import Iterable

from belated.optimizers.trial import Trial
from belated.optimizers.trials import Reading
from belated.plotting import figures
from belated.plotting.figures import LOOKS, Axes


def plot_trials(search: Reading, ax: Axes | None = None, *, clock: str = "seconds") -> Axes:
    """Plot each trial as a horizontal bar from its suggestion to its end.

    Bars of concurrent trials are in different lanes, and each bar is in the lowest free lane. The number of lanes is
    therefore the maximum number of concurrent trials. Bars of trials without a value are hatched. A pending trial is
    *late* from the end of its lease on or, without a lease, if its age exceeds the 95 % quantile of the delays of
    trials that arrive, in wall-clock time. `Study.worklist` has the same rule. A trial that was late when its value
    arrived is drawn as *late*, too. If trials started or ended only in the first third of the time until now, the axis
    ends after the last of these events.

    Hollow markers are trials that cannot be used as they are: an outcome is beyond a bound, or the point lies outside
    the space or its constraints; or a value is marked (`Trial.marks`); or the trial is pending and forbidden
    (`Study.forbidden`).

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
    drawn, last, unit, xlabel = figures.shown_time(search, clock, "plot_trials")
    ax = figures.axes_for(ax)
    spans = [(start / unit, min(end, last) / unit) for _, start, end in drawn]
    lanes = lanes_of(spans)
    trials = [trial for trial, _, _ in drawn]
    usable = [figures.category(search, trial, trial.state) for trial in trials]
    fates = [own if own in figures.HOLLOW else fate for own, fate in zip(usable, fates_of(search, trials), strict=True)]
    for fate, (colour, _) in LOOKS.items():
        chosen = [i for i, each in enumerate(fates) if each == fate]
        if chosen:
            lows, highs = [spans[i][0] for i in chosen], [spans[i][1] for i in chosen]
            at = [lanes[i] for i in chosen]
            widths = [high - low for low, high in zip(lows, highs, strict=True)]
            hatch = ["" if drawn[i][0].state == "observed" else "///" for i in chosen]
            ax.barh(at, widths, left=lows, height=0.7, color=colour, alpha=0.4, edgecolor="white", hatch=hatch)
            figures.draw_trials(ax, (highs, at), fate, clip_on=False)
    ax.set_ylim(0.4, max(lanes, default=1) + 0.6)
    if any(end > last for _, _, end in drawn):
        ax.set_xlim(right=last / unit)
    figures.integer_ticks(ax.yaxis)
    return figures.finished(ax, axis="x", xlabel=xlabel, ylabel="Trials in flight")


def fates_of(search: Reading, trials: Iterable[Trial]) -> list[str]:
    """Return the state of each trial, or "late" for trials that are late or were late when they were observed."""
    source = search._source
    late = set(source._current_log().lateness(source._problem.wall_time())[1])
    return ["late" if trial.number in late else trial.state for trial in trials]


def lanes_of(spans: Iterable[tuple[float, float]]) -> list[int]:
    """Return the lowest free lane of each span (start, end), counted from 1; spans must be ordered by their starts."""
    ends: list[float] = []
    lanes = []
    for start, end in spans:
        free = next((i for i, taken_until in enumerate(ends) if taken_until <= start), len(ends))
        ends[free : free + 1] = [end]
        lanes.append(free + 1)
    return lanes
