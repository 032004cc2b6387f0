"""When the events of a study were written, and which trial each of them concerns."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from belated.store.interface import Record


class Written(NamedTuple):
    """When the first and the last event of a trial were written, in seconds by the clocks of those who wrote them."""

    first: float
    last: float


class History:
    """What the store knows of the events of a log beside the events themselves."""

    def __init__(self) -> None:
        self._concerned: list[int | None] = []
        self._written: dict[int, Written] = {}

    def note(self, records: Sequence[Record], numbers: Iterable[int | None]) -> None:
        """Events that follow those known, and the number of the trial that each of them concerns."""
        for record, number in zip(records, numbers, strict=True):
            self._concerned.append(number)
            if number is not None:
                known = self._written.get(number)
                self._written[number] = Written(record.at if known is None else known.first, record.at)

    def written(self, number: int) -> Written:
        """When the first and the last event of a trial were written."""
        return self._written[number]

    def changed(self, start: int) -> list[int]:
        """The numbers of the trials that events from number `start` on concern, in order."""
        return sorted({number for number in self._concerned[start:] if number is not None})
