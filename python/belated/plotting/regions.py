"""The part of a space that constraints allow, and points that keep the sum of a mixture while some of its parts change.

An *equality* is a constraint Σ a_i p_i = c, such as a `Mixture`. S is the set of the parameters that a plot varies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from belated._core import InvalidPoint
from belated.optimizers.trials import Reading
from belated.space.dimensions import Integer, Real
from belated.space.space import Space

#: The legend entry of points that constraints do not allow.
EXCLUDED = "excluded by constraints"

# By this share of its range, a parameter may exceed a bound, because sums of parts are rounded.
_ROUNDING = 1e-9


def equalities(space: Space) -> Iterator[tuple[dict[str, float], float]]:
    """Return the coefficients a by name, and the sum c, of each equality."""
    for terms, low, high, _, _, counts in space.linear:
        if low is not None and low == high and not counts:
            yield dict(terms), high


def range_of(dimension: Any) -> tuple[float, float]:
    """Return the bounds of a `Real` or an `Integer`."""
    return dimension.low, dimension.high


def completed(space: Space, point: Mapping[str, Any], varied: Collection[str]) -> dict[str, Any]:
    """Return a point at which the equalities hold, after the parameters `varied` were changed.

    p_i ← t p_i for the terms i ∉ S, with t = (c - Σ_{j∈S} a_j p_j) / Σ_{i∉S} a_i p_i, so that their proportions remain
    (Cox 1971). If the denominator is 0, they get equal shares of the numerator. `point` has the active parameters.
    """
    found = dict(point)
    for terms, total in equalities(space):
        others = [name for name in terms if name in found and name not in varied]
        if not others or len(others) == len(terms):
            continue
        rest = total - sum(terms[name] * found[name] for name in terms if name in found and name not in others)
        present = sum(terms[name] * found[name] for name in others)
        for name in others:
            share = found[name] / present if present else 1 / (len(others) * terms[name])
            low, high = range_of(space[name])
            within = min(max(share * rest, low), high)
            is_rounded = abs(share * rest - within) <= _ROUNDING * (high - low)
            found[name] = within if is_rounded else share * rest
    return found


def allowed(search: Reading, space: Space, points: Sequence[Mapping[str, Any]]) -> NDArray[np.bool_]:
    """Return whether each point, by flat name, lies within the bounds of the parameters and satisfies the constraints.

    Steps do not count: a mixture in steps of 0.05 is drawn as a line.
    """
    constraints = search._source._constraints
    summed = {name for each in space.linear for name, _ in each[0]}
    ranges = {name: range_of(space[name]) for name in summed if isinstance(space[name], (Real, Integer))}

    def is_allowed(point: Mapping[str, Any]) -> bool:
        if any(name in point and not low <= point[name] <= high for name, (low, high) in ranges.items()):
            return False
        if space.linear:
            try:
                space.core.check_linear(space.locate(point, measured=True))
            except InvalidPoint:
                return False
        return constraints is None or constraints.first_violated(space.nested(dict(point))) is None

    return np.array([is_allowed(point) for point in points], dtype=np.bool_)
