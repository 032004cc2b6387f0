"""A store in this process's memory, for studies that end with the process."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from belated.errors import StoreError
from belated.store.interface import Header, Record, Store, Transaction


class MemoryStore(Store):
    """Studies in memory. Each instance is a separate store, which cannot be opened by its URL.

    Examples
    --------
    >>> import belated as bl
    >>> from belated.store.memory import MemoryStore
    >>> study = bl.Study("dose", MemoryStore(), bl.RandomSearch({"dose": (0.0, 1.0)}, seed=0))
    >>> study.suggest().number
    0
    """

    opens_by_url = False

    def __init__(self) -> None:
        self.url = "memory"
        self._studies: dict[int, tuple[Header, list[Record]]] = {}
        self._lock = threading.RLock()

    @classmethod
    def from_location(cls, location: str) -> "MemoryStore":
        """Return a new store; the location is ignored."""
        return cls()

    def names(self) -> list[str]:
        """Return the names of all studies, the oldest first."""
        with self._lock:
            return [header.name for header, _ in self._studies.values()]

    def create_all(self, studies: Sequence[tuple[Header, Sequence[Record]]]) -> list[str]:
        """Create several studies with their events. If some names already exist, only return these names."""
        with self._lock:
            taken = [header.name for header, _ in studies if self.header(header.name) is not None]
            if not taken:
                self._studies.update({header.id: (header, list(records)) for header, records in studies})
            return taken

    def header(self, name: str) -> Header | None:
        """Return the study of this name, or None if it does not exist."""
        with self._lock:
            return next((header for header, _ in self._studies.values() if header.name == name), None)

    def replace_header(self, old: Header, new: Header) -> bool:
        """Replace a header by a header with the same id and name. Return False if `old` is no longer stored."""
        with self._lock:
            stored, records = self._studies.get(old.id, (None, []))
            if stored == old:
                self._studies[old.id] = (new, records)
            return stored == old

    def delete(self, study: int) -> bool:
        """Delete the study with this id and its events. Return False if it does not exist."""
        with self._lock:
            return self._studies.pop(study, None) is not None

    def events(self, study: int, start: int) -> list[Record]:
        """Return the events from number `start` on of the study with this id."""
        return self._records(study)[start:]

    @contextmanager
    def writing(self, study: int) -> Iterator[Transaction]:
        """Return a context in which the caller is the only writer of the study with this id."""
        with self._lock:
            records = self._records(study)
            log = _Log(records)
            yield log
            records.extend(log.added)

    def _records(self, study: int) -> list[Record]:
        if study not in self._studies:
            raise StoreError(f"store {self.url}: the study was deleted")
        return self._studies[study][1]


class _Log:
    """Access to a study's log while no other thread can write to the log."""

    def __init__(self, committed: list[Record]) -> None:
        self._committed = committed
        self.added: list[Record] = []

    def events(self, start: int) -> list[Record]:
        return (self._committed + self.added)[start:]

    def append(self, records: Sequence[Record]) -> None:
        self.added.extend(records)
