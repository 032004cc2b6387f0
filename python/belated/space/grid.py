"""Evenly spaced numbers low, low + step, low + 2 step, …, each the float nearest to the exact sum of these decimals.

Fractions are slow, and the same members are requested repeatedly, so the latest are cached.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction


@functools.lru_cache(maxsize=256)
def _exact(number: float) -> Fraction:
    """Return the decimal that a float is written as: 1/10 for 0.1."""
    from fractions import Fraction  # slow to import, and needed only for steps

    return Fraction(repr(number))


@functools.lru_cache(maxsize=256)
def last_index(low: float, high: float, step: float) -> int:
    """Return the index of the last member that is not beyond high."""
    return int((_exact(high) - _exact(low)) // _exact(step))


@functools.lru_cache(maxsize=4096)
def member(low: float, step: float, index: int) -> float:
    """Return low + index * step."""
    return float(_exact(low) + index * _exact(step))


def nearest_index(low: float, step: float, value: float) -> int:
    """Return the index of the member nearest to a value, as if the members had no end."""
    numerator, denominator = value.as_integer_ratio()
    return round((numerator - denominator * _exact(low)) / (denominator * _exact(step)))
