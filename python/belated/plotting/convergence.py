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
from belated.plotting.figures import DASHES, LOOKS, ORANGE, PALETTE, Axes
from belated.short_repr import short_repr

Array = NDArray[np.float64]
Runs: TypeAlias = Reading | Sequence[Reading]

# Fidelities that differ by at most this number count as equal, as in the core.
_SAME_FIDELITY = 1e-3

_OUTSIDE = "outside the space"


class _Run(NamedTuple):
    """The times of observation in a run, the observed values, and the best value so far.

    `labels` are the categories of the trials; there are none for a front.
    """

    at: Array
    values: Array
    best: Array
    labels: Sequence[str] = ()


def plot_convergence(
    search: Runs | Mapping[str, Runs],
    ax: Axes | None = None,
    *,
    clock: str | None = None,
    optimum: float | None = None,
    log: bool = False,
) -> Axes:
    """Plot observed values against the time of their observation, and the best value so far.

    Marks at the bottom show trials without a value: failed and stopped trials at the time of their end, and pending
    trials at the time of their suggestion. Time t of the axis of suggestions is the suggestion of trial t; above an
    axis of seconds, a second axis shows the numbers of the trials at their suggestions.

    Hollow markers are trials that cannot be used as they are: an outcome is beyond a bound, or the point lies outside
    the space or its constraints, so that the value is not the best one; or the value is marked (`Trial.marks`); or the
    trial is pending and forbidden (`Study.forbidden`).

    If a fidelity was declared, the best value is taken over the trials at the highest fidelity observed so far. If
    outcomes were declared, values are values of the objective, drawn at the arrival of the last known outcome among the
    objective and the outcomes with bounds. The best value is taken over the trials whose outcomes with bounds have all
    arrived and lie within them. With several objectives, the plot shows the hypervolume of the front so far, with the
    references of `hypervolume` at the end.

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
    clock : {"seconds", "iterations", "trials"}, optional
        The horizontal axis. "seconds": wall-clock time in seconds, minutes, hours or days; trials whose times are
        unknown are left out. "iterations": suggestions started, if the search counts them. "trials": the numbers of the
        trials, in whose order the best value so far is taken. Default None: the clock of the search.
    optimum : float, optional
        The best possible value. If it is given, the plot shows the regret: the distance from the value to the optimum.
    log : bool, default False
        Whether the axis of values is logarithmic. All values must be positive. If `optimum` is given, the axis shows
        the regret, and a regret that is not positive is below the axis.

    Returns
    -------
    Axes
        The axes of the plot. Wall-clock times are counted from the first trial; the unit is chosen by their range.

    Raises
    ------
    InvalidSetting
        `search` is not a result, study or optimizer, or lacks the clock; or several searches differ in their direction,
        clock or objectives; or `log` is True and a value is not positive; or `optimum` is given with several
        objectives.
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
    if clock not in (None, "seconds", "iterations", "trials") or (clock == "iterations" and first.clock == "seconds"):
        raise InvalidSetting(
            f"clock={short_repr(clock)} is not usable: pass 'seconds', 'trials' or, for a search that counts them, "
            "'iterations'"
        )
    clock = clock or first.clock
    runs = {name: [_run_of(each, clock, optimum) for each in group] for name, group in groups.items()}
    known = [run for group in runs.values() for run in group]
    scale = figures.value_scale(log, np.concatenate([run.values for run in known if optimum is None] or [np.empty(0)]))
    marks = _without_value(first, _Timeline(first, clock)) if first is search else {}
    ends = [run.at[-1] for run in known if len(run.at)] + [max(times) for times in marks.values()]
    longest = max(ends, default=0.0)
    unit, xlabel = (1.0, "Trial number") if clock == "trials" else figures.time_scale(clock, longest)
    ax = figures.axes_for(ax)
    if first is search:
        [run] = known
        if len(run.at):
            # The lower margin is the place of the marks of trials without a value.
            ax.margins(y=0.12 if marks else None)
            for label in sorted({*run.labels}, key=[*LOOKS].index):
                own = np.array(run.labels) == label
                figures.draw_trials(ax, (run.at[own] / unit, run.values[own]), label, markersize=4, alpha=0.5)
            ax.step(run.at / unit, run.best, where="post", color=ORANGE, label="best so far")
        for label, times in marks.items():
            at = (np.array(times) / unit, np.full(len(times), 0.04))
            figures.draw_trials(ax, at, label, transform=ax.get_xaxis_transform())
        if not len(run.at):
            figures.add_note(ax, "no values" if first.trials else "no trials")
    else:
        for (name, group), colour, dash in zip(runs.items(), cycle(PALETTE), cycle(DASHES)):
            group = [run for run in group if len(run.at)]
            if not group:
                continue
            moments, (low, median, high) = _quartiles(group)
            ax.step(moments / unit, median, where="post", color=colour, linestyle=dash, label=name)
            ax.fill_between(moments / unit, low, high, step="post", color=colour, alpha=0.2, linewidth=0)
    if clock != "seconds":
        figures.integer_ticks(ax.xaxis)
    ylabel = "Regret" if optimum is not None else "Hypervolume" if _front(first) else figures.value_label(first)
    ax = figures.finished(ax, legend="inside", xlabel=xlabel, ylabel=ylabel, yscale=scale)
    if first is search and clock == "seconds" and longest:
        _add_numbers(ax, first, unit)
    return ax


def _front(search: Reading) -> list[str]:
    return search._source._problem.front


class _Timeline:
    """The times of trials on the horizontal axis; a time that is not known is NaN."""

    def __init__(self, search: Reading, clock: str) -> None:
        self.clock, self._is_wall, self._first = clock, clock == "seconds" and search.clock == "iterations", 0.0
        if clock == "seconds":
            starts = [self.started(trial) for trial in search.trials]
            self._first = min((start for start in starts if not np.isnan(start)), default=0.0)

    def started(self, trial: Trial) -> float:
        return self._at(trial, trial._record.started_at, trial.suggested_at)

    def ended(self, trial: Trial) -> float:
        """Return the time of the end; of the suggestion, if the trial is pending."""
        is_pending = trial.ended_at is None
        return self.started(trial) if is_pending else self._at(trial, trial._record.finished_at, trial.ended_at)

    def arrived(self, trial: Trial, goals: Outcomes) -> float:
        """Return the time when the value arrived; with outcomes, when the objectives and outcomes with bounds arrived.

        Outcomes that are missing are ignored.
        """
        modelled: list[Any] = [each for name, each in trial.outcomes.items() if not isinstance(goals[name], Record)]
        arrived = [each for each in modelled or [trial] if each.observed_at is not None]
        known = [(each.finished_at and each.finished_at.timestamp(), each.observed_at) for each in arrived]
        return float(np.max([self._at(trial, wall, own) for wall, own in known]))

    def _at(self, trial: Trial, wall: float | None, own: float | None) -> float:
        """Return a time that is `wall` on the wall clock and `own` on the clock of the search."""
        time = trial.number if self.clock == "trials" else wall if self._is_wall else own
        return np.nan if time is None else time - self._first


def _without_value(search: Reading, line: _Timeline) -> dict[str, list[float]]:
    """Return the times of trials without a value by category."""
    times: dict[str, list[float]] = {}
    for trial in search.trials:
        at = line.ended(trial)
        if trial.state in ("failed", "stopped", "pending") and trial.left_out is None and not np.isnan(at):
            times.setdefault(figures.category(search, trial, trial.state), []).append(at)
    return times


def _add_numbers(ax: Axes, search: Reading, unit: float) -> None:
    """Add a second axis at the top that shows the number of each trial at the time of its suggestion."""
    from matplotlib.ticker import MaxNLocator

    low, high = ax.get_xlim()
    line = _Timeline(search, "seconds")
    trials = {trial.number: trial for trial in search.trials}
    shown: dict[float, str] = {}
    for number in map(int, MaxNLocator(10, integer=True).tick_values(0, max(trials))):
        at = line.started(trials[number]) / unit if number in trials else np.nan
        # Numbers of trials that were suggested at about the same time would overlap.
        if low <= at <= high and at - max(shown, default=-np.inf) > 0.07 * (high - low):
            shown[at] = str(number)
    top = ax.secondary_xaxis("top", xlabel="Trial number")
    # When its size is computed for the first time, a second axis removes the texts of its ticks.
    top.get_tightbbox()
    top.set_xticks(list(shown), list(shown.values()))


def _run_of(search: Reading, clock: str, optimum: float | None) -> _Run:
    goals = search._source._problem.outcomes
    line = _Timeline(search, clock)
    trials = [trial for trial in search.trials if trial.left_out is None]
    if _front(search):
        return _run_of_front(search, [trial for trial in trials if is_within(goals, trial.values)], line)
    times = {trial.number: line.arrived(trial, goals) for trial in trials if trial.value is not None}
    observed = [trial for trial in trials if not np.isnan(times.get(trial.number, np.nan))]
    observed.sort(key=lambda trial: (times[trial.number], trial.number))
    at = np.array([times[t.number] for t in observed], dtype=float)
    values = np.array([t.value for t in observed], dtype=float)
    fidelity = search._source._problem.fidelity
    shares = np.array([1.0 if fidelity is None else fidelity.encode(t.fidelity) for t in observed])
    sign = 1.0 if search.direction == "minimize" else -1.0
    labels = [figures.category(search, trial, "observed") for trial in observed]
    # Trials that were run outside the domain or its constraints are not the best trials.
    counts = [own != _OUTSIDE and is_within(goals, t.values) for own, t in zip(labels, observed, strict=True)]
    outside = ~np.array(counts, dtype=bool)
    lowest = _lowest_so_far(np.where(outside, np.inf, sign * values), np.where(outside, 0.0, shares))
    best = sign * np.where(np.isinf(lowest), np.nan, lowest)
    if optimum is not None:
        values, best = sign * (values - optimum), sign * (best - optimum)
    return _Run(at, values, best, labels)


def _run_of_front(search: Reading, trials: Sequence[Trial], line: _Timeline) -> _Run:
    """Return the hypervolume after each of these trials, whose objectives and bounded outcomes have arrived."""
    log = search._source._current_log()
    reference = [value for value in log.reference(search._front("plot_convergence")) if value is not None]
    inside = [trial for trial in trials if figures.category(search, trial, "observed") != _OUTSIDE]
    times = [(line.arrived(trial, search._source._problem.outcomes), trial.number) for trial in inside]
    counted = sorted(each for each in times if not np.isnan(each[0]))
    volume, volumes = 0.0, []
    members: list[int] = []
    for _, number in counted:
        larger = log.hypervolume([*members, number], reference)
        if larger > volume:
            volume = larger
            members.append(number)
        volumes.append(volume)
    at = np.array([time for time, _ in counted], dtype=float)
    return _Run(at, np.array(volumes), np.array(volumes))


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
