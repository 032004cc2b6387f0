"""The times at which the events of a study were written, and for each event the number of its trial."""

from array import array
from collections.abc import Iterable

from belated.store.interface import Record

_NONE = -1


class History:
    """Data about the events of a log that only the store keeps."""

    def __init__(self) -> None:
        # The number of the trial of each event, or _NONE.
        self._concerned = array("q")
        # The times of the first and of the last event of each trial.
        self._first: dict[int, float] = {}
        self._last: dict[int, float] = {}
        # The number of the last event that changed the points of all trials, or _NONE.
        self._revised = _NONE

    def note(self, records: Iterable[Record], numbers: Iterable[int | None]) -> None:
        """Add new events; `numbers` contains, for each event, the number of its trial."""
        for record, number in zip(records, numbers, strict=True):
            self._concerned.append(_NONE if number is None else number)
            if number is not None:
                self._first.setdefault(number, record.at)
                self._last[number] = record.at

    def note_revision(self) -> None:
        """Record that the last event changed the points of all trials."""
        self._revised = len(self._concerned) - 1

    def concerned(self, event: int) -> int | None:
        """Return the number of the trial of an event."""
        number = self._concerned[event]
        return None if number == _NONE else number

    def written(self, number: int) -> tuple[float, float]:
        """Return when the first and the last event of a trial were written, in seconds since 1970."""
        return self._first[number], self._last[number]

    def changed(self, start: int) -> list[int]:
        """Return, in order, the numbers of the trials to which the events from number `start` on belong."""
        return sorted(set(self._concerned[0 if start <= self._revised else start :]) - {_NONE})
