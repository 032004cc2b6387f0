"""Functions for figures, axes and labels, and the colours, which all plots share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from belated._core import InvalidSetting
from belated.optimizers.read_access import ReadAccess
from belated.short_repr import short_repr
from belated.space.candidates import Candidates
from belated.space.space import Space

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


def time_label(search: ReadAccess, what: str = "Time") -> str:
    """Return the label of an axis of times or durations."""
    return f"{what} ({'seconds' if search.clock == 'seconds' else 'suggestions started'})"


def start_of(search: ReadAccess) -> float:
    """Return the origin of time axes: the time of the first trial in seconds, or 0 if the clock counts suggestions."""
    if search.clock == "iterations":
        return 0.0
    return min((trial.suggested_at for trial in search.trials), default=0.0)


def now_of(search: ReadAccess) -> float:
    """Return the current time on the clock of the search."""
    source = search._source
    return source._current_log().now(source._problem.now())


def window_of(search: ReadAccess) -> float | None:
    """Return the window of the optimizer; None without a limit."""
    window: float | None = search._source.get_params(deep=False).get("window")
    return window


def is_log(space: Space, name: str) -> bool:
    """Return whether a parameter is searched on a logarithmic scale."""
    return bool(getattr(space[name], "log", False))


def grid(n_rows: int, n_columns: int) -> tuple[Figure, list[Axes]]:
    """Return a new figure and its axes, row by row. The figure does not use pyplot or a display."""
    from matplotlib.figure import Figure

    width, height = (side / 25.4 for side in MILLIMETRES_PER_PANEL)
    figure = Figure(figsize=(width * n_columns, height * n_rows), layout="constrained")
    return figure, list(figure.subplots(n_rows, n_columns, squeeze=False).flat)


def save(drawn: Axes | Figure, path: str | Path) -> None:
    """Write a figure, or the figure of axes, to a file; the suffix of the file name determines the format."""
    figure: Any = drawn.figure
    figure.savefig(path, dpi=150)
