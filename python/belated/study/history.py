"""The times at which the events of a study were written, and for each event the number of its trial."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from belated.store.interface import Record

_NONE = -1


class History:
    """Data about the events of a log that only the store keeps."""

    def __init__(self) -> None:
        # The number of the trial of each event, or _NONE.
        self._concerned = array("q")
        self._n_events = 0
        # The time of each event, and the numbers of the first and of the last event of each trial.
        self._times = array("d")
        self._first = array("q")
        self._last = array("q")
        # The numbers of the events that changed the points of all trials.
        self._revised: list[int] = []

    def note(self, records: Iterable[Record], numbers: Iterable[int | None]) -> None:
        """Add new events; `numbers` contains, for each event, the number of its trial."""
        for record, number in zip(records, numbers, strict=True):
            # Other threads may read at any time, so the time of an event comes first.
            self._concerned.append(_NONE if number is None else number)
            self._times.append(record.at)
            if number is not None:
                if number == len(self._first):  # trials are numbered in the order of their first events
                    self._first.append(self._n_events)
                    self._last.append(self._n_events)
                self._last[number] = self._n_events
            self._n_events += 1

    def note_revision(self) -> None:
        """Record that the last event changed the points of all trials."""
        self._revised.append(self._n_events - 1)

    def concerned(self, event: int) -> int | None:
        """Return the number of the trial of an event."""
        number = self._concerned[event]
        return None if number == _NONE else number

    def written(self, number: int) -> tuple[float, float]:
        """Return when the first and the last event of a trial were written, in seconds since 1970."""
        return self._times[self._first[number]], self._times[self._last[number]]

    def last(self, number: int) -> int:
        """Return the number of the last event of a trial."""
        return self._last[number]

    def last_of_all(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return, for each trial, the number of its last event and the time when this event was written."""
        # Copies, because an array cannot grow while numpy uses its memory.
        last = np.frombuffer(self._last.tobytes(), dtype=np.int64)
        return last, np.frombuffer(self._times.tobytes())[last]

    def events_of(self, number: int) -> list[int]:
        """Return the numbers of the events of a trial, in order."""
        first, last = self._first[number], self._last[number]
        return [event for event in range(first, last + 1) if self._concerned[event] == number]

    def written_at(self, event: int) -> float:
        """Return when an event was written, in seconds since 1970."""
        return self._times[event]

    def n_revisions(self, event: int) -> int:
        """Return the number of revisions before an event."""
        return bisect_left(self._revised, event)

    def changed(self, start: int) -> list[int]:
        """Return, in order, the numbers of the trials to which the events from number `start` on belong."""
        is_revised = bool(self._revised) and start <= self._revised[-1]
        return sorted(set(self._concerned[0 if is_revised else start :]) - {_NONE})
