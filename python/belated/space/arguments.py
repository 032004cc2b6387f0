"""Conversion and checks of users' arguments: numbers, lists, tables and functions."""

import contextlib
import copy
import dataclasses
import functools
import inspect
import math
import numbers
import operator
import pickle
import re
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from types import NoneType
from typing import Any, TypeVar, cast

import numpy as np

from belated.errors import InvalidSetting, UnknownArgument
from belated.short_repr import short_repr

Method = TypeVar("Method", bound=Callable[..., Any])


def unknown_argument(name: str, value: Any, what: str, cls: type, **options: Any) -> UnknownArgument:
    """Return the error for an unknown argument of a class.

    The message has the form "<argument> is not <what>". The options are passed to `belated.hints.argument_advice`.
    """
    from belated.hints import argument_advice

    return UnknownArgument(f"{name}={short_repr(value)} is not {what}: {argument_advice(name, cls, **options)}")


def checks_arguments(method: Method) -> Method:
    """Decorate a method: the error for an unknown keyword then names the public class and the keyword to write."""
    known = list(inspect.signature(method).parameters)[1:]

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        for name, value in kwargs.items():
            if name not in known:
                from belated.hints import nearest

                if method.__name__ == "__init__":
                    raise unknown_argument(name, value, f"an argument of {type(self).__name__}", type(self))
                near = nearest(name, known, cutoff=0.7)
                advice = f"did you mean {near}?" if near else f"it has {', '.join(known)}"
                what = f"an argument of {type(self).__name__}.{method.__name__}"
                raise UnknownArgument(f"{name}={short_repr(value)} is not {what}: {advice}")
        return method(self, *args, **kwargs)

    return cast(Method, call)


def real_number(value: Any) -> float | None:
    """Return `value` as a float, or None if `value` is not a single real number.

    Real scalars, and arrays or tensors without axes, are real numbers; bool, complex, str and times are not. A masked
    number is NaN.
    """
    if type(value) is float:  # the most frequent case; the checks below take a microsecond
        return value
    if isinstance(value, (np.timedelta64, np.datetime64)):
        return None  # their items may be integers
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        # The item of a masked array is 0.
        value = math.nan if np.ma.is_masked(value) else value.item()
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Number):
        return None
    try:
        return float(value)  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError):  # a complex number raises TypeError
        return None


def whole_number(value: Any) -> int | None:
    """Return `value` as an int, or None if `value` is not an integer. A bool does not count as an integer."""
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def number_in_text(text: str) -> float | None:
    """Return the number that a text contains, or None.

    The underscores and the digits of other scripts that Python's `float` accepts do not count.
    """
    if "_" in text or not text.strip().isascii():
        return None
    try:
        return float(text)
    except ValueError:
        return None


def whole_in_text(text: str) -> int | None:
    """Return the integer that a text of ASCII digits contains, or None."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else None


def finite(value: Any) -> float | None:
    """Return `value` as a float, or None if `value` is not a single finite real number."""
    number = real_number(value)
    return number if number is not None and math.isfinite(number) else None


def is_gap(value: Any) -> bool:
    """Return whether a value is None, NaN, a masked number of NumPy, or a missing value of pandas."""
    if type(value) in (float, int, bool, str):  # the most frequent cases
        return bool(value != value)
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    number = real_number(value)
    return number is not None and math.isnan(number)


def as_timedelta(value: Any) -> Any:
    """Return a timedelta of NumPy as a timedelta, if it has a unit of fixed length, and other values unchanged."""
    if isinstance(value, np.timedelta64) and np.datetime_data(value)[0] != "generic":
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            return timedelta(seconds=float(value / np.timedelta64(1, "s")))
    return value


def in_seconds(value: Any) -> Any:
    """Return a timedelta, also of NumPy, as a number of seconds, and other values unchanged."""
    value = as_timedelta(value)
    return value.total_seconds() if isinstance(value, timedelta) else value


def copied(value: Any) -> Any:
    """Return a user's value with its containers copied, so that changes of the original and of the copy are
    independent.

    Scalars of NumPy become objects of Python, and every NaN becomes `math.nan`, so that equal values are found. All
    other objects stay the same objects.
    """
    if type(value) in (str, int, bool, NoneType):  # the most frequent cases
        return value
    if isinstance(value, (np.number, np.bool_, np.str_, np.bytes_)) and not isinstance(value, np.timedelta64):
        value = value.item()
    elif isinstance(value, np.ndarray):
        return value.copy() if value.ndim else copied(value[()])
    if isinstance(value, float):
        return value if value == value else math.nan
    if isinstance(value, tuple):
        entries = [copied(each) for each in value]
        if all(a is b for a, b in zip(entries, value, strict=True)):
            return value
        return type(value)(*entries) if hasattr(value, "_fields") else type(value)(entries)
    if isinstance(value, (list, dict, set, bytearray, deque)):
        made = copy.copy(value)
        if isinstance(made, list):
            made[:] = [copied(each) for each in made]
        elif isinstance(made, dict):
            made.update({key: copied(each) for key, each in made.items()})
        return made
    return value


def one_line(value: Any) -> str:
    """Return a short repr of a value in a single line, for messages. Arrays and tables have reprs of several lines."""
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


def name_of(function: Any) -> str:
    """Return the name of a function, or the class of another callable."""
    return str(getattr(function, "__name__", type(function).__name__))


def check_picklable(function: Any, what: str, advice: str) -> None:
    """Raise an error if a function cannot be sent to another process; `what` is its argument, for messages."""
    try:
        pickle.dumps(function)
    except Exception as error:
        raise InvalidSetting(
            f"{what} ({name_of(function)}) cannot be pickled: {type(error).__name__}: {error}; {advice}"
        ) from error


def arguments_of(cls: Any, *, private: bool = False) -> list[str]:
    """Return the names of a class's arguments in the order of the signature; with `private`, include private fields."""
    names = list(inspect.signature(cls).parameters)
    fields, lacked = dataclasses.fields(cls), getattr(cls, "_lacks", ())
    return list(dict.fromkeys(names + [each.name for each in fields if each.name not in lacked])) if private else names


def shown(value: Any, **replaced: Any) -> str:
    """Return a dataclass as source code: required arguments, and those other arguments that differ from their defaults.

    `replaced` contains other values for some arguments, to be written instead.
    """
    defaults = {field.name: field.default for field in dataclasses.fields(value)}
    parts = []
    for name in arguments_of(type(value), private=True):
        given, default = vars(value)[name], defaults[name]
        text = repr(replaced.get(name, given))
        if default is dataclasses.MISSING:
            parts.append(text)
        elif given is not default and not (type(given) is type(default) and given == default):
            parts.append(f"{name}={text}")
    return f"{type(value).__name__}({', '.join(parts)})"
