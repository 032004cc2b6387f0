"""Parameters that are ranges of numbers: `Real` and `Integer`."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from belated import _core
from belated._core import InvalidSpace
from belated.short_repr import short_repr
from belated.space.arguments import real_number, whole_number
from belated.space.declarations import Parameter


class Range(Parameter):
    """The base of `Real` and `Integer`."""

    low: float
    high: float
    log: bool
    step: float | None

    # The name of the core's constructor, and the bounds that it accepts.
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
        self._declare(getattr(_core.Parameter, self._kind)(low, high, bool(self.log), step), call)
        object.__setattr__(self, "log", bool(self.log))
        for name, number in (("low", low), ("high", high), ("step", step)):
            object.__setattr__(self, name, None if number is None else self.from_number(number))

    def _bound(self, value: Any) -> float | None:
        """Return a bound as a float, or None if it is invalid."""
        return real_number(value)

    def _number(self, value: Any) -> float | None:
        return real_number(value)


@dataclass(frozen=True, repr=False)
class Real(Range):
    """A real parameter in [low, high].

    Parameters
    ----------
    low, high : float
        Finite bounds, low <= high; both bounds can be suggested. If they are equal, the parameter is a constant, which
        is not searched.
    log : bool, default False
        Search on a logarithmic scale; needs low > 0.
    step : float, optional
        Restricts the values to low, low + step, low + 2 step, …, as far as they do not exceed high. Default None: all
        numbers in [low, high].
    when : mapping, optional
        The condition under which the parameter is active. It maps names of other parameters to a value or a list of
        values that they must have. An inactive parameter is left out of the params. Default None: the parameter is
        always active.

    Raises
    ------
    InvalidSpace
        The bounds are in the wrong order or are not finite real numbers, or are <= 0 with log. Or the step is not
        positive, leaves fewer than two values, or is combined with log.

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
        Bounds within ±2**40, low <= high; both bounds can be suggested. If they are equal, the parameter is a constant,
        which is not searched.
    log : bool, default False
        Search on a logarithmic scale; needs low >= 1.
    step : int, optional
        Restricts the values to low, low + step, low + 2 step, …, as far as they do not exceed high. Default None: all
        integers from low to high.
    when : mapping, optional
        As for `Real`.

    Raises
    ------
    InvalidSpace
        The bounds are in the wrong order, are not integers within ±2**40, or are <= 0 with log. Or the step is not
        positive, leaves fewer than two values, or is combined with log.

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

    _kind = "integer"
    _bounds = "integers; use Real for real bounds"

    def _bound(self, value: Any) -> float | None:
        number = whole_number(value)
        return None if number is None else self._number(number)

    def _number(self, value: Any) -> float | None:
        # A table converts a column of integers to floats if an entry is missing, so floats are accepted.
        number = whole_number(value)
        if number is not None and abs(number) > 2**1000:  # too large for a float
            return math.copysign(math.inf, number)
        return real_number(value)

    def from_number(self, number: float) -> int:
        """Return the value: the number as an int."""
        return int(number)
