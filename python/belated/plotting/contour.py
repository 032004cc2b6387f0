"""Plot of the mean and the standard deviation of the model over pairs of parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from belated._core import InvalidSetting
from belated.optimizers.trials import Reading
from belated.plotting import figures
from belated.plotting.figures import LOOKS, Axes
from belated.plotting.regions import EXCLUDED, equalities
from belated.plotting.slices import base_point, positions, predict_at, set_parameter, values_of
from belated.plotting.ternary import Triangle, draw_axes, draw_contours, triangle_of
from belated.space.dimensions import choices_of
from belated.space.space import Space

_N_POINTS, _N_POINTS_OF_A_MATRIX = 41, 25  # in each direction
_N_LEVELS = 30
# A point is near data if the std of f is at most this share of the standard deviation of the observed values.
_NEAR = 0.5

# Markers at the ends of a range are not cut.
_EDGE: Any = {"markeredgecolor": "black", "markeredgewidth": 0.5, "clip_on": False, "zorder": 3}


def plot_contour(
    search: Reading,
    names: Sequence[str] | None = None,
    ax: Any = None,
    *,
    context: Mapping[str, Any] | None = None,
    log: bool = False,
    outcome: str | None = None,
    max_params: int = 4,
) -> NDArray[np.object_]:
    """Plot the model's mean of f over pairs of parameters, and for one pair also the standard deviation of f.

    All other parameters have the values of the recommended point, which is shown as a star. If one of the two
    parameters is inactive at the recommended point, the others have the values of the best observed trial in which both
    are active. Points at which one of the two parameters is inactive are left blank. The other markers are trials, in
    which the parameters that are not shown had different values. The mean at an observed trial may therefore differ
    from its value. If outcomes have bounds, points at which a bound is probably violated (`predict_feasible` below 0.5)
    are hatched. Points that constraints exclude do not have a colour; they are hatched in the other direction.

    Three parts of a `Mixture` are drawn as a triangle (a ternary plot). At each corner, one part has its largest value,
    and the two others have their smallest values. Further parts have their values at the recommended point, and a trial
    with another sum of the three is drawn at their proportions. In all other panels, parts of a mixture that are not on
    an axis share the rest in the proportions that they have at the recommended point (`plot_slice`).

    The colours of the mean cover the means that are drawn, but not beyond the observed values and the means near data,
    where the standard deviation of f is at most half the standard deviation of the observed values. The colours of the
    standard deviation end at the range of the observed values. If values lie beyond, the colour bar ends in an arrow.

    Hollow markers are trials that cannot be used as they are, as in `plot_slice`.

    Parameters
    ----------
    search : Result, Study or Optimizer
        A search in a space, with a model.
    names : sequence of str, optional
        The names of two or more parameters. Default None: the parameters with the largest total effects
        (`plot_importance`), at most `max_params`.
    ax : array of Axes, optional
        The axes to draw on: for two names or a triangle, two axes; for n names, n - 1 rows of n - 1 axes. Default None:
        the axes of a new figure.
    context : mapping, optional
        The context at which the model is shown, if a context was declared.
    log : bool, default False
        Whether the colours of the mean have a logarithmic scale. All observed values must be positive. Means below the
        lowest observed value are shown as this value.
    outcome : str, optional
        The name of the declared outcome to plot. Default None: the objective.
    max_params : int, default 4
        The maximum number of parameters if `names` is not given, at least 2. The title of a new figure names the
        parameters that are not shown.

    Returns
    -------
    array of Axes
        For two names or a triangle, the axes of the mean and of the standard deviation, shape (2,). For n names, the
        axes of the means, shape (n - 1, n - 1). The vertical axis of row i is the parameter i + 1, and the horizontal
        axis of column j is the parameter j. Axes above the diagonal are empty and hidden. An axis is logarithmic if its
        parameter is searched on a logarithmic scale.

    Raises
    ------
    InvalidSetting
        `search` is not a result, study or optimizer, has candidates without names, or does not have a model; or the
        names are unknown, are not two or more different names, or are the only two parts of a mixture; or `max_params`
        is below 2; or the number of axes is wrong; or `log` is True and a value is not positive.
    NotFitted
        No trial has been observed yet.
    InvalidContext
        The context is missing, was not declared, or is out of its space.
    InvalidValue
        The outcome was not declared.
    """
    space = figures.space_of(search, "plot_contour")
    search._fitted("plot_contour", outcome)
    search.predict([], context, outcome=outcome)
    wanted, left_out = _chosen(search, space, names, context, outcome, max_params)
    values = figures.values(search, outcome)
    figures.check_values(values, "plot_contour")
    lowest = min(values)
    figures.value_scale(log, [lowest])
    best = space.flat(search.recommend(context))
    triangle = triangle_of(space, base_point(search, space, best, wanted) or {}, wanted)
    side = 1 if triangle is not None else len(wanted) - 1
    if side == 1:
        made: Any = figures.panels(2, ax, 2, sharey=True)
        cells: dict[Any, Any] = {i: (tuple(wanted), i) for i in range(2)}
    else:
        made = figures.panels(side**2, ax, side, sharex="col", sharey="row").reshape(side, side)
        cells = {(i, j): ((wanted[j], wanted[i + 1]), 0) for i in range(side) for j in range(i + 1)}
        for each in made[np.triu_indices(side, 1)]:
            each.set_axis_off()
            if ax is None:
                each.remove()
    n_points = _N_POINTS if side == 1 else _N_POINTS_OF_A_MATRIX
    groups = dict.fromkeys(group for group, _ in cells.values())
    found = {group: _predicted(search, space, best, group, triangle, n_points, context, outcome) for group in groups}
    axes = [made[cell] for cell in cells]
    f = figures.shortened(outcome or search._source._problem.objective or "f")
    for which, (colours, label) in enumerate((("viridis", f"Mean of {f}"), ("cividis", f"Standard deviation of {f}"))):
        own = {made[cell]: group for cell, (group, each) in cells.items() if each == which}
        if not own:
            continue
        grids = np.concatenate([found[group][:2].reshape(2, -1) for group in own.values()], axis=1)
        low, high, extended = _ends(grids, which, values)
        mapped = _levels(low, high, colours, lowest if log and which == 0 else None)
        for each, group in own.items():
            rows = found[group][[which, 2, 3]]
            if triangle is None:
                _draw_model(each, space, group, n_points, rows, mapped)
                set_parameter(each, "x", space, group[0])
                set_parameter(each, "y", space, group[1])
                if ax is None:
                    each.label_outer()
            else:
                _fill(each, partial(draw_contours, each, triangle.places(triangle.values(n_points))), rows, mapped)
                draw_axes(each, triangle, group)
            _draw_trials(each, search, space, best, group, triangle, outcome)
        scale = _with_digits(high - low, log and which == 0)
        axes[0].figure.colorbar(mapped, ax=list(own), label=label, extend=extended, format=scale)
    if side > 1:
        made[0, 0].figure.align_xlabels(made[-1])
        made[0, 0].figure.align_ylabels(made[:, 0])
    if left_out and ax is None:
        figure = made[-1, 0].figure if side > 1 else made[0].figure
        figure.suptitle(figures.note_left_out(left_out, figure.get_figwidth()), fontsize="small")
    figures.add_legend(axes, below=ax is None)
    figures.tidy(axes)
    drawn: NDArray[np.object_] = made
    return drawn


def _chosen(
    search: Reading, space: Space, names: Any, context: Any, outcome: str | None, max_params: int
) -> tuple[list[str], list[str]]:
    """Return the parameters to plot in the order of the space or of `names`, and those left out by importance."""
    figures.check_max_params(max_params, 2)
    searched = [name for name, dimension in space.items() if dimension.width]
    left_out: list[str] = []
    if names is None and len(searched) < 2:
        raise InvalidSetting(f"plot_contour needs two parameters, and the space has {searched}: use plot_slice")
    if names is None and len(searched) > max_params:
        left_out = figures.by_importance(search, searched, context, outcome, "plot_contour")[max_params:]
    names = [name for name in searched if name not in left_out] if names is None else names
    wanted = figures.checked_names(names, searched)
    if len(wanted) < 2 or len(set(wanted)) < len(wanted):
        raise InvalidSetting(f"names={wanted} is not usable: pass two or more different parameters out of {searched}")
    if any(set(terms) == set(wanted) for terms, _ in equalities(space)) and len(wanted) == 2:
        raise InvalidSetting(f"names={wanted} is not usable: one of them determines the other, so use plot_slice")
    return wanted, left_out


def _predicted(
    search: Reading,
    space: Space,
    best: Any,
    names: Sequence[str],
    triangle: Triangle | None,
    n: int,
    context: Any,
    outcome: str | None,
) -> Any:
    """Return the rows of `predict_at` over two parameters, shape (4, values of y, values of x), or over a triangle."""
    if triangle is None:
        xs, ys = (values_of(space[name], n) for name in names)
        varied: Any = [(x, y) for y in ys for x in xs]
        shape: Any = (4, len(ys), len(xs))
    else:
        varied = triangle.values(n).tolist()
        shape = (4, len(varied))
    base = base_point(search, space, best, names)
    if base is None:
        return np.full(shape, np.nan)
    points = [base | dict(zip(names, each, strict=True)) for each in varied]
    return np.reshape(predict_at(search, space, points, context, names, outcome), shape)


def _ends(predicted: Any, which: int, values: Sequence[float]) -> tuple[float, float, Any]:
    """Return the lowest and highest colour of the mean (`which` = 0) or std, and which ends of the scale are extended.

    `predicted` has the means and stds, shape (2, n); see `plot_contour` for the rule.
    """
    shown = predicted[:, ~np.isnan(predicted[0])]
    low, high = (shown[which].min(), shown[which].max()) if shown.size else (0.0, 1.0)
    known = [*values, *shown[0, shown[1] <= _NEAR * np.std(values)]]
    least, most = (min(known), max(known)) if which == 0 else (0.0, np.ptp(values) or np.inf)
    is_below, is_above = low < least < high, low < most < high
    extended = ("neither", "min", "max", "both")[is_below + 2 * is_above]
    return least if is_below else low, most if is_above else high, extended


def _with_digits(span: float, log: bool) -> Callable[[float, Any], str]:
    """Return a function that writes the numbers of a scale with the digits that its range earns."""
    return lambda level, _: figures.digits(level, abs(level) if log else span)


def _levels(low: float, high: float, colours: str, lowest: float | None) -> Any:
    """Return the map from values to colours. Levels are evenly spaced, in the logarithm if `lowest` is given."""
    from matplotlib import cm, colors, ticker

    if lowest is None:
        levels: Any = ticker.MaxNLocator(_N_LEVELS).tick_values(low, high)
    else:
        levels = np.geomspace(lowest, max(high, 1.01 * lowest), _N_LEVELS)
    return cm.ScalarMappable(colors.BoundaryNorm(levels, 256), colours)


def _draw_model(ax: Axes, space: Space, names: Sequence[str], n: int, rows: Any, mapped: Any) -> None:
    """Draw filled contours and hatches over two parameters; `rows` is as for `_fill`.

    Choices do not have intermediate values, so each choice is drawn separately.
    """
    x, y = names

    def fill(values: Any, **look: Any) -> None:
        for xs, columns in _blocks(space, x, n):
            for ys, rows in _blocks(space, y, n):
                part = np.ma.masked_invalid(values[np.ix_(rows, columns)])
                if part.count():
                    ax.contourf(xs, ys, part, **look)

    if choices_of(space[x]) is not None and choices_of(space[y]) is not None:
        edges = [np.arange(len(values_of(space[name])) + 1) - 0.5 for name in (x, y)]
        ax.pcolormesh(*edges, np.ma.masked_invalid(rows[0]), norm=mapped.norm, cmap=mapped.cmap)
        rows = np.stack([np.full_like(rows[0], np.nan), *rows[1:]])
    _fill(ax, fill, rows, mapped)
    if np.isnan(rows[2]).all():
        ax.annotate("never\nactive\ntogether", (0.5, 0.5), xycoords="axes fraction", ha="center", va="center")


def _fill(ax: Axes, fill: Callable[..., None], rows: Any, mapped: Any) -> None:
    """Draw contours of values, and hatch points at which a bound is probably violated and points that are excluded.

    `rows` has the values, the probability to lie within bounds, and whether constraints allow a point (`predict_at`).
    """
    values, probable, allowed = rows
    # Values beyond the levels have the colours of the ends.
    fill(values, extend="both", levels=mapped.norm.boundaries, norm=mapped.norm, cmap=mapped.cmap)
    excluded = np.where(np.isnan(allowed), np.nan, 1.0 - allowed)
    # The area of excluded points ends where the colours begin: at the last points that are allowed.
    ways = (probable, [-1.0, 0.5], "////", figures.INFEASIBLE), (excluded, [1e-9, 2.0], figures.HATCH, EXCLUDED)
    for own, levels, hatch, label in ways:
        if ((own > levels[0]) & (own < levels[1])).any():
            fill(own, levels=levels, colors="none", hatches=[hatch])
            ax.fill([np.nan], [np.nan], hatch=hatch, label=label, facecolor="none", edgecolor="black", lw=0.5)


def _blocks(space: Space, name: str, n: int) -> list[tuple[Any, list[int]]]:
    """Return the parts of an axis that are drawn separately: for each, the positions and the indices of their
    values."""
    values = values_of(space[name], n)
    if choices_of(space[name]) is None:
        return [(values, list(range(len(values))))]
    return [((i - 0.5, i + 0.5), [i, i]) for i in range(len(values))]


def _draw_trials(
    ax: Axes,
    search: Reading,
    space: Space,
    best: Mapping[str, Any],
    names: Sequence[str],
    triangle: Triangle | None,
    outcome: str | None,
) -> None:
    from matplotlib import patheffects

    def places(points: Sequence[Mapping[str, Any]]) -> Any:
        """Return the places of the points at which all parameters are active; in a triangle, with a sum above 0."""
        shown = [[point[name] for name in names] for point in points if all(name in point for name in names)]
        if triangle is not None:
            shown = [parts for parts in shown if sum(parts) > 0]
            return triangle.places(np.reshape(shown, (-1, 3))).T
        return [positions(space[name], [values[i] for values in shown]) for i, name in enumerate(names)]

    for label, own in figures.by_category(search, outcome).items():
        at = places([space.flat(trial.params_run) for trial, _ in own])
        look = _EDGE | {"markersize": 6}
        if label == "observed":
            look |= {"color": "white", "markersize": 4}
        elif label in figures.HOLLOW:
            # Hollow markers are visible on dark and on light colours.
            outline = patheffects.withStroke(linewidth=3.0, foreground="white")
            look |= {"markeredgecolor": LOOKS[label][0], "path_effects": [outline]}
        if len(at[0]):
            figures.draw_trials(ax, at, label, **look)
    at = places([best])
    if len(at[0]):
        # The star is visible on dark and on light colours.
        look = _EDGE | {"markeredgewidth": 1.0, "zorder": 4}
        ax.plot(*at, "*", color="white", markersize=14, label="recommended", **look)
