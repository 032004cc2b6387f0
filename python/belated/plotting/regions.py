"""The part of a space that constraints allow, and points that keep the sum of a mixture while some of its parts change.

An *equality* is a constraint Σ a_i p_i = c, such as a `Mixture`. S is the set of the parameters that a plot varies.
"""

from __future__ import annotations

import contextlib
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


def equalities(space: Space) -> Iterator[tuple[dict[str, float], float]]:
    """Return the coefficients a by name, and the sum c, of each equality."""
    for terms, low, high, _, _, counts in space.linear:
        if low is not None and low == high and not counts:
            yield dict(terms), high


def completed(space: Space, point: Mapping[str, Any], varied: Collection[str]) -> dict[str, Any]:
    """Return a point at which the equalities hold, after the parameters `varied` were changed.

    p_i ← t p_i for the terms i ∉ S, with t = (c - Σ_{j∈S} a_j p_j) / Σ_{i∉S} a_i p_i, so that their proportions remain
    (Cox 1971). A term that would exceed a bound stays at this bound, and t is computed again for the others. If the
    denominator is 0, they get equal shares of the numerator. `point` has the active parameters.
    """
    found, dimensions = dict(point), dict[str, Any](space)
    for terms, total in equalities(space):
        free = [name for name in terms if name in found and name not in varied]
        while free and any(name in varied for name in terms):
            rest = total - sum(a * found[name] for name, a in terms.items() if name in found and name not in free)
            present = sum(terms[name] * point[name] for name in free)
            for name in free:
                found[name] = rest * (point[name] / present if present else 1 / (len(free) * terms[name]))
            within = {name: min(max(found[name], dimensions[name].low), dimensions[name].high) for name in free}
            kept = [name for name in free if within[name] == found[name]]
            found |= within
            free = [] if len(kept) == len(free) else kept
    return found


def allowed(search: Reading, space: Space, points: Sequence[Mapping[str, Any]]) -> NDArray[np.bool_]:
    """Return whether each point, by flat name, lies within the bounds of the parameters and satisfies the constraints.

    Steps do not count: a mixture in steps of 0.05 is drawn as a line.
    """
    constraints = search._source._constraints
    summed = {name for each in space.linear for name, _ in each[0]}
    ranged: dict[str, Any] = {name: space[name] for name in summed if isinstance(space[name], (Real, Integer))}
    found = np.ones(len(points), dtype=np.bool_)
    for i, point in enumerate(points):
        is_in_range = all(each.low <= point.get(name, each.low) <= each.high for name, each in ranged.items())
        with contextlib.suppress(InvalidPoint):
            found[i] = False
            if space.linear and is_in_range:
                space.core.check_linear(space.locate(point, measured=True))
            found[i] = is_in_range
        if found[i] and constraints is not None:
            found[i] = constraints.first_violated(space.nested(dict(point))) is None
    return found
