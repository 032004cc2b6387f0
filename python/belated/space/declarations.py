"""The common part of all kinds of parameter: the conversion of values to numbers, conditions, text.

The core checks, encodes and decodes numbers; a kind of parameter only says which number stands for a value.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from belated import _core
from belated._core import InvalidSpace
from belated.short_repr import short_repr

# The columns of one value; a list is read several times as fast as an array.
Columns: TypeAlias = Sequence[float] | NDArray[np.float64]


class Parameter:
    """A named quantity that is searched; the base of `Real`, `Integer`, `Ordinal` and `Categorical`."""

    core: _core.Parameter
    when: Mapping[str, Any] | None

    def _number(self, value: Any) -> float | None:
        """Return the number that stands for a value, or None if there is none."""
        raise NotImplementedError

    def from_number(self, number: float) -> Any:
        """Return the value that a number stands for."""
        raise NotImplementedError

    def _declare(self, core: _core.Parameter, call: str) -> None:
        """Set what follows from the declared values."""
        object.__setattr__(self, "core", core)
        object.__setattr__(self, "when", read_when(self.when, call))

    def __reduce__(self) -> Any:
        # The core's part is made anew from the declared values.
        return type(self), tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]

    @property
    def width(self) -> int:
        """Number of columns; 0 for a constant."""
        return self.core.width

    @property
    def n_levels(self) -> int | None:
        """Number of values; None for a continuous `Real`."""
        return self.core.n_levels

    def to_number(self, value: Any) -> float:
        """Return the number that the log keeps for a value; raise ValueError with the expected values."""
        number = self._number(value)
        found = None if number is None else self.core.checked(number)
        if found is None:
            raise ValueError(self.core.expected)
        return found

    def check(self, value: Any) -> Any:
        """Return the value of this parameter that `value` equals; raise ValueError with the expected values."""
        return self.from_number(self.to_number(value))

    def level(self, value: Any) -> int:
        """Return the place of a value among all values, from 0."""
        return self.core.level(self.to_number(value))

    def member(self, level: int) -> Any:
        """Return the value at this place."""
        return self.from_number(self.core.member(level))

    def encode(self, value: Any) -> NDArray[np.float64]:
        """Return the columns of a value, shape (width,), in [0, 1]."""
        return self.core.encode(self.to_number(value))

    def decode(self, columns: Columns) -> Any:
        """Return the value nearest to columns of shape (width,)."""
        return self.from_number(self.core.decode(columns))


def read_when(when: Any, call: str) -> dict[str, list[Any]] | None:
    """Return conditions as name → list of values."""
    if when is None:
        return None
    if not isinstance(when, Mapping) or not when or not all(isinstance(name, str) for name in when):
        raise InvalidSpace(
            f"{call} has when={short_repr(when)}: pass a dict of another parameter's name → its value, or a list of "
            "values of which any will do"
        )
    conditions = {}
    for name, values in when.items():
        listed = list(values) if isinstance(values, (list, range)) else [values]
        if not listed or isinstance(values, (set, frozenset, np.ndarray)):
            raise InvalidSpace(
                f"{call} has when={{{name!r}: {short_repr(values)}}}: pass one value, or a list of at least one"
            )
        conditions[name] = listed
    return conditions


def shown(parameter: Any, *parts: str) -> str:
    """Return a parameter as source code, without the arguments that have their defaults."""
    arguments = list(parts)
    if getattr(parameter, "log", False):
        arguments.append("log=True")
    if getattr(parameter, "step", None) is not None:
        arguments.append(f"step={parameter.step!r}")
    if parameter.when is not None:
        when = {name: values[0] if _is_single(values) else values for name, values in parameter.when.items()}
        arguments.append(f"when={when!r}")
    return f"{type(parameter).__name__}({', '.join(arguments)})"


def _is_single(values: list[Any]) -> bool:
    """Whether the values of a condition can be written as a single value instead of a list."""
    return len(values) == 1 and not isinstance(values[0], (list, range))
