"""Plot of the observed values against each parameter, and of the model on a line through the recommended point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from belated.optimizers.read_access import NotFitted, ReadAccess
from belated.optimizers.trial import Trial
from belated.plotting.figures import BLUE, GREY, ORANGE, Axes, checked_names, is_log, panels, space_of, value_label
from belated.space.dimensions import Categorical, Dimension, choices_of
from belated.space.space import Space

_N_POINTS = 101


def plot_slice(
    search: ReadAccess,
    names: str | Sequence[str] | None = None,
    context: Mapping[str, Any] | None = None,
    axes: Any = None,
) -> list[Axes]:
    """Plot observed values against each parameter, with the model's mean as a function of this parameter.

    All other parameters have the values of the recommended point. The band is one standard deviation of f, without
    noise. Observed values at other points may be far from the mean. Without a model, or before the first value, only
    observed values are drawn. If a trial was run at a point that differs from the suggested point, it is drawn at the
    point that was run.

    Parameters
    ----------
    search : Result, Study or Optimizer
        A search in a space; candidates are not supported.
    names : str or list of str, optional
        The parameters to plot. Default None: all parameters. The model is not drawn for a parameter that is inactive at
        the recommended point.
    context : mapping, optional
        The context at which the model is shown, if a context was declared.
    axes : array of Axes, optional
        One Axes object for each parameter. Default None: the axes of a new figure.

    Returns
    -------
    list of Axes
        One Axes object for each parameter. The horizontal axis is logarithmic if the parameter is searched on a
        logarithmic scale.

    Raises
    ------
    InvalidSetting
        `search` is not a result, study or optimizer, or has candidates; or a name is unknown; or the number of axes
        differs from the number of parameters.
    InvalidContext
        The context is missing, was not declared, or is out of its space.
    """
    space = space_of(search, "plot_slice")
    searched = [name for name, dimension in space.items() if dimension.width]
    wanted = searched if names is None else checked_names(names, searched, "names")
    observed = [trial for trial in search.trials if trial.value is not None]
    best = _recommended(search, context)
    made = panels(len(wanted), axes)
    for name, ax in zip(wanted, made, strict=True):
        _draw_observed(ax, space[name], name, observed)
        if best is not None and name in best:
            _draw_model(ax, search, space, name, best, context)
        ax.set(xlabel=name, ylabel=value_label(search))
        if is_log(space, name):
            ax.set_xscale("log")
        ax.grid(alpha=0.3)
    return made


def _recommended(search: ReadAccess, context: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the recommended point. Return None if there is no model, or before the first value."""
    if not search._source._optimizer._has_model:
        return None
    try:
        search.predict([], context)
    except NotFitted:
        return None
    best: dict[str, Any] = search.recommend(context)
    return best


def _draw_observed(ax: Axes, dimension: Dimension, name: str, observed: Sequence[Trial]) -> None:
    active = [trial for trial in observed if name in trial.params_run]
    at = _positions(ax, dimension, [trial.params_run[name] for trial in active])
    values = np.array([trial.value for trial in active], dtype=float)
    ax.plot(at, values, "o", color=BLUE, markersize=4, alpha=0.5, label="observed")


def _draw_model(
    ax: Axes, search: ReadAccess, space: Space, name: str, best: dict[str, Any], context: Mapping[str, Any] | None
) -> None:
    dimension = space[name]
    values = values_of(dimension)
    mean, std = predict_at(search, space, [best | {name: value} for value in values], context)
    at = np.array(_positions(ax, dimension, values), dtype=float)
    if isinstance(dimension, Categorical):
        # Choices do not have intermediate values, so draw error bars instead of a line.
        ax.errorbar(at, mean, yerr=std, fmt="_", color=ORANGE, capsize=4, label="mean ± std")
    else:
        ax.plot(at, mean, color=ORANGE, label="mean ± std")
        ax.fill_between(at, mean - std, mean + std, color=ORANGE, alpha=0.2, linewidth=0)
    ax.axvline(_positions(ax, dimension, [best[name]])[0], color=GREY, linestyle="--", label="recommended")
    ax.legend(fontsize="small")


def _positions(ax: Axes, dimension: Dimension, values: Sequence[Any]) -> list[Any]:
    """Return the positions of values on the horizontal axis.

    The values of a list are at 0, 1, …, with their names as tick labels.
    """
    listed = choices_of(dimension)
    if listed is None:
        return list(values)
    ax.set_xticks(range(len(listed)), [str(choice) for choice in listed])
    return [int(dimension.to_number(value)) for value in values]


def values_of(dimension: Dimension, n: int = _N_POINTS) -> list[Any]:
    """Return all values of a list parameter; for a range, return at most n values, evenly spread on its scale."""
    listed = choices_of(dimension)
    if listed is not None:
        return list(listed)
    return list(dict.fromkeys(dimension.decode(np.array([u])) for u in np.linspace(0.0, 1.0, n)))


def predict_at(
    search: ReadAccess, space: Space, points: Sequence[dict[str, Any]], context: Mapping[str, Any] | None
) -> tuple[Any, Any]:
    """Return the mean and std at points; both are NaN at points that lack the value of an active parameter.

    Inactive parameters are removed from the points.
    """
    active = [space.active_part(point) for point in points]
    there = np.array([all(name in point for name in space.active_names(point)) for point in active], dtype=bool)
    mean, std = np.full(len(points), np.nan), np.full(len(points), np.nan)
    if there.any():
        chosen = [point for point, complete in zip(active, there, strict=True) if complete]
        mean[there], std[there] = search.predict(chosen, context)
    return mean, std
