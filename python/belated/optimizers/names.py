"""Errors for unknown arguments. The message names the argument to write instead."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from belated._core import InvalidSetting
from belated.short_repr import short_repr

Method = TypeVar("Method", bound=Callable[..., Any])


class UnknownArgument(InvalidSetting, TypeError):
    """A function or class does not have an argument that was passed; the message names a replacement."""


def unknown_argument(name: str, value: Any, what: str, cls: type, **options: Any) -> UnknownArgument:
    """Return the error for an unknown argument of a class.

    In the message, the words "is not" and the text `what` follow the argument. The options are passed to
    `belated.hints.argument_advice`.
    """
    from belated.hints import argument_advice

    return UnknownArgument(f"{name}={short_repr(value)} is not {what}: {argument_advice(name, cls, **options)}")


def checks_arguments(method: Method) -> Method:
    """Decorate a method: the error for an unknown keyword then names the public class and the known keywords."""
    known = list(inspect.signature(method).parameters)[1:]

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        for name, value in kwargs.items():
            if name not in known:
                from belated.hints import nearest

                near = nearest(name, known, cutoff=0.7)
                advice = f"did you mean {near}?" if near else f"it has {', '.join(known)}"
                what = f"an argument of {type(self).__name__}.{method.__name__}"
                raise UnknownArgument(f"{name}={short_repr(value)} is not {what}: {advice}")
        return method(self, *args, **kwargs)

    return cast(Method, call)


@functools.cache
def _public_signature(cls: Any) -> inspect.Signature:
    """Return the signature of a dataclass: first its own arguments, then the arguments of its base classes.

    The signature omits private fields and types; types are in the docstring.
    """
    made = inspect.signature(cls.__init__)
    own, fields = inspect.get_annotations(cls), cls.__dataclass_fields__
    shown = [
        each.replace(annotation=inspect.Parameter.empty)
        for name, each in made.parameters.items()
        if name != "self" and not (name in fields and fields[name].metadata.get("private"))
    ]
    shown.sort(key=lambda each: each.kind is inspect.Parameter.KEYWORD_ONLY and 1 + (each.name not in own))
    return made.replace(parameters=shown, return_annotation=inspect.Parameter.empty)


class _PublicSignature:
    def __get__(self, instance: object, cls: Any) -> inspect.Signature:
        return _public_signature(cls)


@functools.cache
def _accepts(cls: Any, name: str) -> bool:
    """Return whether the constructor of a class, which may be a user's subclass, accepts a keyword."""
    parameters = inspect.signature(cls.__init__).parameters
    return name in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())


class ChecksKeywords:
    """The base of dataclasses; an error for an unknown keyword names the most similar argument."""

    __signature__ = _PublicSignature()

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        for name, value in kwargs.items():
            if not _accepts(cls, name):  # type: ignore[arg-type]
                raise unknown_argument(name, value, f"an argument of {cls.__name__}", cls)
        return super().__new__(cls)
