"""Completion of params in which names are missing: the missing values are drawn at random from the space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from belated import _core
from belated._core import InvalidPoint, InvalidSpace
from belated.optimizers.constraints import Constraints
from belated.short_repr import short_repr
from belated.space.space import Space


def missing_names(space: Space, given: Mapping[str, Any]) -> list[str]:
    """Return the names of active parameters that are missing from `given`, except constants.

    The given values must be in range.
    """
    return [name for name in space.active_names(given) if name not in given and space[name].width]


def filled_in(space: Space, params: Any, constraints: Constraints | None, what: str, seed: list[int]) -> Any:
    """Return params with a value for each active name; missing values are drawn uniformly at random.

    The completed point satisfies the constraints, and all given names are active at this point. The draw depends only
    on `seed`.

    Raises
    ------
    InvalidPoint
        A value is out of range, or the search did not find a point with these values.
    """
    if not isinstance(params, Mapping):
        return params
    given = space.checked_part(params)
    missing = missing_names(space, given)
    if not missing:
        return params
    # Draw all parameters, without their conditions: a given value may make a parameter active.
    free = Space({name: replace(dimension, when=None) for name, dimension in space.items()})

    def completed(values: dict[str, Any]) -> dict[str, Any] | None:
        """Return the given values completed by a draw, or None if a given parameter is inactive at this point."""
        values = values | given
        active = space.active_part(values)
        return active if given.keys() <= active.keys() else None

    def feasible(points: list[list[float | None]]) -> Any:
        found = [completed(free.named(numbers)) for numbers in points]
        return np.array(
            [each is not None and (constraints is None or constraints.first_violated(each) is None) for each in found],
            dtype=np.bool_,
        )

    number = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
    core = _core.Optimizer(_core.Problem(free.core), number, '{"kind": "RandomSearch"}')
    try:
        core.suggest(1, None, None, feasible)
    except InvalidSpace:
        raise InvalidPoint(
            f"{what}={short_repr(given)} misses {missing}, and no values were found for these with which the given "
            "names are active and the constraints hold: pass them as well"
        ) from None
    return completed(free.params_of(core.trial(0)))
