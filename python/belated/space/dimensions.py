"""The kinds of parameter.

``Real``, ``Integer`` and ``Ordinal`` take one column each, ``Categorical`` one column per choice (one-hot), constants
none. All values except those of a continuous ``Real`` are numbered from 0: the number is the *level*.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from belated.space.choices import Categorical, Ordinal
from belated.space.ranges import Integer, Real

Dimension: TypeAlias = Real | Integer | Ordinal | Categorical

__all__ = ["Categorical", "Dimension", "Integer", "Ordinal", "Real", "choices_of"]


def choices_of(dimension: Dimension) -> Sequence[Any] | None:
    """Return the values that a parameter chooses from, or None if it has a range."""
    if isinstance(dimension, Ordinal):
        return dimension.values
    return dimension.choices if isinstance(dimension, Categorical) else None
