"""The times when the events of a study were written, and the trials that they concern."""

from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from belated.store.interface import Record

_NONE = -1


class Written(NamedTuple):
    """The times when the first and last event of a trial were written, in seconds since 1970 by the writers' clocks."""

    first: float
    last: float


class History:
    """The facts that the store keeps about the events of a log, in addition to the events."""

    def __init__(self) -> None:
        self._at = array("d")
        self._concerned = array("q")
        # Covers the events that were read so far; computed at the first request, because most studies never need it.
        self._written: dict[int, Written] = {}
        self._n_seen = 0

    def note(self, records: Sequence[Record], numbers: Iterable[int | None]) -> None:
        """Take in new events, with the number of the trial that each of them concerns."""
        self._at.extend(record.at for record in records)
        self._concerned.extend(_NONE if number is None else number for number in numbers)

    def concerned(self, event: int) -> int | None:
        """Return the number of the trial that an event concerns."""
        number = self._concerned[event]
        return None if number == _NONE else number

    def written(self, number: int) -> Written:
        """Return the times when the first and the last event of a trial were written."""
        for event in range(self._n_seen, len(self._at)):
            concerned, at = self._concerned[event], self._at[event]
            known = self._written.get(concerned)
            self._written[concerned] = Written(at if known is None else known.first, at)
        self._n_seen = len(self._at)
        return self._written[number]

    def changed(self, start: int) -> list[int]:
        """Return the numbers of the trials that events from number `start` on concern, in order."""
        return sorted(set(self._concerned[start:]) - {_NONE})
