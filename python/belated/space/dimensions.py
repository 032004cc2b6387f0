"""The kinds of parameter, and the conversion of their values to numbers and back.

``Real``, ``Integer`` and ``Ordinal`` have one encoded column each. ``Categorical`` has one column per choice (one-hot).
Constants do not have columns. The values of every parameter except a continuous ``Real`` are numbered from 0; this
number is the *level* of a value. Each kind of parameter defines which number represents a value. The core checks,
encodes and decodes these numbers.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from belated import _core
from belated._core import InvalidSpace
from belated.short_repr import short_repr
from belated.space.arguments import checks_arguments, copied, is_list, real_number, shown, whole_number
from belated.space.descriptors import read_descriptors, vectors, written

# The type of the columns of a single value. Reading a list is several times as fast as reading an array.
Columns: TypeAlias = Sequence[float] | NDArray[np.float64]


class Parameter(ABC):
    """The base class of `Real`, `Integer`, `Ordinal` and `Categorical`."""

    core: _core.Parameter
    when: Mapping[str, Any] | None
    offered: Sequence[Any] | None

    @abstractmethod
    def _number(self, value: Any) -> float | None:
        """Return the number that represents a value, or None if the value is invalid."""

    @abstractmethod
    def from_number(self, number: float) -> Any:
        """Return the value that a number represents."""

    def _declare(self, core: _core.Parameter, call: str) -> None:
        """Set the core's parameter and the conditions. `call` is the user's declaration as text, for messages."""
        object.__setattr__(self, "core", core)
        object.__setattr__(self, "when", _read_when(self.when, call))
        if self.offered is not None:
            self._offer(self.offered, call)

    def _offer(self, given: Any, call: str) -> None:
        """Restrict the values that are suggested."""
        wrong = f"{call} has offered={short_repr(given)}: pass a list of one or more of its values"
        if not is_list(given) or not len(given):
            raise InvalidSpace(wrong)
        try:
            numbers = list(dict.fromkeys(self.to_number(each) for each in given))
        except ValueError as expected:
            raise InvalidSpace(f"{wrong}, each {expected}") from None
        if len(numbers) == self.n_levels:
            object.__setattr__(self, "offered", None)
            return
        object.__setattr__(self, "core", self.core.offered(numbers))
        object.__setattr__(self, "offered", [self.from_number(number) for number in numbers])

    def _written(self) -> dict[str, Any]:
        """Return the arguments that the repr writes in a different form."""
        # If a condition has a single value, write the value without a list around it, unless the value is itself a
        # list.
        when = {
            name: values[0] if len(values) == 1 and not isinstance(values[0], (list, range)) else values
            for name, values in (self.when or {}).items()
        }
        return {"when": when}

    def __repr__(self) -> str:
        return shown(self, **self._written())

    def __reduce__(self) -> Any:
        # Unpickling recreates the core's object from the declared values.
        return type(self), tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]

    @property
    def width(self) -> int:
        """Number of columns; 0 for a constant."""
        return self.core.width

    @property
    def n_levels(self) -> int | None:
        """Number of values; None for a continuous `Real`."""
        return self.core.n_levels

    def to_number(self, value: Any, measured: bool = False) -> float:
        """Return the number that represents a value in the log.

        If `measured` is True, a number may also lie beyond a bound or between steps. Raise ValueError, with a
        description of the valid values, if the value is invalid.
        """
        number = self._number(value)
        check = self.core.measured if measured else self.core.checked
        found = None if number is None else check(number)
        if found is None:
            raise ValueError(self.core.expected_measured if measured else self.core.expected)
        return found

    def known(self, value: Any) -> float | None:
        """Return the number that represents a value, offered or not; None for other values."""
        number = self._number(value)
        return None if number is None else self.core.known(number)

    def offers(self, value: Any) -> bool:
        """Return whether suggestions may have a value."""
        number = self._number(value)
        return number is not None and self.core.checked(number) is not None

    def check(self, value: Any) -> Any:
        """Return the value of this parameter that equals `value`.

        Raise ValueError, with a description of the valid values, if `value` is invalid.
        """
        return self.from_number(self.to_number(value))

    def level(self, value: Any) -> int:
        """Return the level of a value: its position among all values, counted from 0."""
        number = self.known(value)
        return self.core.level(self.to_number(value) if number is None else number)

    def member(self, level: int) -> Any:
        """Return the value at this level."""
        return self.from_number(self.core.member(level))

    def encode(self, value: Any) -> NDArray[np.float64]:
        """Return the encoded columns of a value, shape (width,), in [0, 1]."""
        return self.core.encode(self.to_number(value))

    def decode(self, columns: Columns) -> Any:
        """Return the value whose encoding is nearest to the columns, shape (width,)."""
        return self.from_number(self.core.decode(columns))


def _read_when(when: Any, call: str) -> dict[str, list[Any]] | None:
    """Return the argument `when` as a dict of name → list of values."""
    if when is None:
        return None
    if not isinstance(when, Mapping) or not when or not all(isinstance(name, str) for name in when):
        raise InvalidSpace(
            f"{call} has when={short_repr(when)}: pass a dict of another parameter's name → its value, or a list of "
            "values of which any will do"
        )
    conditions = {}
    for name, values in when.items():
        listed = [copied(each) for each in (values if isinstance(values, (list, range)) else [values])]
        if not listed or isinstance(values, (set, frozenset, np.ndarray)):
            raise InvalidSpace(
                f"{call} has when={{{name!r}: {short_repr(values)}}}: pass one value, or a list of at least one"
            )
        conditions[name] = listed
    return conditions


# Ranges of numbers.


class Range(Parameter):
    """The base of `Real` and `Integer`, which are ranges of numbers."""

    low: float
    high: float
    log: bool
    step: float | None

    # The name of the core's constructor, and the bounds that the constructor accepts.
    _kind: ClassVar[str]
    _bounds: ClassVar[str]

    def __post_init__(self) -> None:
        call = f"{type(self).__name__}({short_repr(self.low)}, {short_repr(self.high)})"
        low, high = self._bound(self.low), self._bound(self.high)
        if low is None or high is None:
            raise InvalidSpace(f"{call} is not usable: both bounds must be {self._bounds}")
        if not isinstance(self.log, (bool, np.bool_)):
            raise InvalidSpace(f"{call} has log={short_repr(self.log)}: pass True or False")
        step = None if self.step is None else real_number(self.step)
        if step is None and self.step is not None:
            wrong = f"{call[:-1]}, step={short_repr(self.step)}) is not usable"
            raise InvalidSpace(f"{wrong}: step must be a positive number, or None for no step")
        if low == high and step is not None and step > 0:
            step = None  # a constant
        self._declare(getattr(_core.Parameter, self._kind)(low, high, bool(self.log), step), call)
        object.__setattr__(self, "log", bool(self.log))
        for name, number in (("low", low), ("high", high), ("step", step)):
            object.__setattr__(self, name, None if number is None else self.from_number(number))

    def _bound(self, value: Any) -> float | None:
        """Return a bound as a float, or None if the bound is invalid."""
        return real_number(value)

    def _number(self, value: Any) -> float | None:
        return real_number(value)


@dataclass(frozen=True, repr=False)
class Real(Range):
    """A real parameter in [low, high].

    Parameters
    ----------
    low, high : float
        Finite bounds, low <= high; both bounds can be suggested. If the bounds are equal, the parameter is a constant,
        which is not searched.
    log : bool, default False
        Search on a logarithmic scale; needs low > 0.
    step : float, optional
        The values are low, low + step, low + 2 step, …, up to at most high. With log, low must be a multiple of step.
        Default None: all numbers in [low, high].
    when : mapping, optional
        The condition under which this parameter is active: a mapping from the name of another parameter to a value, or
        to a list of values. This parameter is active if every parameter in the mapping has one of its listed values. An
        inactive parameter is left out of the params. Default None: this parameter is always active.
    offered : sequence, optional
        The values that may be suggested. The model also learns from trials with other values, which count as measured
        outside, as beyond a bound. Default None: all values may be suggested.

    Raises
    ------
    InvalidSpace
        The bounds are in the wrong order or are not finite real numbers, or are <= 0 with log; or the step is not
        positive or leaves a single value of different bounds; or low is not a multiple of step, with log.

    Examples
    --------
    >>> from belated import Real
    >>> Real(1e-4, 100, log=True).encode(0.1)
    array([0.5])
    >>> Real(0.0, 1.0, step=0.1).decode([0.31])
    0.3
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None
    when: Mapping[str, Any] | None = field(default=None, hash=False)
    offered: Sequence[float] | None = field(default=None, hash=False)

    _kind = "real"
    _bounds = "finite real numbers"

    def from_number(self, number: float) -> float:
        """Return the value: the number itself."""
        return number


