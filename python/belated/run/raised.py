"""Errors that a user's function raised: find the line in the user's code, and send errors between processes."""

import os
import pickle
import traceback
from functools import cache
from typing import Any, NamedTuple

from belated.optimizers.report import TracebackText, format_error, format_traceback
from belated.warn import in_package


@cache
def _libraries() -> tuple[str, ...]:
    """Return the folders of the standard library and of installed packages."""
    import sysconfig

    return tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))


class Place(NamedTuple):
    """The type of an error, and the file and line in the user's code that raised it.

    If the line is unknown, the file is "" and the line is 0.
    """

    kind: str
    file: str
    line: int

    def __str__(self) -> str:
        return f" at {self.file}, line {self.line}" if self.file else ""


def last_line_of_user(error: BaseException) -> Place:
    """Return the type of an error, and the last line of its traceback outside of libraries and this package."""
    kind = f"{type(error).__module__}.{type(error).__qualname__}"
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    frames = [each for each in frames if not in_package(each[0]) and not each[0].startswith("<frozen ")]
    of_user = [each for each in frames if not each[0].startswith(_libraries())]
    # If all lines are in libraries, the function belongs to an installed package; use its last line.
    file, line = (of_user or frames or [("", 0)])[-1]
    return Place(kind, file, line)


class Sendable:
    """An error to be pickled. Unpickling returns the original error, whose cause then shows the original traceback.

    If the error cannot be pickled, it becomes a RuntimeError with the same message.
    """

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __reduce__(self) -> tuple[Any, ...]:
        error, text = self._error, format_traceback(self._error)
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            error = RuntimeError(format_error(error))
        return _with_text, (error, text)


def _with_text(error: BaseException, text: str) -> BaseException:
    # Some classes of exceptions are frozen dataclasses, which refuse to set attributes.
    object.__setattr__(error, "__cause__", TracebackText(text))
    return error


def drop_frames(error: BaseException) -> None:
    """Replace the traceback of an error by its text.

    The frames of a traceback keep all local variables alive, for example a model that takes most of the memory.
    """
    text = format_traceback(error)
    waiting: list[Any] = [error]
    seen: set[int] = set()
    while waiting:
        each = waiting.pop()
        if isinstance(each, BaseException) and id(each) not in seen:
            seen.add(id(each))
            waiting += [each.__cause__, each.__context__, *(getattr(each, "exceptions", None) or ())]
            each.with_traceback(None)
    object.__setattr__(error, "__context__", None)
    _with_text(error, text)


def without_objects(error: BaseException) -> BaseException:
    """Return an error of the same type with the same cause, but without the objects that the error refers to.

    For example, an AttributeError refers to the object that lacks the attribute.
    """
    plain = all(isinstance(each, (str, int, float)) for each in error.args)
    try:
        bare = type(error).__new__(type(error), *(error.args if plain else [str(error)]))
    except Exception:
        bare = RuntimeError(format_error(error))
    object.__setattr__(bare, "__cause__", error.__cause__)
    return bare
