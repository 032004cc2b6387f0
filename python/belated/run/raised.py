"""Errors of functions: their line in the user's code, their text, and their transfer between processes."""

import os
import pickle
import traceback
from functools import cache
from typing import NamedTuple

from belated.optimizers.report import format_error
from belated.warn import in_package


@cache
def _libraries() -> tuple[str, ...]:
    """Return the folders of files that do not belong to the user."""
    import sysconfig

    return tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))


class Place(NamedTuple):
    """The type of an error and its file and line in the user's code, ("", 0) if the error was raised elsewhere."""

    kind: str
    file: str
    line: int

    def __str__(self) -> str:
        return f" at {self.file}, line {self.line}" if self.file else ""


def last_line_of_user(error: BaseException) -> Place:
    """Return the type of an error and its last traceback line outside of libraries and this package."""
    kind = f"{type(error).__module__}.{type(error).__qualname__}"
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    frames = [each for each in frames if not in_package(each[0]) and not each[0].startswith("<frozen ")]
    of_user = [each for each in frames if not each[0].startswith(_libraries())]
    # If no line qualifies, the function was itself installed as a library.
    file, line = (of_user or frames or [("", 0)])[-1]
    return Place(kind, file, line)


def picklable(error: BaseException) -> BaseException:
    """Return the error, or a RuntimeError with its message if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        return RuntimeError(format_error(error))


def with_text(error: BaseException, text: str) -> BaseException:
    """Attach the traceback of an error in another process as text, and return the error."""
    error.__cause__ = _WorkerTraceback(text)
    return error


class _WorkerTraceback(Exception):
    """The traceback of an error in another process, as text."""

    def __str__(self) -> str:
        return f"in a worker:\n\n{self.args[0]}"
