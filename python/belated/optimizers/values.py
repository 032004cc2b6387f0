"""Values: frozen dataclasses for settings, with checks by their annotations, and conversion to JSON data.

The annotation of a field declares its type: a number, strings by ``Literal``, a list, a tuple, None, or a union of
these types.
"""

import dataclasses
import difflib
import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from belated._core import InvalidSetting
from belated.optimizers.names import VALUES_ELSEWHERE, UnknownArgument, advice_on
from belated.short_repr import short_repr
from belated.space.arguments import finite, is_list, whole_number

T = TypeVar("T")


# Fields.


def takes(family: Any, default: Any, *, optional: bool = False) -> Any:
    """Return a dataclass field for an argument that takes values of a family; with `optional` it also takes None."""
    return dataclasses.field(default=default, metadata={"takes": family, "optional": optional})


def private(default: Any) -> Any:
    """Return a dataclass field that only replays set. The signature of the class does not show it."""
    return dataclasses.field(default=default, kw_only=True, metadata={"private": True})


def arguments_of(cls: Any, *, private: bool = False) -> list[str]:
    """Return the names of the arguments of a class, in the order of its signature; with `private`, all fields."""
    names = list(inspect.signature(cls).parameters)
    return list(dict.fromkeys(names + [field.name for field in dataclasses.fields(cls)])) if private else names


# Annotations are resolved once per class, because resolving takes longer than checking a value.
_annotations: dict[type, Mapping[str, Any]] = {}


def annotations_of(cls: type) -> Mapping[str, Any]:
    """Return the annotations of the fields of a class, by name."""
    if cls not in _annotations:
        _annotations[cls] = typing.get_type_hints(cls)
    return _annotations[cls]


def shown(value: Any, **replaced: Any) -> str:
    """Return ``Class(name=value, …)`` with only the fields that differ from their defaults."""
    defaults = {field.name: field.default for field in dataclasses.fields(value)}
    parts = []
    for name in arguments_of(type(value), private=True):
        given, default = getattr(value, name), defaults[name]
        if given is not default and not (type(given) is type(default) and given == default):
            parts.append(f"{name}={replaced.get(name, given)!r}")
    return f"{type(value).__name__}({', '.join(parts)})"


# Checks.


def checked(value: Any, annotation: Any, name: str) -> Any:
    """Return `value` converted by the annotation; raise InvalidSetting, with the allowed values, if it is invalid."""
    found = _conform(value, annotation)
    if found is not _NOTHING:
        return found
    message = f"{name}={short_repr(value)} is not usable: pass {' or '.join(_described(annotation))}"
    literals = [part for part in _parts(annotation) if typing.get_origin(part) is Literal]
    words = [word for part in literals for word in typing.get_args(part)]
    raise InvalidSetting(message + nearest(value, words))


