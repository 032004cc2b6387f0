"""The importance of each parameter according to the model: its total effect on the variance of f over the space."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from belated._core import GaussianProcess
from belated.optimizers.log import Array
from belated.space.candidates import NamedCandidates
from belated.space.dimensions import Categorical, Dimension
from belated.space.space import Space

# The maximum number of rows of a draw. All parameters use the same rows. The time of a draw is cubic in this number.
_MAX_ROWS = 1200
_MAX_POINTS = 300
_N_DRAWS = 100
# The time to compare evidences is cubic in the number of values. With more values, lengthscales hardly fit the noise.
_MAX_COMPARED = 1000
_LOG_RATIO = math.log(0.95 / 0.05)


def total_effects(space: Space, draw: Callable[[Array, int], Array]) -> tuple[list[str], Array]:
    """Return the names of all parameters except constants, and their total effects by draw, shape (draws, names).

    `draw` takes encoded points and a number, and returns this number of draws of f at the points.
    """
    n = max(2, min(_MAX_POINTS, _MAX_ROWS // (len(space) + 1)))
    # Merge equal rows, which occur if points differ only in inactive parameters, for example.
    different, place = np.unique(_rows(space, n), axis=0, return_inverse=True)
    draws = draw(different, _N_DRAWS)[:, place.ravel()].reshape(_N_DRAWS, -1, n)
    effects = shares(draws)
    searched = [i for i, name in enumerate(space) if name in space.searched]
    return [list(space)[i] for i in searched], effects[:, searched]


def shares(values: Array) -> Array:
    """Return total effects, shape (draws, d), from f at points a, then at a with parameter i of b; (draws, d + 1, n).

    By the law of total variance, Var f = E[Var(f | others)] + Var(E[f | others]), where the first part is the numerator
    of a total effect. Therefore the estimate of Var f, from all values, is at least the estimate of each first part.
    """
    parts = ((values[:, :1] - values[:, 1:]) ** 2).mean(axis=2) / 2
    variance = np.maximum(values.var(axis=(1, 2)), parts.max(axis=1))[:, None]
    return np.where(variance > 0, parts / np.where(variance > 0, variance, 1.0), 0.0)


def can_be_zero(space: Space, model: GaussianProcess) -> NDArray[np.bool_]:
    """Return whether each parameter that is not a constant may be without effect, as booleans; `model` is changed.

    The draws of `total_effects` have the fitted lengthscales, and a parameter without effect often has a lengthscale
    that fits the noise. The evidence p(y) of the model is therefore compared with the evidence without the parameter,
    at the same hyperparameters. If both models are equally probable before the data, the parameter is without effect
    with probability 1 / (1 + ratio of the evidences). At 5 % or more, the 5 % quantile of the total effect is 0.
    """
    x, y = model.x[: model.n_observed], model.y[: model.n_observed]
    n_params = len(space.searched)
    # Linear functions of all parameters but one have n_params coefficients, and can have any n_params values.
    if len(y) <= n_params or len(y) > _MAX_COMPARED:
        return np.full(n_params, len(y) <= n_params)

    def log_evidence(rows: Array) -> float:
        model.fit(rows, y)
        return model.log_marginal_likelihood()

    found, start, full = [], 0, log_evidence(x)
    for name, dimension in space.items():
        end = start + _n_columns(space, dimension)
        if name in space.searched:
            without = x.copy()
            without[:, start:end] = without[0, start:end]
            found.append(full - log_evidence(without) <= _LOG_RATIO)
        start = end
    return np.array(found)


def _n_columns(space: Space, dimension: Dimension) -> int:
    """Return the number of columns of the model's rows. In a table of candidates, constants also have columns."""
    if dimension.width or not isinstance(space, NamedCandidates):
        return dimension.width
    return len(dimension.choices) if isinstance(dimension, Categorical) else 1


def _rows(space: Space, n: int) -> Array:
    """Return n points, followed for each parameter by the same points with other values of this parameter."""
    d = len(space)
    a, b = paired_points(n, d, np.random.default_rng(0))
    blocks = [a]
    for i in range(d):
        mixed = a.copy()
        mixed[:, i] = b[:, i]
        blocks.append(mixed)
    return np.array([space.encode(_params(space, u)) for u in np.concatenate(blocks)])


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
    if isinstance(space, NamedCandidates):
        return space.quantiles(u)
    values = {name: _value(dimension, share) for (name, dimension), share in zip(space.items(), u, strict=True)}
    return space.active_part(values)


def _value(dimension: Dimension, share: float) -> Any:
    if dimension.offered is not None:
        return dimension.offered[int(share * len(dimension.offered))]
    if isinstance(dimension, Categorical):
        return dimension.choices[int(share * len(dimension.choices))]
    return dimension.decode(np.array([share]))
