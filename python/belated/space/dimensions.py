"""The kinds of parameter.

``Real``, ``Integer`` and ``Ordinal`` have one encoded column each. ``Categorical`` has one column per choice (one-hot).
Constants do not have columns. The values of every parameter except a continuous ``Real`` are numbered from 0; this
number is the *level* of a value.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from belated.space.choices import Categorical, Ordinal
from belated.space.ranges import Integer, Real

Dimension: TypeAlias = Real | Integer | Ordinal | Categorical

__all__ = ["Categorical", "Dimension", "Integer", "Ordinal", "Real", "choices_of"]


def choices_of(dimension: Dimension) -> Sequence[Any] | None:
    """Return the list of values of a parameter, or None if the parameter is a range."""
    return None if isinstance(dimension, (Real, Integer)) else dimension.options
