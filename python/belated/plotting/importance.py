"""Plot of the importance of each parameter according to the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from belated.optimizers.read_access import ReadAccess
from belated.plotting.figures import BLUE, Axes, axes_for, finished, shortened, space_of
from belated.space.dimensions import Categorical, Dimension
from belated.space.space import Space

Array = NDArray[np.float64]

# The maximum number of rows of a draw. All parameters use the same rows. The time of a draw is cubic in this number.
_MAX_ROWS = 1200
_MAX_POINTS = 300
_N_DRAWS = 100


def plot_importance(search: ReadAccess, ax: Axes | None = None, *, context: Mapping[str, Any] | None = None) -> Axes:
    """Plot the importance of each parameter: its total effect on the variance of f over the space.

    The total effect of parameter i is T_i = E[Var(f | all other parameters)] / Var(f), where params are drawn uniformly
    from the space (on the scales of the parameters). T_i is 0 if f does not depend on the parameter. The sum of the
    effects exceeds 1 if parameters interact. The estimator is T_i = mean (f(a) - f(a with parameter i of b))² / (2 Var
    f(a)) over evenly spread points a and b (Jansen 1999; Saltelli et al. 2010, table 2f). T_i is computed for each of
    100 draws of f from the posterior (Le Gratiet, Cannamela and Iooss 2014). A bar and a number show the median of T_i
    over the draws, and a line shows the interval from the 5 % to the 95 % quantile of T_i. A long line means that the
    model is too uncertain to show the importance. A parameter does not have an effect at points where it is inactive.

    Parameters
    ----------
    search : Result, Study or Optimizer
        A search in a space, with a model.
    ax : matplotlib Axes, optional
        The axes to draw on. Default None: the axes of a new figure.
    context : mapping, optional
        The context at which the model is used, if a context was declared.

    Returns
    -------
    Axes

    Raises
    ------
    InvalidSetting
        `search` is not a result, study or optimizer, has candidates, or does not have a model.
    NotFitted
        No trial has been observed yet.
    InvalidContext
        The context is missing, was not declared, or is out of its space.
    """
    space = space_of(search, "plot_importance")
    low, middle, high = np.quantile(total_effects(search, space, context), [0.05, 0.5, 0.95], axis=0)
    names = np.array(list(space), dtype=object)
    # Leave out constants, and draw the most important parameter on top.
    order = [i for i in np.argsort(middle, kind="stable") if space[names[i]].width]
    ax = axes_for(ax, len(order))
    error = np.array([middle - low, high - middle])[:, order]
    ax.barh(range(len(order)), middle[order], xerr=error, color=BLUE, ecolor="black", capsize=3, height=0.6)
    ax.set_yticks(range(len(order)), [shortened(names[i], 28) for i in order])
    for y, i in enumerate(order):
        ax.annotate(f"{middle[i]:.2f}", (high[i], y), (5, 0), textcoords="offset points", va="center", fontsize="small")
    label = "Share of the variance of f (total effect)"
    # The figure at the end of the longest line needs space to its right.
    return finished(ax, legend=False, axis="x", xlabel=label, xlim=(0, max(0.01, 1.15 * high.max())))


def total_effects(search: ReadAccess, space: Space, context: Mapping[str, Any] | None) -> Array:
    """Return the total effect of each parameter for each draw, shape (draws, d)."""
    model, *_ = search._fitted("plot_importance")
    d = len(space)
    n = max(2, min(_MAX_POINTS, _MAX_ROWS // (d + 1)))
    a, b = paired_points(n, d, np.random.default_rng(0))
    blocks = [a]
    for i in range(d):
        mixed = a.copy()
        mixed[:, i] = b[:, i]
        blocks.append(mixed)
    rows = np.array([space.encode(_params(space, u)) for u in np.concatenate(blocks)])
    rows = search._source._problem.with_context(rows, context)
    # Merge equal rows, which occur if points differ only in inactive parameters, for example.
    different, place = np.unique(rows, axis=0, return_inverse=True)
    draws = model.sample(different, _N_DRAWS, 0)[:, place.ravel()].reshape(_N_DRAWS, d + 1, n)
    variance = draws[:, 0].var(axis=1)
    squares = ((draws[:, :1] - draws[:, 1:]) ** 2).mean(axis=2)
    return np.where(variance[:, None] > 0, squares / (2 * np.where(variance > 0, variance, 1.0)[:, None]), 0.0)


def paired_points(n: int, d: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return a and b, each with n points in the unit cube of d dimensions.

    In each dimension, the pairs (a_i, b_i) are the points ((k + 1/2)/n, 1/2 + k(√5 - 1)/2 mod 1) of a lattice in the
    unit square, in a random order. Therefore a is a Latin hypercube, and b is nearly a Latin hypercube.
    """
    k = np.arange(n)
    order = rng.permuted(np.tile(k, (d, 1)), axis=1).T
    return (order + 0.5) / n, (0.5 + order * (np.sqrt(5) - 1) / 2) % 1.0


def _params(space: Space, u: Array) -> dict[str, Any]:
    """Return the params at a point of the unit cube, which has one dimension for each name."""
    values = {name: _value(dimension, share) for (name, dimension), share in zip(space.items(), u, strict=True)}
    return space.active_part(values)


def _value(dimension: Dimension, share: float) -> Any:
    if isinstance(dimension, Categorical):
        return dimension.choices[int(share * len(dimension.choices))]
    return dimension.decode(np.array([share]))
