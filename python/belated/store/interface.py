"""The interface of a store: the records of a study, and the operations that read and write them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from belated.errors import StoreError


class NotWritten(StoreError):
    """A transaction failed and has written nothing, so the same call can be repeated."""


class EventsGone(StoreError):
    """Events that this process has read are missing from the store."""


class Record(NamedTuple):
    """A stored event: its number, the version of the format, the key of the request, time, JSON text and checksum."""

    seq: int
    version: int
    key: str | None
    at: float
    body: str
    checksum: bytes


class Header(NamedTuple):
    """A stored study without its events. The id is drawn at random when the study is created."""

    id: int
    name: str
    definition: str
    at: float
    version: int
    checksum: bytes


class Transaction(Protocol):
    """Access to a study's log while no other process or thread can write to the log."""

    def events(self, start: int) -> list[Record]:
        """Return the events from number `start` on."""

    def append(self, records: Sequence[Record]) -> None:
        """Add events; their numbers continue after the last event."""


class Store(ABC):
    """The base class of stores, which keep the logs of studies. A store does not interpret the content of records.

    A study is found by its name and identified by its id, because after a deletion another study may have its name.

    If an operation fails, it raises StoreError and has written nothing, unless the message says that it may have
    written. To add a store, write a subclass in a new file and add a line to `belated.store.STORES`.
    """

    #: The URL from which `open_store` opens this store, in any process.
    url: str

    # : Whether `open_store` finds the same studies at this URL in every process.
    opens_by_url = True

    # : Whether readers can see events that are not on disk yet, which a crash may remove.
    shows_unsynced = False

    @classmethod
    @abstractmethod
    def from_location(cls, location: str) -> "Store":
        """Open the store at the location after ``scheme://`` in a URL."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of all studies, the oldest first."""

    def create(self, header: Header, records: Sequence[Record]) -> bool:
        """Create a study with these events. Return False if a study of this name already exists."""
        return not self.create_all([(header, records)])

    @abstractmethod
    def create_all(self, studies: Sequence[tuple[Header, Sequence[Record]]]) -> list[str]:
        """Create studies with their events in one transaction. If some names already exist, only return these names."""

    @abstractmethod
    def header(self, name: str) -> Header | None:
        """Return the study of this name, or None if it does not exist."""

    @abstractmethod
    def replace_header(self, old: Header, new: Header) -> bool:
        """Replace a header by a header with the same id and name. Return False if `old` is no longer stored."""

    @abstractmethod
    def delete(self, study: int) -> bool:
        """Delete the study with this id and its events. Return False if it does not exist.

        Later calls of processes that have opened the study raise an error.
        """

    @abstractmethod
    def events(self, study: int, start: int) -> list[Record]:
        """Return the events from number `start` on of the study with this id."""

    @abstractmethod
    def writing(self, study: int) -> AbstractContextManager[Transaction]:
        """Return a context in which the caller is the only writer of the study with this id.

        Appended events are durable when the ``with`` ends. If the ``with`` ends with an exception, the events are not
        written. An interrupt may prevent the ``with`` statement from calling ``__exit__``, so a caller may call
        ``__exit__`` again. The second call completes the remaining steps of the first, as with
        `contextlib.contextmanager`.
        """

    def flush(self, study: int) -> None:
        """Wait until all events that readers could see before this call are on disk. By default, return at once."""
        return

    def check(self) -> None:
        """Raise StoreError if the store is damaged. By default, only the checksums of the records reveal damage."""
        return

    def lost_tables(self) -> str | None:
        """Return why a store without studies is probably a part of another store; None for all other stores."""
        return None

    def salvage(self) -> tuple[list[Header], list[tuple[int, Record]]]:
        """Return the intact headers of a damaged store, and (study id, event) of all its intact events in order."""
        raise StoreError(f"store {self.url}: {type(self).__name__} cannot salvage anything from a damaged store")
