"""Conversion and checks of users' arguments: numbers, lists and tables."""

import math
import numbers
import operator
import re
from typing import Any

import numpy as np

from belated.short_repr import short_repr


def real_number(value: Any) -> float | None:
    """Return `value` as a float, or None if it is not a single real number.

    Real scalars, and arrays or tensors without axes, are real numbers; bool, complex and str are not.
    """
    if type(value) is float:  # the most frequent case; the checks below take a microsecond
        return value
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Number):
        return None
    try:
        return float(value)  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError):  # a complex number raises TypeError
        return None


def whole_number(value: Any) -> int | None:
    """Return `value` as an int, or None if it is not an integer (a bool does not count as an integer)."""
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def one_line(value: Any) -> str:
    """Return a short repr of a value on a single line, for messages; arrays and tables have reprs of several lines."""
    return re.sub(r"\s*\n\s*", " ", short_repr(value))


def is_table(value: Any) -> bool:
    """Return whether `value` is a DataFrame, checked without importing pandas."""
    return hasattr(value, "columns") and hasattr(value, "to_dict")


def axes(value: Any) -> int:
    """Return the number of axes of `value` as an array; 1 for a ragged list."""
    try:
        return np.ndim(value)
    except ValueError:
        return 1


def is_list(value: Any) -> bool:
    """Return whether `value` is a list, a tuple, or an array or Series with one axis."""
    return isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) == 1


def finite(value: Any) -> float | None:
    """Return `value` as a float, or None if it is not a single finite real number."""
    number = real_number(value)
    return number if number is not None and math.isfinite(number) else None
