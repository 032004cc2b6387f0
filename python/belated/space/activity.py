"""The conditions between parameters: which parameters are active, and which values a parameter chooses from."""

from collections.abc import Mapping, Sequence
from typing import Any

from belated.space.dimensions import Categorical, Dimension, Ordinal
from belated.space.space import Space


def choices_of(dimension: Dimension) -> Sequence[Any] | None:
    """Return the values that a parameter chooses from, or None if it has a range."""
    if isinstance(dimension, Ordinal):
        return dimension.values
    return dimension.choices if isinstance(dimension, Categorical) else None


def is_active(space: Space, name: str, values: Mapping[str, Any]) -> bool:
    """Whether the conditions of a parameter hold among these values."""
    when = space[name].when
    return when is None or all(parent in values and values[parent] in allowed for parent, allowed in when.items())


def active_values(space: Space, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the active parameters, given the values of all that they may depend on."""
    while True:
        kept = {name: value for name, value in values.items() if is_active(space, name, values)}
        if len(kept) == len(values):
            return kept
        values = kept


def is_complete(space: Space, values: Mapping[str, Any]) -> bool:
    """Whether every parameter that is active, given the others, has a value."""
    return all(name in values or not is_active(space, name, values) for name in space)
