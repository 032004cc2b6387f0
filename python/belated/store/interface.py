"""The interface of a store: the records of a study, and the operations that read and write them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from belated._core import BelatedError


class StoreError(BelatedError):
    """A store that cannot be read or written, or that holds something no study of belated could have written."""


class NotWritten(StoreError):
    """A transaction that certainly wrote nothing, although it might have: the same call can be made again."""


class EventsGone(StoreError):
    """Events are no longer in the store that this process has read from it."""


class Record(NamedTuple):
    """One event as it is stored: its number, the format's version, the key of its request, the time, JSON, checksum."""

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


class Store(ABC):
    """A place for the logs of studies; it keeps records and leaves their meaning to the study.

    An operation that does not succeed raises StoreError, and then nothing has been written, unless the message says so.
    A new store is a subclass in a new file and a line in `belated.store.STORES`.
    """

    #: What `open_store` opens this store from, in any process.
    url: str

    #: Whether `open_store` finds the same studies by this URL, in any process.
    opens_by_url = True

    #: Whether readers see events that a crash may still undo, because their writer waits for the disk.
    shows_unsynced = False

    @classmethod
    @abstractmethod
    def from_location(cls, location: str) -> "Store":
        """The store at what follows ``scheme://`` in a URL."""

    @abstractmethod
    def names(self) -> list[str]:
        """The names of all studies, the oldest first."""

    @abstractmethod
    def create(self, header: Header, records: Sequence[Record]) -> bool:
        """Start a study with these events; False where there is one of this name already."""

    def create_all(self, studies: Sequence[tuple[Header, Sequence[Record]]]) -> list[str]:
        """Start several studies with their events; the names that are there already, and then none was started.

        In one transaction where a store overrides it; here one after another.
        """
        taken = [header.name for header, _ in studies if self.header(header.name) is not None]
        return taken or [header.name for header, records in studies if not self.create(header, records)]

    @abstractmethod
    def header(self, name: str) -> Header | None:
        """The study of this name; None if there is no such study."""

    @abstractmethod
    def events(self, name: str, start: int) -> list[Record]:
        """A study's events from number `start` on, as of now."""

    @abstractmethod
    def writing(self, name: str) -> AbstractContextManager[Transaction]:
        """The only writer of a study, for the length of a ``with``.

        Appended events are durable when the ``with`` ends, and are not written when it ends with an exception.
        ``__exit__`` may be called again, since an interrupt may keep the ``with`` from calling it; as of a function
        with `contextlib.contextmanager`, it then ends what is not ended yet.
        """

    def flush(self, name: str) -> None:
        """Wait until all events of a study that readers could see before this call are on disk; by default they are."""
        return

    def check(self) -> None:
        """Raise StoreError where the store finds itself damaged; by default it relies on the records' checksums."""
        return

    def salvage(self) -> tuple[list[Header], list[tuple[int, Record]]]:
        """From a damaged store: the intact headers, and (study id, event) of all intact events, in order."""
        raise StoreError(f"store {self.url}: {type(self).__name__} cannot salvage anything from a damaged store")
