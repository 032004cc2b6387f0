"""Plot of the mean and the standard deviation of the model over two parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from belated._core import InvalidSetting
from belated.optimizers.read_access import ReadAccess
from belated.plotting.figures import ORANGE, RED, Axes, checked_names, is_log, panels, space_of, value_label
from belated.plotting.slices import predict_at, values_of
from belated.space.dimensions import choices_of

_N_POINTS = 41  # in each direction

_LOOKS: dict[str, dict[str, Any]] = {
    "observed": {"marker": "o", "color": "white", "markeredgecolor": "black", "markersize": 4},
    "pending": {"marker": "X", "color": ORANGE, "markeredgecolor": "black", "markersize": 8},
}
_RECOMMENDED: dict[str, Any] = {"marker": "*", "color": RED, "markeredgecolor": "white", "markersize": 12}


def plot_contour(
    search: ReadAccess,
    names: Sequence[str] | None = None,
    context: Mapping[str, Any] | None = None,
    axes: Any = None,
) -> list[Axes]:
    """Plot the model's mean and standard deviation of f over two parameters.

    All other parameters have the values of the recommended point, which is shown as a star. White dots are observed
    trials, and orange crosses are pending trials. In these trials, the parameters that are not shown had different
    values. The mean at a dot may therefore differ from the observed value.

    Parameters
    ----------
    search : Result, Study or Optimizer
        A search in a space, with a model.
    names : sequence of two str, optional
        The names of two `Real` or `Integer` parameters. Default None: the first two such parameters that are active at
        the recommended point.
    context : mapping, optional
        The context at which the model is shown, if a context was declared.
    axes : array of two Axes, optional
        The axes to draw on. Default None: the axes of a new figure.

    Returns
    -------
    list of two Axes
        The axes of the mean and of the standard deviation. An axis is logarithmic if its parameter is searched on a
        logarithmic scale. Points at which one of the two parameters is inactive are left blank.

    Raises
    ------
    InvalidSetting
        `search` is not a result, study or optimizer, has candidates, or does not have a model; or the names are
        unknown, are names of choices, or are not two different names.
    NotFitted
        No trial has been observed yet.
    InvalidContext
        The context is missing, was not declared, or is out of its space.
    """
    space = space_of(search, "plot_contour")
    search.predict([], context)
    best = search.recommend(context)
    numeric = [name for name, dimension in space.items() if choices_of(dimension) is None]
    wanted = [name for name in numeric if name in best][:2] if names is None else checked_names(names, numeric, "names")
    if names is None and len(wanted) < 2:
        raise InvalidSetting(
            f"plot_contour needs two parameters of numbers, and at the recommended point there are {wanted}: pass "
            "their names, or use plot_slice"
        )
    if len(set(wanted)) != 2 or len(wanted) != 2:
        raise InvalidSetting(f"names={wanted} is not usable: pass two different parameters out of {numeric}")
    x, y = wanted
    xs, ys = (values_of(space[name], _N_POINTS) for name in wanted)
    points = [best | {x: a, y: b} for b in ys for a in xs]
    made = panels(2, axes, columns=2)
    titles = (f"Posterior mean: {value_label(search).lower()}", "Posterior standard deviation")
    for ax, grid, title, colours in zip(
        made, predict_at(search, space, points, context), titles, ("viridis", "cividis"), strict=True
    ):
        shaped = np.ma.masked_invalid(grid.reshape(len(ys), len(xs)))
        mesh = ax.pcolormesh(xs, ys, shaped, shading="nearest", cmap=colours, rasterized=True)
        ax.figure.colorbar(mesh, ax=ax)
        for state, look in _LOOKS.items():
            found = [trial.params_run for trial in search.trials if trial.state == state]
            found = [params for params in found if x in params and y in params]
            ax.plot([p[x] for p in found], [p[y] for p in found], linestyle="none", label=state, **look)
        if x in best and y in best:
            ax.plot([best[x]], [best[y]], linestyle="none", label="recommended", **_RECOMMENDED)
        ax.set(xlabel=x, ylabel=y, title=title)
        ax.set_xscale("log" if is_log(space, x) else "linear")
        ax.set_yscale("log" if is_log(space, y) else "linear")
    made[0].legend(fontsize="small")
    return made
