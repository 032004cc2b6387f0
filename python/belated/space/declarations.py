"""The common parts of all dimensions: reading their conditions, writing them as text, and numbered members."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from belated._core import InvalidSpace
from belated.short_repr import short_repr

# The columns of one value; a list is read several times as fast as an array.
Columns: TypeAlias = Sequence[float] | NDArray[np.float64]


def clip(value: float, low: float, high: float) -> float:
    return low if value < low else high if value > high else value


def numbered(n: int) -> dict[str, Any]:
    """Return n members in order, in the form that the core takes."""
    return {"kind": "Integer", "low": 0, "high": n - 1, "log": False}


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


def shown(dimension: Any, *parts: str) -> str:
    """Return a dimension as source code, without the arguments that have their defaults."""
    arguments = list(parts)
    if getattr(dimension, "log", False):
        arguments.append("log=True")
    if getattr(dimension, "step", None) is not None:
        arguments.append(f"step={dimension.step!r}")
    if dimension.when is not None:
        when = {name: values[0] if _is_single(values) else values for name, values in dimension.when.items()}
        arguments.append(f"when={when!r}")
    return f"{type(dimension).__name__}({', '.join(arguments)})"


def _is_single(values: list[Any]) -> bool:
    """Whether the values of a condition can be written as a single value instead of a list."""
    return len(values) == 1 and not isinstance(values[0], (list, range))
