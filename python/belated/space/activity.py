"""Which parameters are active, given the values of the others; and which values a parameter chooses from."""

from collections.abc import Mapping, Sequence
from typing import Any

from belated.space.dimensions import Categorical, Dimension, Ordinal
from belated.space.space import Space


def choices_of(dimension: Dimension) -> Sequence[Any] | None:
    """The values that a parameter chooses from; None for one with a range."""
    if isinstance(dimension, Ordinal):
        return dimension.values
    return dimension.choices if isinstance(dimension, Categorical) else None


def active_values(space: Space, values: dict[str, Any]) -> dict[str, Any]:
    """The values of parameters whose conditions hold among the others'."""
    while True:
        kept = {name: value for name, value in values.items() if _holds(space[name].when, values)}
        if len(kept) == len(values):
            return kept
        values = kept


def is_complete(space: Space, values: Mapping[str, Any]) -> bool:
    """Whether every parameter has a value that should have one, given the others."""
    return all(name in values or not _holds(space[name].when, values) for name in space)


def _holds(when: Mapping[str, Any] | None, values: Mapping[str, Any]) -> bool:
    return when is None or all(name in values and values[name] in allowed for name, allowed in when.items())
