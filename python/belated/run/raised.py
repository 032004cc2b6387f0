"""Errors that a user's function raised: find the line in the user's code, and send errors between processes."""

import os
import pickle
import traceback
from functools import cache
from typing import Any, NamedTuple

from belated.optimizers.report import format_error, format_traceback
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
    error.__cause__ = _WorkerTraceback(text)
    return error


class _WorkerTraceback(Exception):
    """The cause of an error from another process. The cause shows the traceback of the error as text."""

    def __str__(self) -> str:
        return f"in a worker:\n\n{self.args[0]}"
