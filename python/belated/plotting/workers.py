"""Plot of the workers over time, with a bar for each trial and gaps in which a worker was idle."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from belated.optimizers.trial import Trial
from belated.optimizers.trials import Reading
from belated.plotting import figures
from belated.plotting.figures import GREY, LOOKS, Axes
from belated.plotting.trials import fates_of
from belated.simulate.iteration_clock import History

# The hatches differ as the colours do, so that the plot can be read in grey.
_HATCHES = {
    "observed": None,
    "late": "--",
    "failed": "xxx",
    "abandoned": "\\\\\\",
    "stopped": "...",
    "withdrawn": "++",
    "pending": "///",
}


def plot_workers(search: Reading | History, ax: Axes | None = None, *, clock: str = "seconds") -> Axes:
    """Plot each worker as a row, with a bar for each trial from its start to its end; gaps are idle times.

    Trials do not record their workers. Therefore a trial is assigned to the worker that became free last, and to a new
    worker if none is free. The number of rows is the maximum number of concurrent trials, but a row may join trials of
    different workers. The title has the idle share: the share of the time from the first start to the last end in
    which a worker did not evaluate a trial, in the mean over the workers. A bar begins with the suggestion. If the
    duration of the evaluation is known, as in runs, it begins this duration before the end of the trial. The time
    before a later run started the trial again (``retry_pending=True``) is therefore idle. A pending trial ends at the
    current time. If trials started or ended only in the first third of the time until now, the axis ends after the
    last of these events, and the idle share still includes all times. The states of trials have different colours and
    hatches; `plot_trials` explains *late*.

    Parameters
    ----------
    search : Result, Study, Optimizer or History
        The search whose trials are drawn. If a result is given, the trials of its run are drawn. A history of
        `simulate` or `simulate_workers` is drawn on its own clock. Trials without a duration, for example trials that
        were added with a value, are left out.
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
        `search` is not a result, study, optimizer or history, or `clock` is not a clock of the search.

    Examples
    --------
    >>> import belated as bl
    >>> from belated.simulate import Uniform, simulate_workers
    >>> search = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
    >>> history = simulate_workers(search, lambda p: p["x"], workers=3, times=Uniform(1, 3), n_trials=30, seed=0)
    >>> bl.plotting.plot_workers(history).get_title()
    '3 workers, idle 3 % of the time'
    """
    if isinstance(search, History):
        clock = search.clock
        order = search.started.argsort(kind="stable")
        spans = [(float(search.started[i]), float(search.arrivals[i])) for i in order]
        fates = ["observed"] * len(spans)
        shown = max((end for _, end in spans), default=0.0)
        unit, xlabel = figures.time_scale(clock, shown)
        begun = [start for start, _ in spans]
    else:
        drawn, shown, unit, xlabel = figures.shown_time(search, clock, "plot_workers")
        begun = [_last_start(*each) if clock == "seconds" else each[1] for each in drawn]
        spans, fates = [(start, end) for _, start, end in drawn], fates_of(search, [trial for trial, _, _ in drawn])
    kept = [each for each in zip(spans, fates, begun, strict=True) if each[0][1] > each[0][0]]
    spans, fates, begun = [span for span, _, _ in kept], [fate for _, fate, _ in kept], [start for _, _, start in kept]
    first, last = min((start for start, _ in spans), default=0.0), max((end for _, end in spans), default=0.0)
    workers = workers_of(spans)
    n = max(workers, default=0)
    ax = figures.axes_for(ax, n)
    # A line shows that a worker was idle.
    ax.hlines(range(1, n + 1), first / unit, last / unit, color=GREY, linewidth=1.0, zorder=1)
    for fate, (colour, _) in LOOKS.items():
        own = [i for i, each in enumerate(fates) if each == fate]
        if own:
            starts = [begun[i] / unit for i in own]
            widths = [(spans[i][1] - begun[i]) / unit for i in own]
            look: Any = {"color": colour, "edgecolor": "white", "linewidth": 0.5, "hatch": _HATCHES[fate], "zorder": 2}
            ax.barh([workers[i] for i in own], widths, left=starts, height=0.7, label=fate, **look)
    ax.set_ylim(max(n, 1) + 0.6, 0.4)
    if last > shown:
        ax.set_xlim(right=shown / unit)
    figures.integer_ticks(ax.yaxis)
    title = ""
    if n:
        busy = sum(end - start for (_, end), start in zip(spans, begun, strict=True))
        idle = 1 - busy / (n * (last - first))
        title = f"{n} worker{'s' * (n > 1)}, idle {100 * abs(idle):.0f} % of the time"
    return figures.finished(ax, axis="x", xlabel=xlabel, ylabel="Worker", title=title)


def _last_start(trial: Trial, start: float, end: float) -> float:
    """Return the start of the last evaluation of a trial that ended, if its duration is known."""
    return start if trial.state == "pending" or trial.duration is None else max(start, end - trial.duration)


def workers_of(spans: Iterable[tuple[float, float]]) -> list[int]:
    """Return the worker of each span (start, end), counted from 1; spans must be ordered by their starts.

    Each span is assigned to the worker that became free last; the number of workers is the least possible.
    """
    ends: list[float] = []
    workers = []
    for start, end in spans:
        free = [i for i, until in enumerate(ends) if until <= start]
        worker = max(free, key=lambda i: ends[i]) if free else len(ends)
        ends[worker : worker + 1] = [end]
        workers.append(worker + 1)
    return workers
