"""Plot of the observed values against each parameter, and of the model on a line through the recommended point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from belated.errors import NotFitted
from belated.optimizers.outcomes import has_bounds
from belated.optimizers.trials import Reading
from belated.plotting import figures
from belated.plotting.figures import GREY, ORANGE, Axes
from belated.plotting.regions import EXCLUDED, allowed, completed
from belated.space.dimensions import Categorical, Dimension, Integer, choices_of
from belated.space.space import Space

_N_POINTS = 101


def plot_slice(
    search: Reading,
    names: str | Sequence[str] | None = None,
    ax: Any = None,
    *,
    context: Mapping[str, Any] | None = None,
    log: bool = False,
    outcome: str | None = None,
) -> NDArray[np.object_]:
    """Plot observed values against each parameter, with the model's mean as a function of this parameter.

    All other parameters have the values of the recommended point. The band is one standard deviation of f, without
    noise. Observed values at other points may be far from the mean. If a parameter is inactive at the recommended
    point, the others have the values of the best observed trial in which the parameter is active. Markers at the edge
    show trials without a value: failed, stopped and pending trials. Without a model, or before the first value, only
    trials are drawn. If a trial was run at a point that differs from the suggested point, it is drawn at the point that
    was run. If outcomes have bounds, values at which a bound is probably violated (`predict_feasible` below 0.5) have a
    grey background. Where constraints exclude the points of the line, the background is hatched, and the mean is left
    out. Trials had other values of the other parameters, so they may lie in front of these areas.

    A part of a `Mixture` changes along Cox's direction (Cox 1971): the other parts share the rest in the proportions
    that they have at the recommended point, so that the total remains. If a part reaches a bound, it stays there, and
    the remaining amount is divided among the other parts. The terms of a `Linear` with ``equals`` change in the same
    way.

    Hollow markers are trials that cannot be used as they are: another outcome is beyond a bound, or the point violates
    a constraint; or a value is marked (`Trial.marks`); or the trial is pending and forbidden (`Study.forbidden`).

    Parameters
    ----------
    search : Result, Study or Optimizer
        A search in a space, or among candidates with names.
    names : str or list of str, optional
        The parameters to plot. Default None: all parameters.
    ax : array of Axes, optional
        One Axes object for each parameter. Default None: the axes of a new figure.
    context : mapping, optional
        The context at which the model is shown, if a context was declared.
    log : bool, default False
        Whether the axis of values is logarithmic. All observed values must be positive. The axis begins at half of the
        lowest observed value.
    outcome : str, optional
        The name of the declared outcome to plot. Default None: the objective.

    Returns
    -------
    array of Axes
        One Axes object for each parameter. The horizontal axis is logarithmic if the parameter is searched on a
        logarithmic scale.

    Raises
    ------
    InvalidSetting
        `search` is not a result, study or optimizer, or has candidates without names; or a name is unknown; or the
        number of axes differs from the number of parameters; or `log` is True and a value is not positive.
    InvalidContext
        The context is missing, was not declared, or is out of its space.
    InvalidValue
        The outcome was not declared.
    """
    space = figures.space_of(search, "plot_slice")
    search._source._position_of_model(outcome)
    searched = [name for name, dimension in space.items() if dimension.width]
    wanted = searched if names is None else figures.checked_names(names, searched)
    best = _recommended(search, space, context)
    models = {}
    for name in wanted:
        base = None if best is None else base_point(search, space, best, [name])
        if base is not None:
            points = [base | {name: value} for value in values_of(space[name])]
            models[name] = predict_at(search, space, points, context, [name], outcome)
    observed = figures.values(search, outcome)
    scale = figures.value_scale(log, observed)
    made = figures.panels(len(wanted), ax, sharey=True)
    for name, each in zip(wanted, made, strict=True):
        _draw_trials(each, search, space, name, outcome)
        if name in models:
            _draw_model(each, space[name], *models[name])
        if best is not None and name in best:
            at = positions(space[name], [best[name]])[0]
            each.axvline(at, color=GREY, linestyle="--", label="recommended")
        set_parameter(each, "x", space, name)
        each.set(yscale=scale, ylabel="" if ax is None else figures.value_label(search, outcome))
        each.grid(alpha=0.3)
        if name not in models and not observed:
            figures.add_note(each, "no values" if search.trials else "no trials")
        if log and observed:
            each.set_ylim(bottom=0.5 * min(observed))
    if ax is None:
        made[0].figure.supylabel(figures.value_label(search, outcome), fontsize="medium")
    figures.add_legend(made, below=ax is None)
    figures.tidy(made)
    return made


def _recommended(search: Reading, space: Space, context: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the values of the recommended point. Return None if there is no model, or before the first value."""
    if not search._source._has_model:
        return None
    try:
        point = search.recommend(context)
    except NotFitted:
        return None
    return space.flat(point)


def base_point(search: Reading, space: Space, best: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any] | None:
    """Return a point at which all `names` are active, or None if they are never active together.

    The point is the recommended point `best` or, if one of `names` is inactive there, the best observed trial in which
    all `names` are active. A parameter that is inactive at this point has its value at the recommended point or in the
    best observed trial in which it is active.
    """
    inside = [trial for trial in search.trials if not trial.outside and trial.left_out is None]
    observed = [(trial.value, space.flat(trial.params_run)) for trial in inside if trial.value is not None]
    observed.sort(key=lambda each: each[0], reverse=search.direction == "maximize")
    known = [best, *(params for _, params in observed)]
    base = next((dict(params) for params in known if all(name in params for name in names)), None)
    if base is not None:
        for params in known:
            base = {**params, **base}
    return base


