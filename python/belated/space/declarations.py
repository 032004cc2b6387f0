"""The base class of all kinds of parameter, with the conversion between values and numbers.

A subclass defines which number represents a value. The core checks, encodes and decodes these numbers.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from belated import _core
from belated._core import InvalidSpace
from belated.short_repr import short_repr
from belated.space.arguments import shown

# The columns of a single value. Reading a list is several times as fast as reading an array.
Columns: TypeAlias = Sequence[float] | NDArray[np.float64]


class Parameter(ABC):
    """The base class of `Real`, `Integer`, `Ordinal` and `Categorical`."""

    core: _core.Parameter
    when: Mapping[str, Any] | None

    @abstractmethod
    def _number(self, value: Any) -> float | None:
        """Return the number that represents a value, or None if the value is invalid."""

    @abstractmethod
    def from_number(self, number: float) -> Any:
        """Return the value that a number represents."""

    def _declare(self, core: _core.Parameter, call: str) -> None:
        """Set the core's parameter and the conditions; `call` is the declaration as text, for messages."""
        object.__setattr__(self, "core", core)
        object.__setattr__(self, "when", read_when(self.when, call))

    def _written(self) -> dict[str, Any]:
        """Return the arguments that source code writes in another form, for the repr."""
        # A single value of a condition is written without a list, unless it is a list.
        when = {
            name: values[0] if len(values) == 1 and not isinstance(values[0], (list, range)) else values
            for name, values in (self.when or {}).items()
        }
        return {"when": when}

    def __repr__(self) -> str:
        return shown(self, **self._written())

    def __reduce__(self) -> Any:
        # Unpickling makes the core's object again from the declared values.
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
        """Return the number that represents a value in the log.

        Raise ValueError, with a description of the valid values, if the value is invalid.
        """
        number = self._number(value)
        found = None if number is None else self.core.checked(number)
        if found is None:
            raise ValueError(self.core.expected)
        return found

    def check(self, value: Any) -> Any:
        """Return the value of this parameter that equals `value`.

        Raise ValueError, with a description of the valid values, if `value` is invalid.
        """
        return self.from_number(self.to_number(value))

    def level(self, value: Any) -> int:
        """Return the level of a value: its position among all values, counted from 0."""
        return self.core.level(self.to_number(value))

    def member(self, level: int) -> Any:
        """Return the value at this level."""
        return self.from_number(self.core.member(level))

    def encode(self, value: Any) -> NDArray[np.float64]:
        """Return the encoded columns of a value, shape (width,), in [0, 1]."""
        return self.core.encode(self.to_number(value))

    def decode(self, columns: Columns) -> Any:
        """Return the value whose encoding is nearest to the columns, shape (width,)."""
        return self.from_number(self.core.decode(columns))


def read_when(when: Any, call: str) -> dict[str, list[Any]] | None:
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
        listed = list(values) if isinstance(values, (list, range)) else [values]
        if not listed or isinstance(values, (set, frozenset, np.ndarray)):
            raise InvalidSpace(
                f"{call} has when={{{name!r}: {short_repr(values)}}}: pass one value, or a list of at least one"
            )
        conditions[name] = listed
    return conditions
