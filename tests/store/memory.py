"""A store in this process's memory, written against the interface alone."""

import threading
from contextlib import contextmanager

from belated.store import Store, StoreError

_LOCATIONS = {}


class MemoryStore(Store):
    """Stores of one location are one, as with a file."""

    def __init__(self, location):
        self.url = f"memory://{location}"
        self._studies = {}
        self._lock = threading.RLock()

    @classmethod
    def from_location(cls, location):
        return _LOCATIONS.setdefault(location, cls(location))

    def names(self):
        return list(self._studies)

    def create(self, header, records):
        with self._lock:
            if header.name in self._studies:
                return False
            self._studies[header.name] = (header, list(records))
            return True

    def header(self, name):
        return self._studies[name][0] if name in self._studies else None

    def events(self, name, start):
        return _Log(self._log(name)).events(start)

    @contextmanager
    def writing(self, name):
        with self._lock:
            log = _Log(self._log(name))
            yield log
            log.committed.extend(log.added)

    def _log(self, name):
        if name not in self._studies:
            raise StoreError(f"store {self.url}: it has no study {name!r}")
        return self._studies[name][1]


class _Log:
    def __init__(self, committed):
        self.committed, self.added = committed, []

    def events(self, start):
        return (self.committed + self.added)[start:]

    def append(self, records):
        self.added.extend(records)
