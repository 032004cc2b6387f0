"""Values that are read from files, and read again after the files have changed."""

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from belated._core import InvalidSetting

T = TypeVar("T")

# The files are looked at after this number of seconds, if the value is used.
_BETWEEN_LOOKS = 1.0


class Watched(Generic[T]):
    """A value from files. If the changed files are not usable, the earlier value stays.

    Parameters
    ----------
    read
        Reads the value; raises InvalidSetting or OSError if the files are not usable.
    files
        The files.
    kept
        What stays in use if the changed files are not usable, for the log.
    """

    def __init__(self, read: Callable[[], T], files: Sequence[Path], kept: str) -> None:
        self._read, self._files, self._kept = read, files, kept
        self._seen = self._look()
        self._value = read()

    def get(self) -> T:
        """Return the value after the last usable change."""
        if time.monotonic() - self._looked >= _BETWEEN_LOOKS:
            seen, self._seen = self._seen, self._look()
            if seen != self._seen:
                try:
                    self._value = self._read()
                except (InvalidSetting, OSError) as error:
                    # The state was recorded, so that the error is logged once.
                    logging.getLogger("belated").error("the earlier %s in use: %s", self._kept, error)
        return self._value

    def _look(self) -> list[object]:
        """Return data that change when a file changes."""
        self._looked = time.monotonic()
        return [_state(file) for file in self._files]


def _state(file: Path) -> object:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
