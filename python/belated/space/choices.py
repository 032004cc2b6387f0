"""Dimensions that are lists of values, and the encoding of each as columns in [0, 1]."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from belated._core import InvalidSpace, nearest_integer
from belated.short_repr import short_repr
from belated.space.declarations import Columns, numbered, read_when, shown
from belated.space.ranges import Integer, Real


def _same_choice(a: Any, b: Any) -> bool:
    """Whether two choices are the same; True and 1 differ, and a value that cannot be compared equals only itself."""
    if a is b:
        return True
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same_choice, a, b))
    try:
        return isinstance(a, (bool, np.bool_)) == isinstance(b, (bool, np.bool_)) and bool(a == b)
    except (TypeError, ValueError):
        return False


# Types whose equal values always have equal hashes; NumPy's float32 is not among them.
_HASHED = frozenset({bool, int, float, complex, str, bytes, type(None)})

# Python converts only integers of up to 4,300 digits to text and back.
_MOST_BITS = 14_000


def _key(value: Any) -> Any:
    """Return a key that two choices share if and only if they are the same; None for types not in `_HASHED`."""
    if type(value) is tuple:
        keys = tuple(map(_key, value))
        return None if None in keys else (tuple, keys)
    return (type(value) is bool, value) if type(value) in _HASHED else None


def _is_huge(value: Any) -> bool:
    """Whether a choice is, or contains, an integer that cannot be shown or stored."""
    if isinstance(value, tuple):
        return any(map(_is_huge, value))
    return isinstance(value, int) and value.bit_length() > _MOST_BITS


def _different(given: Any, argument: str, least: int, advice: str) -> tuple[Any, ...]:
    """Return the values of a list; raise an error unless they all differ."""
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
        if isinstance(value, (Real, Integer, Ordinal, Categorical)):
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
    """Return the numbers of the values that have a key, by their keys."""
    keys = map(_key, values)
    return {key: i for i, key in enumerate(keys) if key is not None}


def _place(values: Sequence[Any], places: Mapping[Any, int], value: Any) -> int:
    """Return the number of a value among others; raise ValueError with the expected values if it is not among them."""
    key = _key(value)
    if key in places:
        return places[key]
    if key is None or len(places) < len(values):
        for i, other in enumerate(values):
            if _same_choice(other, value):
                return i
    raise ValueError(f"one of {short_repr(list(values))}")


@dataclass(frozen=True, repr=False)
class Ordinal:
    """A parameter with ordered values, in which neighbours are equally far apart.

    Parameters
    ----------
    values : sequence
        Two or more different objects of any kind, in order.
    when : mapping, optional
        As for `Real`.

    Raises
    ------
    InvalidSpace
        There are fewer than two values, the same value twice, a dimension among them, or the argument is not a
        sequence.

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
        object.__setattr__(self, "when", read_when(self.when, f"Ordinal({short_repr(list(self.values))})"))

    def __repr__(self) -> str:
        return shown(self, repr(list(self.values)))

    @property
    def width(self) -> int:
        """Number of columns: 1."""
        return 1

    @property
    def coordinate(self) -> dict[str, Any]:
        """This dimension in the form that the core takes."""
        return numbered(len(self.values))

    @property
    def n_levels(self) -> int:
        """Number of values."""
        return len(self.values)

    def level(self, value: Any) -> int:
        """Return the number of a value."""
        return _place(self.values, self._places, value)

    @cached_property
    def _places(self) -> dict[Any, int]:
        return _places(self.values)

    def member(self, level: int) -> Any:
        """Return the value that has this number."""
        return self.values[level]

    def check(self, value: Any) -> Any:
        """Return the value of this dimension equal to `value`, or raise ValueError with the expected values."""
        return self.values[self.level(value)]

    def to_number(self, value: Any) -> float:
        """Return the number that the log keeps for a value: its place, from 0."""
        return float(self.level(value))

    def from_number(self, number: float) -> Any:
        """Return the value that has this number."""
        return self.values[int(number)]

    def encode(self, value: Any) -> NDArray[np.float64]:
        """Return the column of a value, shape (1,); 0.0 for the first value and 1.0 for the last."""
        return np.array([self.level(value) / (len(self.values) - 1)])

    def decode(self, columns: Columns) -> Any:
        """Return the value nearest to a column of shape (1,)."""
        return self.values[nearest_integer(float(columns[0]), 0, len(self.values) - 1, False)]


@dataclass(frozen=True, repr=False)
class Categorical:
    """A parameter with unordered choices.

    Parameters
    ----------
    choices : sequence
        Different objects of any kind: strings, numbers, None, tuples, functions … 1 and 1.0 are the same choice; 1 and
        True are not. A single choice is a constant: it appears in the params, but is not searched.
    when : mapping, optional
        As for `Real`.

    Raises
    ------
    InvalidSpace
        There are no choices, the same choice twice, a dimension among them, or the argument is not a sequence.

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
        object.__setattr__(self, "when", read_when(self.when, f"Categorical({short_repr(list(self.choices))})"))

    def __repr__(self) -> str:
        return shown(self, repr(list(self.choices)))

    @property
    def width(self) -> int:
        """Number of columns: one per choice, none for a constant."""
        return len(self.choices) if len(self.choices) > 1 else 0

    @property
    def coordinate(self) -> dict[str, Any]:
        """This dimension in the form that the core takes; the core does not know constants."""
        return {"kind": "Categorical", "n": len(self.choices)}

    @property
    def n_levels(self) -> int:
        """Number of choices."""
        return len(self.choices)

    def level(self, value: Any) -> int:
        """Return the number of a choice."""
        return _place(self.choices, self._places, value)

    @cached_property
    def _places(self) -> dict[Any, int]:
        return _places(self.choices)

    def member(self, level: int) -> Any:
        """Return the choice that has this number."""
        return self.choices[level]

    def check(self, value: Any) -> Any:
        """Return the choice equal to `value`; raise ValueError with the expected values if there is none."""
        return self.choices[self.level(value)]

    def to_number(self, value: Any) -> float:
        """Return the number that the log keeps for a choice: its place among the choices, from 0."""
        return float(self.level(value))

    def from_number(self, number: float) -> Any:
        """Return the choice that has this number."""
        return self.choices[int(number)]

    def encode(self, value: Any) -> NDArray[np.float64]:
        """Return the one-hot columns, shape (k,), of one of the k choices; shape (0,) for a constant."""
        if not self.width:
            return np.zeros(0)
        return np.array([float(_same_choice(choice, value)) for choice in self.choices])

    def decode(self, columns: Columns) -> Any:
        """Return the choice whose column is largest, out of columns of shape (k,)."""
        return self.choices[max(range(self.width), key=columns.__getitem__, default=0)]
