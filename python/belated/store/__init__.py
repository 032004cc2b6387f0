"""Where studies are kept: the face that every store has, and the way from a URL to a store."""

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from reprlib import repr as short_repr
from typing import Protocol

from belated._core import InvalidSetting
from belated.store.events import Header, Record, StoreError

__all__ = ["Header", "Record", "Store", "StoreError", "Transaction", "open_store"]


class Transaction(Protocol):
    """A study's log while nobody else can write to it."""

    def events(self, start: int) -> list[Record]:
        """The events from number `start` on."""

    def append(self, records: Sequence[Record]) -> None:
        """Add events, numbered on from the last one."""


class Store(Protocol):
    """A place for the logs of studies; it keeps records and leaves their meaning to the study.

    What does not work raises StoreError, and then nothing has been written.
    """

    url: str

    def names(self) -> list[str]:
        """The studies there are."""

    def create(self, header: Header, records: Sequence[Record]) -> bool:
        """Start a study with these events; False where there is one of this name already."""

    def header(self, name: str) -> Header | None:
        """The study of this name; None where there is none."""

    def events(self, name: str, start: int) -> list[Record]:
        """A study's events from number `start` on, as of now."""

    def writing(self, name: str) -> AbstractContextManager[Transaction]:
        """The only writer of a study, for the length of a ``with``.

        What was appended is durable when the ``with`` ends, and never was when it ends with an exception."""


def open_store(store: "str | os.PathLike[str] | Store") -> Store:
    """The store that a URL (``sqlite:///relative.db``, ``sqlite:////absolute.db``) or the path of a file names."""
    from belated.store.sqlite import SqliteStore

    if isinstance(store, os.PathLike):
        return SqliteStore(os.fspath(store))
    if not isinstance(store, str):
        if all(hasattr(store, name) for name in ("names", "create", "header", "events", "writing")):
            return store
        raise InvalidSetting(f"store={short_repr(store)} is not usable: pass 'sqlite:///file.db'")
    scheme, separator, path = store.partition(":///")
    if not separator or scheme != "sqlite":
        raise InvalidSetting(f"store={short_repr(store)} is not usable: pass 'sqlite:///file.db'")
    if not path or path == ":memory:" or "\0" in path:
        raise InvalidSetting(f"store={short_repr(store)} names no file, which a study needs to outlive its process")
    return SqliteStore(path)
