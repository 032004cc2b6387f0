"""Plot of the observed values over time, with the best value so far, for one run or for several runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from belated._core import InvalidSetting
from belated.optimizers.outcomes import Outcomes, Record, is_within
from belated.optimizers.trial import Trial
from belated.optimizers.trials import Reading
from belated.plotting import figures
from belated.plotting.figures import BLUE, DASHES, LOOKS, ORANGE, PALETTE, Axes
from belated.short_repr import short_repr

Array = NDArray[np.float64]
Runs: TypeAlias = Reading | Sequence[Reading]

# Fidelities that differ by at most this number count as equal, as in the core.
_SAME_FIDELITY = 1e-3


class _Run(NamedTuple):
    """The times of observation in a run, the observed values, and the best value so far."""

    at: Array
    values: Array
    best: Array


def plot_convergence(
    search: Runs | Mapping[str, Runs], ax: Axes | None = None, *, optimum: float | None = None, log: bool = False
) -> Axes:
    """Plot observed values against the time of their observation, and the best value so far.

    Marks at the bottom show trials without a value: failed and stopped trials at the time of their end, and pending
    trials at the time of their suggestion. Time t of the axis of suggestions is the suggestion of trial t; above an
    axis of seconds, a second axis shows the numbers of the trials at their suggestions.

    If a fidelity was declared, the best value is taken over the trials at the highest fidelity observed so far. If
    outcomes were declared, values are values of the objective, drawn when the outcomes with bounds have arrived, too;
    the best value is taken over the trials within the bounds. With several objectives, the plot shows the hypervolume
    of the front so far, with the references of `hypervolume` at the end.

    For several runs, a line shows the median of their best values so far, and a band shows the interval from the lower
    to the upper quartile. Both begin when each run has a value. After the last value of a run, its best value is kept.

    Parameters
    ----------
    search : Result, Study or Optimizer; a list of them; or a mapping
        The search whose trials are drawn. If a result is given, the trials of its run are drawn. A list contains
        several runs, for example with different seeds. A mapping has an entry for each curve: its name, and a search or
        a list of searches.
    ax : matplotlib Axes, optional
        The axes to draw on. Default None: the axes of a new figure.
    optimum : float, optional
        The best possible value. If it is given, the plot shows the regret: the distance from the value to the optimum.
    log : bool, default False
        Whether the axis of values is logarithmic. All values must be positive. If `optimum` is given, the axis shows
        the regret, and a regret that is not positive is below the axis.

    Returns
    -------
    Axes
        The axes of the plot. Times are in suggestions started, or in wall-clock time since the first trial.

    Raises
    ------
    InvalidSetting
        `search` is not a result, study or optimizer; or several searches differ in their direction, clock or
        objectives; or `log` is True and a value is not positive; or `optimum` is given with several objectives.
    """
    named: Any = search if isinstance(search, Mapping) and search else {"best so far": search}
    groups = {name: runs if isinstance(runs, (list, tuple)) and runs else [runs] for name, runs in named.items()}
    searches = [figures.checked_search(each, "plot_convergence") for group in groups.values() for each in group]
    first = searches[0]
    for each in searches:
        if (each.direction, each.clock) != (first.direction, first.clock) or _front(each) != _front(first):
            raise InvalidSetting(
                "search has searches of different directions, clocks or objectives: draw them on different axes"
            )
    if optimum is not None and _front(first):
        raise InvalidSetting(
            f"optimum={short_repr(optimum)} needs one objective, and {_front(first)} are objectives: leave it out"
        )
    runs = {name: [_run_of(each, optimum) for each in group] for name, group in groups.items()}
    known = [run for group in runs.values() for run in group]
    scale = figures.value_scale(log, np.concatenate([run.values for run in known if optimum is None] or [np.empty(0)]))
    marks = _without_value(first) if first is search else {}
    ends = [run.at[-1] for run in known if len(run.at)] + [max(at) for at in marks.values()]
    longest = max(ends, default=0.0)
    unit, xlabel = figures.time_scale(first.clock, longest)
    ax = figures.axes_for(ax)
    if first is search:
        [run] = known
        if len(run.at):
            # The lower margin is the place of the marks of trials without a value.
            ax.margins(y=0.12 if marks else None)
            if not _front(first):
                ax.plot(run.at / unit, run.values, "o", color=BLUE, markersize=4, alpha=0.5, label="observed")
            ax.step(run.at / unit, run.best, where="post", color=ORANGE, label="best so far")
        for state, times in marks.items():
            colour, marker = LOOKS[state]
            look: Any = {"color": colour, "markersize": 5, "transform": ax.get_xaxis_transform()}
            ax.plot(np.array(times) / unit, [0.04] * len(times), marker, label=state, **look)
        if not len(run.at):
            figures.add_note(ax, "no values" if first.trials else "no trials")
    else:
        for (name, group), colour, dash in zip(runs.items(), cycle(PALETTE), cycle(DASHES)):
            group = [run for run in group if len(run.at)]
            if not group:
                continue
            at, (low, median, high) = _quartiles(group)
            ax.step(at / unit, median, where="post", color=colour, linestyle=dash, label=name)
            ax.fill_between(at / unit, low, high, step="post", color=colour, alpha=0.2, linewidth=0)
    if first.clock == "iterations":
        figures.integer_ticks(ax.xaxis)
    ylabel = "Regret" if optimum is not None else "Hypervolume" if _front(first) else figures.value_label(first)
    ax = figures.finished(ax, legend="inside", xlabel=xlabel, ylabel=ylabel, yscale=scale)
    if first is search and first.clock == "seconds" and longest:
        _add_numbers(ax, first, unit)
    return ax


def _front(search: Reading) -> list[str]:
    return search._source._problem.front


def _first_time(search: Reading) -> float:
    """Return the time from which a time axis in the units of the clock is counted."""
    return 0.0 if search.clock == "iterations" else min((trial.suggested_at for trial in search.trials), default=0.0)


def _without_value(search: Reading) -> dict[str, list[float]]:
    """Return the times of trials without a value by state: the suggestions of pending trials, the ends of others."""
    first = _first_time(search)
    times: dict[str, list[float]] = {}
    for state in ("failed", "stopped", "pending"):
        own = [trial for trial in search.trials if trial.state == state and trial.left_out is None]
        at = [trial.suggested_at if trial.ended_at is None else trial.ended_at for trial in own]
        if at:
            times[state] = [each - first for each in at]
    return times


def _add_numbers(ax: Axes, search: Reading, unit: float) -> None:
    """Add a second axis at the top that shows the number of each trial at the time of its suggestion."""
    from matplotlib.ticker import MaxNLocator

    low, high = ax.get_xlim()
    trials = {trial.number: trial for trial in search.trials}
    shown: dict[float, str] = {}
    for number in map(int, MaxNLocator(10, integer=True).tick_values(0, max(trials))):
        at = (trials[number].suggested_at - _first_time(search)) / unit if number in trials else np.inf
        # Numbers of trials that were suggested at about the same time would overlap.
        if low <= at <= high and at - max(shown, default=-np.inf) > 0.07 * (high - low):
            shown[at] = str(number)
    top = ax.secondary_xaxis("top", xlabel="Trial number")
    # The first draw of a second axis removes the texts of its ticks.
    ax.figure.figure.draw_without_rendering()
    top.set_xticks(list(shown), list(shown.values()))


def _run_of(search: Reading, optimum: float | None) -> _Run:
    goals = search._source._problem.outcomes
    if _front(search):
        return _run_of_front(search, goals)
    times = {trial.number: _arrived_at(trial, goals) for trial in search.trials if trial.value is not None}
    observed = sorted((t for t in search.trials if t.number in times), key=lambda t: (times[t.number], t.number))
    at = np.array([times[t.number] for t in observed], dtype=float)
    at -= _first_time(search)
    values = np.array([t.value for t in observed], dtype=float)
    fidelity = search._source._problem.fidelity
    shares = np.array([1.0 if fidelity is None else fidelity.encode(t.fidelity) for t in observed])
    sign = 1.0 if search.direction == "minimize" else -1.0
    # Trials that were run outside the domain are not the best trials.
    outside = np.array([t.outside or not is_within(goals, t.values) for t in observed], dtype=bool)
    lowest = _lowest_so_far(np.where(outside, np.inf, sign * values), np.where(outside, 0.0, shares))
    best = sign * np.where(np.isinf(lowest), np.nan, lowest)
    if optimum is None:
        return _Run(at, values, best)
    return _Run(at, sign * (values - optimum), sign * (best - optimum))


def _run_of_front(search: Reading, goals: Outcomes) -> _Run:
    """Return the hypervolume after each trial whose objectives and bounded outcomes have arrived."""
    log = search._source._current_log()
    reference = [value for value in log.reference(search._front("plot_convergence")) if value is not None]
    inside = [trial for trial in search.trials if not trial.outside and trial.left_out is None]
    counted = sorted((_arrived_at(t, goals), t.number) for t in inside if is_within(goals, t.values))
    volume, volumes = 0.0, []
    members: list[int] = []
    for _, number in counted:
        larger = log.hypervolume([*members, number], reference)
        if larger > volume:
            volume = larger
            members.append(number)
        volumes.append(volume)
    at = np.array([time for time, _ in counted], dtype=float) - _first_time(search)
    return _Run(at, np.array(volumes), np.array(volumes))


def _arrived_at(trial: Trial, goals: Outcomes) -> float | None:
    """Return the time when the value arrived; with outcomes, when the objectives and the outcomes with bounds arrived.

    Outcomes that are missing are ignored.
    """
    if not goals:
        return trial.observed_at
    modelled = [each for name, each in trial.outcomes.items() if not isinstance(goals[name], Record)]
    return max(each.observed_at for each in modelled if each.observed_at is not None)


def _quartiles(runs: Sequence[_Run]) -> tuple[Array, Any]:
    """Return the times when all runs have a value, and the quartiles over the runs of the best value so far."""
    at = np.unique(np.concatenate([run.at for run in runs]))
    at = at[at >= max(run.at[0] for run in runs)]
    best = [run.best[np.searchsorted(run.at, at, side="right") - 1] for run in runs]
    return at, np.quantile(best, [0.25, 0.5, 0.75], axis=0)


def _lowest_so_far(values: Array, fidelities: Array) -> Array:
    """Return the lowest value after each observation, at the highest fidelity observed so far."""
    highest, lowest = np.maximum.accumulate(fidelities), np.empty_like(values)
    for fidelity in np.unique(highest):
        counted = np.where(fidelities >= fidelity - _SAME_FIDELITY, values, np.inf)
        here = highest == fidelity
        lowest[here] = np.minimum.accumulate(counted)[here]
    return lowest
