"""Times at which the events of a study were written, and the trials of the events."""

from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from belated.store.interface import Record

_NONE = -1


class Written(NamedTuple):
    """Times of the first and the last event of a trial, in seconds since 1970 by the writers' clocks."""

    first: float
    last: float


class History:
    """Data about the events of a log that only the store keeps."""

    def __init__(self) -> None:
        self._at = array("d")
        self._concerned = array("q")
        # The index covers the events read so far. It is computed at the first request, because most studies do not need
        # it.
        self._written: dict[int, Written] = {}
        self._n_seen = 0

    def note(self, records: Sequence[Record], numbers: Iterable[int | None]) -> None:
        """Add new events, with the number of the trial of each event."""
        self._at.extend(record.at for record in records)
        self._concerned.extend(_NONE if number is None else number for number in numbers)

    def concerned(self, event: int) -> int | None:
        """Return the number of the trial of an event."""
        number = self._concerned[event]
        return None if number == _NONE else number

    def written(self, number: int) -> Written:
        """Return the times at which the first and the last event of a trial were written."""
        for event in range(self._n_seen, len(self._at)):
            concerned, at = self._concerned[event], self._at[event]
            known = self._written.get(concerned)
            self._written[concerned] = Written(at if known is None else known.first, at)
        self._n_seen = len(self._at)
        return self._written[number]

    def changed(self, start: int) -> list[int]:
        """Return the numbers of the trials of all events from number `start` on, in order."""
        return sorted(set(self._concerned[start:]) - {_NONE})
