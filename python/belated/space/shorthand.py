"""Conversion of a user's space to dimensions, with errors that show the correct form.

A warning is given for a shorthand that has a different meaning in other packages.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from belated._core import InvalidSpace
from belated.short_repr import short_repr
from belated.space.arguments import copied, one_line, real_number, whole_number
from belated.space.dimensions import Categorical, Dimension, Integer, Parameter, Real
from belated.space.nested import Nesting, leaves
from belated.warn import warn


def read(given: Any, argument: str) -> tuple[dict[str, Dimension], Nesting | None]:
    """Return a dict of name → dimension for a space, and the nesting of its params, or None if it is flat.

    `argument` is the name of the argument, for messages.

    Raises
    ------
    InvalidSpace
        The space is empty, a name is not a string or occurs twice, or an entry is not a dimension or a shorthand.

    Warns
    -----
    BelatedWarning
        An entry is a list of two increasing numbers, which other packages interpret as a range.
    """
    dimensions: dict[str, Dimension] = {}
    warnings = []
    found = leaves(_pairs(given, argument), argument)
    for leaf in found:
        name, each = leaf.name, leaf.given
        if name in dimensions:
            raise InvalidSpace(f"{argument} has the name {name!r} twice: give each name once")
        dimensions[name] = leaf.conditional(_dimension(each, f"{argument}[{name!r}]"))
        if isinstance(each, list) and _is_bounds(each) and each[0] < each[1]:
            warnings.append(
                f"{argument}[{name!r}]={each!r} is a choice of two values, not a range: write ({each[0]!r}, "
                f"{each[1]!r}) for the range, or bl.Categorical({each!r}) for the choice"
            )
    if not dimensions:
        raise InvalidSpace(f"{argument} is empty: give at least one dimension")
    for message in warnings:
        warn(message)
    return dimensions, Nesting.of(found)


def _pairs(given: Any, argument: str) -> list[tuple[Any, Any]]:
    """Return (name, dimension) pairs from a mapping or from a list of pairs.

    A list of bounds (low, high) gets the names x0, x1, ….
    """
    if hasattr(given, "shape"):
        raise InvalidSpace(
            f"{argument} is an array: pass a dict of name → dimension, or bounds as [(low, high), …]; points are "
            "candidates="
        )
    if isinstance(given, Mapping):
        return list(given.items())
    unusable = InvalidSpace(
        f"{argument}={short_repr(given)} is not usable: pass a dict of name → dimension, as {{'x': (0.0, 1.0)}}, or "
        "pairs of bounds, as [(0.0, 1.0), …]"
    )
    try:
        entries = list(given)
    except TypeError:
        raise unusable from None
    if entries and all(_is_bounds(entry) for entry in entries):
        if all(isinstance(entry, tuple) for entry in entries):
            return [(f"x{i}", entry) for i, entry in enumerate(entries)]
        raise InvalidSpace(f"{argument}={short_repr(given)} has lists for bounds: write tuples, as [(0.0, 1.0), …]")
    if any(isinstance(entry, str) for entry in entries):
        raise unusable
    try:
        return [(name, each) for name, each in entries]
    except (TypeError, ValueError):
        raise unusable from None


def _is_bounds(entry: Any) -> bool:
    return (
        isinstance(entry, (tuple, list)) and len(entry) == 2 and all(real_number(bound) is not None for bound in entry)
    )


def _dimension(given: Any, what: str) -> Dimension:
    """Return the given dimension, or the dimension that a shorthand denotes."""
    if isinstance(given, Parameter):
        return given  # type: ignore[return-value]
    try:
        if isinstance(given, list):
            return Categorical(given)
        if isinstance(given, tuple) and _is_bounds(given):
            low, high = given
            integers = whole_number(low) is not None and whole_number(high) is not None
            return Integer(low, high) if integers else Real(low, high)
    except InvalidSpace as error:
        raise InvalidSpace(f"{what}: {error}") from None
    constant = copied(given)
    number = isinstance(constant, float) and math.isfinite(constant)
    if constant is None or number or isinstance(constant, (bool, int, str)):
        return Categorical([constant])
    raise InvalidSpace(f"{what}={one_line(given)} is not a dimension: {_advice(given)}")


def _advice(given: Any) -> str:
    """Return advice on what to write instead of an entry that is not a dimension."""
    from belated.hints import dimension_advice

    if isinstance(given, range):
        low, high, step = (min(given), max(given), abs(given.step)) if len(given) > 1 else (0, 4, 1)
        written = f"bl.{Integer(low, high, step=None if step == 1 else step)!r}"
        return f"write {written}" if len(given) > 1 else f"write at least two values, as {written}, or a constant"
    if isinstance(given, tuple):
        return _of_tuple(given)
    if isinstance(given, np.ndarray):
        if given.ndim != 1:
            return "rows of points are candidates=; a dimension is bl.Real(low, high) or another of one parameter"
        listed = short_repr(given.tolist())
        return f"write bl.Ordinal({listed}) for values that have an order, bl.Categorical({listed}) for others"
    if isinstance(given, (set, frozenset)):
        return f"write the choices as a list, {short_repr(sorted(given, key=repr))}"
    return dimension_advice(given) or (
        "write bl.Real(low, high), bl.Integer(low, high), bl.Ordinal([…]) or bl.Categorical([…]), a tuple (low, high), "
        "a list of choices, or a constant (None, a boolean, a finite number or a string); other objects are constants "
        "as bl.Categorical([object])"
    )


def _of_tuple(given: tuple[Any, ...]) -> str:
    """Return advice for a tuple that is not a pair of bounds, such as (low, high, scale) or (low, high, step)."""
    if len(given) == 3 and _is_bounds(given[:2]):
        low, high, option = given
        kind = "Real" if whole_number(low) is None or whole_number(high) is None else "Integer"
        if isinstance(option, str) and ("log" in option.lower() or "uniform" in option.lower()):
            return f"write bl.{kind}({low!r}, {high!r}{', log=True' if 'log' in option.lower() else ''})"
        if real_number(option) is not None:
            return f"write bl.{kind}({low!r}, {high!r}, step={option!r}), or the choices as a list, {list(given)!r}"
    return f"a tuple is a range (low, high) of two numbers; write choices as a list, {short_repr(list(given))}"
