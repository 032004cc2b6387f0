"""Params that name only some of the parameters; the other parameters are drawn at random from the space."""

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
    """Return the active searched parameters without a value; the given values must be in range."""
    return [name for name in space.active_names(given) if name not in given and space[name].width]


def filled_in(space: Space, params: Any, constraints: Constraints | None, what: str, seed: list[int]) -> Any:
    """Return params with a value for each active name; missing values are drawn uniformly at random.

    The whole point satisfies the constraints, and the given names are active in it. The draw depends only on `seed`.

    Raises
    ------
    InvalidPoint
        A value is out of range, or the search found no point with these values.
    """
    if not isinstance(params, Mapping):
        return params
    given = space.checked_part(params)
    missing = missing_names(space, given)
    if not missing:
        return params
    # All parameters are drawn, also inactive ones, because a given value may make them active.
    free = Space({name: replace(dimension, when=None) for name, dimension in space.items()})

    def completed(values: dict[str, Any]) -> dict[str, Any] | None:
        """Return the params of a draw, or None if a given parameter is inactive in it."""
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
