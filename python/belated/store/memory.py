"""A store in this process's memory, for studies that end with the process."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from belated.store.interface import Header, Record, Store, StoreError, Transaction


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
        self._studies: dict[str, tuple[Header, list[Record]]] = {}
        self._lock = threading.RLock()

    @classmethod
    def from_location(cls, location: str) -> "MemoryStore":
        """Return a new store; the location is ignored."""
        return cls()

    def names(self) -> list[str]:
        """Return the names of all studies, the oldest first."""
        return list(self._studies)

    def create_all(self, studies: Sequence[tuple[Header, Sequence[Record]]]) -> list[str]:
        """Create several studies with their events. If some names already exist, only return these names."""
        with self._lock:
            taken = [header.name for header, _ in studies if header.name in self._studies]
            if not taken:
                self._studies.update({header.name: (header, list(records)) for header, records in studies})
            return taken

    def header(self, name: str) -> Header | None:
        """Return the study of this name, or None if it does not exist."""
        return self._studies[name][0] if name in self._studies else None

    def replace_header(self, old: Header, new: Header) -> bool:
        """Replace a header by a header with the same id and name. Return False if `old` is no longer stored."""
        with self._lock:
            stored = self.header(old.name) == old
            if stored:
                self._studies[old.name] = (new, self._records(old.name))
            return stored

    def delete(self, name: str) -> bool:
        """Delete a study with its events. Return False if it does not exist."""
        with self._lock:
            return self._studies.pop(name, None) is not None

    def events(self, name: str, start: int) -> list[Record]:
        """Return a study's events from number `start` on."""
        return self._records(name)[start:]

    @contextmanager
    def writing(self, name: str) -> Iterator[Transaction]:
        """Return a context in which the caller is the only writer of a study."""
        with self._lock:
            records = self._records(name)
            log = _Log(records)
            yield log
            records.extend(log.added)

    def _records(self, name: str) -> list[Record]:
        if name not in self._studies:
            raise StoreError(f"store {self.url}: it has no study {name!r}")
        return self._studies[name][1]


class _Log:
    """Access to a study's log while no other thread can write to the log."""

    def __init__(self, committed: list[Record]) -> None:
        self._committed = committed
        self.added: list[Record] = []

    def events(self, start: int) -> list[Record]:
        return (self._committed + self.added)[start:]

    def append(self, records: Sequence[Record]) -> None:
        self.added.extend(records)
