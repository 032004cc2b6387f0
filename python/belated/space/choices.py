"""Parameters that are declared by a list of values: `Ordinal` and `Categorical`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from belated import _core
from belated._core import InvalidSpace
from belated.short_repr import short_repr
from belated.space.declarations import Parameter


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


class _Places:
    """The positions of different values."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._by_key: dict[Any, int] = {}
        # The positions and values without a key.
        self._others: list[tuple[int, Any]] = []

    def find(self, value: Any) -> int | None:
        """Return the position of a value, or None."""
        key = _key(value)
        if key in self._by_key:
            return self._by_key[key]
        # Two values that have keys need not be compared.
        compared = enumerate(self.values) if key is None else self._others
        return next((i for i, other in compared if _same_choice(other, value)), None)

    def append(self, value: Any) -> None:
        """Add a value that is different from all others."""
        key = _key(value)
        if key is None:
            self._others.append((len(self.values), value))
        else:
            self._by_key[key] = len(self.values)
        self.values.append(value)


class Choices(Parameter):
    """The base of `Ordinal` and `Categorical`; `options` are the declared values."""

    options: tuple[Any, ...]
    _places: _Places

    # The name of the field with the values, the name of the core's constructor, and the least number of values.
    _field: ClassVar[str]
    _kind: ClassVar[str]
    _least: ClassVar[int]
    _advice: ClassVar[str]

    def __post_init__(self) -> None:
        places = self._read(getattr(self, self._field))
        options = tuple(places.values)
        for name, value in ((self._field, options), ("options", options), ("_places", places)):
            object.__setattr__(self, name, value)
        core = getattr(_core.Parameter, self._kind)([short_repr(value) for value in options])
        self._declare(core, f"{type(self).__name__}({short_repr(list(options))})")

    def _read(self, given: Any) -> _Places:
        """Return the values of a list; raise an error if it is too short or a value occurs twice."""
        if isinstance(given, np.ndarray):
            given = given.tolist()
        if isinstance(given, (str, bytes, range)) or not isinstance(given, Sequence):
            raise InvalidSpace(f"{self._field}={short_repr(given)} is not usable: pass a list of {self._field}")
        if len(given) < self._least:
            raise InvalidSpace(f"{self._field}={short_repr(given)} has too few: {self._advice}")
        places = _Places()
        for value in given:
            if isinstance(value, Parameter):
                raise InvalidSpace(
                    f"{self._field} has {value!r}, which is a dimension and not a value: write the dimension itself, "
                    f'as in {{"x": {value!r}}}, or list the values to choose from'
                )
            shown = f"{self._field} has {short_repr(value)}"
            if _is_huge(value):
                raise InvalidSpace(f"{shown}, with too many digits to be shown or stored: pass it as a string")
            if places.find(value) is not None:
                raise InvalidSpace(f"{shown} twice: give each once")
            places.append(value)
        return places

    def _written(self) -> dict[str, Any]:
        return super()._written() | {self._field: list(self.options)}

    def _number(self, value: Any) -> float | None:
        return self._places.find(value)

    def from_number(self, number: float) -> Any:
        """Return the value at this position."""
        return self.options[int(number)]


@dataclass(frozen=True, repr=False)
class Ordinal(Choices):
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

    _field = "values"
    _kind = "ordinal"
    _least = 2
    _advice = "give at least two, or write a constant as its value"


@dataclass(frozen=True, repr=False)
class Categorical(Choices):
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

    _field = "choices"
    _kind = "categorical"
    _least = 1
    _advice = "give at least one"
