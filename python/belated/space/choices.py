"""Dimensions that are lists of values, and the encoding of each as columns in [0, 1]."""

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from belated._core import InvalidSpace, nearest_integer
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


def _different(given: Any, argument: str, least: int, advice: str) -> tuple[Any, ...]:
    """A list of values that all differ."""
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if isinstance(given, (str, bytes, range)) or not isinstance(given, Sequence):
        raise InvalidSpace(f"{argument}={reprlib.repr(given)} is not usable: pass a list of {argument}")
    values = tuple(given)
    if len(values) < least:
        raise InvalidSpace(f"{argument}={reprlib.repr(given)} has too few: {advice}")
    for i, value in enumerate(values):
        if isinstance(value, (Real, Integer, Ordinal, Categorical)):
            raise InvalidSpace(
                f"{argument} has {value!r}, which is a dimension and not a value: write the dimension itself, as in "
                f'{{"x": {value!r}}}, or list the values to choose from'
            )
        if any(_same_choice(value, earlier) for earlier in values[:i]):
            raise InvalidSpace(f"{argument} has {reprlib.repr(value)} twice: give each once")
    return values


def _place(values: tuple[Any, ...], value: Any) -> int:
    """The number of a value among others; ValueError saying what is expected where it is none of them."""
    for i, other in enumerate(values):
        if _same_choice(other, value):
            return i
    raise ValueError(f"one of {reprlib.repr(list(values))}")


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
        Fewer than two values, the same one twice, a dimension among them, or something that has no order.

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
        object.__setattr__(self, "when", read_when(self.when, f"Ordinal({reprlib.repr(list(self.values))})"))

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
        return _place(tuple(self.values), value)

    def member(self, level: int) -> Any:
        """The value of a number."""
        return self.values[level]

    def check(self, value: Any) -> Any:
        """The value of this dimension equal to `value`; ValueError saying what is expected otherwise."""
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
        No choices, the same choice twice, a dimension among them, or something that has no order.

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
        object.__setattr__(self, "when", read_when(self.when, f"Categorical({reprlib.repr(list(self.choices))})"))

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
        return _place(tuple(self.choices), value)

    def member(self, level: int) -> Any:
        """The choice of a number."""
        return self.choices[level]

    def check(self, value: Any) -> Any:
        """The choice equal to `value`; ValueError saying what is expected otherwise."""
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
