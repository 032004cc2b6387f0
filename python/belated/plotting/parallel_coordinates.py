"""Plot of all trials as lines over parallel axes, one for each parameter and one for the value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from belated.errors import NotFitted
from belated.optimizers.trials import Reading
from belated.plotting import figures
from belated.plotting.figures import LOOKS, Axes
from belated.plotting.slices import positions, values_of
from belated.space.dimensions import Dimension, Integer, choices_of
from belated.space.space import Space

_WIDTH = 1.25  # inches from axis to axis
_BELOW = -0.13  # the height of inactive parameters and of missing values; the axes are from 0 to 1
_MAX_TICKS = 8
_LEAST_GAP = 0.07  # between ticks
_STATES = ("failed", "stopped", "pending")
_DASHES = dict(zip(_STATES, ("--", "-.", ":"), strict=True))


def plot_parallel_coordinates(
    search: Reading,
    names: str | Sequence[str] | None = None,
    ax: Axes | None = None,
    *,
    context: Mapping[str, Any] | None = None,
    log: bool = False,
    outcome: str | None = None,
    max_params: int = 7,
) -> Axes:
    """Plot each trial as a line over parallel axes: an axis for each parameter, and the last axis for the value.

    The parameters are ordered by their total effects (`plot_importance`), or as in the space if there is no model or no
    value. A line has the colour of its value, which the last axis shows; the line of the best trial is wide, and so are
    the lines of a front. Dashed lines are trials without a value: failed, stopped and pending trials. They end below
    the last axis. Below the axis of a parameter, lines pass of the trials in which the parameter is inactive. Choices
    are at equal distances, and parameters that are searched on a logarithmic scale have a logarithmic axis.

    Parameters
    ----------
    search : Result, Study or Optimizer
        A search in a space, or among candidates with names.
    names : str or list of str, optional
        The parameters to plot, in this order. Default None: the most important parameters, at most `max_params`.
    ax : matplotlib Axes, optional
        The axes to draw on. Default None: the axes of a new figure, whose width depends on the number of parameters.
    context : mapping, optional
        The context at which the model is used for the order of the parameters, if a context was declared.
    log : bool, default False
        Whether the axis of values is logarithmic. All observed values must be positive.
    outcome : str, optional
        The name of the declared outcome to plot. Default None: the objective.
    max_params : int, default 7
        The maximum number of parameters if `names` is not given. The title of a new figure names the parameters that
        are not shown.

    Returns
    -------
    Axes
        The parameters are at 0, 1, … of the horizontal axis. All axes are drawn from 0 to 1 of the vertical axis.

    Raises
    ------
    InvalidSetting
        `search` is not a result, study or optimizer, or has candidates without names; or a name is unknown; or
        `max_params` is below 1; or `log` is True and a value is not positive.
    InvalidContext
        The context is missing, was not declared, or is out of its space.
    InvalidValue
        The outcome was not declared.

    Examples
    --------
    >>> import belated as bl
    >>> space = {"x": (0.0, 1.0), "kernel": ["rbf", "poly"], "degree": bl.Integer(1, 5, when={"kernel": "poly"})}
    >>> search = bl.RandomSearch(space, seed=0)
    >>> for trial in search.suggest(n=20):
    ...     trial.observe(trial.params["x"] + trial.params.get("degree", 0))
    >>> ax = bl.plotting.plot_parallel_coordinates(search)
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['x', 'kernel', 'degree', 'Value\\n(maximized)']
    """
    space = figures.space_of(search, "plot_parallel_coordinates")
    search._source._position_of_model(outcome)
    figures.check_max_params(max_params, 1)
    searched = [name for name, dimension in space.items() if dimension.width]
    if names is None:
        ordered = _ordered(search, searched, context, outcome)
        wanted, left_out = ordered[:max_params], ordered[max_params:]
    else:
        wanted, left_out = figures.checked_names(names, searched), []
    values = figures.values(search, outcome)
    figures.value_scale(log, values)
    ends = (min(values), max(values)) if values else (0.0, 1.0)
    is_given, n = ax is not None, len(wanted)
    width = max(6.4, _WIDTH * (n + 1))
    made: Axes = figures.new_figure((width, 4.8))[1][0, 0] if ax is None else ax
    rows: dict[str, list[tuple[int, list[float]]]] = {}
    for trial, state, value in figures.results(search, outcome):
        if state not in ("observed", *_STATES):
            continue
        params = space.flat(trial.params_run)
        heights = [_height(space[name], params[name]) if name in params else _BELOW for name in wanted]
        last = _BELOW if value is None else _share(value, *ends, log)
        rows.setdefault(state, []).append((trial.number, [*heights, last]))
    _draw_observed(made, rows.get("observed", []), search)
    for state in _STATES:
        _draw_without_value(made, [heights for _, heights in rows.get(state, [])], state)
    _draw_axes(made, space, wanted, [heights for own in rows.values() for _, heights in own])
    for value in _ticks(*ends, log) if values else []:
        _write(made, n, _share(value, *ends, log), f"{value:.3g}")
    value_name = figures.value_label(search, outcome).replace(" (", "\n(")
    made.set_xticks(range(n + 1), [*map(_two_lines, wanted), value_name], fontsize="small")
    made.set(xlim=(-0.1, n + 0.7), ylim=(_BELOW - 0.05, 1.04), yticks=[])
    made.xaxis.tick_top()
    made.tick_params(length=0)
    made.spines[:].set_visible(False)
    if not values:
        figures.add_note(made, "no values" if search.trials else "no trials")
    if left_out and not is_given:
        made.figure.suptitle(figures.note_left_out(left_out, width), fontsize="small")
    figures.add_legend([made], below=not is_given)
    figures.tidy([made])
    return made


def _ordered(search: Reading, names: list[str], context: Any, outcome: str | None) -> list[str]:
    """Return the names by importance, or as they are if there is no model or no value."""
    if not search._source._has_model:
        return names
    try:
        return figures.by_importance(search, names, context, outcome, "plot_parallel_coordinates")
    except NotFitted:
        return names


def _share(value: float, low: float, high: float, log: bool) -> float:
    """Return the place of a value between two ends; in the middle if the ends are equal."""
    if log:
        value, low, high = (float(np.log(each)) for each in (value, low, high))
    return 0.5 if high == low else (value - low) / (high - low)


def _height(dimension: Dimension, value: Any) -> float:
    listed = choices_of(dimension)
    if listed is not None:
        return float((positions(dimension, [value])[0] + 0.5) / len(listed))
    low, high = values_of(dimension, 2)
    return _share(value, low, high, getattr(dimension, "log", False))


def _ticks(low: float, high: float, log: bool, integer: bool = False) -> list[float]:
    """Return the ends of an axis, and round numbers between them that are not near another tick."""
    from matplotlib import ticker

    locator = ticker.LogLocator(numticks=6) if log else ticker.MaxNLocator(4, integer=integer)
    shown = list(dict.fromkeys([low, high]))
    for tick in locator.tick_values(low, high) if high > low else []:
        if low < tick < high:
            gaps = [abs(_share(tick, low, high, log) - _share(other, low, high, log)) for other in shown]
            shown += [tick] if min(gaps) > _LEAST_GAP else []
    return shown


def _draw_observed(ax: Axes, rows: list[tuple[int, list[float]]], search: Reading) -> None:
    """Draw the lines of trials with a value, with the best on top, and the colours beside the axis of values."""
    import matplotlib
    from matplotlib.collections import LineCollection

    if not rows:
        return
    is_low_best = search.direction == "minimize"
    # The best values are dark, since yellow lines are hard to see.
    colours = matplotlib.colormaps["viridis" if is_low_best else "viridis_r"]
    rows = sorted(rows, key=lambda row: row[1][-1], reverse=is_low_best)
    lines = [np.column_stack([range(len(heights)), heights]) for _, heights in rows]
    shades = colours([heights[-1] for _, heights in rows])
    ax.add_collection(LineCollection(lines, colors=shades, linewidths=1.0, alpha=0.7))
    ax.plot([], [], color=colours(0.4), linewidth=1.0, label="observed")  # for the legend
    best, mark = search._best_trials(), "front" if search._source._problem.front else "best"
    numbers = [trial.number for trial in best]
    for (number, _), line, shade in zip(rows, lines, shades, strict=True):
        if number in numbers:
            ax.plot(*line.T, color=shade, linewidth=3.0, label=mark)
    n = len(rows[0][1]) - 1
    ax.imshow(np.linspace(1, 0, 256)[:, None], extent=(n, n + 0.06, 0.0, 1.0), aspect="auto", cmap=colours)


def _draw_without_value(ax: Axes, rows: list[list[float]], state: str) -> None:
    if not rows:
        return
    # NaN separates the lines of different trials.
    heights = np.concatenate([[*row, np.nan] for row in rows])
    n = len(rows[0])
    at = np.tile([*range(n), np.nan], len(rows))
    colour, marker = LOOKS[state]
    look: Any = {"marker": marker, "markevery": slice(n - 1, None, n + 1), "markersize": 5, "alpha": 0.8}
    ax.plot(at, heights, color=colour, linestyle=_DASHES[state], linewidth=1.0, label=state, **look)


def _draw_axes(ax: Axes, space: Space, names: list[str], rows: list[list[float]]) -> None:
    """Draw the axes of the parameters and of the value, and write the ticks of the parameters."""
    ax.vlines(range(len(names) + 1), 0.0, 1.0, color=figures.ink(ax), linewidth=1.0, zorder=3)
    for i, name in enumerate([*names, None]):
        if any(heights[i] == _BELOW for heights in rows):
            _write(ax, i, _BELOW, "no value" if name is None else "inactive")
        if name is None:
            continue
        listed = choices_of(space[name])
        if listed is None:
            low, high = values_of(space[name], 2)
            ticks = _ticks(low, high, getattr(space[name], "log", False), isinstance(space[name], Integer))
            texts = [f"{tick:.4g}" for tick in ticks]
        else:
            step = -(-len(listed) // _MAX_TICKS)
            ticks, texts = list(listed)[::step], figures.short_choices(listed)[::step]
        for tick, text in zip(ticks, texts, strict=True):
            _write(ax, i, _height(space[name], tick), text)


def _write(ax: Axes, at: int, height: float, text: str) -> None:
    """Write a text to the right of an axis, on a ground that covers the lines."""
    ground = {"facecolor": ax.get_facecolor(), "edgecolor": "none", "alpha": 0.75, "pad": 0.5}
    look: Any = {"fontsize": "x-small", "va": "center", "bbox": ground, "zorder": 4}
    ax.annotate(text, (at, height), (6, 0), textcoords="offset points", **look)


def _two_lines(name: str) -> str:
    """Return a name of at most 26 letters, in two lines if it is long, if possible after a separator."""
    text = figures.shortened(name, 26)
    if len(text) <= 14:
        return text
    places = [i + 1 for i, letter in enumerate(text) if letter in "_.- …" and len(text) - 17 <= i < 16]
    cut = min(places or [len(text) // 2], key=lambda place: abs(place - len(text) / 2))
    return f"{text[:cut]}\n{text[cut:]}"
