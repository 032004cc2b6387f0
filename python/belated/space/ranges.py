"""Dimensions that are ranges of numbers, and the encoding of each as a column in [0, 1].

Notation: u is the column, t a difference of logarithms.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from belated._core import InvalidSpace, nearest_integer
from belated.short_repr import short_repr
from belated.space import grid
from belated.space.arguments import real_number, whole_number
from belated.space.declarations import Columns, clip, numbered, read_when, shown

# Up to this bound the integers of a range, linear or logarithmic, have different column values.
LARGEST_INTEGER = 2**40


def _log_ratio(a: float, b: float) -> float:
    """Return ln(a / b) for a >= b > 0, also if the quotient is close to 1 or overflows."""
    if a <= 2 * b:
        return math.log1p((a - b) / b)
    quotient = a / b
    return math.log(quotient) if math.isfinite(quotient) else math.log(a) - math.log(b)


def _times_exp(value: float, t: float) -> float:
    """Return value * exp(t), in two steps if exp(t) alone is outside the normal floats."""
    if abs(t) < 700:
        return value * math.exp(t)
    root = math.exp(t / 2)
    return value * root * root


def _exponential(u: float, low: float, high: float) -> float:
    """Return the value at fraction u of the way from low to high on a logarithmic scale."""
    span = _log_ratio(high, low)
    # Start from the nearer end, because the rounding error grows with the distance from it.
    return _times_exp(low, u * span) if u < 0.5 else _times_exp(high, (u - 1) * span)


def _check_log(log: Any, positive: bool, call: str) -> None:
    if not isinstance(log, bool):
        raise InvalidSpace(f"{call} has log={short_repr(log)}: pass True or False")
    if log and not positive:
        raise InvalidSpace(f"{call} has log=True: a logarithmic scale needs low > 0; raise low or drop log")


def _positive_step(step: float | None, log: bool, call: str) -> None:
    """Raise an error for a step that is not a positive number, or for any step on a logarithmic scale."""
    if step is None or not 0 < step < math.inf:
        raise InvalidSpace(f"{call} is not usable: step must be a positive number, or None for no step")
    if log:
        raise InvalidSpace(f"{call} is not usable: steps are even on a linear scale; drop log or step")


@dataclass(frozen=True, repr=False)
class Real:
    """A real parameter in [low, high].

    Parameters
    ----------
    low, high : float
        Finite bounds, low <= high; both can be suggested. If they are equal, it is a constant, which is not searched.
    log : bool, default False
        Search on a logarithmic scale; needs low > 0.
    step : float, optional
        Only low, low + step, low + 2 step, … can be suggested, up to the last that is not beyond high. Default None:
        all of [low, high].
    when : mapping, optional
        Names of other parameters → the value, or a list of values, that each must have. If one has another value, this
        parameter is left out of the params. Default None: it is always in the params.

    Raises
    ------
    InvalidSpace
        The bounds are inverted, not finite or not real numbers; they are <= 0 with log; or the step is not positive,
        leaves fewer than two values, or comes with log.

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

    def __post_init__(self) -> None:
        low, high = real_number(self.low), real_number(self.high)
        if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
            raise InvalidSpace(f"{self._call()} is not usable: both bounds must be finite real numbers")
        if low > high:
            raise InvalidSpace(f"{self._call()} is empty: low must not be greater than high; swap them")
        _check_log(self.log, low > 0, self._call())
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        object.__setattr__(self, "when", read_when(self.when, self._call()))
        if self.step is not None:
            self._check_step()

    def _check_step(self) -> None:
        step, call = real_number(self.step), f"{self._call()[:-1]}, step={short_repr(self.step)})"
        _positive_step(step, self.log, call)
        assert step is not None
        object.__setattr__(self, "step", step)
        n_steps = grid.last_index(self.low, self.high, step)
        if n_steps < 1:
            raise InvalidSpace(f"{call} has one value: make step at most high - low, or write a constant as its value")
        if n_steps > LARGEST_INTEGER or step < math.ulp(max(abs(self.low), abs(self.high))):
            raise InvalidSpace(f"{call} has too many values to be told apart: leave step out")

    def __repr__(self) -> str:
        return shown(self, repr(self.low), repr(self.high))

    def _call(self) -> str:
        return f"Real({short_repr(self.low)}, {short_repr(self.high)})"

    @property
    def width(self) -> int:
        """Number of columns: 1, or 0 for a constant."""
        return int(self.low < self.high)

    @property
    def coordinate(self) -> dict[str, Any]:
        """This dimension in the form that the core takes; the core does not know constants."""
        n_levels = self.n_levels
        return {"kind": "Continuous"} if n_levels is None else numbered(n_levels)

    @property
    def n_levels(self) -> int | None:
        """Number of values if there is a step, 1 for a constant, else None."""
        if self.low == self.high:
            return 1
        return None if self.step is None else grid.last_index(self.low, self.high, self.step) + 1

    def level(self, value: Any) -> int:
        """Return the number of a value of a dimension with a step; 0 for a constant."""
        if self.low == self.high:
            return 0
        assert self.step is not None
        return grid.nearest_index(self.low, self.step, value)

    def member(self, level: int) -> float:
        """Return the value that has this number in a dimension with a step, or the value of a constant."""
        if self.low == self.high:
            return self.low
        assert self.step is not None
        return grid.member(self.low, self.step, level)

    def check(self, value: Any) -> float:
        """Return `value` as a float in [low, high]; with a step, as the member that it equals except for rounding.

        For anything else, raise ValueError with the expected values.
        """
        number = real_number(value)
        if self.step is None:
            if number is None or not self.low <= number <= self.high:
                raise ValueError(f"a real number in [{self.low!r}, {self.high!r}]")
            return number
        last = grid.last_index(self.low, self.high, self.step)
        if number is not None and math.isfinite(number):
            level = self.level(number)
            rounding = max(1e-9 * self.step, 4 * math.ulp(max(abs(self.low), abs(self.high))))
            if 0 <= level <= last and abs(number - self.member(level)) <= min(rounding, self.step / 4):
                return self.member(level)
        raise ValueError(
            f"one of {self.low!r}, {self.member(1)!r}, …, {self.member(last)!r} (in steps of {self.step!r})"
        )

    def to_number(self, value: float) -> float:
        """Return the number that the log keeps for a value: the value itself."""
        return value

    def from_number(self, number: float) -> float:
        """Return the value for a number of the log, exactly as it was given; for a constant, its value."""
        return number if self.low < self.high else self.low

    def encode(self, value: float) -> NDArray[np.float64]:
        """Return the column of a value in [low, high], shape (1,); 0.0 at low and 1.0 at high; (0,) for a constant."""
        if self.low == self.high:
            return np.zeros(0)
        if self.step is not None:
            return np.array([self.level(value) / grid.last_index(self.low, self.high, self.step)])
        if self.log:
            u = _log_ratio(value, self.low) / _log_ratio(self.high, self.low)
        elif math.isfinite(self.high - self.low):
            u = (value - self.low) / (self.high - self.low)
        else:
            u = (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
        return np.array([clip(u, 0.0, 1.0)])

    def decode(self, columns: Columns) -> float:
        """Return the value of a column of shape (1,): always in [low, high], exact at both ends."""
        if self.low == self.high:
            return self.low
        u, low, high = float(columns[0]), self.low, self.high
        if self.step is not None:
            return self.member(nearest_integer(u, 0, grid.last_index(low, high, self.step), False))
        if u <= 0.0:
            return low
        if u >= 1.0:
            return high
        span = high - low
        if self.log:
            value = _exponential(u, low, high)
        elif not math.isfinite(span):
            value = low * (1 - u) + high * u
        else:
            value = low + u * span if u < 0.5 else high - (1 - u) * span
        return clip(value, low, high)


@dataclass(frozen=True, repr=False)
class Integer:
    """An integer parameter in {low, …, high}.

    Parameters
    ----------
    low, high : int
        Bounds within ±2**40, low <= high; both can be suggested. If they are equal, it is a constant, which is not
        searched.
    log : bool, default False
        Search on a logarithmic scale; needs low >= 1.
    step : int, optional
        Only low, low + step, low + 2 step, … can be suggested, up to the last that is not beyond high. Default None:
        all.
    when : mapping, optional
        As for `Real`.

    Raises
    ------
    InvalidSpace
        The bounds are inverted, not integers or beyond ±2**40; they are <= 0 with log; or the step is not positive,
        leaves fewer than two values, or comes with log.

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

    def __post_init__(self) -> None:
        call = f"Integer({short_repr(self.low)}, {short_repr(self.high)})"
        low, high = whole_number(self.low), whole_number(self.high)
        if low is None or high is None:
            raise InvalidSpace(f"{call} is not usable: both bounds must be integers; use Real for real bounds")
        if max(abs(low), abs(high)) > LARGEST_INTEGER:
            raise InvalidSpace(f"{call} is not usable: bounds must lie within ±2**40; use Real and round")
        if low > high:
            raise InvalidSpace(f"{call} is empty: low must not be greater than high; swap them")
        _check_log(self.log, low > 0, call)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        object.__setattr__(self, "when", read_when(self.when, call))
        if self.step is not None:
            self._check_step(f"{call[:-1]}, step={short_repr(self.step)})")

    def _check_step(self, call: str) -> None:
        step = whole_number(self.step)
        if step is None and real_number(self.step) is not None:
            raise InvalidSpace(f"{call} is not usable: step must be an integer, as the bounds are; use Real for others")
        _positive_step(step, self.log, call)
        assert step is not None
        if step > self.high - self.low:
            raise InvalidSpace(f"{call} has one value: make step at most high - low, or write a constant as its value")
        object.__setattr__(self, "step", step)

    def __repr__(self) -> str:
        return shown(self, repr(self.low), repr(self.high))

    @property
    def width(self) -> int:
        """Number of columns: 1, or 0 for a constant."""
        return int(self.low < self.high)

    @property
    def coordinate(self) -> dict[str, Any]:
        """This dimension in the form that the core takes; the core does not know constants."""
        if self.step is not None:
            return numbered(self.n_levels)
        return {"kind": "Integer", "low": self.low, "high": self.high, "log": self.log}

    @property
    def n_levels(self) -> int:
        """Number of values."""
        return (self.high - self.low) // (self.step or 1) + 1

    def level(self, value: Any) -> int:
        """Return the number of a value."""
        return int(value - self.low) // (self.step or 1)

    def member(self, level: int) -> int:
        """Return the value that has this number."""
        return self.low + level * (self.step or 1)

    def check(self, value: Any) -> int:
        """Return `value` as an int in range (3.0 counts as 3), or raise ValueError with the expected values."""
        number = whole_number(value)
        if number is None:
            # Tables turn a column of integers into floats if one entry is missing.
            real = real_number(value)
            number = int(real) if real is not None and real.is_integer() else None
        if number is None or not self.low <= number <= self.high:
            raise ValueError(f"an integer in [{self.low}, {self.high}]{self._in_steps()}")
        if self.member(self.level(number)) != number:
            raise ValueError(f"an integer in [{self.low}, {self.high}]{self._in_steps()}")
        return number

    def _in_steps(self) -> str:
        return "" if self.step is None else f" in steps of {self.step} from {self.low}"

    def to_number(self, value: int) -> float:
        """Return the number that the log keeps for a value: the value as a float, which is exact within ±2**40."""
        return float(value)

    def from_number(self, number: float) -> int:
        """Return the value for a number of the log; for a constant, its value."""
        return int(number) if self.low < self.high else self.low

    def encode(self, value: float) -> NDArray[np.float64]:
        """Return the column of an integer in range, shape (1,); 0.0 at low and 1.0 at high; (0,) for a constant."""
        if self.low == self.high:
            return np.zeros(0)
        if self.log:
            u = _log_ratio(value, self.low) / _log_ratio(self.high, self.low)
        elif self.step is not None:
            u = self.level(int(value)) / (self.n_levels - 1)
        else:
            u = (value - self.low) / (self.high - self.low)
        return np.array([clip(u, 0.0, 1.0)])

    def decode(self, columns: Columns) -> int:
        """Return the integer in range nearest to a column of shape (1,), on the scale that is searched."""
        if self.low == self.high:
            return self.low
        u = float(columns[0])
        if self.step is not None:
            return self.member(nearest_integer(u, 0, self.n_levels - 1, False))
        return nearest_integer(u, self.low, self.high, self.log)