def _draw_trials(ax: Axes, search: Reading, space: Space, name: str, outcome: str | None) -> None:
    # Trials without a value are drawn near the edge of the axes at which values are worst.
    edge = 0.96 if search.direction == "minimize" else 0.04
    for label, own in figures.by_category(search, outcome).items():
        points = [(value, space.flat(trial.params_run)) for trial, value in own]
        found = [(value, params[name]) for value, params in points if name in params]
        at = positions(space[name], [value for _, value in found])
        heights = [edge if value is None else value for value, _ in found]
        # Markers at the ends of a range are not cut.
        look: Any = {"alpha": 0.6, "clip_on": False}
        if any(value is None for value, _ in found):
            look["transform"] = ax.get_xaxis_transform()
        if found:
            figures.draw_trials(ax, (at, heights), label, **look)


def _draw_model(ax: Axes, dimension: Dimension, mean: Any, std: Any, probable: Any, allowed: Any) -> None:
    at = np.array(positions(dimension, values_of(dimension)), dtype=float)
    grey: Any = {"color": GREY, "alpha": 0.3, "linewidth": 0}
    hatched: Any = {"facecolor": "none", "edgecolor": GREY, "hatch": figures.HATCH, "linewidth": 0}
    for below, label, look in ((probable < 0.5, figures.INFEASIBLE, grey), (allowed == 0.0, EXCLUDED, hatched)):
        ends = at
        if isinstance(dimension, Categorical):
            ends, below = (at[:, None] + [-0.5, 0.5]).ravel(), below.repeat(2)
        elif label == EXCLUDED:
            # The area begins where the line of the mean ends.
            below = np.convolve(below, [1, 1, 1], "same") > 0 if below.any() else below
        if below.any():
            ax.fill_between(ends, 0.0, 1.0, where=below, label=label, transform=ax.get_xaxis_transform(), **look)
    if isinstance(dimension, Categorical):
        # Choices do not have intermediate values, so draw error bars instead of a line.
        ax.errorbar(at, mean, yerr=std, fmt="_", markersize=12, color=ORANGE, capsize=4, zorder=3, label="mean ± std")
    else:
        ax.plot(at, mean, color=ORANGE, zorder=3, label="mean ± std")
        ax.fill_between(at, mean - std, mean + std, color=ORANGE, alpha=0.2, linewidth=0)


def positions(dimension: Dimension, values: Sequence[Any]) -> list[Any]:
    """Return the positions of values on an axis; the values of a list are at 0, 1, …."""
    return (
        list(values)
        if choices_of(dimension) is None
        else [dimension.to_number(value, measured=True) for value in values]
    )


def set_parameter(ax: Axes, axis: Literal["x", "y"], space: Space, name: str) -> None:
    """Set the label, scale and ticks of the horizontal ("x") or vertical ("y") axis of a parameter."""
    listed = choices_of(space[name])
    ends = positions(space[name], values_of(space[name], 2))
    margin = 0.0 if listed is None else 0.5
    ax.set(**{f"{axis}label": figures.shortened(name), f"{axis}lim": (ends[0] - margin, ends[-1] + margin)})
    if listed is not None:
        ax.set(**{f"{axis}ticks": range(len(listed)), f"{axis}ticklabels": figures.short_choices(listed)})
    elif getattr(space[name], "log", False):
        ax.set(**{f"{axis}scale": "log"})
    elif isinstance(space[name], Integer):
        figures.integer_ticks(getattr(ax, f"{axis}axis"))
    ax.tick_params(axis=axis, labelsize="small")


def values_of(dimension: Dimension, n: int = _N_POINTS) -> list[Any]:
    """Return all values of a list parameter; for a range, return at most n values, evenly spread on its scale."""
    listed = choices_of(dimension)
    if listed is not None:
        return list(listed)
    return list(dict.fromkeys(dimension.decode(np.array([u])) for u in np.linspace(0.0, 1.0, n)))


def predict_at(
    search: Reading,
    space: Space,
    points: Sequence[dict[str, Any]],
    context: Any,
    names: Sequence[str],
    outcome: str | None,
) -> Any:
    """Return the mean and std at points, the probability that outcomes lie within their bounds, and 1 where constraints
    allow the point and 0 where they do not, shape (4, n).

    All are NaN at points at which one of `names` is inactive, and at points that lack the value of an active parameter.
    Inactive parameters are removed from the points, and `completed` changes them so that equalities hold. The first
    three are NaN at points that constraints exclude. Without bounds, the probability is NaN.
    """
    active = [completed(space, space.active_part(point), names) for point in points]
    needed = [[*names, *space.active_names(point)] for point in active]
    there = np.array([all(name in p for name in own) for p, own in zip(active, needed, strict=True)], dtype=bool)
    found = np.full((4, len(points)), np.nan)
    found[3, there] = allowed(search, space, [point for point, complete in zip(active, there, strict=True) if complete])
    there = found[3] == 1.0
    if there.any():
        chosen = [point for point, complete in zip(active, there, strict=True) if complete]
        found[:2, there] = search.predict(chosen, context, outcome=outcome)
        source = search._source
        if has_bounds(source._problem.outcomes) and not source._unknown_bounded():
            found[2, there] = search.predict_feasible(chosen, context)
    return found
