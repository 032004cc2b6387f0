"""Parameters that are ranges of numbers: `Real` and `Integer`."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from belated import _core
from belated._core import InvalidSpace
from belated.short_repr import short_repr
from belated.space.arguments import real_number, whole_number
from belated.space.declarations import Parameter, shown


def _check_log(log: Any, call: str) -> None:
    if not isinstance(log, bool):
        raise InvalidSpace(f"{call} has log={short_repr(log)}: pass True or False")


def _step(step: Any, call: str) -> float | None:
    """Return a step as a float; the core checks its value."""
    number = None if step is None else real_number(step)
    if step is not None and number is None:
        raise InvalidSpace(
            f"{call[:-1]}, step={short_repr(step)}) is not usable: step must be a positive number, or None for no step"
        )
    return number


@dataclass(frozen=True, repr=False)
class Real(Parameter):
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

    def __post_init__(self) -> None:
        call = f"Real({short_repr(self.low)}, {short_repr(self.high)})"
        low, high = real_number(self.low), real_number(self.high)
        if low is None or high is None:
            raise InvalidSpace(f"{call} is not usable: both bounds must be finite real numbers")
        _check_log(self.log, call)
        step = _step(self.step, call)
        self._declare(_core.Parameter.real(low, high, self.log, step), call)
        for name, value in (("low", low), ("high", high), ("step", step)):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return shown(self, repr(self.low), repr(self.high))

    def _number(self, value: Any) -> float | None:
        return real_number(value)

    def from_number(self, number: float) -> float:
        """Return the value: the number itself."""
        return number


@dataclass(frozen=True, repr=False)
class Integer(Parameter):
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

    def __post_init__(self) -> None:
        call = f"Integer({short_repr(self.low)}, {short_repr(self.high)})"
        low, high = whole_number(self.low), whole_number(self.high)
        if low is None or high is None:
            raise InvalidSpace(f"{call} is not usable: both bounds must be integers; use Real for real bounds")
        _check_log(self.log, call)
        step = _step(self.step, call)
        self._declare(_core.Parameter.integer(_float(low), _float(high), self.log, step), call)
        for name, value in (("low", low), ("high", high), ("step", None if step is None else int(step))):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return shown(self, repr(self.low), repr(self.high))

    def _number(self, value: Any) -> float | None:
        # A table converts a column of integers to floats if an entry is missing.
        number = whole_number(value)
        return real_number(value) if number is None else _float(number)

    def from_number(self, number: float) -> int:
        """Return the value: the number as an int."""
        return int(number)


def _float(number: int) -> float:
    """Return the nearest float; infinity for an integer that is too large."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
