"""The functions and colours that all plots share: figures, axes and labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from belated._core import InvalidSetting
from belated.optimizers.read_access import ReadAccess
from belated.optimizers.trial import Trial
from belated.short_repr import short_repr
from belated.space.candidates import Candidates
from belated.space.space import Space

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

Axes: TypeAlias = "matplotlib.axes.Axes"
Figure: TypeAlias = "matplotlib.figure.Figure"

MILLIMETRES_PER_PANEL = (92, 74)  # width, height

# The colours of Okabe and Ito (2008), which people with any colour vision can distinguish.
BLUE, ORANGE, GREEN, RED, PURPLE, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#8C8C8C"


def checked_search(search: ReadAccess, what: str) -> ReadAccess:
    """Return `search` if it is a result, study or optimizer; otherwise raise an error."""
    if not isinstance(search, ReadAccess):
        raise InvalidSetting(
            f"search={short_repr(search)} cannot be drawn by {what}: pass the result of a run, a study or an optimizer"
        )
    return search


def space_of(search: ReadAccess, what: str) -> Space:
    """Return the space of a search; raise an error if the search has candidates."""
    domain = checked_search(search, what).domain_
    if isinstance(domain, Candidates):
        raise InvalidSetting(f"{what} needs a space of named parameters, and this search has candidates")
    return domain


def checked_names(given: Any, names: Sequence[str], argument: str) -> list[str]:
    """Return the names of parameters in `given`; raise an error if a name is unknown."""
    wanted = [given] if isinstance(given, str) else list(given)
    unknown = [name for name in wanted if name not in names]
    if unknown or not wanted:
        raise InvalidSetting(f"{argument}={short_repr(given)} is not usable: pass names out of {list(names)}")
    return wanted


def axes_for(ax: Axes | None) -> Axes:
    """Return the given axes, or the axes of a new figure."""
    if ax is not None:
        return ax
    made: Axes = _pyplot().subplots(layout="constrained")[1]
    return made


def finished(ax: Axes, *, legend: bool = True, axis: Any = "both", **labels: Any) -> Axes:
    """Return axes with these labels and limits, a grid along `axis`, and a legend."""
    ax.set(**labels)
    ax.grid(alpha=0.3, axis=axis)
    if legend:
        ax.legend(fontsize="small")
    return ax


def panels(n: int, axes: Any = None, columns: int = 3) -> list[Axes]:
    """Return n axes: the given axes, or the axes of a new figure with at most `columns` axes in a row."""
    if axes is None:
        columns = min(n, columns)
        rows = -(-n // columns)
        width, height = (side / 25.4 for side in MILLIMETRES_PER_PANEL)
        figure, made = _pyplot().subplots(
            rows, columns, squeeze=False, layout="constrained", figsize=(width * columns, height * rows)
        )
        for unused in made.flat[n:]:
            figure.delaxes(unused)
        return list(made.flat[:n])
    found = list(np.asarray(axes, dtype=object).flat)
    if len(found) != n:
        raise InvalidSetting(f"axes has {len(found)} axes, and {n} are needed: pass as many, or leave it out")
    return found


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as pyplot
    except ImportError:
        raise ImportError("plots need matplotlib: pip install matplotlib") from None
    return pyplot


def value_label(search: ReadAccess) -> str:
    """Return the label of an axis of values."""
    return f"Value ({search.direction}d)"


def time_label(clock: str, what: str = "Time") -> str:
    """Return the label of an axis of times or durations on a clock."""
    return f"{what} ({'seconds' if clock == 'seconds' else 'suggestions started'})"


def checked_clock(search: ReadAccess, clock: Any) -> str:
    """Return the clock of a time axis; raise an error if the clock is unknown or the search lacks this clock."""
    if clock not in ("seconds", "iterations") or (clock == "iterations" and search.clock == "seconds"):
        raise InvalidSetting(
            f"clock={short_repr(clock)} is not usable: pass 'seconds', or 'iterations' for a search that counts them"
        )
    return str(clock)


def now_of(search: ReadAccess, clock: str) -> float:
    """Return the current time on a clock."""
    time = search._source._problem.wall_time()
    return time if clock == "seconds" else search._source._current_log().now(time)


def spans_of(search: ReadAccess, clock: str) -> list[tuple[Trial, float, float]]:
    """Return each trial with its start and its end, ordered by start; trials whose times are unknown are left out.

    Times are in suggestions started, or in seconds since the first trial. The end of a pending trial is the current
    time.
    """
    now = now_of(search, clock)
    spans = []
    for trial in search.trials:
        record = trial._record
        start: float | None = record.started_at if clock == "seconds" else record.suggested_at
        end = record.finished_at if clock == "seconds" else record.ended_at
        if record.state == "pending":
            end = now
        if start is not None and end is not None:
            spans.append((trial, start, end))
    first = min((start for _, start, _ in spans), default=0.0) if clock == "seconds" else 0.0
    spans.sort(key=lambda span: (span[1], span[0].number))
    return [(trial, start - first, end - first) for trial, start, end in spans]


def window_of(search: ReadAccess) -> float | None:
    """Return the window of the optimizer; None without a limit."""
    window: float | None = getattr(search, "window_", None)
    return window


def is_log(space: Space, name: str) -> bool:
    """Return whether a parameter is searched on a logarithmic scale."""
    return bool(getattr(space[name], "log", False))


def grid(n_rows: int, n_columns: int) -> tuple[Figure, list[Axes]]:
    """Return a new figure and its axes, row by row. The figure does not use pyplot or a display."""
    from matplotlib import figure as figures

    width, height = (side / 25.4 for side in MILLIMETRES_PER_PANEL)
    figure = figures.Figure(figsize=(width * n_columns, height * n_rows), layout="constrained")
    return figure, list(figure.subplots(n_rows, n_columns, squeeze=False).flat)


def save(drawn: Axes | Figure, path: str | Path) -> None:
    """Write a figure (or the figure of given axes) to a file; the file's suffix determines the format."""
    figure: Any = drawn.figure
    figure.savefig(path, dpi=150)