@dataclass(frozen=True, repr=False)
class Integer(Range):
    """An integer parameter in {low, …, high}.

    Parameters
    ----------
    low, high : int
        Bounds within ±2**40, low <= high; both bounds can be suggested. If the bounds are equal, the parameter is a
        constant, which is not searched.
    log : bool, default False
        Search on a logarithmic scale; needs low >= 1.
    step : int, optional
        The values are low, low + step, low + 2 step, …, up to at most high. With log, low must be a multiple of step.
        Default None: all integers from low to high.
    when : mapping, optional
        As for `Real`.
    offered : sequence, optional
        As for `Real`.

    Raises
    ------
    InvalidSpace
        The bounds are in the wrong order, are not integers within ±2**40, or are <= 0 with log; or the step is not
        positive or leaves a single value of different bounds; or low is not a multiple of step, with log.

    Examples
    --------
    >>> from belated import Integer
    >>> Integer(1, 5).encode(2)
    array([0.25])
    >>> Integer(16, 100, step=16).decode([1.0])
    96
    """

    low: int
    high: int
    log: bool = False
    step: int | None = None
    when: Mapping[str, Any] | None = field(default=None, hash=False)
    offered: Sequence[int] | None = field(default=None, hash=False)

    _kind = "integer"
    _bounds = "integers within ±2**40; use Real for other bounds"

    def _bound(self, value: Any) -> float | None:
        return None if whole_number(value) is None else self._number(value)

    def _number(self, value: Any) -> float | None:
        # If an entry is missing, a pandas table converts a column of integers to floats; therefore accept floats.
        number = whole_number(value)
        return real_number(value if number is None else number)

    def from_number(self, number: float) -> int:
        """Return the value: the number as an int."""
        return int(number)


