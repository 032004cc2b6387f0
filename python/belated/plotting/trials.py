"""The trials in flight over time: a bar for each trial, from its suggestion to its end."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from belated.optimizers.read_access import ReadAccess
from belated.optimizers.trial import Trial
from belated.plotting.figures import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    axes_for,
    checked_search,
    now_of,
    start_of,
    time_label,
    window_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# For each fate of a trial: the colour, and the marker at its end.
_LOOKS = {
    "observed": (BLUE, "o"),
    "late": (ORANGE, "D"),
    "failed": (RED, "X"),
    "abandoned": (GREY, "|"),
    "pending": (GREEN, ">"),
    "expired": (PURPLE, ">"),
}


def plot_trials(search: ReadAccess, ax: Axes | None = None) -> Axes:
    """Plot each trial as a bar from its suggestion to its end, in as many lanes as ran at the same time.

    *late* means that a value came after the window or the lease of its trial had passed, *expired* that a pending
    trial's window or lease has passed. The lanes are filled from below, so their number is the number of concurrent
    trials.

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
    from matplotlib.ticker import MaxNLocator

    checked_search(search, "plot_trials")
    ax = axes_for(ax)
    start, now = start_of(search), now_of(search)
    trials = sorted(search.trials, key=lambda trial: (trial.suggested_at, trial.number))
    ends = [now if trial.ended_at is None else trial.ended_at for trial in trials]
    spans = [(trial.suggested_at - start, end - start) for trial, end in zip(trials, ends, strict=True)]
    lanes = lanes_of(spans)
    fates = [fate_of(search, trial, now) for trial in trials]
    for fate, (colour, marker) in _LOOKS.items():
        chosen = [i for i, each in enumerate(fates) if each == fate]
        if chosen:
            lows, highs = [spans[i][0] for i in chosen], [spans[i][1] for i in chosen]
            at = [lanes[i] for i in chosen]
            widths = [high - low for low, high in zip(lows, highs, strict=True)]
            ax.barh(at, widths, left=lows, height=0.7, color=colour, alpha=0.4, edgecolor="white")
            ax.plot(highs, at, marker, color=colour, markersize=5, linestyle="none", label=fate)
    ax.set(xlabel=time_label(search), ylabel="Trials in flight", ylim=(0.4, max(lanes, default=1) + 0.6))
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    if trials:
        ax.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    return ax


def lanes_of(spans: Iterable[tuple[float, float]]) -> list[int]:
    """Return the lowest free lane, from 1, of each span (start, end); the spans are ordered by their starts."""
    ends: list[float] = []
    lanes = []
    for start, end in spans:
        free = next((i for i, taken_until in enumerate(ends) if taken_until <= start), len(ends))
        ends[free : free + 1] = [end]
        lanes.append(free + 1)
    return lanes


def fate_of(search: ReadAccess, trial: Trial, now: float) -> str:
    """Return the fate of a trial, one of the keys of `_LOOKS`.

    It applies the rule of `is_arriving` in src/strategy/bayes/model/expiry.rs, also to trials that have ended.
    """
    state = trial.state
    if state not in ("observed", "pending"):
        return state
    end = now if trial.ended_at is None else trial.ended_at
    window = window_of(search)
    passed = window is not None and end - trial.suggested_at > window
    # Leases are in seconds of the wall clock, so they cannot be compared with the end of a trial on another clock.
    if trial.expires_at is not None:
        wall_time = getattr(search._source, "_wall_time", time.time)()
        if state == "pending":
            passed |= wall_time > trial.expires_at
        elif search.clock == "seconds":
            passed |= end > trial.expires_at
    if not passed:
        return state
    return "late" if state == "observed" else "expired"
