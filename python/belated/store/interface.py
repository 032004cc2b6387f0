"""The interface that every store has: what is kept of a study, and how it is read and written."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from belated._core import BelatedError


class StoreError(BelatedError):
    """A store that cannot be read or written, or that holds something no study of belated could have written."""


class Record(NamedTuple):
    """One event as it is stored."""

    seq: int
    version: int
    key: str | None
    at: float
    body: str
    checksum: bytes


class Header(NamedTuple):
    """A study as it is stored: everything about it but its events. Its id is drawn at random, once."""

    id: int
    name: str
    definition: str
    at: float
    version: int
    checksum: bytes


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
