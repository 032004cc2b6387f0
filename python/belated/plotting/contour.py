"""Plot of the mean and the standard deviation of the model over pairs of parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from belated._core import InvalidSetting
from belated.optimizers.trials import Reading
from belated.plotting import figures
from belated.plotting.figures import LOOKS, Axes
from belated.plotting.slices import base_point, positions, predict_at, set_parameter, values_of
from belated.space.dimensions import choices_of
from belated.space.space import Space

_N_POINTS, _N_POINTS_OF_A_MATRIX = 41, 25  # in each direction
_N_LEVELS = 30

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
    are hatched.

    Parameters
    ----------
    search : Result, Study or Optimizer
        A search in a space, with a model.
    names : sequence of str, optional
        The names of two or more parameters. Default None: the parameters with the largest total effects
        (`plot_importance`), at most `max_params`.
    ax : array of Axes, optional
        The axes to draw on: for two names, two axes; for n names, n - 1 rows of n - 1 axes. Default None: the axes of a
        new figure.
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
        For two names, the axes of the mean and of the standard deviation, shape (2,). For n names, the axes of the
        means, shape (n - 1, n - 1). The vertical axis of row i is the parameter i + 1, and the horizontal axis of
        column j is the parameter j. Axes above the diagonal are empty and hidden. An axis is logarithmic if its
        parameter is searched on a logarithmic scale.

    Raises
    ------
    InvalidSetting
        `search` is not a result, study or optimizer, has candidates without names, or does not have a model; or the
        names are unknown, or are not two or more different names; or `max_params` is below 2; or the number of axes is
        wrong; or `log` is True and a value is not positive.
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
    side = len(wanted) - 1
    if side == 1:
        made = figures.panels(2, ax, 2, sharey=True)
        cells: dict[Any, Any] = {i: (*wanted, i) for i in range(2)}
    else:
        made = figures.panels(side**2, ax, side, sharex="col", sharey="row").reshape(side, side)
        cells = {(i, j): (wanted[j], wanted[i + 1], 0) for i in range(side) for j in range(i + 1)}
        for each in made[np.triu_indices(side, 1)]:
            each.set_axis_off()
            if ax is None:
                each.remove()
    best = space.flat(search.recommend(context))
    pairs = dict.fromkeys((x, y) for x, y, _ in cells.values())
    n_points = _N_POINTS if side == 1 else _N_POINTS_OF_A_MATRIX
    found = {pair: _predicted(search, space, best, pair, n_points, context, outcome) for pair in pairs}
    axes = [made[cell] for cell in cells]
    f = figures.shortened(outcome or search._source._problem.objective or "f")
    for which, (colours, label) in enumerate((("viridis", f"Mean of {f}"), ("cividis", f"Standard deviation of {f}"))):
        own = {made[cell]: (x, y) for cell, (x, y, each) in cells.items() if each == which}
        if not own:
            continue
        grids = [found[pair][which] for pair in own.values()]
        mapped = _levels(np.concatenate(grids, axis=None), colours, lowest if log and which == 0 else None)
        for (each, (x, y)), values in zip(own.items(), grids, strict=True):
            _draw_model(each, space, x, y, n_points, values, found[x, y][2], mapped)
            _draw_trials(each, search, space, best, x, y, outcome)
            set_parameter(each, "x", space, x)
            set_parameter(each, "y", space, y)
            if ax is None:
                each.label_outer()
        axes[0].figure.colorbar(mapped, ax=list(own), label=label, format="%.3g")
    if side > 1:
        made[0, 0].figure.align_xlabels(made[-1])
        made[0, 0].figure.align_ylabels(made[:, 0])
    if left_out and ax is None:
        figure = made[-1, 0].figure if side > 1 else made[0].figure
        figure.suptitle(figures.note_left_out(left_out, figure.get_figwidth()), fontsize="small")
    figures.add_legend(axes, below=ax is None)
    figures.tidy(axes)
    return made


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
    return wanted, left_out


def _predicted(
    search: Reading, space: Space, best: Any, names: Sequence[str], n: int, context: Any, outcome: str | None
) -> Any:
    """Return the rows of `predict_at` over two parameters, shape (3, values of y, values of x)."""
    xs, ys = (values_of(space[name], n) for name in names)
    base = base_point(search, space, best, names)
    if base is None:
        return np.full((3, len(ys), len(xs)), np.nan)
    points = [base | dict(zip(names, (x, y), strict=True)) for y in ys for x in xs]
    return np.reshape(predict_at(search, space, points, context, names, outcome), (3, len(ys), len(xs)))


def _levels(values: Any, colours: str, lowest: float | None) -> Any:
    """Return the map from values to colours. Levels are evenly spaced, in the logarithm if `lowest` is given."""
    from matplotlib import cm, colors, ticker

    shown = values[~np.isnan(values)]
    low, high = (shown.min(), shown.max()) if shown.size else (0.0, 1.0)
    if lowest is None:
        levels = ticker.MaxNLocator(_N_LEVELS).tick_values(low, high)
    else:
        levels = np.geomspace(lowest, max(high, 1.01 * lowest), _N_LEVELS).tolist()
    return cm.ScalarMappable(colors.BoundaryNorm(levels, 256), colours)


def _draw_model(ax: Axes, space: Space, x: str, y: str, n: int, values: Any, probable: Any, mapped: Any) -> None:
    """Draw filled contours, and hatch points at which a bound is probably violated.

    Choices do not have intermediate values, so each choice is drawn separately.
    """
    levels = mapped.norm.boundaries
    clipped = np.ma.masked_invalid(np.clip(values, levels[0], levels[-1]))
    are_listed = all(choices_of(space[name]) is not None for name in (x, y))
    if are_listed:
        edges = [np.arange(len(values_of(space[name])) + 1) - 0.5 for name in (x, y)]
        ax.pcolormesh(*edges, clipped, norm=mapped.norm, cmap=mapped.cmap)
    for xs, columns in _blocks(space, x, n):
        for ys, rows in _blocks(space, y, n):
            part = clipped[np.ix_(rows, columns)]
            if part.count() and not are_listed:
                ax.contourf(xs, ys, part, levels=levels, norm=mapped.norm, cmap=mapped.cmap)
            below = np.ma.masked_invalid(probable[np.ix_(rows, columns)])
            if below.count() and below.min() < 0.5:
                ax.contourf(xs, ys, below, levels=[-1.0, 0.5], colors="none", hatches=["////"])
    if (probable < 0.5).any():
        ax.fill([np.nan], [np.nan], facecolor="none", edgecolor="black", hatch="////", label=figures.INFEASIBLE)
    if np.isnan(values).all():
        ax.annotate("never\nactive\ntogether", (0.5, 0.5), xycoords="axes fraction", ha="center", va="center")


def _blocks(space: Space, name: str, n: int) -> list[tuple[Any, list[int]]]:
    """Return the parts of an axis that are drawn separately: for each, the positions and the indices of their
    values."""
    values = values_of(space[name], n)
    if choices_of(space[name]) is None:
        return [(values, list(range(len(values))))]
    return [((i - 0.5, i + 0.5), [i, i]) for i in range(len(values))]


def _draw_trials(
    ax: Axes, search: Reading, space: Space, best: Mapping[str, Any], x: str, y: str, outcome: str | None
) -> None:
    results = figures.results(search, outcome)
    for state in ("observed", "failed", "stopped", "pending"):
        found = [space.flat(trial.params_run) for trial, own, _ in results if own == state]
        found = [params for params in found if x in params and y in params]
        if found:
            at = [positions(space[name], [params[name] for params in found]) for name in (x, y)]
            colour, marker = LOOKS[state]
            colour = "white" if state == "observed" else colour
            ax.plot(*at, marker, color=colour, markersize=4 if state == "observed" else 6, label=state, **_EDGE)
    if x in best and y in best:
        at = [positions(space[name], [best[name]]) for name in (x, y)]
        # The star is visible on dark and on light colours.
        look = _EDGE | {"markeredgewidth": 1.0, "zorder": 4}
        ax.plot(*at, "*", color="white", markersize=14, label="recommended", **look)