# Lists of values.


def _same_choice(a: Any, b: Any) -> bool:
    """Return whether two choices are the same.

    True and 1 are different choices. If comparing two values raises an error, the values are different.
    """
    if a is b:
        return True
    if any(isinstance(a, kind) and isinstance(b, kind) for kind in (tuple, list)):
        return len(a) == len(b) and all(map(_same_choice, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same_choice(each, b[key]) for key, each in a.items())
    try:
        if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
            return type(a) is type(b) and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
        return isinstance(a, (bool, np.bool_)) == isinstance(b, (bool, np.bool_)) and bool(a == b)
    except (TypeError, ValueError):
        return False


# Types for which equal values always have equal hashes, unlike NumPy's float32.
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
    """Return whether a choice is, or contains, an integer that has too many digits to be shown or stored."""
    if isinstance(value, tuple):
        return any(map(_is_huge, value))
    return isinstance(value, int) and value.bit_length() > _MOST_BITS


class _Places:
    """A map from different values to their positions."""

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
        # Values that have a key need not be compared with each other.
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
    """The base of `Ordinal` and `Categorical`, which are declared by a list. `options` are the values in the list."""

    options: tuple[Any, ...]
    _places: _Places
    # Whether some values are containers, which are copied.
    _copies: bool

    # The name of the field with the values, the name of the core's constructor, and the minimum number of values.
    _field: ClassVar[str]
    _kind: ClassVar[str]
    _least: ClassVar[int]
    _advice: ClassVar[str]

    def __post_init__(self) -> None:
        places = self._read(getattr(self, self._field))
        options = tuple(places.values)
        copies = any(copied(value) is not value for value in options)
        for name, value in ((self._field, options), ("options", options), ("_places", places), ("_copies", copies)):
            object.__setattr__(self, name, value)
        call = f"{type(self).__name__}({short_repr(list(options))})"
        self._declare(self._core([short_repr(value) for value in options], call), call)

    def _core(self, labels: list[str], call: str) -> _core.Parameter:
        """Return the core's parameter. `call` is the user's declaration, for messages."""
        made: _core.Parameter = getattr(_core.Parameter, self._kind)(labels)
        return made

    def _read(self, given: Any) -> _Places:
        """Return the values of a list; raise an error if the list is too short or a value occurs twice."""
        if isinstance(given, np.ndarray):
            given = given.tolist()
        if isinstance(given, (str, bytes, range)) or not isinstance(given, Sequence):
            raise InvalidSpace(f"{self._field}={short_repr(given)} is not usable: pass a list of {self._field}")
        if len(given) < self._least:
            raise InvalidSpace(f"{self._field}={short_repr(given)} has too few: {self._advice}")
        places = _Places()
        for value in map(copied, given):
            if isinstance(value, Parameter):
                raise InvalidSpace(
                    f"{self._field} has {value!r}, which is a dimension and not a value: write the dimension itself, "
                    f'as in {{"x": {value!r}}}, or list the values to choose from'
                )
            if _is_huge(value):
                given = short_repr(value)
                raise InvalidSpace(f"{self._field} has {given}, with too many digits to be stored: pass it as a string")
            if places.find(value) is not None:
                raise InvalidSpace(f"{self._field} has {short_repr(value)} twice: give each once")
            places.append(value)
        return places

    def _written(self) -> dict[str, Any]:
        return super()._written() | {self._field: list(self.options)}

    def _number(self, value: Any) -> float | None:
        return self._places.find(copied(value))

    def from_number(self, number: float) -> Any:
        """Return the value at this position, with its containers copied."""
        value = self.options[int(number)]
        return copied(value) if self._copies else value


@dataclass(frozen=True, repr=False)
class Ordinal(Choices):
    """A parameter with ordered values. The distance between neighbouring values is always the same.

    Parameters
    ----------
    values : sequence
        Two or more different objects of any kind, in order. If the values are increasing or decreasing numbers, a trial
        may also have been measured between two of them; its place between these is then linear in the number.
    when : mapping, optional
        As for `Real`.
    offered : sequence, optional
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
    offered: Sequence[Any] | None = field(default=None, hash=False)

    _field = "values"
    _kind = "ordinal"
    _least = 2
    _advice = "give at least two, or write a constant as its value"

    @cached_property
    def _axis(self) -> tuple[int, NDArray[np.float64]] | None:
        """A sign, and the values times this sign as increasing numbers; None for other values."""
        found = [real_number(value) for value in self.options]
        numbers = np.array([math.nan if each is None else each for each in found])
        sign = 1 if numbers[-1] > numbers[0] else -1
        return (sign, sign * numbers) if (np.diff(sign * numbers) > 0).all() else None

    def _number(self, value: Any) -> float | None:
        found, given = super()._number(value), real_number(value)
        if found is not None or given is None or self._axis is None:
            return found
        sign, numbers = self._axis
        inside = numbers[0] <= sign * given <= numbers[-1]
        return float(np.interp(sign * given, numbers, np.arange(len(numbers)))) if inside else None

    def from_number(self, number: float) -> Any:
        """Return the value at this position, or the number between two values."""
        if number == int(number) or self._axis is None:
            return super().from_number(number)
        sign, numbers = self._axis
        value = sign * float(np.interp(number, np.arange(len(numbers)), numbers))
        # Interpolation rounds. Numbers with up to 12 digits are read back exactly.
        short = float(f"{value:.12g}")
        return short if self._number(short) == number else value


@dataclass(frozen=True, repr=False)
class Categorical(Choices):
    """A parameter with unordered choices.

    Parameters
    ----------
    choices : sequence
        Different objects of any kind: strings, numbers, None, tuples, functions, …. 1 and 1.0 are the same choice; 1
        and True are different choices. Containers are copied, also in the params of each trial; other objects in
        containers are not copied. Scalars of NumPy become objects of Python. Every NaN is the same choice. A parameter
        with a single choice is a constant: it appears in the params, but is not searched.
    when : mapping, optional
        As for `Real`.
    descriptors : mapping, DataFrame or array, optional
        Numbers that describe the choices, such as the properties of solvents: a mapping of choice → {name: number}, a
        DataFrame indexed by choice, or an array of shape (choices, k). `BayesOpt` then learns from the results whether
        choices with similar descriptors have similar values. Columns that do not contain numbers, or are equal for all
        choices, are dropped with a `BelatedWarning`; the same warning names columns with missing entries, which are
        replaced by the mean. Afterwards, the attribute is a list with a dict for each choice. Default None: the model
        treats all pairs of different choices alike.
    offered : sequence, optional
        As for `Real`.

    Raises
    ------
    InvalidSpace
        The argument is not a sequence, is empty, contains a choice twice, or contains a dimension; or the descriptors
        miss a choice, name another one, or are infinite.

    Examples
    --------
    >>> from belated import Categorical
    >>> Categorical(["rbf", "linear", None]).encode("linear")
    array([0., 1., 0.])
    >>> Categorical(["hexane", "water"], descriptors={"hexane": {"logP": 3.9}, "water": {"logP": -1.4}}).descriptors
    [{'logP': 3.9}, {'logP': -1.4}]
    """

    choices: Sequence[Any]
    when: Mapping[str, Any] | None = field(default=None, hash=False)
    descriptors: Any = field(default=None, hash=False)
    offered: Sequence[Any] | None = field(default=None, hash=False)

    _field = "choices"
    _kind = "categorical"
    _least = 1
    _advice = "give at least one"

    def _written(self) -> dict[str, Any]:
        return super()._written() | {"descriptors": written(self.descriptors)}

    @property
    def uses_descriptors(self) -> bool:
        """Whether the descriptors distinguish three or more choices, so that the model can use them."""
        return self.descriptors is not None and vectors(self.descriptors) is not None

    def _core(self, labels: list[str], call: str) -> _core.Parameter:
        if self.descriptors is None:
            return super()._core(labels, call)
        read = read_descriptors(self.descriptors, self.options, lambda choice: self._places.find(copied(choice)), call)
        object.__setattr__(self, "descriptors", read)
        z = vectors(read)
        return super()._core(labels, call) if z is None else _core.Parameter.described(labels, z.tolist())


Dimension: TypeAlias = Real | Integer | Ordinal | Categorical

#: The kinds of parameters, by name.
KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Dimension)}

for _kind in KINDS.values():
    _kind.__init__ = checks_arguments(_kind.__init__)


def choices_of(dimension: Dimension) -> Sequence[Any] | None:
    """Return the list of values of a parameter, or None if the parameter is a range."""
    return None if isinstance(dimension, (Real, Integer)) else dimension.options
