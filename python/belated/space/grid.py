"""Evenly spaced numbers: low, low + step, low + 2 step, …, each the float nearest to what these decimals add up to.

Fractions are slow, and the same members are asked for again and again: the latest are kept.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction


@functools.lru_cache(maxsize=256)
def _exact(number: float) -> Fraction:
    """The decimal that a float is written as: 1/10 for 0.1."""
    from fractions import Fraction  # slow to import, and needed for steps alone

    return Fraction(repr(number))


@functools.lru_cache(maxsize=256)
def last_index(low: float, high: float, step: float) -> int:
    """The index of the last member that is not beyond high."""
    return int((_exact(high) - _exact(low)) // _exact(step))


@functools.lru_cache(maxsize=4096)
def member(low: float, step: float, index: int) -> float:
    """low + index * step."""
    return float(_exact(low) + index * _exact(step))


def nearest_index(low: float, step: float, value: float) -> int:
    """The index of the member that is nearest to a value, were there no end to them."""
    numerator, denominator = value.as_integer_ratio()
    return round((numerator - denominator * _exact(low)) / (denominator * _exact(step)))
