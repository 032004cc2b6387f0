"""The base class of values: frozen dataclasses for settings, whose fields are checked and converted to JSON data.

The annotation of a field declares its type: a number, a ``Literal`` of strings, a list, a tuple, None, or a union of
these types.
"""

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any, ClassVar, Literal

import numpy as np

from belated._core import InvalidSetting
from belated.optimizers.names import ChecksKeywords
from belated.short_repr import short_repr
from belated.space.arguments import as_timedelta, finite, in_seconds, is_list, shown, whole_number


def private(default: Any) -> Any:
    """Return a dataclass field that is set only by replays and is left out of the signature of the class."""
    return dataclasses.field(default=default, kw_only=True, metadata={"private": True})


#: The annotations of the fields of a class, by name. Resolving annotations takes longer than checking a value.
annotations_of: Callable[[type], Mapping[str, Any]] = functools.cache(typing.get_type_hints)


# Checks.


def _natural(value: Any) -> int | None:
    number = whole_number(value)
    return number if number is not None and 0 <= number < 2**64 else None


# Plain type → a function that returns the converted value (None for an invalid value), and a description of valid
# values.
_PLAIN: dict[Any, tuple[Callable[[Any], Any], str]] = {
    bool: (lambda value: bool(value) if isinstance(value, (bool, np.bool_)) else None, "True or False"),
    int: (_natural, "an integer from 0 to 2**64 - 1"),
    float: (finite, "a finite number"),
    timedelta: (lambda value: in_seconds(value) if isinstance(as_timedelta(value), timedelta) else None, "a timedelta"),
    types.NoneType: (lambda value: None, "None"),
}


def _parts(annotation: Any) -> tuple[Any, ...]:
    union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    return typing.get_args(annotation) if union else (annotation,)


def checked(value: Any, annotation: Any, name: str) -> Any:
    """Convert `value` to the first type in the annotation that allows it, and return it.

    Raise InvalidSetting, with the allowed values, if the value is invalid.
    """
    parts = _parts(annotation)
    if value is None and types.NoneType in parts:
        # If strings do not denote values of the class, None denotes the value with the defaults.
        return next((part() for part in parts if _is_value(part) and not part.shorthand), None)
    for part in parts:
        found = _converted(value, part)
        if found is not None:
            return found
    from belated.hints import value_advice

    words = [word for part in parts if typing.get_origin(part) is Literal for word in typing.get_args(part)]
    expected = " or ".join(each for part in parts for each in _described(part))
    raise InvalidSetting(f"{name}={short_repr(value)} is not usable: pass {expected}{value_advice(value, words)}")


def _is_value(part: Any) -> bool:
    return isinstance(part, type) and issubclass(part, Value)


def _converted(value: Any, part: Any) -> Any:
    """Return a value converted to a type that is not a union, or None if the type does not allow it."""
    origin, within = typing.get_origin(part), typing.get_args(part)
    if part in _PLAIN:
        return _PLAIN[part][0](value)
    if origin is Literal:
        return value if isinstance(value, str) and value in within else None
    if origin is None:
        return part.denoted(value)
    # The type is a tuple with one type for each entry, or a sequence with the same type for all entries.
    if not is_list(value) or not len(value) or (origin is tuple and len(value) != len(within)):
        return None
    kinds = within if origin is tuple else within * len(value)
    entries = tuple(_converted(*each) for each in zip(value, kinds, strict=True))
    return None if None in entries else entries


def _described(part: Any) -> Iterator[str]:
    """Yield descriptions of the values that a type allows."""
    within = typing.get_args(part)
    if part in _PLAIN:
        yield _PLAIN[part][1]
    elif typing.get_origin(part) is Literal:
        yield from map(repr, within)
    elif typing.get_origin(part) is tuple:
        yield f"{len(within)} {'integers >= 0' if int in within else 'finite numbers'}"
    elif within:
        yield "a list of finite numbers"
    else:
        yield from (f"{each.__name__}(…)" for each in part.__subclasses__() or [part] if dataclasses.fields(each))


# Values and their kinds.


@dataclasses.dataclass(frozen=True, repr=False)
class Value(ChecksKeywords):
    """The base of all values. The constructor checks and converts the fields by their annotations."""

    # All classes of values, by name.
    kinds: ClassVar[dict[str, "type[Value]"]] = {}
    # For one argument, the strings that stand for values with default fields.
    shorthand: ClassVar[dict[str, "type[Value]"]] = {}

    def __init_subclass__(cls, *, argument: bool = False, name: str | None = None) -> None:
        """Register a class.

        `argument` is True for the base class of the values that an argument takes. `name` is the string that denotes
        the value with its defaults; if it is given, the base class is also a value.
        """
        if argument:
            cls.shorthand = {}
        if name is not None:
            cls.shorthand[name] = cls
        if name is not None or not argument:
            Value.kinds[cls.__name__] = cls

    def __post_init__(self) -> None:
        annotations = annotations_of(type(self))
        for field in dataclasses.fields(self):
            value = checked(getattr(self, field.name), annotations[field.name], field.name)
            object.__setattr__(self, field.name, value)

    def __repr__(self) -> str:
        return shown(self)

    @classmethod
    def denoted(cls, given: Any) -> Any:
        """Return the given value, or the value that a string denotes; None for other arguments."""
        if isinstance(given, cls):
            return given
        return cls.shorthand[given]() if isinstance(given, str) and given in cls.shorthand else None


def family_of(cls: type, argument: str) -> Any:
    """Return the base class of the values that an argument takes, or None if the argument takes plain data."""
    return next((part for part in _parts(annotations_of(cls).get(argument)) if _is_value(part)), None)


def as_data(value: Any) -> Any:
    """Return a value as JSON data ``{"kind": class, **fields}``."""
    if dataclasses.is_dataclass(value):
        entries = {field.name: as_data(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"kind": type(value).__name__} | entries
    if isinstance(value, (list, tuple, np.ndarray)):
        return [as_data(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


def from_data(data: Any) -> Any:
    """Return the value from the data that `as_data` returned; raise KeyError if the kind is unknown."""
    if isinstance(data, dict):
        return Value.kinds[data["kind"]](**{name: from_data(entry) for name, entry in data.items() if name != "kind"})
    return data
