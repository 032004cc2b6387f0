"""Parameters that are declared by a list of values: `Ordinal` and `Categorical`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from belated import _core
from belated._core import InvalidSpace
from belated.short_repr import short_repr
from belated.space.declarations import Parameter, shown


def _same_choice(a: Any, b: Any) -> bool:
    """Return whether two choices are the same.

    True and 1 are different choices. If comparing two values raises an error, they are different.
    """
    if a is b:
        return True
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same_choice, a, b))
    try:
        return isinstance(a, (bool, np.bool_)) == isinstance(b, (bool, np.bool_)) and bool(a == b)
    except (TypeError, ValueError):
        return False


# Types whose equal values always have equal hashes. This does not hold for float32 of NumPy.
_HASHED = frozenset({bool, int, float, complex, str, bytes, type(None)})

# Python refuses to convert integers of more than 4,300 digits to text and back.
_MOST_BITS = 14_000


def _key(value: Any) -> Any:
    """Return a key for a choice, or None for types not in `_HASHED`.

    Two keys are equal if and only if the choices are the same.
    """
    if type(value) is tuple:
        keys = tuple(map(_key, value))
        return None if None in keys else (tuple, keys)
    return (type(value) is bool, value) if type(value) in _HASHED else None


def _is_huge(value: Any) -> bool:
    """Return whether a choice is or contains an integer with too many digits to be shown or stored."""
    if isinstance(value, tuple):
        return any(map(_is_huge, value))
    return isinstance(value, int) and value.bit_length() > _MOST_BITS


def _different(given: Any, argument: str, least: int, advice: str) -> tuple[Any, ...]:
    """Return the values of a list; raise an error if it is too short or a value occurs twice."""
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if isinstance(given, (str, bytes, range)) or not isinstance(given, Sequence):
        raise InvalidSpace(f"{argument}={short_repr(given)} is not usable: pass a list of {argument}")
    values = tuple(given)
    if len(values) < least:
        raise InvalidSpace(f"{argument}={short_repr(given)} has too few: {advice}")
    keys: set[Any] = set()
    without_key: list[Any] = []
    for i, value in enumerate(values):
        if isinstance(value, Parameter):
            raise InvalidSpace(
                f"{argument} has {value!r}, which is a dimension and not a value: write the dimension itself, as in "
                f'{{"x": {value!r}}}, or list the values to choose from'
            )
        if _is_huge(value):
            raise InvalidSpace(
                f"{argument} has {short_repr(value)}, with too many digits to be shown or stored: pass it as a string"
            )
        key = _key(value)
        # A value without a key is compared with all earlier ones.
        compared = values[:i] if key is None else without_key
        if key in keys or any(_same_choice(value, earlier) for earlier in compared):
            raise InvalidSpace(f"{argument} has {short_repr(value)} twice: give each once")
        if key is None:
            without_key.append(value)
        else:
            keys.add(key)
    return values


def _places(values: Sequence[Any]) -> dict[Any, int]:
    """Return the positions of the values by their keys; values without a key are left out."""
    keys = map(_key, values)
    return {key: i for i, key in enumerate(keys) if key is not None}


def _place(values: Sequence[Any], places: Mapping[Any, int], value: Any) -> int | None:
    """Return the position of a value in a list, or None if the list does not contain it."""
    key = _key(value)
    if key in places:
        return places[key]
    if key is None or len(places) < len(values):
        for i, other in enumerate(values):
            if _same_choice(other, value):
                return i
    return None


@dataclass(frozen=True, repr=False)
class Ordinal(Parameter):
    """A parameter with ordered values; the distance between neighbouring values is always the same.

    Parameters
    ----------
    values : sequence
        Two or more different objects of any kind, in order.
    when : mapping, optional
        As for `Real`.

    Raises
    ------
    InvalidSpace
        The argument is not a sequence, has fewer than two values, contains a value twice, or contains a dimension.

    Examples
    --------
    >>> from belated import Ordinal
    >>> Ordinal([16, 32, 64]).encode(32)
    array([0.5])
    """

    values: Sequence[Any]
    when: Mapping[str, Any] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        advice = "give at least two, or write a constant as its value"
        object.__setattr__(self, "values", _different(self.values, "values", 2, advice))
        call = f"Ordinal({short_repr(list(self.values))})"
        self._declare(_core.Parameter.ordinal([short_repr(value) for value in self.values]), call)

    def __repr__(self) -> str:
        return shown(self, repr(list(self.values)))

    @cached_property
    def _places(self) -> dict[Any, int]:
        return _places(self.values)

    def _number(self, value: Any) -> float | None:
        return _place(self.values, self._places, value)

    def from_number(self, number: float) -> Any:
        """Return the value at this position."""
        return self.values[int(number)]


@dataclass(frozen=True, repr=False)
class Categorical(Parameter):
    """A parameter with unordered choices.

    Parameters
    ----------
    choices : sequence
        Different objects of any kind: strings, numbers, None, tuples, functions, …. 1 and 1.0 are the same choice; 1
        and True are different choices. A parameter with a single choice is a constant: it appears in the params, but is
        not searched.
    when : mapping, optional
        As for `Real`.

    Raises
    ------
    InvalidSpace
        The argument is not a sequence, is empty, contains a choice twice, or contains a dimension.

    Examples
    --------
    >>> from belated import Categorical
    >>> Categorical(["rbf", "linear", None]).encode("linear")
    array([0., 1., 0.])
    """

    choices: Sequence[Any]
    when: Mapping[str, Any] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "choices", _different(self.choices, "choices", 1, "give at least one"))
        call = f"Categorical({short_repr(list(self.choices))})"
        self._declare(_core.Parameter.categorical([short_repr(value) for value in self.choices]), call)

    def __repr__(self) -> str:
        return shown(self, repr(list(self.choices)))

    @cached_property
    def _places(self) -> dict[Any, int]:
        return _places(self.choices)

    def _number(self, value: Any) -> float | None:
        return _place(self.choices, self._places, value)

    def from_number(self, number: float) -> Any:
        """Return the choice at this position."""
        return self.choices[int(number)]