def nearest(value: Any, words: Iterable[str]) -> str:
    """Return ``; did you mean …?`` with the word most similar to `value`, or "" if all words differ strongly."""
    if not isinstance(value, str):
        return ""
    words, name = list(words), value.lower()
    elsewhere = VALUES_ELSEWHERE.get(name)
    near = [elsewhere] if elsewhere in words else difflib.get_close_matches(name, words, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


_IN_WORDS = {
    bool: "True or False",
    int: "an integer from 0 to 2**64 - 1",
    float: "a finite number",
    types.NoneType: "None",
}

# The result of `_conform` for a value that the annotation does not allow.
_NOTHING = object()


def _parts(annotation: Any) -> tuple[Any, ...]:
    union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    return typing.get_args(annotation) if union else (annotation,)


def _conform(value: Any, annotation: Any) -> Any:
    """Return a value converted by the first part of the annotation that allows it, or else `_NOTHING`."""
    for part in _parts(annotation):
        origin, within = typing.get_origin(part), typing.get_args(part)
        found: Any = None
        if part is types.NoneType:
            if value is None:
                return None
        elif part is bool:
            found = bool(value) if isinstance(value, (bool, np.bool_)) else None
        elif part is int:
            number = whole_number(value)
            found = number if number is not None and 0 <= number < 2**64 else None
        elif part is float:
            found = finite(value)
        elif origin is Literal:
            found = value if isinstance(value, str) and value in within else None
        elif origin in (tuple, Sequence) and is_list(value):
            kinds = within if origin is tuple else within * len(value)
            entries = [_conform(*pair) for pair in zip(value, kinds, strict=False)]
            fits = len(entries) == len(value) == len(kinds) > 0 and _NOTHING not in entries
            found = tuple(entries) if fits else None
        elif part in Value.kinds.values():
            found = value if isinstance(value, part) else None
        if found is not None:
            return found
    return _NOTHING


def _described(annotation: Any) -> Iterator[str]:
    """Yield descriptions of the values that the parts of an annotation allow."""
    for part in _parts(annotation):
        within = typing.get_args(part)
        if typing.get_origin(part) is Literal:
            yield from map(repr, within)
        elif typing.get_origin(part) is tuple:
            yield f"{len(within)} {'integers >= 0' if int in within else 'finite numbers'}"
        elif typing.get_origin(part) is Sequence:
            yield "a list of finite numbers"
        else:
            yield _IN_WORDS.get(part) or f"{part.__name__}(…)"


def checks_keywords(cls: type[T]) -> type[T]:
    """Decorate a dataclass: for an unknown keyword it raises UnknownArgument, with the most similar argument.

    The signature shows the arguments of a class before the arguments of its bases. It omits types, because the
    docstring has them, and private fields.
    """
    made: Callable[..., None] = cls.__init__
    signature = inspect.signature(made)
    own = list(cls.__dict__.get("__annotations__", ()))
    hidden = {field.name for field in dataclasses.fields(cls) if field.metadata.get("private")}  # type: ignore[arg-type]
    shown = [each for each in signature.parameters.values() if each.name not in hidden]
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in shown]
    plain.sort(key=lambda each: each.kind is inspect.Parameter.KEYWORD_ONLY and 1 + (each.name not in own))

    @functools.wraps(made)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        for name in kwargs:
            if name not in signature.parameters:
                raise UnknownArgument(
                    f"{name}={short_repr(kwargs[name])} is not an argument of {type(self).__name__}: "
                    f"{advice_on(name, type(self))}"
                )
        made(self, *args, **kwargs)

    shown_signature = signature.replace(parameters=plain, return_annotation=inspect.Parameter.empty)
    __init__.__signature__ = shown_signature  # type: ignore[attr-defined]
    cls.__init__ = __init__  # type: ignore[method-assign]
    return cls


# Values and their kinds.


@dataclasses.dataclass(frozen=True, repr=False)
class Value:
    """The base of all values. The constructor checks and converts the fields by their annotations."""

    # All classes of values, by name.
    kinds: ClassVar[dict[str, "type[Value]"]] = {}
    # The strings that name values with their defaults, for one argument.
    shorthand: ClassVar[dict[str, "type[Value]"]] = {}

    def __init_subclass__(cls, *, argument: bool = False, name: str | None = None) -> None:
        """Register a class.

        `argument` is True for the base class of the values of an argument. `name` is the string that denotes the value
        with its defaults.
        """
        if argument:
            cls.shorthand = {}
        else:
            Value.kinds[cls.__name__] = cls
        if name is not None:
            cls.shorthand[name] = cls

    def __post_init__(self) -> None:
        annotations = annotations_of(type(self))
        for field in dataclasses.fields(self):
            value = checked(getattr(self, field.name), annotations[field.name], field.name)
            object.__setattr__(self, field.name, value)

    def __repr__(self) -> str:
        return shown(self)

    @classmethod
    def from_argument(cls, given: Any, name: str) -> Any:
        """Return the given value, or the value that a string or None denotes."""
        if isinstance(given, cls):
            return given
        if given is None and not cls.shorthand:
            return cls()
        if isinstance(given, str) and given in cls.shorthand:
            return cls.shorthand[given]()
        if not cls.shorthand:
            raise InvalidSetting(f"{name}={short_repr(given)} is not usable: pass {cls.__name__}(…) or None")
        values = [f"{each.__name__}(…)" for each in cls.shorthand.values() if dataclasses.fields(each)]
        raise InvalidSetting(
            f"{name}={short_repr(given)} is not usable: pass {' or '.join(map(repr, cls.shorthand))}"
            + (f", or {', '.join(values)}" if values else "")
            + nearest(given, cls.shorthand)
        )


def as_data(value: Any) -> Any:
    """Return a value as JSON data ``{"kind": class, **fields}``."""
    if dataclasses.is_dataclass(value):
        entries = {field.name: as_data(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"kind": type(value).__name__} | entries
    if isinstance(value, (list, tuple, np.ndarray)):
        return [as_data(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


def from_data(data: Any, kinds: Mapping[str, Callable[..., Any]] = Value.kinds) -> Any:
    """Return the value for data from `as_data`; raise KeyError for an unknown kind."""
    if isinstance(data, dict):
        return kinds[data["kind"]](**{name: from_data(entry, kinds) for name, entry in data.items() if name != "kind"})
    return data
