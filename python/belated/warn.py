"""The package's logger, and warnings that point to the line of the user's code that called the package."""

import os
import sys
import warnings
from types import FrameType
from typing import TYPE_CHECKING

from belated._core import BelatedWarning

if TYPE_CHECKING:
    import logging

_PACKAGE = os.path.dirname(__file__) + os.sep


def logger() -> "logging.Logger":
    """Return the package's logger, which prints nothing unless the user configures it.

    Results of runs are logged at the level INFO, and warnings at WARNING.
    """
    import logging

    found = logging.getLogger("belated")
    if not found.handlers:
        found.addHandler(logging.NullHandler())
    return found


def warn(message: str) -> None:
    """Give a `BelatedWarning` that points to the innermost line outside of this package, and log the message."""
    logger().warning("%s", message)
    # From Python 3.12 on, the argument skip_file_prefixes of warnings.warn could replace this loop.
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and _is_own(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, BelatedWarning, stacklevel=level)


def _is_own(frame: FrameType) -> bool:
    """Return whether a frame runs code of this package, including the generated constructors of its dataclasses."""
    name, package = frame.f_globals.get("__name__", ""), __name__.partition(".")[0]
    generated = frame.f_code.co_filename == "<string>" and name.startswith(package + ".")
    return generated or in_package(frame.f_code.co_filename)


def in_package(filename: str) -> bool:
    """Return whether a file belongs to this package."""
    return filename.startswith(_PACKAGE)
