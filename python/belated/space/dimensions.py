"""The kinds of parameter, and the encoding of each as columns in [0, 1].

``Real`` and ``Integer`` take one column each, ``Categorical`` one column per choice (one-hot).
"""

import math
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from belated._core import InvalidSpace
from belated.space.arguments import real_number, whole_number

# Up to here every integer of a range, linear or logarithmic, keeps a column value of its own.
_LARGEST_INTEGER = 2**40


def _log_ratio(a: float, b: float) -> float:
    """ln(a / b) for a >= b > 0, also where the quotient is close to 1 or overflows."""
    if a <= 2 * b:
        return math.log1p((a - b) / b)
    quotient = a / b
    return math.log(quotient) if math.isfinite(quotient) else math.log(a) - math.log(b)


def _times_exp(value: float, t: float) -> float:
    """value * exp(t), in two steps where exp(t) alone lies outside the normal floats."""
    if abs(t) < 700:
        return value * math.exp(t)
    root = math.exp(t / 2)
    return value * root * root


def _clip(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def _exponential(u: float, low: float, high: float) -> float:
    """The value at fraction u of the way from low to high on a logarithmic scale."""
    span = _log_ratio(high, low)
    # From the nearer end: the rounding error grows with the distance from where one starts.
    return _times_exp(low, u * span) if u < 0.5 else _times_exp(high, (u - 1) * span)


def _same_choice(a: Any, b: Any) -> bool:
    """Equality of choices; True and 1 differ, and what cannot be compared is equal to itself only."""
    if a is b:
        return True
    try:
        return isinstance(a, (bool, np.bool_)) == isinstance(b, (bool, np.bool_)) and bool(a == b)
    except (TypeError, ValueError):
        return False


def _check_log(log: Any, positive: bool, call: str) -> None:
    if not isinstance(log, bool):
        raise InvalidSpace(f"{call} has log={reprlib.repr(log)}: pass True or False")
    if log and not positive:
        raise InvalidSpace(f"{call} has log=True: a logarithmic scale needs low > 0; raise low or drop log")


@dataclass(frozen=True)
class Real:
    """A real parameter in [low, high].

    Parameters
    ----------
    low, high : float
        Finite bounds, low < high; both can be suggested.
    log : bool, default False
        Search on a logarithmic scale; needs low > 0.

    Raises
    ------
    InvalidSpace
        Bounds that are empty, inverted, not finite or not real numbers; log bounds <= 0.

    Examples
    --------
    >>> from belated import Real
    >>> Real(1e-4, 100, log=True).encode(0.1)
    array([0.5])
    """

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        low, high = real_number(self.low), real_number(self.high)
        if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
            raise InvalidSpace(f"{self._call()} is not usable: both bounds must be finite real numbers")
        if not low < high:
            raise InvalidSpace(
                f"{self._call()} is empty: low must be less than high; swap them, or leave a constant out of the space"
            )
        _check_log(self.log, low > 0, self._call())
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def _call(self) -> str:
        return f"Real({reprlib.repr(self.low)}, {reprlib.repr(self.high)})"

    @property
    def width(self) -> int:
        """Number of columns: 1."""
        return 1

    @property
    def coordinate(self) -> dict[str, Any]:
        """This dimension as the core takes it."""
        return {"kind": "Continuous"}

    def check(self, value: Any) -> float:
        """`value` as a float in [low, high]; ValueError saying what is expected otherwise."""
        number = real_number(value)
        if number is None or not self.low <= number <= self.high:
            raise ValueError(f"a real number in [{self.low!r}, {self.high!r}]")
        return number

    def to_number(self, value: float) -> float:
        """The number that the log keeps of a value: the value."""
        return value

    def from_number(self, number: float) -> float:
        """The value whose number this is, exactly as it was given."""
        return number

    def encode(self, value: float) -> NDArray[np.float64]:
        """Column values, shape (1,), of a value in [low, high]; 0.0 at low and 1.0 at high."""
        if self.log:
            u = _log_ratio(value, self.low) / _log_ratio(self.high, self.low)
        elif math.isfinite(self.high - self.low):
            u = (value - self.low) / (self.high - self.low)
        else:
            u = (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
        return np.array([_clip(u, 0.0, 1.0)])

    def decode(self, columns: NDArray[np.float64]) -> float:
        """The value of columns of shape (1,): always in [low, high], exact at both ends."""
        u = float(columns[0])
        if u <= 0.0:
            return self.low
        if u >= 1.0:
            return self.high
        span = self.high - self.low
        if self.log:
            value = _exponential(u, self.low, self.high)
        elif not math.isfinite(span):
            value = self.low * (1 - u) + self.high * u
        else:
            value = self.low + u * span if u < 0.5 else self.high - (1 - u) * span
        return _clip(value, self.low, self.high)


@dataclass(frozen=True)
class Integer:
    """An integer parameter in {low, …, high}.

    Parameters
    ----------
    low, high : int
        Bounds within ±2**40, low < high; both can be suggested.
    log : bool, default False
        Search on a logarithmic scale; needs low >= 1.

    Raises
    ------
    InvalidSpace
        Bounds that are empty, inverted, not integers or beyond ±2**40; log bounds <= 0.

    Examples
    --------
    >>> from belated import Integer
    >>> Integer(1, 5).encode(2)
    array([0.25])
    """

    low: int
    high: int
    log: bool = False

    def __post_init__(self) -> None:
        call = f"Integer({reprlib.repr(self.low)}, {reprlib.repr(self.high)})"
        low, high = whole_number(self.low), whole_number(self.high)
        if low is None or high is None:
            raise InvalidSpace(f"{call} is not usable: both bounds must be integers; use Real for real bounds")
        if max(abs(low), abs(high)) > _LARGEST_INTEGER:
            raise InvalidSpace(f"{call} is not usable: bounds must lie within ±2**40; use Real and round")
        if not low < high:
            raise InvalidSpace(
                f"{call} is empty: low must be less than high; swap them, or leave a constant out of the space"
            )
        _check_log(self.log, low > 0, call)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def width(self) -> int:
        """Number of columns: 1."""
        return 1

    @property
    def coordinate(self) -> dict[str, Any]:
        """This dimension as the core takes it."""
        return {"kind": "Integer", "low": self.low, "high": self.high, "log": self.log}

    def check(self, value: Any) -> int:
        """`value` as an int in range (3.0 counts as 3); ValueError saying what is expected otherwise."""
        number = whole_number(value)
        if number is None:
            # Tables turn a column of integers into floats as soon as one entry is missing.
            real = real_number(value)
            number = int(real) if real is not None and real.is_integer() else None
        if number is None or not self.low <= number <= self.high:
            raise ValueError(f"an integer in [{self.low}, {self.high}]")
        return number

    def to_number(self, value: int) -> float:
        """The number that the log keeps of a value: the value as a float, which is exact within ±2**40."""
        return float(value)

    def from_number(self, number: float) -> int:
        """The value whose number this is."""
        return int(number)

    def encode(self, value: float) -> NDArray[np.float64]:
        """Column values, shape (1,), of an integer in range; 0.0 at low and 1.0 at high."""
        if self.log:
            u = _log_ratio(value, self.low) / _log_ratio(self.high, self.low)
        else:
            u = (value - self.low) / (self.high - self.low)
        return np.array([_clip(u, 0.0, 1.0)])

    def decode(self, columns: NDArray[np.float64]) -> int:
        """The nearest integer in range of columns of shape (1,)."""
        u = _clip(float(columns[0]), 0.0, 1.0)
        if self.log:
            value = round(_exponential(u, self.low, self.high))
        else:
            value = self.low + round(u * (self.high - self.low))
        return min(max(value, self.low), self.high)


@dataclass(frozen=True)
class Categorical:
    """A parameter with unordered choices.

    Parameters
    ----------
    choices : sequence
        Two or more different objects of any kind: strings, numbers, None, tuples, functions …
        1 and 1.0 are the same choice; 1 and True are not.

    Raises
    ------
    InvalidSpace
        Fewer than two choices, the same choice twice, a dimension among them, or something that has no order.

    Examples
    --------
    >>> from belated import Categorical
    >>> Categorical(["rbf", "linear", None]).encode("linear")
    array([0., 1., 0.])
    """

    choices: Sequence[Any]

    def __post_init__(self) -> None:
        given = self.choices
        if isinstance(given, np.ndarray):
            given = given.tolist()
        if isinstance(given, (str, bytes)) or not isinstance(given, Sequence):
            raise InvalidSpace(f"choices={reprlib.repr(given)} is not usable: pass a list of choices")
        choices = tuple(given)
        if len(choices) < 2:
            raise InvalidSpace(
                f"choices={reprlib.repr(given)} is empty: give at least two, or leave a constant out of the space"
            )
        for i, choice in enumerate(choices):
            if isinstance(choice, (Real, Integer, Categorical)):
                raise InvalidSpace(
                    f"choices has {choice!r}, which is a dimension and not a value: write the dimension itself, as in "
                    f'{{"x": {choice!r}}}, or list the values to choose from'
                )
            if any(_same_choice(choice, earlier) for earlier in choices[:i]):
                raise InvalidSpace(f"choices has {reprlib.repr(choice)} twice: give each choice once")
        object.__setattr__(self, "choices", choices)

    @property
    def width(self) -> int:
        """Number of columns: one per choice."""
        return len(self.choices)

    @property
    def coordinate(self) -> dict[str, Any]:
        """This dimension as the core takes it."""
        return {"kind": "Categorical", "n": len(self.choices)}

    def check(self, value: Any) -> Any:
        """The choice equal to `value`; ValueError saying what is expected otherwise."""
        for choice in self.choices:
            if _same_choice(choice, value):
                return choice
        raise ValueError(f"one of {reprlib.repr(list(self.choices))}")

    def to_number(self, value: Any) -> float:
        """The number that the log keeps of a choice: its place among the choices, from 0."""
        return float(next(i for i, choice in enumerate(self.choices) if _same_choice(choice, value)))

    def from_number(self, number: float) -> Any:
        """The choice whose number this is."""
        return self.choices[int(number)]

    def encode(self, value: Any) -> NDArray[np.float64]:
        """One-hot columns, shape (k,), of one of the k choices."""
        return np.array([float(_same_choice(choice, value)) for choice in self.choices])

    def decode(self, columns: NDArray[np.float64]) -> Any:
        """The choice whose column, of shape (k,), is largest."""
        return self.choices[int(np.argmax(columns))]


Dimension: TypeAlias = Real | Integer | Categorical
