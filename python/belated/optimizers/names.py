"""The base of classes whose errors for unknown arguments name the argument to write instead."""

import functools
import inspect
from typing import Any, ClassVar

from belated.space.arguments import unknown_argument


@functools.cache
def _public_signature(cls: Any) -> inspect.Signature:
    """Return the signature of a dataclass: first its own arguments, then the arguments of its base classes.

    The signature omits private fields, arguments that the class refuses, and types; types are in the docstring.
    """
    made = inspect.signature(cls.__init__)
    own, fields = inspect.get_annotations(cls), cls.__dataclass_fields__
    shown = [
        each.replace(annotation=inspect.Parameter.empty)
        for name, each in made.parameters.items()
        if name != "self" and name not in cls._lacks and not (name in fields and fields[name].metadata.get("private"))
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
    # The arguments of base classes that the class refuses.
    _lacks: ClassVar[frozenset[str]] = frozenset()

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        for name, value in kwargs.items():
            if not _accepts(cls, name):  # type: ignore[arg-type]
                raise unknown_argument(name, value, f"an argument of {cls.__name__}", cls)
        return super().__new__(cls)
