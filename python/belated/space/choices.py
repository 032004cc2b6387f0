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
    """Equality of choices; True and 1 differ, and what cannot be compared is equal to itself only."""
    if a is b:
        return True
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same_choice, a, b))
    try:
        return isinstance(a, (bool, np.bool_)) == isinstance(b, (bool, np.bool_)) and bool(a == b)
    except (TypeError, ValueError):
        return False


# Types whose values have equal hashes wherever they are equal; NumPy's float32 is not among them.
_HASHED = frozenset({bool, int, float, complex, str, bytes, type(None)})

# Python converts integers of up to 4,300 digits to text and back.
_MOST_BITS = 14_000


def _key(value: Any) -> Any:
    """A key that two choices share if and only if they are the same; None for values of other types than `_HASHED`."""
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
    """A list of values that all differ."""
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
    """The numbers of those values that have a key, by their keys."""
    keys = map(_key, values)
    return {key: i for i, key in enumerate(keys) if key is not None}


def _place(values: Sequence[Any], places: Mapping[Any, int], value: Any) -> int:
    """The number of a value among others; ValueError with the expected values if it is not among them."""
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
    """A parameter with ordered values, neighbours being equally far apart.

    Parameters
    ----------
    values : sequence
        Two or more different objects of any kind, in order.
    when : mapping, optional
        As for `Real`.

    Raises
    ------
    InvalidSpace
        Fewer than two values, the same one twice, a dimension among them, or something other than a sequence.

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
        """This dimension as the core takes it."""
        return numbered(len(self.values))

    @property
    def n_levels(self) -> int:
        """Number of values."""
        return len(self.values)

    def level(self, value: Any) -> int:
        """The number of a value."""
        return _place(self.values, self._places, value)

    @cached_property
    def _places(self) -> dict[Any, int]:
        return _places(self.values)

    def member(self, level: int) -> Any:
        """The value of a number."""
        return self.values[level]

    def check(self, value: Any) -> Any:
        """The value of this dimension equal to `value`; ValueError with the expected values if there is none."""
        return self.values[self.level(value)]

    def to_number(self, value: Any) -> float:
        """The number that the log keeps of a value: its place, from 0."""
        return float(self.level(value))

    def from_number(self, number: float) -> Any:
        """The value whose number this is."""
        return self.values[int(number)]

    def encode(self, value: Any) -> NDArray[np.float64]:
        """Column values, shape (1,); 0.0 for the first value and 1.0 for the last."""
        return np.array([self.level(value) / (len(self.values) - 1)])

    def decode(self, columns: Columns) -> Any:
        """The value nearest to columns of shape (1,)."""
        return self.values[nearest_integer(float(columns[0]), 0, len(self.values) - 1, False)]


@dataclass(frozen=True, repr=False)
class Categorical:
    """A parameter with unordered choices.

    Parameters
    ----------
    choices : sequence
        Different objects of any kind: strings, numbers, None, tuples, functions … 1 and 1.0 are the same choice; 1 and
        True are not. A single choice is a constant: it stands in the params, and nothing is searched.
    when : mapping, optional
        As for `Real`.

    Raises
    ------
    InvalidSpace
        No choices, the same choice twice, a dimension among them, or something other than a sequence.

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
        """This dimension as the core takes it; constants are unknown there."""
        return {"kind": "Categorical", "n": len(self.choices)}

    @property
    def n_levels(self) -> int:
        """Number of choices."""
        return len(self.choices)

    def level(self, value: Any) -> int:
        """The number of a choice."""
        return _place(self.choices, self._places, value)

    @cached_property
    def _places(self) -> dict[Any, int]:
        return _places(self.choices)

    def member(self, level: int) -> Any:
        """The choice of a number."""
        return self.choices[level]

    def check(self, value: Any) -> Any:
        """The choice equal to `value`; ValueError with the expected values if there is none."""
        return self.choices[self.level(value)]

    def to_number(self, value: Any) -> float:
        """The number that the log keeps of a choice: its place among the choices, from 0."""
        return float(self.level(value))

    def from_number(self, number: float) -> Any:
        """The choice whose number this is."""
        return self.choices[int(number)]

    def encode(self, value: Any) -> NDArray[np.float64]:
        """One-hot columns, shape (k,), of one of the k choices; shape (0,) for a constant."""
        if not self.width:
            return np.zeros(0)
        return np.array([float(_same_choice(choice, value)) for choice in self.choices])

    def decode(self, columns: Columns) -> Any:
        """The choice whose column, of shape (k,), is largest."""
        return self.choices[max(range(self.width), key=columns.__getitem__, default=0)]
